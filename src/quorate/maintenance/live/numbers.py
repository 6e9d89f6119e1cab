"""By which number the broker knows an object: read from it, or made up until it has one.

Numbers are given once (``allocation``) and stored on the object, in the annotation ``maintenance.quorate.io/id``. But
an object counts from the moment it is there: a volume that nobody has numbered yet must be kept writable as well. So
until then, and while two objects claim one number, it goes by a number below zero, which means nothing elsewhere.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from quorate.api.annotation_keys import BROKER_ID
from quorate.api.meta import NodeName, Resource, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.maintenance.nouns import DriveId, VDiskId

N = TypeVar("N", bound=str)

#: More digits than any number that is ever given: what somebody has made up is not believed.
_DIGITS = 12
#: Above this a number stays with its object, and none is given above it on its account: a slip of a hand is not to use
#: up, for good, the numbers that there are. No cluster has ever given so many.
_FAR = 10**9


def number_on(obj: Resource | None) -> int | None:
    """The number that is written on an object; None: there is none, or it makes no sense."""
    text = obj.metadata.annotations.get(BROKER_ID, "") if obj is not None else ""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS) or text.startswith("0"):
        return None
    return int(text)


class Numbers(Generic[N]):
    """Of one sort of objects, by their names."""

    def __init__(self) -> None:
        #: Grows whenever something goes by another number than before.
        self.version = 0
        #: The highest that was seen on any object, but for those that nobody can have been given.
        self.highest = 0
        #: Whose number is somebody else's.
        self.disputed: set[N] = set()
        self._of: dict[N, int] = {}
        self._names: dict[int, N] = {}
        self._made_up = 0

    def of(self, name: N) -> int:
        """The number that something goes by, whether its object is known or not."""
        found = self._of.get(name)
        return self._set(name, self._make_up()) if found is None else found

    def name(self, number: int) -> N | None:
        """Who goes by a number."""
        return self._names.get(number)

    def read(self, name: N, obj: Resource | None) -> int:
        """Note what is written on an object, if it is there; returns the number that it goes by."""
        written = number_on(obj)
        if written is not None and written <= _FAR:
            self.highest = max(self.highest, written)
        if obj is not None and written is not None and self._names.get(written, name) != name:
            self.disputed.add(name)
        else:
            self.disputed.discard(name)
        if obj is None or (written is not None and written == self._of.get(name)):
            return self.of(name)
        if written is not None and written not in self._names:
            return self._set(name, written)
        before = self._of.get(name)
        return before if before is not None and before < 0 else self._set(name, self._make_up())

    def forget(self, name: N) -> None:
        """The object is gone, and nobody speaks of it any more."""
        self.disputed.discard(name)
        self._drop(name)

    def _drop(self, name: N) -> None:
        number = self._of.pop(name, None)
        if number is not None:
            del self._names[number]
            self.version += 1

    def _set(self, name: N, number: int) -> int:
        self._drop(name)
        self._of[name] = number
        self._names[number] = name
        self.version += 1
        return number

    def _make_up(self) -> int:
        self._made_up -= 1
        return self._made_up


class Names:
    """Everything that the broker has a number for."""

    def __init__(self) -> None:
        self.nodes: Numbers[NodeName] = Numbers()
        self.drives: Numbers[str] = Numbers()
        self.groups: Numbers[VolumeName] = Numbers()
        self.replicas: Numbers[ReplicaName] = Numbers()

    @property
    def version(self) -> int:
        """Grows whenever anything goes by another number than before."""
        return self.nodes.version + self.drives.version + self.groups.version + self.replicas.version

    @property
    def disputed(self) -> bool:
        """Whether two objects have one number."""
        return bool(self.nodes.disputed or self.drives.disputed or self.groups.disputed or self.replicas.disputed)

    def object_of(self, item: int | DriveId | VDiskId) -> str | None:
        """The name of the Node, the Drive or the replica that goes by this."""
        match item:
            case DriveId():
                return self.drives.name(item.drive)
            case VDiskId():
                return self.replicas.name(item.vdisk)
            case _:
                return self.nodes.name(item)
