"""Every option of drbd.conf that drbdadm 9.22 checks: its kind, its bounds and what it is when nobody says.

The order within a group is the one in which ``drbdsetup show`` prints them and drbdadm lists them in its errors.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Kind(enum.Enum):
    """What values an option takes."""

    NUMBER = "number"
    FLAG = "yes or no"
    CHOICE = "one of a list"
    CHOICE_OR_NUMBER = "one of a list, or a number"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Option:
    """One option and what it may be set to."""

    name: str
    kind: Kind
    default: str
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    #: The unit of the number itself (``s`` are sectors); a suffix K, M, G in a file multiplies.
    unit: str = ""
    base: int = 1

    def problem(self, value: str) -> str | None:
        """What is wrong with a value, in drbdadm's words; None when it is fine."""
        if self.kind is Kind.FLAG:
            return None if value in ("yes", "no") else "not 'yes' or 'no'"
        if self.kind is Kind.TEXT:
            return None if len(value) <= self.high else f"too long.\nmax len: {self.high}"
        if value in self.choices:
            return None
        if self.kind is Kind.CHOICE:
            return f"not valid.\nAllowed values are: {' | '.join(self.choices)}"
        number = self.number(value)
        if number is None:
            return "not a number" if self.kind is Kind.NUMBER else "not valid"
        if number < self.low:
            return "too small"
        return "too big" if number > self.high else None

    def number(self, value: str) -> int | None:
        """A number with an optional suffix, in the option's own unit."""
        factors = {"s": 512, "k": 1024, "m": 1024**2, "g": 1024**3}
        digits, factor = (value[:-1], factors[value[-1].lower()]) if value[-1:].lower() in factors else (value, None)
        try:
            plain = int(digits)
        except ValueError:
            return None
        return plain if factor is None else plain * factor // self.base

    def canonical(self, value: str) -> str:
        """How ``drbdsetup show`` prints the value."""
        if self.kind in (Kind.NUMBER, Kind.CHOICE_OR_NUMBER) and value not in self.choices:
            return f"{self.number(value)}{self.unit}"
        return value


def _number(name: str, low: int, high: int, default: int, unit: str = "", base: int = 1) -> Option:
    return Option(name, Kind.NUMBER, f"{default}{unit}", low, high, unit=unit, base=base)


def _flag(name: str, default: bool) -> Option:
    return Option(name, Kind.FLAG, "yes" if default else "no")


def _choice(name: str, default: str, *choices: str) -> Option:
    return Option(name, Kind.CHOICE, default, choices=choices)


def _text(name: str, longest: int = 63) -> Option:
    return Option(name, Kind.TEXT, "", high=longest)


def _votes(name: str) -> Option:
    return Option(name, Kind.CHOICE_OR_NUMBER, "off", 1, 32, ("off", "majority", "all"))


def _group(*options: Option) -> Mapping[str, Option]:
    return {option.name: option for option in options}


RESOURCE = _group(
    _text("cpu-mask", 908),
    _choice("on-no-data-accessible", "io-error", "io-error", "suspend-io"),
    _flag("auto-promote", True),
    _number("peer-ack-window", 2048, 204800, 4096, "s", 512),
    _number("peer-ack-delay", 1, 10000, 100),
    _number("twopc-timeout", 50, 600, 300),
    _number("twopc-retry-timeout", 1, 50, 1),
    _number("auto-promote-timeout", 0, 600, 20),
    _number("max-io-depth", 4, 2**32 - 1, 8000),
    _votes("quorum"),
    _choice("on-no-quorum", "suspend-io", "io-error", "suspend-io"),
    _votes("quorum-minimum-redundancy"),
    _choice("on-suspended-primary-outdated", "disconnect", "disconnect", "force-secondary"),
)

