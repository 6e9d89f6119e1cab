"""A primary that loses quorum and gets it back (E2, E1, E4): who has the write that waited, what helps. DRBD alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from metal.kernel import Resource, formed
from metal.stage import Scenario, Stage

#: Seconds between the healing of one link and of the next.
_APART = 8.0
#: What is done on the suspended primary before links heal, and what lets it go when they have.
PREVENTIONS: dict[str, tuple[str, str]] = {
    "none": ("", ""),
    "new-current-uuid": ("drbdadm new-current-uuid {name}/0", ""),
    "suspend-io": ("drbdadm suspend-io {name}/0", "drbdadm resume-io {name}/0"),
}


async def heal(resource: Resource, order: str) -> None:
    """All links of the primary at once, or one peer's long before the other's."""
    machines, (first, *others) = resource.machines, resource.nodes
    if order == "one by one":
        for peer in others:
            await machines.heal((first, peer))
            await machines.sleep(_APART)
    await machines.heal()


async def stale(resource: Resource, block: int) -> list[str]:
    """The disks that lack a block though its writer was told that it is written."""
    holders = await resource.holders(block)
    return [node for node in resource.diskful if node not in holders]


async def one_cut(stage: Stage, resource: Resource, block: int, kind: str, order: str, *, busy: bool) -> list[str]:
    """The primary is isolated, a write waits, help is given, links heal; whose disk lacks the write."""
    machines, primary = stage.machines, resource.diskful[0]
    before, after = (text.format(name=resource.name) for text in PREVENTIONS[kind])
    writer = None
    if busy:
        writer = await machines.start_writer(primary, resource.device, "w", first=block, pause=0.02, sync=False)
        await machines.sleep(3)
    await machines.isolate(primary)
    write = None if busy else await resource.begin_write(primary, block)
    await resource.until_suspended(primary)
    if before:
        said = await machines.run(primary, before)
        stage.hold(f"{before} works on a suspended primary, and does not wait", said.exit == 0, said)
        stage.answer(f"{kind}, {block}: opening the suspended device", await _opens(resource, primary))
    await heal(resource, order)
    await resource.until_links(resource.nodes, seconds=90)
    if after:
        said = await machines.run(primary, after)
        stage.hold(f"{after} works", said.exit == 0, said)
    if writer is not None:
        await machines.sleep(3)
        await writer.stop()
        acknowledged = writer.acknowledged()
        stage.hold("the busy writer went on", len(acknowledged) > 10, len(acknowledged))
        lacking = await resource.compare(acknowledged[-400:])
        return sorted(lacking)
    assert write is not None
    stage.hold("the write that waited is acknowledged", await write.settle(60))
    return await stale(resource, block)


async def _opens(resource: Resource, node: str) -> str:
    """What happens to somebody who opens a suspended device."""
    said = await resource.machines.run(node, f"blockdev --getsize64 {resource.device}", seconds=5)
    return "waits" if said.exit is None else f"exit {said.exit}"


async def prevention(stage: Stage, layout: str, kind: str, order: str, *, busy: bool) -> None:
    """The same cut three times, with the same help."""
    resource = await formed(stage, layout)
    primary = resource.diskful[0]
    for number in range(3):
        lacking = await one_cut(stage, resource, 100 + 2000 * number, kind, order, busy=busy)
        marks = await resource.marks()
        stage.answer(f"cut {number + 1}: disks that lack an acknowledged write", lacking)
        stage.answer(f"cut {number + 1}: marks left", marks)
        if kind == "new-current-uuid":
            stage.hold("no disk lacks an acknowledged write", not lacking, lacking)
        elif lacking or marks:
            # The next cut must begin from good copies: the full cure, which the facts show to work.
            for node in [each for each in resource.diskful if each != primary]:
                await resource.on(node, f"invalidate {resource.name}/0", seconds=60)
                await resource.until_good(resource.diskful)
            stage.hold("invalidate mends it", not await stale(resource, 100 + 2000 * number) or busy)
    await resource.until_good(resource.diskful)
    stage.see("states at the end", await resource.states_at_the_end())
    await resource.end()


async def cure(stage: Stage, kind: str) -> None:
    """A stale peer, made as E2 makes it, is cured while the primary is written to; every write is compared."""
    resource = await formed(stage, "3D")
    machines, (primary, *others) = stage.machines, resource.diskful
    lacking = await one_cut(stage, resource, 100, "none", "one by one", busy=False)
    stage.answer("stale before the cure", lacking)
    target = lacking[0] if lacking else others[-1]
    writer = await machines.start_writer(primary, resource.device, "w", first=3000, pause=0.1, sync=False)
    await machines.sleep(1)
    if kind == "small":
        await machines.run(primary, f"drbdadm verify {resource.name}:{target}/0")
        await resource.until_links(resource.nodes, seconds=120)
        said = await machines.run(primary, f"drbdadm invalidate-remote --reset-bitmap=no {resource.name}:{target}/0")
    else:
        said = await machines.run(target, f"drbdadm invalidate {resource.name}/0", seconds=60)
    stage.hold("the cure is accepted", said.exit == 0, said)
    await machines.sleep(3)
    await resource.until_good(resource.diskful)
    await resource.until_links(resource.nodes, seconds=120)
    await machines.sleep(1)
    await writer.stop()
    stage.hold("the write that waited is on every disk", not await stale(resource, 100))
    missing = await resource.compare(writer.acknowledged())
    stage.hold("every write of the time of the cure is on every disk", not missing, missing)
    stage.answer("marks left by the cure", await resource.marks())
    await resource.end()


async def failover_with_help(stage: Stage, kind: str) -> None:
    """The help against staleness does not spoil an ordinary fail-over during the cut."""
    resource = await formed(stage, "3D")
    machines, (primary, second, _) = stage.machines, resource.diskful
    await machines.isolate(primary)
    write = await resource.begin_write(primary, 100)
    await resource.until_suspended(primary)
    before, after = (text.format(name=resource.name) for text in PREVENTIONS[kind])
    if before:
        await machines.run(primary, before)
    await resource.until_promoted(second)
    writer = await machines.start_writer(second, resource.device, "b", first=200, pause=0.05, sync=False)
    await machines.sleep(3)
    await machines.heal()
    if after:
        await machines.sleep(3)
        await machines.run(primary, after)
    await machines.sleep(10)
    stage.answer("the write that waited on the old primary", (await write.said(5)).exit)
    await resource.until_good(resource.diskful)
    await writer.stop()
    missing = await resource.compare(writer.acknowledged(), "b")
    stage.hold("every write of the new primary is on every disk", not missing, missing)
    stage.see("states at the end", await resource.states_at_the_end())
    await resource.end()


async def in_flight(stage: Stage, *, sync: bool) -> None:
    """2D+1TB: the using node is cut off under a writer, the other copy takes over, the link heals (E1)."""
    resource = await formed(stage, "2D+1TB")
    machines, (primary, second) = stage.machines, resource.diskful
    writer = await machines.start_writer(primary, resource.device, "a", first=100, pause=0.005, sync=sync)
    await machines.sleep(3)
    began = machines.now()
    await machines.isolate(primary)
    await resource.until_suspended(primary)
    acknowledged = [each for each in writer.writes if each.result == "ok" and each.began > began + 0.5]
    stage.hold("nothing begun after the cut was acknowledged", not acknowledged, acknowledged[:3])
    await resource.until_promoted(second)
    other = await machines.start_writer(second, resource.device, "b", first=4000, pause=0.02, sync=False)
    await machines.sleep(3)
    await machines.heal()
    await machines.sleep(10)
    await writer.stop()
    await resource.until_good(resource.diskful)
    await other.stop()
    missing = await resource.compare(other.acknowledged(), "b")
    stage.hold("every write of the new primary is on every disk", not missing, missing)
    last = writer.acknowledged()[-300:]
    lost = sorted(set.intersection(*(set(each) for each in (await _lacking_everywhere(resource, last, "a")))))
    stage.answer("acknowledged writes of the old primary that are on no disk", len(lost))
    if sync:
        stage.hold("with O_DSYNC no acknowledged write is lost", not lost, lost)
    stage.see("states at the end", await resource.states_at_the_end())
    await resource.end()


async def in_flight_failed_first(stage: Stage) -> None:
    """E1, its window closed: I/O is held after the cut and failed before links heal. What is its writer told?"""
    resource = await formed(stage, "2D+1TB")
    machines, (primary, second) = stage.machines, resource.diskful
    await machines.isolate(primary)
    write = await resource.begin_write(primary, 100, "a")
    await resource.until_suspended(primary)
    stage.answer("suspend-io", (await machines.run(primary, f"drbdadm suspend-io {resource.name}/0")).exit)
    said = await machines.run(primary, f"drbdadm secondary --force {resource.name}", seconds=20)
    stage.answer("secondary --force before links heal", said.exit)
    stage.answer("the write in flight, then", (await write.said(10)).exit)
    await resource.until_promoted(second)
    stage.hold("the other copy takes writes", await resource.write(second, 200, "b"))
    await machines.heal()
    await machines.sleep(5)
    stage.answer("resume-io afterwards", (await machines.run(primary, f"drbdadm resume-io {resource.name}/0")).exit)
    stage.answer("the write in flight, in the end", (await write.said(10)).exit)
    await resource.until_good(resource.diskful)
    stage.answer("disks that have the write in flight", await resource.holders(100, "a"))
    stage.hold("both have the new primary's write", await resource.holders(200, "b") == resource.diskful)
    await resource.end()


async def _lacking_everywhere(resource: Resource, blocks: list[int], tag: str) -> list[list[int]]:
    lacking = await resource.compare(blocks, tag)
    return [lacking.get(node, []) for node in resource.diskful]


async def held_diskless_primary(stage: Stage, *, hold: bool) -> None:
    """2D used from a member without a disk, one copy's disk is detached (E4); with ``hold`` its I/O is held at once."""
    resource = await formed(stage, "2D+A")
    machines, (first, second), user = stage.machines, resource.diskful, resource.nodes[2]
    await resource.on(first, f"secondary {resource.name}")
    await resource.on(user, f"primary {resource.name}")
    writer = await machines.start_writer(user, resource.device, "w", first=100, pause=0.05, sync=False)
    await machines.sleep(2)
    detached = machines.now()
    await machines.run(second, f"drbdadm detach --force {resource.name}/0", seconds=20)
    held = False
    if hold:
        said = await machines.run(user, f"drbdadm suspend-io {resource.name}/0")
        held = stage.answer("its I/O can be held", said.exit == 0)
        if not held:
            # A primary that refuses to count again must, when a link ends: that cannot be refused.
            await machines.run(user, f"drbdadm disconnect --force {resource.name}:{second}", seconds=20)
            await machines.sleep(1)
            again = await machines.run(user, f"drbdadm suspend-io {resource.name}/0")
            held = stage.answer("it can be held once the link to the lost copy has ended", again.exit == 0)
        began = machines.now()
        await machines.sleep(5)
        after = [each for each in writer.writes if each.result == "ok" and each.ended > began + 0.5]
        stage.hold("nothing is acknowledged while I/O is held", not held or not after, after[:3])
    await machines.sleep(6)
    one_copy = [each for each in writer.writes if each.result == "ok" and each.began > detached]
    stage.answer("writes acknowledged after the detach", len(one_copy))
    stage.answer("states after the detach", await resource.states("detached"))
    said = await machines.run(second, f"drbdadm adjust {resource.name}")
    stage.answer("adjust attaches the disk again", said.exit == 0)
    await machines.sleep(20)
    if held:
        await machines.run(user, f"drbdadm adjust {resource.name}", seconds=20)
        await machines.expect(user, f"drbdadm resume-io {resource.name}/0")
        await machines.sleep(5)
    states = stage.answer("states 20 s after adjust", await resource.states("adjusted"))
    await writer.stop()
    missing = await resource.compare(writer.acknowledged())
    stage.hold("the copy that stayed has every acknowledged write", first not in missing, missing)
    if " UpToDate " in states[second]:
        stage.hold("the copy that came back has every acknowledged write", second not in missing, missing)
    await resource.end()


