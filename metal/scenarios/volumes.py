"""Volumes with agents and controllers: formed, used, cut, moved, grown, replaced, deleted, and nothing left behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from metal import people
from metal.machines import Writer
from metal.people import attach, detach, homes, make_pool, make_volume, nothing_left, state, until_condition
from metal.scenarios.storage import drive_of, until_phase
from metal.stage import Scenario, Stage
from quorate.api import annotation_keys
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import OperationalStatus
from quorate.api.cluster_config import ClusterConfig
from quorate.api.names import CLUSTER
from quorate.api.storage import (
    LVMVolumeGroup,
    ReplicatedVolume,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeReplica,
)

#: The newest writes that are compared on every copy.
_COMPARED = 300


async def begin(stage: Stage, level: str, *, thin: bool = False, nodes: Iterable[str] = ()) -> tuple[str, str]:
    """A volume, formed and attached where its first copy is; that node, and the device."""
    await make_pool(stage, level, thin=thin, nodes=nodes)
    await stage.machines.sleep(5)
    await make_volume(stage, level)
    await until_condition(stage, "v")
    copies, _ = await homes(stage)
    return copies[0], await attach(stage, copies[0])


async def write(stage: Stage, node: str, device: str, tag: str, *, first: int = 10, seconds: float = 3.0) -> Writer:
    """Write for a while, and go on; call its ``stop``."""
    writer = await stage.machines.start_writer(node, device, tag, first=first, pause=0.05, sync=False)
    await stage.machines.sleep(seconds)
    return writer


async def compare(stage: Stage, *writers: Writer, lost: int = 0) -> None:
    """Every acknowledged write must be on every copy."""
    copies, _ = await homes(stage)
    for writer in writers:
        blocks = writer.acknowledged()[-_COMPARED:]
        stage.hold(f"writer {writer.tag} was answered", bool(blocks))
        lacking: dict[str, list[int]] = {}
        for node in copies:
            device = await people.backing_device(stage, node)
            found = await stage.machines.read_blocks(node, device, blocks)
            wanted = [f"{block}.{writer.tag}" for block in blocks]
            if missing := [block for block, text, want in zip(blocks, found, wanted, strict=True) if text != want]:
                lacking[node] = missing
        few = all(len(missing) <= lost for missing in lacking.values())
        stage.hold(f"every copy has what was acknowledged to writer {writer.tag}", few, lacking)


async def until_whole(stage: Stage, seconds: float = 300.0) -> None:
    """Until the volume is in sync and nothing is under way."""
    for wanted in ("Ready", "AllReplicasReady", "Resilient"):
        await until_condition(stage, "v", wanted, seconds)


async def end(stage: Stage, *nodes: str) -> None:
    """Detached and deleted; nothing may be left on any machine."""
    for node in nodes:
        await detach(stage, node)
    await stage.machines.store.delete(ReplicatedVolume, "v")
    await people.until_gone(stage, ReplicatedVolume, "v", 240)
    await stage.machines.sleep(5)
    left = {what: found for what, found in (await nothing_left(stage)).items() if found}
    stage.see("left behind", left)
    stage.hold("nothing is left behind", not left, left)


# --- scenarios ---


async def life(stage: Stage, level: str, *, thin: bool = False) -> None:
    """Formed, attached, written, compared, deleted."""
    node, device = await begin(stage, level, thin=thin)
    stage.see("formed and attached", await state(stage))
    writer = await write(stage, node, device, "a")
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    stage.see("written", await state(stage))
    await end(stage, node)


async def moved(stage: Stage, level: str) -> None:
    """The using node is cut off under a writer; the volume is used elsewhere, the link heals, all is compared."""
    node, device = await begin(stage, level)
    copies, _ = await homes(stage)
    other = next(each for each in copies if each != node)
    writer = await write(stage, node, device, "a")
    await stage.machines.isolate(node)
    await stage.machines.sleep(15)
    held = [each for each in writer.writes if each.result == ""]
    stage.hold("its writer waits", bool(held))
    await stage.machines.heal()
    await until_whole(stage)
    await stage.machines.sleep(2)
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    await detach(stage, node)
    second = await write(stage, other, await attach(stage, other), "b", first=12_000)
    await second.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer, second)
    stage.see("moved", await state(stage))
    await end(stage, other)


async def one_way(stage: Stage) -> None:
    """Only frames from one to the other get lost: nothing acknowledged may be."""
    node, device = await begin(stage, "3D")
    copies, _ = await homes(stage)
    other = next(each for each in copies if each != node)
    writer = await write(stage, node, device, "a")
    await stage.machines.cut(node, other, one_way=True)
    await stage.machines.sleep(20)
    await stage.machines.heal()
    await until_whole(stage)
    await stage.machines.sleep(2)
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    stage.see("healed", await state(stage))
    await end(stage, node)


async def secondary_lost(stage: Stage, level: str) -> None:
    """A copy's node loses power under a writer, and comes back."""
    node, device = await begin(stage, level)
    copies, _ = await homes(stage)
    other = next(each for each in copies if each != node)
    writer = await write(stage, node, device, "a")
    await stage.machines.power_off(other)
    await stage.machines.sleep(20)
    stage.hold("I/O goes on", writer.writes[-1].began > stage.machines.now() - 10)
    await stage.machines.power_on(other)
    await until_whole(stage)
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    stage.see("whole again", await state(stage))
    await end(stage, node)


