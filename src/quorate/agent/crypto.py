"""Which hash algorithms the kernel has now, from ``/proc/crypto``. Others it may load when they are needed."""

from __future__ import annotations


def parse_crypto(text: str) -> frozenset[str]:
    """The names in ``/proc/crypto``, lower case; ``hmac(sha256)`` also stands for what it wraps."""
    names = set()
    for line in text.splitlines():
        field, _, value = line.partition(":")
        if field.strip().lower() == "name":
            name = value.strip().lower()
            names.add(name)
            if name.startswith("hmac(") and name.endswith(")"):
                names.add(name.removeprefix("hmac(").removesuffix(")"))
    return frozenset(names)
