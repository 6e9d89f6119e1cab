"""What was last seen of LVM on the node, and what follows from it.

``lv_attr`` is a row of flags; the ones that matter here: 0 the type (``V`` thin volume, ``t`` thin pool, ``T``, ``e``,
``i``, ``I`` and ``l`` parts of other volumes), 4 ``a`` active, 5 ``o`` open, 7 ``z`` new blocks are zeroed, 8 health
(``p`` partial, ``F`` failed, ``D`` out of space, ``M`` metadata read only, ``X`` unknown).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from quorate.api import names

#: Given by ``lvcreate``, taken away when the contents are as they must be. Only such a volume is ever wiped.
NEW: Final = "quorate.new"
#: Every byte that nobody has written since reads as zero.
ZERO: Final = "quorate.zero"
#: Whose volume it is: the UID of its LVMLogicalVolume. Survives the loss of the object's status.
_OWNER: Final = "quorate.llv="
#: For whom that was made: the UID of its replica. Survives the loss of the object itself.
_MADE_FOR: Final = "quorate.for="
#: Of which ReplicatedVolume its replica is one: a volume's name on the node may be cut short.
_VOLUME: Final = "quorate.volume="
#: What every tag of ours begins with.
_OURS: Final = "quorate."
#: SHA-512 of what it was filled with.
_CHECKSUM: Final = "quorate.sha512="
#: DRBD's metadata is on it; set and read by the replica's part.
METADATA_TAG: Final = "quorate.md"
#: A size that it had before it grew. DRBD's metadata may still be at that end.
_END: Final = "quorate.end="
#: The size to which it grows by extents that were zeroed before: at that size what it grew by is zero.
_GROWING: Final = "quorate.growing="
#: On extents that are being zeroed: for whose volume.
_SPARE: Final = "quorate.spare="

_PARTS: Final = ("T", "e", "i", "I", "l")
_HEALTH: Final = {
    "p": "devices of it are missing",
    "F": "it has failed",
    "D": "it is out of space",
    "M": "its metadata is read only",
    "X": "its state is unknown",
}


def owner_tag(uid: str) -> str:
    """The tag that says whose a volume is."""
    return _OWNER + uid


def is_owner_tag(tag: str) -> bool:
    """Whether a tag says whose a volume is."""
    return tag.startswith(_OWNER)


def made_for_tag(uid: str) -> str:
    """The tag that says for which replica a volume was made."""
    return _MADE_FOR + uid


def volume_tag(name: str) -> str:
    """The tag that says of which ReplicatedVolume it is a part."""
    return _VOLUME + name


def checksum_tag(checksum: str) -> str:
    """The tag that says what a volume was filled with."""
    return _CHECKSUM + checksum


def end_tag(size: int) -> str:
    """The tag that says where DRBD's metadata may still be."""
    return f"{_END}{size}"


def former_ends(tags: Iterable[str]) -> tuple[int, ...]:
    """The sizes at whose ends DRBD's metadata may still be, the largest first."""
    return tuple(sorted(_numbers(tags, _END), reverse=True))


def growing_tag(size: int) -> str:
    """The tag that says to which size a volume grows."""
    return f"{_GROWING}{size}"


def growing_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Every such tag."""
    return tuple(sorted(tag for tag in tags if tag.startswith(_GROWING)))


def spare_tag(uid: str) -> str:
    """The tag of extents that are being zeroed for an object's volume."""
    return _SPARE + uid


def spare_name(uid: str) -> str:
    """Their name."""
    return f"quorate-spare-{uid}"


def _numbers(tags: Iterable[str], prefix: str) -> Iterator[int]:
    found = (tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix))
    return (int(text) for text in found if text.isascii() and text.isdigit() and len(text) <= 20)