async def primary_lost(stage: Stage, level: str) -> None:
    """The using node loses power; the volume is used elsewhere meanwhile; all that was acknowledged is there."""
    node, device = await begin(stage, level)
    copies, _ = await homes(stage)
    other = next(each for each in copies if each != node)
    writer = await write(stage, node, device, "a")
    await stage.machines.power_off(node)
    await writer.stop()
    # The node is off for certain: a person says so, and its use ends.
    await stage.machines.store.delete(ReplicatedVolumeAttachment, f"v-on-{node}")
    forced = {annotation_keys.FORCE_DETACH: node, annotation_keys.ACCEPT_DATA_LOSS: "true"}
    await stage.machines.sleep(15)
    await stage.machines.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": forced}})
    second = await write(stage, other, await attach(stage, other, seconds=240), "b", first=12_000)
    await second.stop()
    await stage.machines.power_on(node)
    await until_whole(stage)
    await compare(stage, writer, second)
    await end(stage, other)


async def grow(stage: Stage, level: str, *, loses_power: str = "", after: float = 0.0, thin: bool = False) -> None:
    """Grown under a writer; with a power loss of a node so long after it was asked for."""
    node, device = await begin(stage, level, thin=thin)
    copies, _ = await homes(stage)
    victim = {"user": node, "other": next((each for each in copies if each != node), "")}.get(loses_power, "")
    writer = await write(stage, node, device, "a")
    if level == "2D":
        # It grows only while nobody uses it (docs/volumes.md).
        await writer.stop()
        await detach(stage, node)
    await stage.machines.store.patch(ReplicatedVolume, "v", patch={"spec": {"size": "96Mi"}})
    if victim:
        await stage.machines.sleep(after)
        await stage.machines.power_off(victim)
        await stage.machines.sleep(15)
        await stage.machines.power_on(victim)
    await until_grown(stage, "v", 96 << 20)
    await until_whole(stage)
    if level == "2D":
        device = await attach(stage, node)
    await stage.machines.sleep(1)
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    if victim != node:
        said = await stage.machines.expect(node, f"blockdev --getsize64 {device}")
        stage.hold("the device has grown", int(said) >= 96 << 20, said)
    # Whoever loses power now, long after the growth, must come back with a good copy.
    for each in copies:
        await stage.machines.power_off(each)
        await stage.machines.sleep(15)
        await stage.machines.power_on(each)
        await until_whole(stage)
    await compare(stage, writer)
    stage.see("grown", await state(stage))
    await end(stage, node)


