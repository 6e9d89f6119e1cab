"""What is left on the node and belongs to no object: logical volumes with our tags, and DRBD resources of ours.

They are told of, in the node's inventory (``status.orphans`` of the longhorn Node), and left alone. An agent sees only
objects with its node's label, from a cache: "no object" may mean that a label is wrong, that a store was restored from
an older copy, or that the agent was pointed at another cluster. A volume costs space; a copy removed by mistake costs
data. So one is removed only when a person says so, by its id (annotation ``quorate.io/remove-orphans``), and is still
an orphan then (decision 0014).

| seen                                                | is                                                             |
|-----------------------------------------------------|----------------------------------------------------------------|
| a logical volume with a tag of ours, and no object  | an orphan; if DRBD's metadata were made on it, it holds data   |
| has its UID, or its place                           |                                                                |
| a resource of the kernel, a file of ours, and no    | an orphan; if it has a disk, it holds data                     |
| replica here                                        |                                                                |
| the same, by a name that DRBD's tools take for      | an orphan, told of; nothing is done by its name                |
| something else (``all``)                            |                                                                |
| a resource without a file of ours                   | somebody else's                                                |

What cannot be seen now is not known to be gone: while LVM does not tell everything, or a file has yet to be looked for,
what was told of stays told of.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.agent.backoff import wait_before_retry, wait_before_trying
from quorate.agent.lvm import commands
from quorate.agent.lvm.failures import words_of
from quorate.agent.lvm.groups import without_object
from quorate.agent.lvm.piece import group_work
from quorate.agent.lvm.seen import METADATA_TAG, SeenVolume, SeenVolumes
from quorate.agent.memory import Outcome
from quorate.agent.node import LVM_LOOK, ORPHANS_KEY, Node, Wake, resource_work
from quorate.agent.replica.here import file_of
from quorate.agent.steps import FILE, KERNEL, LVM, Look, RemoveFile, Run, Step, kernel_of
from quorate.api import annotation_keys, longhorn, names
from quorate.api.longhorn.node import MAX_ORPHANS, Orphan, OrphanType
from quorate.api.meta import Bytes, Resource
from quorate.api.reserved import why_no_resource
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.drbd import DiskState, DrbdStatus, Role
from quorate.api.struct import replace
from quorate.engine import Controller, Key, PatchStatus, Plan, Reader, Watch, no_keys
from quorate.engine.logs import get_logger

log = get_logger(__name__)

#: Seconds between two checks, although nothing should have been missed; while one is to be removed, or not everything
#: has been looked at yet.
INTERVAL: Final = 600.0
WHILE_UNDER_WAY: Final = 5.0

_LOOKING: Final = "look/orphans"
_DOWN: Final = "down"
_RESOURCE: Final = "drbd/"


@dataclass(frozen=True, slots=True)
class OrphansView:
    """What was seen of the node, beside its objects."""

    inventory: longhorn.Node
    agent: str
    #: None: nobody has looked at LVM yet.
    volumes: SeenVolumes | None
    #: Logical volumes of ours without an object.
    left: tuple[SeenVolume, ...] = ()
    #: Resources of the kernel without a replica here; which of them have a file of ours; None: nobody has looked yet.
    resources: tuple[DrbdStatus, ...] | None = None
    with_file: frozenset[str] = frozenset()
    #: … of which of them nobody has looked for the file yet, and of which the kernel's words could not be read.
    unread: frozenset[str] = frozenset()
    #: What has to be looked at first, and in how many seconds that may be tried again.
    looks: tuple[Look, ...] = ()
    pause: float = 0.0
    #: What became of the last removals, by orphan.
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether everything was looked at: only then does the list say that there is nothing else."""
        return (
            self.volumes is not None and not self.volumes.incomplete and self.resources is not None and not self.looks
        )

    @property
    def asked(self) -> frozenset[str]:
        """What a person wants removed."""
        said = self.inventory.metadata.annotations.get(annotation_keys.REMOVE_ORPHANS, "")
        return frozenset(word.strip() for word in said.split(",")) - {""}


def found(view: OrphansView) -> tuple[Orphan, ...]:
    """Every orphan, as it is reported. Pure."""
    seen = [*map(_of_volume, view.left), *_of_resources(view)]
    there = {each.id for each in seen}
    for known in view.inventory.status.orphans:
        unseen = view.volumes is None or bool(view.volumes.incomplete)
        if known.type is OrphanType.RESOURCE:
            unseen = view.resources is None or known.name in view.unread
        if unseen and known.id not in there:
            seen.append(known)
    told = (replace(each, message=_why_not(view, each)) for each in seen)
    # Where they are too many, those with data must be among them: volumes of their names are not formed.
    listed = sorted(told, key=lambda each: (not each.holds_data, each.volume_name, each.name))[:MAX_ORPHANS]
    return tuple(sorted(listed, key=lambda each: (each.volume_name, each.name)))


