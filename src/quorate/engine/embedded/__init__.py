"""The embedded engine: Kubernetes' semantics over a SQLite file in this process."""