async def until_grown(stage: Stage, name: str, size: int) -> None:
    """Until the volume says that it is so large."""

    async def check() -> bool:
        found = await stage.machines.store.get(ReplicatedVolume, name)
        moves = [f"{each.type} {each.replica_name} {each.message}" for each in found.status.datamesh_transitions]
        told = (
            f"{name}: {found.status.actual_size}, growing to {found.status.growing_to} {found.status.message} {moves}"
        )
        stage.machines.journal.tell(stage.machines.now(), "", told)
        return found.status.actual_size is not None and int(found.status.actual_size) >= size

    await stage.machines.until(f"{name} has {size} bytes", check, 300, every=1.0)


async def replaced(stage: Stage) -> None:
    """2D on three machines: a copy's replica is deleted under a writer, and made anew on the third."""
    node, device = await begin(stage, "2D")
    copies, _ = await homes(stage)
    other = next(each for each in copies if each != node)
    writer = await write(stage, node, device, "a")
    gone = (await people.replicas(stage))[other]
    await stage.machines.store.delete(ReplicatedVolumeReplica, gone.name)
    await people.until_gone(stage, ReplicatedVolumeReplica, gone.name, 300)
    await until_whole(stage)
    await writer.stop()
    await stage.machines.sleep(1)
    copies, _ = await homes(stage)
    stage.hold("there are two copies", len(copies) == 2, copies)
    await compare(stage, writer)
    await end(stage, node)


async def drive_under_volume(stage: Stage) -> None:
    """The drive under a copy is pulled under a writer, and replaced: copies are made again by themselves."""
    grace = {"spec": {"gracePeriods": {"driveMissing": "20s"}}}
    node, device = await begin(stage, "2D")
    await stage.machines.store.patch(ClusterConfig, CLUSTER, patch=grace)
    copies, _ = await homes(stage)
    other = next(each for each in copies if each != node)
    writer = await write(stage, node, device, "a")
    serial = stage.machines.drives(other)[0]
    await stage.machines.pull(other, serial)
    await until_phase(stage, serial, OperationalStatus.RELEASED, 400)
    old = await drive_of(stage, serial)
    ready = {"metadata": {"annotations": {annotation_keys.DRIVE_REPLACEMENT[0]: "ready"}}}
    await stage.machines.store.patch(Drive, old.name, patch=ready)
    await until_phase(stage, serial, OperationalStatus.REMOVED, 300)
    await until_whole(stage)
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    await stage.machines.plug(other, f"{serial}-new")
    selector = {"spec": {"deviceSelector": {"serialNumbers": [f"{serial}-new"]}}}
    await stage.machines.store.patch(LVMVolumeGroup, f"{other}-{people.GROUP}", patch=selector)
    await people.until_group(stage, f"{other}-{people.GROUP}", 200)
    await end(stage, node)


async def copy_lost_under_access(stage: Stage) -> None:
    """2D, used on a node without a copy; one copy's disk is detached by force (E4): held, brought back, let go."""
    await begin(stage, "2D")
    copies, _ = await homes(stage)
    user = next(each for each in stage.machines.nodes if each not in copies)
    await detach(stage, copies[0])
    device = await attach(stage, user)
    writer = await write(stage, user, device, "a")
    minor = device.removeprefix("/dev/drbd")
    detached = stage.machines.now()
    await stage.machines.run(copies[1], f"drbdsetup detach {minor} --force")
    await stage.machines.sleep(10)
    window = [
        each for each in writer.writes if each.result == "ok" and each.began > detached and each.ended < detached + 3
    ]
    stage.answer("writes acknowledged in the first three seconds after the detach", len(window))
    await until_whole(stage)
    await stage.machines.sleep(2)
    stage.hold("its writer goes on in the end", writer.writes[-1].began > stage.machines.now() - 5)
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    await end(stage, user)