def _of_volume(volume: SeenVolume) -> Orphan:
    return Orphan(
        id=volume.uuid or volume.place,
        type=OrphanType.LOGICAL_VOLUME,
        name=volume.place,
        volume_name=volume.volume_name,
        size=Bytes(volume.size),
        holds_data=METADATA_TAG in volume.tags,
        message=f"{volume.path} is open" if volume.open else "",
    )


def _of_resources(view: OrphansView) -> Iterator[Orphan]:
    for status in view.resources or ():
        if status.name not in view.with_file:
            continue
        device = status.devices[0] if status.devices else None
        held = status.role == Role.PRIMARY or (device is not None and device.open)
        in_use = f"{names.device_path(device.minor)} is in use" if held and device is not None else ""
        yield Orphan(
            id=f"{_RESOURCE}{status.name}",
            type=OrphanType.RESOURCE,
            name=status.name,
            volume_name=status.name,
            size=Bytes(device.size * 1024 if device is not None else 0),
            holds_data=device is not None and device.disk_state not in ("", DiskState.DISKLESS),
            message=why_no_resource(status.name) or in_use,
        )


def _why_not(view: OrphansView, orphan: Orphan) -> str:
    if orphan.message:
        return orphan.message
    last = view.outcomes.get(orphan.id)
    return words_of(last) if last is not None and not last.succeeded else ""