NET = _group(
    _text("transport", 127),
    _choice("protocol", "C", "A", "B", "C"),
    _number("timeout", 1, 600, 60),
    _number("max-epoch-size", 1, 20000, 2048),
    _number("connect-int", 1, 120, 10),
    _number("ping-int", 1, 120, 10),
    _number("sndbuf-size", 0, 128 << 20, 0),
    _number("rcvbuf-size", 0, 128 << 20, 0),
    _number("ko-count", 0, 200, 7),
    _flag("allow-two-primaries", False),
    _text("cram-hmac-alg"),
    _text("shared-secret"),
    _choice(
        "after-sb-0pri",
        "disconnect",
        "disconnect",
        "discard-younger-primary",
        "discard-older-primary",
        "discard-zero-changes",
        "discard-least-changes",
        "discard-local",
        "discard-remote",
    ),
    _choice(
        "after-sb-1pri",
        "disconnect",
        "disconnect",
        "consensus",
        "discard-secondary",
        "call-pri-lost-after-sb",
        "violently-as0p",
    ),
    _choice("after-sb-2pri", "disconnect", "disconnect", "call-pri-lost-after-sb", "violently-as0p"),
    _flag("always-asbp", False),
    _choice("rr-conflict", "disconnect", "disconnect", "violently", "call-pri-lost", "retry-connect", "auto-discard"),
    _number("ping-timeout", 1, 300, 5),
    _text("data-integrity-alg"),
    _flag("tcp-cork", True),
    _choice("on-congestion", "block", "block", "pull-ahead", "disconnect"),
    _number("congestion-fill", 0, 10 << 21, 0, "s", 512),
    _number("congestion-extents", 67, 65534, 1237),
    _text("csums-alg"),
    _flag("csums-after-crash-only", False),
    _text("verify-alg"),
    _flag("use-rle", True),
    _number("socket-check-timeout", 0, 300, 0),
    _choice("fencing", "dont-care", "dont-care", "resource-only", "resource-and-stonith"),
    _number("max-buffers", 32, 131072, 2048),
    _flag("allow-remote-read", True),
    _number("rdma-ctrl-rcvbuf-size", 0, 128 << 20, 0),
    _number("rdma-ctrl-sndbuf-size", 0, 128 << 20, 0),
    _text("_name", 63),
)

DISK = _group(
    _number("size", 0, 2**52, 0, "s", 512),
    _choice("on-io-error", "detach", "pass_on", "call-local-io-error", "detach"),
    _flag("disk-barrier", False),
    _flag("disk-flushes", True),
    _flag("disk-drain", True),
    _flag("md-flushes", True),
    _number("resync-after", -1, 1 << 30, -1),
    _number("al-extents", 0, 65534, 1237),
    _flag("al-updates", True),
    _flag("discard-zeroes-if-aligned", True),
    _flag("disable-write-same", False),
    _number("disk-timeout", 0, 6000, 0),
    _choice(
        "read-balancing",
        "prefer-local",
        "prefer-local",
        "prefer-remote",
        "round-robin",
        "least-pending",
        "when-congested-remote",
        "32K-striping",
        "64K-striping",
        "128K-striping",
        "256K-striping",
        "512K-striping",
        "1M-striping",
    ),
    _number("rs-discard-granularity", 0, 1 << 20, 0),
)

PEER_DEVICE = _group(
    _number("resync-rate", 1, 8 << 20, 250, "k", 1024),
    _number("c-plan-ahead", 0, 300, 20),
    _number("c-delay-target", 1, 100, 10),
    _number("c-fill-target", 0, 1 << 20, 100, "s", 512),
    _number("c-max-rate", 0, 4 << 20, 102400, "k", 1024),
    _number("c-min-rate", 0, 4 << 20, 250, "k", 1024),
    _flag("bitmap", True),
)

ALL: Mapping[str, Option] = {**RESOURCE, **NET, **DISK, **PEER_DEVICE}
#: Options of commands rather than of files that need a value.
_OF_COMMANDS = frozenset({"max-peers", "sync-from-peer-node-id", "start", "stop", "peer-max-bio-size"})


def takes_value(name: str) -> bool:
    """Whether an option must have a value, so that the next word is it; flags may stand alone."""
    return name in _OF_COMMANDS or (name in ALL and ALL[name].kind is not Kind.FLAG)


HANDLERS = (
    "pri-on-incon-degr",
    "pri-lost-after-sb",
    "pri-lost",
    "initial-split-brain",
    "split-brain",
    "outdate-peer",
    "fence-peer",
    "unfence-peer",
    "local-io-error",
    "before-resync-target",
    "after-resync-target",
    "before-resync-source",
    "out-of-sync",
    "quorum-lost",
    "disconnected",
)
