"""Gives numbers to nodes, drives, volumes and replicas: once each, and none ever again.

First the counter in the ledger is moved on, by one compare-and-swap for as many as are lacking; then each number is
written onto its object. Whatever happens in between, a number is at most lost. There is one key and one worker, and a
number that was once meant for an object is never meant for another: so two attempts at a write whose outcome is unknown
do the same.

A number that two objects have (somebody copied an object, or restored an old one) stays with the older. A volume and
its replicas are numbered when the volume is born: until then it changes at every moment, and there is nothing to ask.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final, Protocol

from quorate.api import core
from quorate.api.annotation_keys import BROKER_ID
from quorate.api.baremetal import Drive
from quorate.api.meta import Resource
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.datamesh import TransitionType
from quorate.api.struct import replace
from quorate.engine import Controller, Index, Key, Patch, Plan, Reader, Signal, Watch
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.maintenance.broker.declined import Declined
from quorate.maintenance.live.asking import PAUSE
from quorate.maintenance.live.numbers import Names, Numbers, number_on

log = get_logger(__name__)

THE_NUMBERS: Final = Key("", "broker-numbers")
#: So many are written in one pass: a plan is not to grow with the cluster.
AT_ONCE: Final = 50

LACKING: Final = "without a number"
BY_NUMBER: Final = "by number"
#: The one value of ``LACKING``.
YES: Final = "yes"

KINDS: Final[tuple[type[Resource], ...]] = (core.Node, Drive, ReplicatedVolume, ReplicatedVolumeReplica)


class Ledger(Protocol):
    """Where the last numbers given are kept."""

    async def take_numbers(self, *, nodes: int = 0, drives: int = 0, groups: int = 0) -> tuple[range, range, range]:
        """Move the counters on by so many; returns what is then free, in this order. Declined: not now."""
        ...


@dataclass(frozen=True, slots=True)
class Lacking:
    """Objects that need a number."""

    #: With the numbers that are meant for them.
    ready: tuple[tuple[Resource, int], ...]
    #: How many more must be taken, by counter.
    missing: Mapping[str, int]


class Allocation:
    """The controller, and the numbers that it has in hand."""

    def __init__(
        self, ledger: Ledger, names: Names, start: Callable[[Coroutine[Any, Any, None]], None], clock: Clock
    ) -> None:
        """``start`` has something carried on beside the passes."""
        self._clock = clock
        self._ledger = ledger
        self._names = names
        self._start = start
        self._signal = Signal()
        #: Taken from the ledger, and meant for nobody yet; by counter.
        self._free: dict[str, deque[int]] = {"nodes": deque(), "drives": deque(), "groups": deque()}
        #: By uid.
        self._meant: dict[str, int] = {}
        self._taking = False

    def begin(self) -> None:
        """A new term: what was taken in another is not used any more."""
        for free in self._free.values():
            free.clear()
        self._meant.clear()
        self._taking = False

    def wake(self) -> None:
        """Look again: two objects have one number."""
        self._signal.wake(THE_NUMBERS)

    def controller(self) -> Controller[Any]:
        """One key, one worker."""
        return Controller(
            name="broker-numbers",
            watches=tuple(Watch(cls, _the_numbers, when=_matters) for cls in KINDS),
            observe=self._observe,
            decide=self._decide,
            indexes=(
                *(Index(cls, LACKING, _if_lacking) for cls in KINDS),
                *(Index(cls, BY_NUMBER, _number_if_any) for cls in KINDS),
            ),
            signals=(self._signal,),
            workers=1,
        )

    def _observe(self, reader: Reader, _: Key) -> Lacking | None:
        lacking = [obj for cls in KINDS for obj in reader.find(cls, LACKING, YES) if _is_due(reader, obj)]
        lacking += self._disputed(reader)
        if not lacking:
            return None
        ready: list[tuple[Resource, int]] = []
        missing = Counter[str]()
        for obj in lacking:
            number = self._meant_for(obj)
            if number is not None:
                ready.append((obj, number))
            else:
                missing[_counter_of(obj)] += 1
        return Lacking(tuple(ready), missing)

    def _decide(self, lacking: Lacking, _: datetime, __: Random) -> Plan:
        # The pass that sees these goes on with the rest.
        return Plan(
            writes=tuple(_write(obj, number) for obj, number in lacking.ready[:AT_ONCE]),
            effects=(partial(self._take_more, lacking.missing),) if lacking.missing else (),
        )

    def _meant_for(self, obj: Resource) -> int | None:
        uid = obj.metadata.uid
        if uid not in self._meant:
            free = self._free[_counter_of(obj)]
            if not free:
                return None
            self._meant[uid] = free.popleft()
        return self._meant[uid]

    def _disputed(self, reader: Reader) -> Iterator[Resource]:
        """Of objects with the same number, all but the oldest."""
        names = self._names
        sorts: tuple[Numbers[Any], ...] = (names.nodes, names.drives, names.groups, names.replicas)
        for cls, numbers in zip(KINDS, sorts, strict=True):
            for number in sorted({number_on(reader.get(cls, name)) or 0 for name in numbers.disputed}):
                yield from sorted(reader.find(cls, BY_NUMBER, str(number)), key=_age)[1:]

    def _take_more(self, missing: Mapping[str, int]) -> None:
        if not self._taking:
            self._taking = True
            self._start(self._take(missing))

    async def _take(self, missing: Mapping[str, int]) -> None:
        """Move the counters on, above whatever is written on objects: also a ledger that was lost gives none twice."""
        try:
            wanted = {name: missing.get(name, 0) for name in self._free}
            while any(wanted.values()):
                taken = dict(zip(self._free, await self._ledger.take_numbers(**wanted), strict=True))
                for name, numbers in taken.items():
                    usable = numbers[max(0, self._highest(name) + 1 - numbers.start) :]
                    self._free[name].extend(usable[: missing.get(name, 0)])
                    lacking = missing.get(name, 0) - len(usable)
                    wanted[name] = lacking + max(0, self._highest(name) - numbers.stop + 1) if lacking > 0 else 0
        except Declined as declined:
            log.warning("no numbers for new objects", why=str(declined))
            await self._clock.sleep(PAUSE)
        finally:
            self._taking = False
            self._signal.wake(THE_NUMBERS)

    def _highest(self, counter: str) -> int:
        names = self._names
        match counter:
            case "nodes":
                return names.nodes.highest
            case "drives":
                return names.drives.highest
            case _:
                return max(names.groups.highest, names.replicas.highest)


def _write(obj: Resource, number: int) -> Patch:
    annotations = {**obj.metadata.annotations, BROKER_ID: str(number)}
    return Patch(obj, replace(obj, metadata=replace(obj.metadata, annotations=annotations)))


def _counter_of(obj: Resource) -> str:
    """Replicas share the counter of volumes."""
    match obj:
        case core.Node():
            return "nodes"
        case Drive():
            return "drives"
        case _:
            return "groups"


def _is_due(reader: Reader, obj: Resource) -> bool:
    match obj:
        case ReplicatedVolume():
            return _is_born(obj)
        case ReplicatedVolumeReplica():
            volume = reader.get(ReplicatedVolume, obj.spec.replicated_volume_name)
            return volume is not None and _is_born(volume)
        case _:
            return True


def _is_born(volume: ReplicatedVolume) -> bool:
    status = volume.status
    forming = any(each.type is TransitionType.FORMATION for each in status.datamesh_transitions)
    return status.datamesh_revision > 0 and not forming


def _if_lacking(obj: Resource) -> Iterable[str]:
    return (YES,) if number_on(obj) is None and not obj.deleting else ()


def _number_if_any(obj: Resource) -> Iterable[str]:
    number = number_on(obj)
    return (str(number),) if number is not None else ()


def _age(obj: Resource) -> tuple[str, str]:
    return str(obj.metadata.creation_timestamp or ""), obj.name


def _the_numbers(_: Resource) -> Iterable[Key]:
    return (THE_NUMBERS,)


def _matters(before: Resource | None, after: Resource | None) -> bool:
    """Something comes, loses its number or has another, or a volume is born."""
    if before is None or after is None:
        return after is not None
    if isinstance(before, ReplicatedVolume) and isinstance(after, ReplicatedVolume):
        return number_on(before) != number_on(after) or _is_born(before) != _is_born(after)
    return number_on(before) != number_on(after)
