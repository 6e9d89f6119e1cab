"""The Kubernetes engine: the same Store over a real API server."""
