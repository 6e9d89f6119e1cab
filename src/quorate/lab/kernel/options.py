"""Options as drbdsetup spells them: defaults, what is set, and the few that the model acts on."""

from __future__ import annotations

from collections.abc import Mapping

MAJORITY = -1
ALL = -2
OFF = 0

RESOURCE_DEFAULTS: Mapping[str, str] = {
    "cpu-mask": "",
    "on-no-data-accessible": "io-error",
    "auto-promote": "yes",
    "peer-ack-window": "4096s",
    "peer-ack-delay": "100",
    "twopc-timeout": "300",
    "twopc-retry-timeout": "1",
    "auto-promote-timeout": "20",
    "max-io-depth": "8000",
    "quorum": "off",
    "on-no-quorum": "suspend-io",
    "quorum-minimum-redundancy": "off",
    "on-suspended-primary-outdated": "disconnect",
}

NET_DEFAULTS: Mapping[str, str] = {
    "transport": "",
    "protocol": "C",
    "timeout": "60",
    "max-epoch-size": "2048",
    "connect-int": "10",
    "ping-int": "10",
    "sndbuf-size": "0",
    "rcvbuf-size": "0",
    "ko-count": "7",
    "allow-two-primaries": "no",
    "cram-hmac-alg": "",
    "shared-secret": "",
    "after-sb-0pri": "disconnect",
    "after-sb-1pri": "disconnect",
    "after-sb-2pri": "disconnect",
    "always-asbp": "no",
    "rr-conflict": "disconnect",
    "ping-timeout": "5",
    "data-integrity-alg": "",
    "tcp-cork": "yes",
    "on-congestion": "block",
    "congestion-fill": "0s",
    "congestion-extents": "1237",
    "csums-alg": "",
    "csums-after-crash-only": "no",
    "verify-alg": "",
    "use-rle": "yes",
    "socket-check-timeout": "0",
    "fencing": "dont-care",
    "max-buffers": "2048",
    "allow-remote-read": "yes",
    "tls": "no",
    "tls-keyring": "0",
    "tls-privkey": "0",
    "tls-certificate": "0",
    "rdma-ctrl-rcvbuf-size": "0",
    "rdma-ctrl-sndbuf-size": "0",
    "_name": "",
}

DISK_DEFAULTS: Mapping[str, str] = {
    "size": "0s",
    "on-io-error": "detach",
    "disk-barrier": "no",
    "disk-flushes": "yes",
    "disk-drain": "yes",
    "md-flushes": "yes",
    "resync-after": "-1",
    "al-extents": "1237",
    "al-updates": "yes",
    "discard-zeroes-if-aligned": "yes",
    "disable-write-same": "no",
    "disk-timeout": "0",
    "read-balancing": "prefer-local",
    "rs-discard-granularity": "0",
}

PEER_DEVICE_DEFAULTS: Mapping[str, str] = {
    "resync-rate": "250k",
    "c-plan-ahead": "20",
    "c-delay-target": "10",
    "c-fill-target": "100s",
    "c-max-rate": "102400k",
    "c-min-rate": "250k",
    "bitmap": "yes",
}

KNOWN_ALGORITHMS = frozenset({"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "crc32c", "crc32", "xxhash64"})
"""What the simulated kernel's crypto knows, for cram-hmac-alg and verify-alg."""


class Options:
    """One set of options: the defaults and what was set over them."""

    __slots__ = ("defaults", "values")

    def __init__(self, defaults: Mapping[str, str], values: Mapping[str, str] = {}) -> None:
        self.defaults = defaults
        self.values = dict(values)

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, self.defaults[name])

    def changed(self, values: Mapping[str, str], *, set_defaults: bool) -> Options:
        """What the options become by a set command; ``set_defaults`` first puts all back to their defaults."""
        return Options(self.defaults, dict(values) if set_defaults else {**self.values, **values})

    def yes(self, name: str) -> bool:
        """A flag."""
        return self[name] == "yes"

    def number(self, name: str) -> int:
        """A plain number."""
        return int(self[name])


def votes(value: str) -> int:
    """The number behind ``quorum`` or ``quorum-minimum-redundancy``."""
    return {"off": OFF, "majority": MAJORITY, "all": ALL}.get(value) or int(value if value != "off" else 0)
