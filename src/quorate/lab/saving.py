"""The hardware of a simulated cluster as a file, so that drives hold tomorrow what was written to them today.

Objects are written as what they are: the name of their class and their attributes, each object once, others refer to
it by number. Only the classes listed here are ever made from a file. A file that another version wrote, with other
classes or other attributes, is not used: the drives are then new and empty, and the log says so.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from quorate.errors import QuorateError
from quorate.lab.drives import Drive, Medium, Smart
from quorate.lab.kernel.block import BlockDevice
from quorate.lab.kernel.extents import BlockMap, BlockSet
from quorate.lab.kernel.metadata import Flag, LogBlock, Metadata, PeerFlag, PeerMetadata
from quorate.lab.lvm.groups import LogicalVolume, PhysicalVolume, ThinPool, ThinVolume, VolumeGroup
from quorate.lab.lvm.volume import Ground, Run

_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        BlockDevice,
        BlockMap,
        BlockSet,
        Drive,
        Ground,
        LogicalVolume,
        Metadata,
        PeerMetadata,
        PhysicalVolume,
        Run,
        Smart,
        ThinPool,
        ThinVolume,
        VolumeGroup,
    )
}
_ENUMS: dict[str, type[enum.Enum]] = {cls.__name__: cls for cls in (Flag, Medium, PeerFlag)}
_PLAIN: Final = frozenset({type(None), bool, int, float, str})
_SEQUENCES: Final = frozenset({list, tuple})
_SETS: Final = frozenset({set, frozenset})


class Unusable(QuorateError):
    """A file that this version cannot make hardware from."""


def dump(value: object) -> bytes:
    """Anything made of the classes above and of plain values."""
    writer = _Writer()
    root = writer.write(value)
    return msgspec.json.encode({"root": root, "objects": writer.objects})


def load(data: bytes) -> Any:
    """What was dumped. Raises Unusable."""
    try:
        document = msgspec.json.decode(data)
        return _Reader(document["objects"]).read(document["root"])
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unusable(f"it was written by another version, or is damaged: {error!r}") from None


class _Writer:
    """Goes by the exact type of each value: everything is written at every report of an agent."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # so that no id is given twice

    def write(self, value: Any) -> Any:
        """Plain values as they are; everything else as a list that says what it is."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in _SEQUENCES:
            return [kind.__name__, [each if type(each) in _PLAIN else self.write(each) for each in value]]
        if kind is dict:
            return ["dict", [[self.write(key), self.write(each)] for key, each in value.items()]]
        if kind in _SETS:
            return [kind.__name__, [self.write(each) for each in sorted(value, key=repr)]]
        if kind is bytes:
            return ["bytes", value.decode("latin-1")]
        if kind is LogBlock:
            return ["log", self.write(value.extents)]
        if isinstance(value, enum.Enum):
            return ["enum", kind.__name__, value.value]
        return ["object", self._object(value)]

    def _object(self, value: Any) -> int:
        known = self._numbers.get(id(value))
        if known is not None:
            return known
        name = type(value).__name__
        if _CLASSES.get(name) is not type(value):
            raise TypeError(f"{type(value)} is not known as a part of the hardware")
        number = self._numbers[id(value)] = len(self.objects)
        self._kept.append(value)
        self.objects.append(None)
        self.objects[number] = [name, {key: self.write(getattr(value, key)) for key in _attributes(value)}]
        return number


class _Reader:
    def __init__(self, written: list[Any]) -> None:
        self._written = written
        self._made: dict[int, Any] = {}

    def read(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        what, content = value[0], value[1]
        match what:
            case "enum":
                return _ENUMS[content](value[2])
            case "bytes":
                return content.encode("latin-1")
            case "log":
                return LogBlock(self.read(content))
            case "dict":
                return {self.read(key): self.read(each) for key, each in content}
            case "list":
                return [self.read(each) for each in content]
            case "tuple":
                return tuple(self.read(each) for each in content)
            case "set":
                return {self.read(each) for each in content}
            case "frozenset":
                return frozenset(self.read(each) for each in content)
            case "object":
                return self._object(content)
        raise ValueError(f"{what!r} is not known")

    def _object(self, number: int) -> Any:
        if number not in self._made:
            name, attributes = self._written[number]
            cls = _CLASSES[name]
            made = self._made[number] = object.__new__(cls)
            for key, value in attributes.items():
                object.__setattr__(made, key, self.read(value))
            # Raises AttributeError for what this version has and that one had not.
            for key in _declared(cls):
                getattr(made, key)
        return self._made[number]


def _attributes(value: object) -> Iterable[str]:
    slots, more = _SLOTS[type(value)], getattr(value, "__dict__", None)
    return slots if more is None else (*slots, *more)


def _declared(cls: type[Any]) -> list[str]:
    fields = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    return [*_SLOTS[cls], *fields]


def _slots(cls: type[Any]) -> tuple[str, ...]:
    found: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found += (slots,) if isinstance(slots, str) else slots
    return tuple(found)


_SLOTS: Final = {cls: _slots(cls) for cls in _CLASSES.values()}
