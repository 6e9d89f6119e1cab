"""Growth and power loss (R, F3, F10): which members attach afterwards, and what helps. DRBD alone."""

from __future__ import annotations

from functools import partial

from metal.kernel import Resource, formed
from metal.machines import BLOCK, MIB
from metal.people import GROUP
from metal.scenarios.isolation import _kernel
from metal.stage import Stage

#: What drbdmeta says of a member whose activity log is not where it should be.
NO_LOG = "No usable activity log found"
#: A block of the space that a growth from 32 to 64 MiB adds.
_NEW = 10_000


async def grow_disks(resource: Resource, size: int) -> None:
    """Every member's disk, not yet DRBD."""
    for node in resource.diskful:
        await resource.machines.expect(node, f"lvextend -L {size}M {GROUP}/{resource.name}")


async def resize(stage: Stage, resource: Resource, size: int) -> None:
    """An ordinary growth: disks, then DRBD, with all connected."""
    await grow_disks(resource, size)
    await resource.on(resource.diskful[0], f"-- --assume-clean resize {resource.name}", seconds=60)

    async def grown() -> bool:
        found = [await resource.status(node, "waiting") for node in resource.diskful]
        return all(each is not None and each["devices"][0]["size"] > (size - 2) << 10 for each in found)

    await stage.machines.until(f"{resource.name} has {size} MiB everywhere", grown, 60)


async def lose_power(resource: Resource, *nodes: str) -> None:
    """One after the other, two seconds apart, and back."""
    for node in nodes:
        await resource.machines.power_off(node)
        await resource.machines.sleep(2)
    for node in nodes:
        await resource.machines.power_on(node)


async def attach_again(resource: Resource, node: str) -> str:
    """Bring a member up after a boot: ``attached``, or why not."""
    await restore_files(resource, node)
    said = await resource.machines.run(node, f"drbdadm up {resource.name}", seconds=60)
    if NO_LOG in said.output and said.exit:
        return "no usable activity log"
    found = await resource.status(node, "after the power loss")
    disk = found["devices"][0]["disk-state"] if found and found.get("devices") else "down"
    return "attached" if disk not in ("Diskless", "down", "Failed") else f"exit {said.exit}, {disk}"


async def restore_files(resource: Resource, node: str) -> None:
    """The configuration is a file like any other; a machine that keeps no files has lost it."""
    member = next(each for each in resource.members if each.node == node)
    await resource.machines.write_file(node, f"/etc/drbd.d/{resource.name}.res", resource.configuration(member))


async def remedy(resource: Resource, kind: str) -> None:
    """What is done after a growth so that a power loss leaves members that attach."""
    machines, (primary, *others) = resource.machines, resource.diskful
    match kind:
        case "write":
            await resource.write(primary, _NEW, "new")
        case "one by one":
            for node in others:
                for word in ("disconnect", "detach", "attach", "connect"):
                    await machines.run(node, f"drbdadm {word} {resource.name}", seconds=60)
                await resource.until_links(resource.nodes, 120)
                await resource.until_good(resource.diskful, 120)
        case "log extents":
            for node in resource.diskful:
                for count in (1236, 1237):
                    await machines.run(node, f"drbdsetup disk-options {resource.minor} --al-extents={count}")
            await machines.sleep(1)
        case _:
            await machines.sleep(3)


async def grown_then_lost(stage: Stage, kind: str, *, everybody: bool = False) -> None:
    """Grown under a writer, a remedy or none, then power loss of a secondary and the primary, or of all."""
    resource = await formed(stage, "3D")
    machines, (primary, second, third) = stage.machines, resource.diskful
    writer = await machines.start_writer(primary, resource.device, "w", first=10, pause=0.05, sync=False)
    await machines.sleep(2)
    await resize(stage, resource, 64)
    await remedy(resource, kind)
    await machines.sleep(1)
    lost = (third, primary, second) if everybody else (third, primary)
    await lose_power(resource, *lost)
    acknowledged = [block for block in writer.acknowledged() if block < 1000]
    await writer.stop()
    outcomes = {node: await attach_again(resource, node) for node in lost}
    stage.answer("members after the power loss", outcomes)
    refused = [node for node, outcome in outcomes.items() if outcome != "attached"]
    if kind == "write":
        stage.hold("every member attaches", not refused, outcomes)
    if kind == "one by one":
        stage.hold("every secondary that was taken down and up attaches", third not in refused, outcomes)
    if refused and len(refused) < 3:
        for node in refused:
            await machines.run(node, f"drbdadm create-md --max-peers=7 --force {resource.name}/0")
            await machines.run(node, f"drbdadm adjust {resource.name}", seconds=60)
    if not refused or len(refused) < 3:
        await resource.until_good(resource.diskful, 240)
        missing = await resource.compare(acknowledged[-200:])
        stage.hold("every acknowledged write is on every disk", not missing, missing)
        stage.see("states at the end", await resource.states_at_the_end())
    await resource.end()


