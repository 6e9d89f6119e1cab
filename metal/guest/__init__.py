"""What runs inside the machines."""