async def reboot_while_suspended(stage: Stage, *, failed_first: bool) -> None:
    """A suspended primary with a dirty page and a blocked write is told to reboot (E5); or its I/O is failed first."""
    resource = await formed(stage, "2D+1TB")
    machines, (primary, second) = stage.machines, resource.diskful
    await machines.isolate(primary)
    await resource.begin_write(primary, 100)
    machines.start(primary, f"dd if=/dev/zero of={resource.device} bs=4096 count=1 seek=200 conv=notrunc")
    await resource.until_suspended(primary)
    if failed_first:
        said = await machines.run(primary, f"drbdadm secondary --force {resource.name}", seconds=20)
        stage.answer("a suspended primary is forced secondary", said.exit)
    took = await machines.told_to_end(primary, "reboot -f", 40)
    stage.answer("the reboot ends", took is not None)
    if failed_first:
        stage.hold("with its I/O failed first, the reboot ends", took is not None)
    if took is None:
        await machines.power_off(primary)
    stage.answer("seconds until the other copy may be used", round(await resource.until_promoted(second), 1))
    await resource.end()


async def ends_under_a_writer(stage: Stage, *, user: bool) -> None:
    """The using node, or the other copy's, is powered off bare, by ``poweroff -f``: how long the others stand."""
    resource = await formed(stage, "2D+1TB")
    machines, (primary, second) = stage.machines, resource.diskful
    writer = await machines.start_writer(primary, resource.device, "w", first=10, pause=0.05, sync=False)
    await machines.sleep(2)
    took = await machines.told_to_end(primary if user else second, "poweroff -f", 40)
    stage.hold("the machine ends", took is not None)
    if user:
        stage.answer("seconds until the other copy may be used", round(await resource.until_promoted(second), 1))
        await writer.stop()
    else:
        await machines.sleep(15)
        await writer.stop()
        longest = max((each.ended - each.began for each in writer.writes if each.result == "ok"), default=0.0)
        stage.answer("the longest write in seconds", round(longest, 1))
        stage.hold("the writer goes on", writer.writes[-1].began > machines.now() - 5)
    await resource.end()