async def agents_die(stage: Stage, level: str) -> None:
    """Every agent dies before and after each of its commands, through a whole life."""
    await stage.machines.kill_agents_at_commands(stage.machines.nodes)
    await make_pool(stage, level)
    await make_volume(stage, level)
    await until_condition(stage, "v", seconds=900)
    copies, _ = await homes(stage)
    device = await attach(stage, copies[0], seconds=400)
    writer = await write(stage, copies[0], device, "a")
    if level == "2D":
        await writer.stop()
        await detach(stage, copies[0], seconds=400)
    await stage.machines.store.patch(ReplicatedVolume, "v", patch={"spec": {"size": "80Mi"}})
    await until_grown(stage, "v", 80 << 20)
    await until_whole(stage, 600)
    await writer.stop()
    await stage.machines.sleep(1)
    await compare(stage, writer)
    died = {node: len(await stage.machines.deaths(node)) for node in stage.machines.nodes}
    stage.answer("deaths", died)
    stage.hold("agents died", sum(died.values()) > 10, died)
    await end(stage, *([] if level == "2D" else copies[:1]))


Play = Callable[[Stage], Awaitable[None]]


def _volume(name: str, about: str, play: Play, nodes: int = 3, seconds: float = 400.0) -> Scenario:
    return Scenario(name, about, play, nodes=nodes, drbd=True, seconds=seconds)


SCENARIOS = (
    *(
        _volume(
            f"life-{name}",
            f"{level}{' thin' if thin else ''}: formed, written, deleted",
            partial(life, level=level, thin=thin),
            nodes=nodes,
        )
        for name, level, thin, nodes in (
            ("1d", "1D", False, 1),
            ("2d", "2D", False, 2),
            ("2d-1tb", "2D+1TB", False, 3),
            ("3d", "3D", False, 3),
            ("3d-thin", "3D", True, 3),
        )
    ),
    *(
        _volume(
            f"moved-{name}",
            f"{level}: the using node is cut off, then it is used elsewhere",
            partial(moved, level=level),
        )
        for name, level in (("2d-1tb", "2D+1TB"), ("3d", "3D"))
    ),
    _volume("one-way-cut", "3D: one direction of one link is cut", one_way),
    *(
        _volume(f"secondary-lost-{name}", f"{level}: a copy's node loses power", partial(secondary_lost, level=level))
        for name, level in (("2d-1tb", "2D+1TB"), ("3d", "3D"))
    ),
    *(
        _volume(f"primary-lost-{name}", f"{level}: the using node loses power", partial(primary_lost, level=level))
        for name, level in (("2d-1tb", "2D+1TB"), ("3d", "3D"))
    ),
    *(
        _volume(
            f"grow-{name}", f"{level}: grown under a writer, then power losses", partial(grow, level=level), seconds=900
        )
        for name, level in (("2d", "2D"), ("3d", "3D"))
    ),
    _volume("grow-thin", "3D thin: the same", partial(grow, level="3D", thin=True), seconds=900),
    *(
        _volume(
            f"grow-{who}-lost-{index}",
            f"3D: the {who} node loses power {after:g} s into the growth",
            partial(grow, level="3D", loses_power=who, after=after),
            seconds=900,
        )
        for who in ("user", "other")
        for index, after in enumerate((0.5, 2.0, 5.0), 1)
    ),
    _volume("access-copy-lost", "2D used without a copy: a disk is detached by force", copy_lost_under_access),
    _volume("replaced", "2D: a replica is deleted and made anew elsewhere", replaced),
    _volume("drive-under-volume", "2D: the drive under a copy is pulled and replaced", drive_under_volume, seconds=600),
    *(
        _volume(
            f"agents-die-{name}",
            f"{level}: agents die at every command",
            partial(agents_die, level=level),
            nodes=nodes,
            seconds=1200,
        )
        for name, level, nodes in (("2d", "2D", 2), ("2d-1tb", "2D+1TB", 3))
    ),
)