@dataclass(frozen=True, slots=True)
class SeenVolume:
    """A logical volume."""

    group: str
    name: str
    uuid: str = ""
    size: int = 0
    attributes: str = "----------"
    tags: frozenset[str] = frozenset()
    #: Of a thin volume, its pool.
    pool: str = ""
    #: Of a thin pool or volume: how much of it is written, in whole percent.
    used_percent: int | None = None
    #: What it lies on: paths of devices, or names of hidden volumes.
    parts: tuple[str, ...] = ()
    #: Its extents, as ``lvextend`` takes them: ``/dev/sdb:0-15``.
    extents: tuple[str, ...] = ()

    #: Where it is, as commands of LVM take it: "group/name".
    place: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", f"{self.group}/{self.name}")

    @property
    def path(self) -> str:
        """Its device."""
        return f"/dev/{self.place}"

    @property
    def is_pool(self) -> bool:
        """Whether it is a thin pool."""
        return self._flag(0) == "t"

    @property
    def is_part(self) -> bool:
        """Whether it is a part of another one: data and metadata of pools, their spare, images and logs of mirrors."""
        return self._flag(0) in _PARTS

    @property
    def active(self) -> bool:
        """Whether it has a device."""
        return self._flag(4) == "a"

    @property
    def open(self) -> bool:
        """Whether somebody holds its device open: DRBD does, of an attached disk."""
        return self._flag(5) == "o"

    @property
    def zeroing(self) -> bool:
        """Of a thin pool: whether new blocks are zeroed."""
        return self._flag(7) == "z"

    @property
    def trouble(self) -> str:
        """What is wrong with it, or nothing."""
        return _HEALTH.get(self._flag(8), "")

    @property
    def ours(self) -> bool:
        """Whether an agent made it, of whatever cluster."""
        return any(tag.startswith(_OURS) for tag in self.tags)

    @property
    def volume_name(self) -> str:
        """The ReplicatedVolume of which it is a part, by its tag; older ones have only their name. "": none."""
        said = next((tag.removeprefix(_VOLUME) for tag in sorted(self.tags) if tag.startswith(_VOLUME)), "")
        beginning, _, name = self.name.partition("-")
        return said or (names.volume_of_logical_volume(name) or "" if beginning == "replica" else "")

    @property
    def checksum(self) -> str:
        """Of what it was filled with."""
        return next((tag.removeprefix(_CHECKSUM) for tag in sorted(self.tags) if tag.startswith(_CHECKSUM)), "")

    def with_segment(self, other: SeenVolume) -> SeenVolume:
        """The same volume with another segment."""
        parts = tuple(dict.fromkeys((*self.parts, *other.parts)))
        return replace(self, parts=parts, extents=(*self.extents, *other.extents))

    def _flag(self, position: int) -> str:
        return self.attributes[position : position + 1]


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """A volume group."""

    name: str
    uuid: str = ""
    size: int = 0
    free: int = 0
    extent_size: int = 0
    #: How many of its devices are not there.
    missing: int = 0


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """A physical volume; one without a group is waiting for one."""

    path: str
    group: str = ""
    group_uuid: str = ""
    size: int = 0
    missing: bool = False


@dataclass(frozen=True, slots=True)
class SeenVolumes:
    """Every logical volume of the node, as one ``lvs`` told."""

    volumes: tuple[SeenVolume, ...] = ()
    #: Why there may be more than these; "" if these are all.
    incomplete: str = ""
    _by_place: Mapping[str, SeenVolume] = field(init=False, repr=False, compare=False)
    _new: tuple[SeenVolume, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_place", {volume.place: volume for volume in self.volumes})
        object.__setattr__(self, "_new", tuple(each for each in self.volumes if NEW in each.tags))

    def get(self, place: str) -> SeenVolume | None:
        """The volume at "group/name"."""
        return self._by_place.get(place)

    def places_other_than(self, other: SeenVolumes) -> tuple[str, ...]:
        """Where something has come, gone or changed. What a look found unchanged is often the very same."""
        one, two = self._by_place, other._by_place
        places = one if one.keys() == two.keys() else {**one, **two}
        return tuple(
            place for place in places if (mine := one.get(place)) is not (theirs := two.get(place)) and mine != theirs
        )

    def owned_by(self, uid: str) -> SeenVolume | None:
        """The volume made for the object with this UID, whatever group it is in."""
        return _tagged(self.volumes, owner_tag(uid))

    def spare_of(self, uid: str) -> SeenVolume | None:
        """The extents that are being zeroed for the volume of this object."""
        return _tagged(self._new, spare_tag(uid))

    def in_pool(self, group: str, pool: str) -> tuple[SeenVolume, ...]:
        """The thin volumes of a pool."""
        return tuple(volume for volume in self.volumes if (volume.group, volume.pool) == (group, pool))

    def devices_of(self, volume: SeenVolume) -> tuple[str, ...]:
        """The devices a volume lies on, through its pool and hidden volumes, sorted."""
        found: set[str] = set()
        visited: set[str] = set()
        pending = [volume.name]
        while pending:
            name = pending.pop()
            part = self.get(f"{volume.group}/{name}")
            if name in visited or part is None:
                continue
            visited.add(name)
            found.update(path for path in part.parts if path.startswith("/"))
            pending.extend(hidden for hidden in part.parts if not hidden.startswith("/"))
            if part.pool:
                pending.append(part.pool)
        return tuple(sorted(found))


def _tagged(volumes: Iterable[SeenVolume], tag: str) -> SeenVolume | None:
    return next((volume for volume in volumes if tag in volume.tags), None)


@dataclass(frozen=True, slots=True)
class SeenGroups:
    """Every volume group of the node and the devices of each, as ``vgs`` and ``pvs`` told."""

    groups: tuple[SeenGroup, ...] = ()
    devices: tuple[SeenDevice, ...] = ()
    #: Why there may be more than these; "" if these are all.
    incomplete: str = ""

    def named(self, name: str) -> tuple[SeenGroup, ...]:
        """Usually one. LVM allows two of one name, from a disk of another machine say, and then touches neither."""
        return tuple(group for group in self.groups if group.name == name)

    def get(self, name: str) -> SeenGroup | None:
        """The group of that name, if it is the only one."""
        found = self.named(name)
        return found[0] if len(found) == 1 else None

    def devices_of(self, group: SeenGroup) -> tuple[SeenDevice, ...]:
        """The devices of a group that are there, by path."""
        found = (device for device in self.devices if device.group_uuid == group.uuid and not device.missing)
        return tuple(sorted(found, key=lambda device: device.path))