Play = Callable[[Stage], Awaitable[None]]


def _kernel(name: str, about: str, play: Play, nodes: int = 3, seconds: float = 300.0) -> Scenario:
    return Scenario(name, about, play, nodes=nodes, agents=False, drbd=True, seconds=seconds)


def _prevention(layout: str, kind: str, order: str, *, busy: bool) -> Scenario:
    name = f"isolated-{layout.lower().replace('+', '-')}-{kind}-{'busy' if busy else 'idle'}"
    writer = "a busy writer" if busy else "its first write"
    return _kernel(
        name + ("" if order == "at once" else "-apart"),
        f"{layout}: an isolated primary with {writer}, helped by {kind}, healed {order}",
        partial(prevention, layout=layout, kind=kind, order=order, busy=busy),
        nodes=2 if layout == "2D" else 3,
    )


SCENARIOS = (
    *(
        _prevention(layout, kind, order, busy=busy)
        for layout in ("3D", "2D+1TB", "2D")
        for kind in PREVENTIONS
        for busy in (False, True)
        for order in (("at once", "one by one") if layout != "2D" and not busy else ("at once",))
    ),
    _kernel(
        "cure-small", "3D: verify, then the small resync from the primary, under a writer", partial(cure, kind="small")
    ),
    _kernel("cure-full", "3D: the stale copy is invalidated, under a writer", partial(cure, kind="full")),
    *(
        _kernel(
            f"failover-{kind}",
            f"3D: fail-over during the cut, helped by {kind}",
            partial(failover_with_help, kind=kind),
        )
        for kind in PREVENTIONS
    ),
    _kernel("in-flight-plain", "2D+1TB: the write in flight at a cut, O_DIRECT", partial(in_flight, sync=False)),
    _kernel("in-flight-dsync", "2D+1TB: the write in flight at a cut, O_DSYNC", partial(in_flight, sync=True)),
    _kernel(
        "in-flight-failed-first", "2D+1TB: the write in flight is failed before links heal", in_flight_failed_first
    ),
    _kernel(
        "diskless-primary", "2D, used without a disk: one disk is detached", partial(held_diskless_primary, hold=False)
    ),
    _kernel("diskless-primary-held", "the same, I/O held at once", partial(held_diskless_primary, hold=True)),
    _kernel("reboot-suspended", "a suspended primary is rebooted", partial(reboot_while_suspended, failed_first=False)),
    _kernel(
        "reboot-failed-first", "the same, its I/O failed first", partial(reboot_while_suspended, failed_first=True)
    ),
    _kernel("poweroff-user", "the using node powers off, bare", partial(ends_under_a_writer, user=True)),
    _kernel("poweroff-other", "the other copy's node powers off, bare", partial(ends_under_a_writer, user=False)),
)
