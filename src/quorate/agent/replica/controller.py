"""The controllers of replicas: from the caches and memory to a view, and from a decision to a plan."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.agent import looks
from quorate.agent.crypto import parse_crypto
from quorate.agent.kernel_watch import KernelWatch
from quorate.agent.memory import Outcome, Sighting
from quorate.agent.node import KERNEL_LOOK, LVM_LOOK, ORPHANS_KEY, Node, Wake, resource_work, volume_work
from quorate.agent.replica.decide import Decision, decide
from quorate.agent.replica.duty import duties, is_noted, note_work
from quorate.agent.replica.guard import Guard, guard_work
from quorate.agent.replica.here import (
    REPLICAS_BY_VOLUME,
    concerns_its_agent,
    file_of,
    known_secret,
    replicas_here,
    volume_key,
)
from quorate.agent.replica.hold import Holder, hold_work
from quorate.agent.replica.looking import KERNEL_SEEN, VOLUMES_SEEN, look_work
from quorate.agent.replica.lost_drive import lost_at, lost_drives
from quorate.agent.replica.promise import promise_work, promises
from quorate.agent.replica.quorum_loss import (
    QuorumLossWatch,
    gains_from_new_generation,
    loss_note_work,
    loss_work,
)
from quorate.agent.replica.quorum_loss import note_of as loss_note_of
from quorate.agent.replica.report import LONG_AGO, second_look
from quorate.agent.replica.role import force_work
from quorate.agent.replica.standstill import Signs, noted
from quorate.agent.replica.view import KernelView, Text, View
from quorate.agent.steps import KERNEL, Look, RemoveFile
from quorate.api import names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.finalizers import AGENT
from quorate.api.meta import VolumeName
from quorate.api.names import CLUSTER, logical_volume
from quorate.api.reserved import why_no_resource
from quorate.api.secret import Secret
from quorate.api.storage.drbd import DrbdActual, DrbdConfig, DrbdErrors, DrbdStatus
from quorate.api.storage.llv import LVMLogicalVolume
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.drbd.errors import UnwritableConfig
from quorate.drbd.marks import LinkRules, marked_peers
from quorate.drbd.resource_file import missing, render
from quorate.engine import (
    NOTHING,
    Controller,
    Key,
    PatchStatus,
    Plan,
    Reader,
    ReleaseFinalizer,
    Watch,
    Write,
    no_keys,
)
from quorate.engine.logs import get_logger

log = get_logger(__name__)

#: Events of a kernel come in bursts: links come up together, and a copy goes through half a dozen states before it
#: flows. So many seconds after the first, one look sees what came of them.
BURST = 0.05

_DEFAULTS = ClusterConfigSpec()

#: What is reported of a replica for which nothing was done: its status, its errors, and what has been realised.
_NOTHING_YET: Final = (None, DrbdErrors(), DrbdActual())


def _named(replica: ReplicatedVolumeReplica) -> str:
    """What its disk is called, also before anybody has said so."""
    spec = replica.spec
    if spec.lvm_volume_group_name is None:
        return ""
    return logical_volume(replica.name, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name or "")


def _volume_of_disk(volume: LVMLogicalVolume) -> Iterable[Key]:
    return (Key("", volume.volume_name),) if volume.volume_name else ()


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """The replicas of this node, and what is to be guarded of them."""
    looks.register(node)
    replicas = Replicas(node)
    return (
        Controller(
            name="replica",
            watches=(
                Watch(ReplicatedVolumeReplica, volume_key, when=replicas.are_concerned),
                Watch(LVMLogicalVolume, _volume_of_disk, when=replicas.have_begun_on),
                Watch(Drive, no_keys),
                Watch(ClusterConfig, no_keys),
            ),
            observe=replicas.observe,
            decide=replicas.decide,
            indexes=(REPLICAS_BY_VOLUME,),
            signals=(replicas,),
        ),
        duties(node),
        promises(node),
        lost_drives(node),
    )


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """Follow the kernel, guard second primaries, hold those without a disk, and watch for the loss of quorum."""
    watch = KernelWatch(node)
    return (
        watch.load_modules(),
        watch.follow(),
        watch.look_again(),
        Guard(node).keep(),
        Holder(node).keep(),
        QuorumLossWatch(node).keep(),
    )


def _last_known_file(node: Node, config: DrbdConfig) -> str:
    """As drbdadm names it, by the minor."""
    if config.device_minor is None:
        return ""
    return f"{node.settings.drbd_state_directory}/drbd-minor-{config.device_minor}.lkbd"


def _disk_of(config: DrbdConfig) -> str:
    """The logical volume that is to be the disk, as "group/name"."""
    return (config.disk or "").removeprefix("/dev/")


class Replicas:
    """Observes and decides with one node's memory."""

    def __init__(self, node: Node) -> None:
        self._node = node
        #: What the config of a resource was last rendered to: making the text costs more than the rest of a pass.
        self._texts: dict[str, tuple[DrbdConfig, Text | None, str, str]] = {}
        self._crypto: tuple[str, frozenset[str]] = ("", frozenset())

    def subscribe(self, listener: Callable[[Key], None]) -> Callable[[], None]:
        """What happens to resources, as a source of wake-ups. The end of work on one is told, and the end of a look."""
        occupied = self._node.hands.occupied

        def happened(key: Key) -> None:
            if occupied(resource_work(key.name)) or occupied(look_work(key.name)):
                return
            if self._is_only_to_be_looked_at(key.name):
                self._look_at(key)
            else:
                listener(key)

        return self._node.volumes.subscribe(happened)

    def are_concerned(self, before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
        """Whether something of a replica changes that there may be something to do about."""
        return concerns_its_agent(before, after) and (after is None or not self._is_not_begun(after))

    def have_begun_on(self, before: LVMLogicalVolume | None, after: LVMLogicalVolume | None) -> bool:
        """Whether anything was decided yet of the replica that a disk is for: when it begins, its disk is looked at."""
        return any(disk is not None and disk.volume_name in self._texts for disk in (before, after))

    def observe(self, reader: Reader, key: Key) -> tuple[View, ...] | None:
        """One view per replica of the volume on this node: one."""
        found = replicas_here(self._node, reader, key.name)
        if not found:
            self._forget(key.name)
            return None
        if why := why_no_resource(key.name):
            return tuple(self._never_touched(replica, key.name, why) for replica in found)
        if len(found) == 1 and self._is_not_begun(found[0]):
            return None
        cluster = reader.get(ClusterConfig, CLUSTER)
        settings = cluster.spec if cluster is not None else _DEFAULTS
        elder = ""
        views = []
        for replica in found:
            views.append(self._view(reader, replica, key.name, settings, elder))
            elder = elder or replica.name
        return tuple(views)

    def decide(self, views: tuple[View, ...], now: datetime, _: Random) -> Plan:
        """The decisions about them, as one plan."""
        writes: list[Write] = []
        effects: list[Callable[[], None]] = []
        again: float | None = None
        for view in views:
            decision = decide(view, now)
            replica = view.replica
            if decision.release:
                writes.append(ReleaseFinalizer(replica, AGENT, after=()))
                effects.append(partial(self._node.memory.forget_secret, view.resource))
                continue
            if decision.status != replica.status:
                writes.append(PatchStatus(replica, replace(replica, status=decision.status)))
            effects += self._effects(view, decision, now)
            if decision.again is not None:
                again = decision.again if again is None else min(again, decision.again)
        if not writes and not effects and again is None:
            return NOTHING
        return Plan(writes=tuple(writes), effects=tuple(effects), requeue_after=again)

    def _is_only_to_be_looked_at(self, resource: str) -> bool:
        """Whether the kernel has to be looked at, and nothing stands in the way: then there is nothing else to decide.

        Something happens to a resource many times before it is at rest: a pass over it would be made in vain each time.
        """
        if resource not in self._texts:
            return False
        memory, hands, sighting = self._node.memory, self._node.hands, self._node.memory.resource(resource)
        if sighting.current or sighting.error or not memory.whole_kernel.current or hands.busy(resource_work(resource)):
            return False
        looked = memory.last(look_work(resource), "look")
        return looked is None or looked.succeeded

    def _is_not_begun(self, replica: ReplicatedVolumeReplica) -> bool:
        """Whether it is no member yet, and nothing was done or said of it here: most of what comes to it comes before.

        Nothing is decided then but to wait (``need_config``), and there is nothing to report.
        """
        drbd, memory = replica.status.drbd, self._node.memory
        if drbd.config.datamesh_revision or replica.deleting or (drbd.status, drbd.errors, drbd.actual) != _NOTHING_YET:
            return False
        resource = replica.spec.replicated_volume_name
        if why_no_resource(resource):
            return False
        sighting, work = memory.resource(resource), resource_work(resource)
        return (
            sighting.current
            and sighting.value is None
            and not memory.outcomes(work)
            and not self._node.hands.busy(work)
        )

    def _look_at(self, key: Key) -> None:
        look = Look(KERNEL, key.name, after=BURST)
        self._node.hands.start(look_work(key.name), (look,), Wake(self._node.volumes, key))

    def _view(
        self, reader: Reader, replica: ReplicatedVolumeReplica, resource: str, settings: ClusterConfigSpec, elder: str
    ) -> View:
        node, memory = self._node, self._node.memory
        config, status = replica.status.drbd.config, replica.status
        if not elder:
            self._take_in(resource, config)
        file = file_of(node, resource)
        written, temporary = memory.file(file), memory.file(f"{file}_tmp")
        secret, unread = self._secret(resource, config)
        intended, incomplete, unwritable = (None, "", "") if unread else self._text(resource, config, secret)
        sighting, whole, volumes = memory.resource(resource), memory.whole_kernel, memory.logical_volumes
        owner, created = status.lvm_logical_volume_name, status.drbd.actual.metadata_created
        work = resource_work(resource)
        disk = owner or _named(replica)
        volume = reader.get(LVMLogicalVolume, disk) if disk else None
        return View(
            replica=replica,
            node_name=node.name,
            resource=resource,
            file=file,
            temporary_file=f"{file}_tmp",
            last_known_file=_last_known_file(node, config),
            kernel=KernelView(
                known=sighting.known,
                current=sighting.current,
                status=sighting.value,
                error=sighting.error,
                look_at_all=not whole.current and not whole.error and not node.hands.hung(KERNEL_LOOK),
            ),
            intended=intended,
            incomplete=incomplete,
            unwritable=unwritable,
            unread_secret=unread,
            secret=secret,
            files_current=written.current and temporary.current,
            written=written.value,
            unadjusted=temporary.value is not None,
            crypto_file=self._crypto_file,
            algorithms=self._algorithms(),
            max_peers=settings.drbd.max_peers,
            logical_volume=volume,
            drive_lost_at=lost_at(reader, volume),
            metadata_owner_exists=bool(created) and reader.get(LVMLogicalVolume, created) is not None,
            volumes_current=volumes.holds(_disk_of(config)),
            volume=volumes.value.get(_disk_of(config)) if volumes.value is not None else None,
            signs=self._signs(resource, sighting),
            seen_at=self._seen_at(resource),
            port_taken=self._is_port_taken(config),
            attempts={peer: tuple(times) for peer, times in memory.attempts.get(resource, {}).items()},
            outcomes=self._outcomes(work, resource),
            busy=node.hands.busy(work),
            hung=bool(node.hands.hung(work)),
            progress_reported=memory.progress_reported.get(resource),
            unreported_since=memory.unreported_since.get(resource),
            held=resource in memory.promises and memory.promises[resource].held,
            marked_since=memory.marked_since.get(resource, None if resource in memory.seen_unmarked else LONG_AGO),
            quorum_loss=memory.quorum_losses.get(resource),
            duty_noted=not config.yields or is_noted(node, resource, config),
            elder=elder,
        )

    def _take_in(self, resource: str, config: DrbdConfig) -> None:
        """What those act on who do not read the API: they begin before it answers."""
        memory = self._node.memory
        memory.link_rules[resource] = LinkRules.of(config)
        if not gains_from_new_generation(config):
            memory.renewable.discard(resource)
        elif resource not in memory.renewable:
            memory.renewable.add(resource)
            loss = memory.quorum_losses.get(resource)
            if loss is not None and loss.standing:
                self._node.quorum.wake(Key("", resource))

    def _signs(self, resource: str, sighting: Sighting[DrbdStatus]) -> Signs:
        """What should move and does not, as of the last look that holds."""
        memory, seen = self._node.memory, sighting.value
        # The same look again tells nothing new, and most passes have no other.
        if sighting.current and (seen is None or memory.noted.get(resource) is not seen):
            memory.signs[resource] = noted(memory.signs.get(resource, {}), seen, self._node.clock.now())
            memory.noted[resource] = seen
        return memory.signs.get(resource, {})

    def _seen_at(self, resource: str) -> datetime | None:
        """When the kernel's resource was last looked at."""
        memory = self._node.memory
        looks = (memory.last(work, "look") for work in (look_work(resource), KERNEL_LOOK))
        return max((look.at for look in looks if look is not None and look.succeeded), default=None)

    def _is_port_taken(self, config: DrbdConfig) -> bool:
        """Whether the port was found taken when its address was in doubt (``address``)."""
        address = config.address
        seen = self._node.memory.ports.get(f"{address.ipv4}:{address.port}") if address is not None else None
        return seen is not None and seen.value is False

    def _never_touched(self, replica: ReplicatedVolumeReplica, resource: str, why: str) -> View:
        """A view of what has such a name that even a look at it would be one at something else."""
        memory = self._node.memory
        seen, whole = memory.kernel.get(resource), memory.whole_kernel
        kernel = KernelView(
            known=whole.known,
            current=whole.current,
            status=None if seen is None else seen.value,
            look_at_all=not whole.current and not whole.error and not self._node.hands.hung(KERNEL_LOOK),
        )
        return View(replica, self._node.name, resource, file="", temporary_file="", kernel=kernel, unusable_name=why)

    def _effects(self, view: View, decision: Decision, now: datetime) -> Iterable[Callable[[], None]]:
        node, work = self._node, resource_work(view.resource)
        if decision.progress:
            yield partial(node.memory.progress_reported.__setitem__, view.resource, now)
        if decision.held_back and view.unreported_since is None:
            yield partial(node.memory.unreported_since.__setitem__, view.resource, now)
        elif view.unreported_since is not None and view.kernel.current and not (decision.held_back or view.elder):
            yield partial(node.memory.has_reported, view.resource)
        if view.kernel.current and not view.elder:
            marked = bool(marked_peers(view.status))
            if marked and view.marked_since is None:
                yield partial(node.memory.marked_since.__setitem__, view.resource, now)
                yield node.work(f"marks/{view.resource}", (second_look(view),), node.volumes, Key("", view.resource))
            elif not marked and view.marked_since is not None:
                yield partial(node.memory.has_no_marks, view.resource)
        if decision.drop:
            yield partial(node.memory.forget, work, *decision.drop)
        if decision.steps and decision.disk:
            yield partial(self._start_on_disk, view, decision)
        elif decision.steps:
            yield node.work(decision.work or work, decision.steps, node.volumes, Key("", view.resource))

    def _start_on_disk(self, view: View, decision: Decision) -> None:
        """Start what needs the disk for itself, unless the disk is, or may be, another than when that was decided."""
        wake = Wake(self._node.volumes, Key("", view.resource))
        volumes, disk = self._node.memory.logical_volumes, _disk_of(view.config)
        if not volumes.holds(disk) or volumes.value is None or volumes.value.get(disk) != view.volume:
            wake()
            return
        owner = volume_work(view.replica.status.lvm_logical_volume_name)
        self._node.hands.start(resource_work(view.resource), decision.steps, wake, beside=(owner,))

    def _secret(self, resource: str, config: DrbdConfig) -> tuple[Secret | None, str]:
        """What the Secret holds that the config names, and its name while that is not known."""
        given, name = config.shared_secret, names.shared_secret(VolumeName(resource))
        if given is None or given.reveal() != name or missing(config):
            return None, ""
        found = known_secret(self._node, resource)
        return found, "" if found is not None else name

    def _text(self, resource: str, config: DrbdConfig, secret: Secret | None) -> tuple[Text | None, str, str]:
        if secret is not None:
            config = replace(config, shared_secret=secret)
        known = self._texts.get(resource)
        if known is not None and (known[0] is config or known[0] == config):
            return known[1:]
        text: Text | None = None
        incomplete = unwritable = ""
        lacking = missing(config) if config.datamesh_revision else ("datameshRevision",)
        if lacking:
            incomplete = ", ".join(lacking)
        else:
            try:
                text = Text.of(render(VolumeName(resource), self._node.host_name, config))
            except UnwritableConfig as error:
                unwritable = str(error)
        self._texts[resource] = (config, text, incomplete, unwritable)
        return text, incomplete, unwritable

    @property
    def _crypto_file(self) -> str:
        return f"{self._node.settings.proc}/crypto"

    def _algorithms(self) -> frozenset[str] | None:
        text = self._node.memory.file(self._crypto_file).value
        if text is None:
            return None
        if text is not self._crypto[0]:
            self._crypto = (text, parse_crypto(text))
        return self._crypto[1]

    def _outcomes(self, work: str, resource: str) -> dict[str, Outcome]:
        memory = self._node.memory
        found = {**memory.outcomes(work), **memory.outcomes(force_work(resource))}
        for name, elsewhere in ((KERNEL_SEEN, look_work(resource)), (VOLUMES_SEEN, LVM_LOOK)):
            looked = memory.last(elsewhere, "look")
            if looked is not None:
                found[name] = looked
        return found

    def _forget(self, resource: str) -> None:
        """No replica here has this resource. What the kernel has of it belongs to somebody else and stays."""
        memory = self._node.memory
        memory.forget_secret(resource)
        sighting = memory.kernel.get(resource)
        if sighting is not None and sighting.value is not None and resource not in memory.strangers:
            memory.strangers.add(resource)
            self._node.disks.wake(ORPHANS_KEY)
        if self._texts.pop(resource, None) is not None:
            file = file_of(self._node, resource)
            for path in (file, f"{file}_tmp", f"{file}_new"):
                memory.files.pop(path, None)
            works = (
                resource_work,
                look_work,
                force_work,
                guard_work,
                note_work,
                hold_work,
                promise_work,
                loss_work,
                loss_note_work,
            )
            for work in (name(resource) for name in works):
                memory.forget(work)
        if (sighting is None or sighting.value is None) and memory.quorum_losses.pop(resource, None) is not None:
            gone = RemoveFile(loss_note_of(self._node, resource), "note")
            self._node.work(loss_note_work(resource), (gone,), self._node.volumes, Key("", resource))()
        # Who keeps a duty has to know that the resource is gone, and wakes us when the duty is given up.
        if (sighting is None or sighting.value is None) and resource not in memory.duties:
            if resource in memory.strangers:
                self._node.disks.wake(ORPHANS_KEY)
            memory.forget_resource(resource)