class Orphans:
    """Observes and decides for one node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def controller(self) -> Controller[OrphansView]:
        """What the manager runs."""
        return Controller(
            name="orphans",
            watches=(
                Watch(longhorn.Node, _the_key),
                Watch(LVMLogicalVolume, _the_key, when=_came_or_went),
                Watch(ReplicatedVolumeReplica, _the_key, when=_came_or_went),
                Watch(LVMVolumeGroup, no_keys),
            ),
            observe=self.observe,
            decide=self.decide,
            signals=(self._node.disks.only(lambda key: key == ORPHANS_KEY),),
            always=(ORPHANS_KEY,),
            workers=1,
        )

    def observe(self, reader: Reader, _: Key) -> OrphansView | None:
        """Compare the machine with the objects."""
        node, memory = self._node, self._node.memory
        inventory = reader.get(longhorn.Node, node.name, names.NAMESPACE)
        if inventory is None:
            return None
        volumes = memory.logical_volumes.value if memory.logical_volumes.holds() else None
        resources = self._resources(reader) if memory.whole_kernel.known else None
        files = {status.name: memory.file(file_of(node, status.name)) for status in resources or ()}
        unread = frozenset(name for name, seen in files.items() if not seen.current)
        looks = [Look(FILE, file_of(node, name)) for name in files if name in unread]
        # On a command line some names mean all of them: such a one is seen only when everything is looked at.
        nameable = (name for name in files if not why_no_resource(name))
        looks += [Look(KERNEL, name) for name in nameable if not memory.resource(name).current]
        if volumes is None:
            looks.append(Look(LVM))
        last = (memory.last(_LOOKING, Look(FILE).purpose), memory.last(LVM_LOOK, Look(LVM).purpose))
        return OrphansView(
            inventory=inventory,
            agent=node.identity,
            volumes=volumes,
            left=() if volumes is None else tuple(_left(reader, volumes)),
            resources=resources,
            with_file=frozenset(name for name, seen in files.items() if seen.value is not None),
            unread=unread | {name for name, seen in memory.kernel.items() if not seen.known},
            looks=tuple(looks),
            pause=max(wait_before_retry(each, node.clock.now()) for each in last),
            outcomes=self._outcomes(inventory),
        )

    def decide(self, view: OrphansView, now: datetime, _: Random) -> Plan:
        """Look, report, and remove what a person wants removed."""
        effects: list[Callable[[], None]] = []
        if view.looks and not view.pause:
            effects.append(partial(self._look, view.looks))
        orphans, status = found(view), view.inventory.status
        reporter = view.agent if view.is_complete else status.orphans_reported_by
        reported = replace(status, orphans=orphans, orphans_reported_by=reporter)
        effects += [partial(_tell, each) for each in orphans if all(each.id != known.id for known in status.orphans)]
        # Effects come after the status is written, which takes time: an object may be there by then. So only in a pass
        # that has nothing to write.
        settled = reported == status
        removals = [each for each in orphans if settled and each.id in view.asked and not _is_in_use(view, each)]
        effects += [
            partial(self._remove, view, each)
            for each in removals
            if not wait_before_trying(view.outcomes.get(each.id), now)
        ]
        is_under_way = reporter != view.agent or any(each.id in view.asked for each in orphans)
        again = WHILE_UNDER_WAY if is_under_way else INTERVAL
        return Plan(
            status=PatchStatus(view.inventory, replace(view.inventory, status=reported)),
            effects=tuple(effects),
            requeue_after=min(again, view.pause or again),
        )

    def _resources(self, reader: Reader) -> tuple[DrbdStatus, ...]:
        """What the kernel has and no replica of this node does."""
        replicas = reader.list(ReplicatedVolumeReplica)
        here = {each.spec.replicated_volume_name for each in replicas if each.spec.node_name == self._node.name}
        seen = self._node.memory.kernel.items()
        return tuple(each.value for name, each in seen if each.value is not None and name not in here)

    def _outcomes(self, inventory: longhorn.Node) -> dict[str, Outcome]:
        """How the last removal of each ended; of a resource, the step that failed."""
        ended: dict[str, Outcome] = {}
        for orphan in inventory.status.orphans:
            outcomes = self._node.memory.outcomes(_work(orphan.id)).values()
            latest = max(outcomes, key=lambda each: (not each.succeeded, each.at), default=None)
            if latest is not None:
                ended[orphan.id] = latest
        return ended

    def _look(self, looks: tuple[Look, ...]) -> None:
        wake = Wake(self._node.disks, ORPHANS_KEY)
        others = tuple(look for look in looks if look.at != LVM)
        if others:
            self._node.hands.start(_LOOKING, others, wake)
        if len(others) < len(looks):
            self._node.hands.start(LVM_LOOK, (Look(LVM),), wake)

    def _remove(self, view: OrphansView, orphan: Orphan) -> None:
        log.warning("an orphan is removed, as a person has said", orphan=orphan.name, volume=orphan.volume_name)
        wake = Wake(self._node.disks, ORPHANS_KEY)
        volume = next((each for each in view.left if each.uuid == orphan.id), None)
        if volume is not None:
            steps: tuple[Step, ...] = (commands.remove_very(volume), Look(LVM))
            self._node.hands.start(_work(orphan.id), steps, wake, beside=(group_work(volume.group),))
        elif orphan.type is OrphanType.RESOURCE:
            down = Run(("drbdsetup", "down", orphan.name), _DOWN, changes=(kernel_of(orphan.name),), despite_marks=True)
            file = file_of(self._node, orphan.name)
            files = tuple(RemoveFile(path, commands.REMOVE) for path in (f"{file}_tmp", f"{file}_new", file))
            steps = (down, *files, Look(KERNEL, orphan.name), Look(FILE, file))
            self._node.hands.start(_work(orphan.id), steps, wake, beside=(resource_work(orphan.name),))


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """What the manager runs."""
    return (Orphans(node).controller(),)


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """Nothing: whoever looks at LVM and at the kernel wakes it."""
    return ()


def _left(reader: Reader, volumes: SeenVolumes) -> Iterator[SeenVolume]:
    lacking = without_object(volumes, reader.list(LVMVolumeGroup), reader.list(LVMLogicalVolume))
    return (volume for volume in lacking if volume.ours)


def _is_in_use(view: OrphansView, orphan: Orphan) -> bool:
    """Whether it must not be touched; not seen now counts as that, and a name that commands take for all of them."""
    if orphan.type is OrphanType.LOGICAL_VOLUME:
        volume = next((each for each in view.left if each.uuid == orphan.id), None)
        return volume is None or volume.open
    if why_no_resource(orphan.name):
        return True
    status = next((each for each in view.resources or () if each.name == orphan.name), None)
    return status is None or status.role == Role.PRIMARY or any(device.open for device in status.devices)


def _tell(orphan: Orphan) -> None:
    log.warning(
        "something of ours belongs to no object; it is left alone", orphan=orphan.name, volume=orphan.volume_name
    )


def _work(orphan: str) -> str:
    return f"orphan/{orphan}"


def _the_key(_: Resource) -> Iterable[Key]:
    return (ORPHANS_KEY,)


def _came_or_went(before: Resource | None, after: Resource | None) -> bool:
    return before is None or after is None
