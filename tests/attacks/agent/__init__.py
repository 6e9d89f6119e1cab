"""What a node's tools may say, and what may stand on their command lines."""
