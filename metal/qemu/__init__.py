"""Machines that this host boots by itself, under qemu."""
