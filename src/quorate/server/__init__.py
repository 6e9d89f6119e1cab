"""The outside: the Kubernetes REST facade, and what serves people and other programs."""
