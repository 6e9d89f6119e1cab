"""Waits: why something does not go on, in a form that conditions, transitions and ``explain`` all can show.

A wait is data: a code, words for a person that name who and which, and the objects that block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from quorate.api import names as api_names
from quorate.api.meta import Resource
from quorate.api.names import replica_id
from quorate.api.scalars import ReplicaName
from quorate.locks import Hold, Thing

#: What ``status.datameshTransitions[].message`` has room for.
MESSAGE_LIMIT = 512


class Blocker(msgspec.Struct, frozen=True, gc=False):
    """An object that stands in the way."""

    kind: str
    name: str

    @classmethod
    def of(cls, obj: Resource) -> Blocker:
        """The object itself."""
        return cls(obj.KIND.name, obj.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Wait(msgspec.Struct, frozen=True, gc=False):
    """Something is not done now, because."""

    #: A CamelCase code.
    reason: str
    message: str
    blockers: tuple[Blocker, ...] = ()

    def brief(self, limit: int = MESSAGE_LIMIT) -> str:
        """The message, cut to what a field has room for."""
        return shortened(self.message, limit)


def for_permissions(holds: Sequence[tuple[Thing, Hold]], *, because: str = "") -> Wait:
    """Somebody may take these down: what that forbids waits until they have given it back, or it has ended."""
    told = "; ".join(f"{thing} may go down by {hold}" for thing, hold in holds)
    return Wait(
        "PermissionHeld", f"{because}: {told}" if because else told, tuple(_permission(hold) for _, hold in holds)
    )


def _permission(hold: Hold) -> Blocker:
    parsed = api_names.parse_broker_id(hold.permission_id)
    return Blocker("Permission", api_names.permission(parsed[1]) if parsed is not None else hold.permission_id)


def shortened(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """A text that fits, and shows when it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def ids(names: Iterable[ReplicaName]) -> str:
    """Replicas by their ids, as in 002's messages: ``[0 2]``."""
    return f"[{' '.join(str(number) for number in sorted(replica_id(name) for name in names))}]"


def grouped(groups: Sequence[tuple[str, Iterable[ReplicaName]]]) -> str:
    """Only groups that are not empty: ``waiting for an address [0 1]; on a node that is not eligible [2]``."""
    shown = ((words, tuple(names)) for words, names in groups)
    return "; ".join(f"{words} {ids(names)}" for words, names in shown if names)