async def all_refuse(stage: Stage) -> None:
    """All members lost power after a growth and none attaches: the repair of docs/operating.md, by hand."""
    resource = await formed(stage, "3D")
    machines, (primary, *others) = stage.machines, resource.diskful
    writer = await machines.start_writer(primary, resource.device, "w", first=10, pause=0.05, sync=False)
    await machines.sleep(2)
    await resize(stage, resource, 64)
    await machines.sleep(1)
    await lose_power(resource, *others, primary)
    acknowledged = [block for block in writer.acknowledged() if block < 1000]
    await writer.stop()
    outcomes = {node: await attach_again(resource, node) for node in resource.diskful}
    stage.answer("members after the power loss", outcomes)
    if "attached" not in outcomes.values():
        # One member is given an activity log that says nothing; the others are made anew and copied from it.
        await machines.run(primary, f"drbdadm down {resource.name}")
        await write_empty_log(resource, primary, 64)
        said = await machines.run(primary, f"drbdadm up {resource.name}", seconds=60)
        stage.answer("a hand-written log is accepted", said.exit == 0)
        if said.exit:
            # The bluntest way: metadata made anew, and what is on this disk taken for the data.
            await machines.run(primary, f"drbdadm down {resource.name}")
            await machines.run(primary, f"drbdadm create-md --max-peers=7 --force {resource.name}/0")
            await machines.run(primary, f"drbdadm up {resource.name}", seconds=60)
        for node in others:
            await machines.run(node, f"drbdadm down {resource.name}")
            await machines.run(node, f"drbdadm create-md --max-peers=7 --force {resource.name}/0")
            await machines.run(node, f"drbdadm up {resource.name}", seconds=60)
        if said.exit:
            await resource.until_links(resource.nodes)
            forced = await machines.run(primary, f"drbdadm new-current-uuid --force-resync {resource.name}/0")
            stage.answer("a copy made anew can be forced", forced.exit == 0)
    await resource.until_good(resource.diskful, 240)
    missing = await resource.compare(acknowledged[-200:])
    stage.answer(
        "acknowledged writes that a disk lacks after the repair", {node: len(each) for node, each in missing.items()}
    )
    await resource.end()


async def write_empty_log(resource: Resource, node: str, size: int) -> None:
    """Eight empty blocks of an activity log before the superblock: from 36 to 4 KiB before the disk's end."""
    block = bytes.fromhex("69cb65a200000000709cc651ffff").ljust(BLOCK, b"\0")
    await resource.machines.write_file(node, "/root/empty-log", block * 8)
    place = size * MIB // BLOCK - 9
    command = f"dd if=/root/empty-log of={resource.disk} bs={BLOCK} seek={place} count=8 conv=notrunc"
    await resource.machines.expect(node, command)


async def first_size_again(stage: Stage, *, told: bool) -> None:
    """Grown once, its disk grown again without DRBD, then a power loss: it must not come back at its first size."""
    resource = await formed(stage, "3D")
    primary, second, _ = resource.diskful
    await resize(stage, resource, 64)
    await resource.write(primary, _NEW, "new")
    if told:
        for node in resource.diskful:
            await resource.machines.run(node, f"drbdsetup check-resize {resource.minor}")
    await grow_disks(resource, 96)
    await lose_power(resource, second)
    stage.answer("the member after the power loss", await attach_again(resource, second))
    found = await resource.status(second, "after the power loss")
    size = found["devices"][0]["size"] if found and found.get("devices") else 0
    stage.answer("its size in KiB", size)
    stage.answer("it is at its first size again", 0 < size < 40 << 10)
    await resource.end()


async def links_break_while_disks_have_grown(stage: Stage, *, pinned: bool) -> None:
    """All disks have grown and DRBD has not, links break and heal (F3): does DRBD take the new size by itself?"""
    resource = await formed(stage, "3D")
    machines, (primary, *_) = stage.machines, resource.diskful
    if pinned:
        for member in resource.members:
            size = (await resource.status(member.node, "before") or {})["devices"][0]["size"]
            text = resource.configuration(member)
            whole = f'disk "{resource.disk}";'
            pin = f"{whole}\n      disk {{\n        size {size}k;\n      }}"
            await machines.write_file(member.node, f"/etc/drbd.d/{resource.name}.res", text.replace(whole, pin, 1))
            await resource.on(member.node, f"adjust {resource.name}")
    writer = await machines.start_writer(primary, resource.device, "w", first=10, pause=0.05, sync=False)
    await grow_disks(resource, 64)
    await machines.isolate(primary)
    await machines.sleep(10)
    await machines.heal()
    await machines.sleep(20)
    sizes = {node: (await resource.status(node, "healed") or {})["devices"][0]["size"] for node in resource.diskful}
    stage.answer("sizes in KiB after the links came back", sizes)
    if pinned:
        stage.answer("a pinned size is kept", all(size < 40 << 10 for size in sizes.values()))
    await resource.until_good(resource.diskful, 120)
    await writer.stop()
    await resource.end()


SCENARIOS = (
    *(
        _kernel(
            f"grown-{name}", f"3D grown, {about}, then a power loss", partial(grown_then_lost, kind=kind), seconds=400
        )
        for name, kind, about in (
            ("no-remedy", "none", "nothing done"),
            ("written", "write", "one write into the new space"),
            ("one-by-one", "one by one", "members taken down and up one by one"),
            ("log-extents", "log extents", "al-extents changed and back under the writer"),
        )
    ),
    _kernel(
        "grown-written-all-lost",
        "3D grown, one write into the new space, all lose power",
        partial(grown_then_lost, kind="write", everybody=True),
        seconds=400,
    ),
    _kernel("grown-all-refuse", "3D grown, all lose power before any remedy: the repair", all_refuse, seconds=400),
    *(
        _kernel(
            f"grown-twice{name}", f"grown once{about}, its disk again, power loss", partial(first_size_again, told=told)
        )
        for name, about, told in (("", "", False), ("-told", ", each told by check-resize", True))
    ),
    _kernel(
        "grown-links-break",
        "links break while disks have grown",
        partial(links_break_while_disks_have_grown, pinned=False),
    ),
    _kernel(
        "grown-links-break-pinned",
        "the same with the size pinned in the configuration",
        partial(links_break_while_disks_have_grown, pinned=True),
    ),
)
