"""The colours of ``drbdsetup status``, which it uses on a terminal only.

A state is good, bad, a primary's, plain or passing. What is said of the node itself is bright; of a peer it is not, and
a peer's passing states have no colour at all.
"""

from __future__ import annotations

from collections.abc import Mapping

_GOOD, _BAD, _PRIMARY, _PASSING, _PLAIN = "good", "bad", "primary", "passing", "plain"
_OWN = {_GOOD: "1;32", _BAD: "1;31", _PRIMARY: "1;36", _PASSING: "1"}
_PEERS = {_GOOD: "32", _BAD: "31", _PRIMARY: "36"}

_ROLES = {"Primary": _PRIMARY, "Secondary": _PLAIN}
_DISKS = {"UpToDate": _GOOD, "Diskless": _BAD, "Inconsistent": _BAD, "Outdated": _BAD}
_CONNECTIONS = {"Connected": _PLAIN, "StandAlone": _BAD, "Connecting": _BAD}
_REPLICATIONS = {
    "Established": _PLAIN,
    "SyncSource": _BAD,
    "SyncTarget": _BAD,
    "PausedSyncS": _PLAIN,
    "PausedSyncT": _BAD,
    "VerifyS": _PLAIN,
    "VerifyT": _PLAIN,
}
#: Replication states that say something about the node itself: its own data is what is behind.
_OWN_REPLICATIONS = frozenset({"SyncTarget", "PausedSyncT"})


class Palette:
    """Colours words, or leaves them as they are when nobody looks."""

    def __init__(self, *, used: bool) -> None:
        self._used = used

    def role(self, role: str, *, own: bool) -> str:
        return self._coloured(role, _ROLES.get(role, _PASSING), own=own)

    def disk(self, disk: str, *, own: bool, intended_diskless: bool) -> str:
        """A disk's state; to have none is as good as UpToDate where it is intended."""
        meaning = _GOOD if disk == "Diskless" and intended_diskless else _DISKS.get(disk, _PASSING)
        return self._coloured(disk, meaning, own=own)

    def connection(self, state: str) -> str:
        return self._coloured(state, _CONNECTIONS.get(state, _PASSING), own=True)

    def replication(self, state: str) -> str:
        return self._coloured(state, _REPLICATIONS.get(state, _PASSING), own=state in _OWN_REPLICATIONS)

    def yes_or_no(self, value: bool, *, good: bool) -> str:
        """A flag, and which value of it is good."""
        return self._coloured("yes" if value else "no", _GOOD if value == good else _BAD, own=True)

    def _coloured(self, word: str, meaning: str, *, own: bool) -> str:
        codes: Mapping[str, str] = _OWN if own else _PEERS
        if not self._used or meaning not in codes:
            return word
        return f"\033[{codes[meaning]}m{word}\033[0m"
