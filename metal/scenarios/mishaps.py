"""What agents and controllers do by themselves on a bad day: ended nodes, lost quorum, stale copies, lost links."""

from __future__ import annotations

from functools import partial

from metal import people
from metal.machines import BLOCK, Running, block_text
from metal.people import attach, homes, make_pool, make_volume, until_condition
from metal.scenarios.volumes import begin, compare, end, until_whole, write
from metal.stage import Scenario, Stage
from quorate.api import annotation_keys
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeAttachment

#: Volumes beside the one in use when a node is powered off.
_QUIET = 20
#: Seconds for a machine to end in order.
_END = 30.0


async def powered_off_in_order(stage: Stage) -> None:
    """Twenty quiet volumes and one in use; the using node ends in order: in time, and seen by its peers."""
    machines = stage.machines
    await make_pool(stage, "3D")
    names = [f"quiet-{number}" for number in range(_QUIET)]
    for name in names:
        await make_volume(stage, "3D", name, "8Mi")
    await make_volume(stage, "3D")
    for name in (*names, "v"):
        await until_condition(stage, name, seconds=600)
    node = machines.nodes[0]
    writer = await write(stage, node, await attach(stage, node), "a")
    took = await machines.shut_down(node, _END)
    stage.answer("seconds until the machine has ended", None if took is None else round(took, 1))
    stage.hold(f"the machine ends within {_END:g} s", took is not None)
    for peer in machines.nodes[1:]:
        left = [
            resource["name"]
            for resource in await machines.status(peer, "the node has ended")
            for link in resource["connections"]
            if link["name"] == node and link["connection-state"] == "Connected"
        ]
        stage.hold(f"{peer} has seen every volume leave", not left, left)
        silent = [line for line in await machines.kernel_lines(peer) if "PingAck did not arrive" in line]
        stage.hold(f"{peer} had to wait for no answer", not silent, silent[:3])
    await writer.stop()
    await machines.power_on(node)
    await machines.sleep(10)
    for name in (*names, "v"):
        await until_condition(stage, name, "AllReplicasReady", 300)
    await until_whole(stage)
    await compare(stage, writer)
    stage.see("back", await people.state(stage))


async def powered_off_suspended(stage: Stage) -> None:
    """The using node is cut off, a write waits and a page is dirty (E5); it ends in order all the same."""
    machines = stage.machines
    node, device = await begin(stage, "3D")
    writer = await write(stage, node, device, "a")
    await machines.isolate(node)
    await until_suspended(stage, node)
    machines.start(node, f"dd if=/dev/zero of={device} bs={BLOCK} count=1 seek=9000 conv=notrunc")
    await machines.sleep(2)
    took = await machines.shut_down(node, _END)
    stage.answer("seconds until the machine has ended", None if took is None else round(took, 1))
    stage.hold(f"a suspended primary with dirty pages ends within {_END:g} s", took is not None)
    await writer.stop()
    await machines.heal()
    await machines.power_on(node)
    await machines.sleep(10)
    await until_whole(stage)
    await compare(stage, writer)
    stage.see("back", await people.state(stage))


async def until_suspended(stage: Stage, node: str, seconds: float = 30.0) -> None:
    """Until a node's I/O waits for quorum."""

    async def check() -> bool:
        return any(each.get("suspended-quorum") for each in await stage.machines.status(node, "waiting", "v"))

    await stage.machines.until(f"v is suspended on {node}", check, seconds, every=0.2)


async def begin_write(stage: Stage, node: str, device: str, block: int, tag: str) -> tuple[str, Running]:
    """One direct write, which may wait; its command too."""
    path = f"/root/block-{block}"
    await stage.machines.write_file(node, path, block_text(block, tag).decode())
    command = f"dd if={path} of={device} bs={BLOCK} count=1 seek={block} oflag=direct conv=notrunc"
    return command, stage.machines.start(node, command)


async def lacking(stage: Stage, block: int, tag: str) -> list[str]:
    """The nodes whose copy has not got a block."""
    found = []
    for node in (await homes(stage))[0]:
        device = await people.backing_device(stage, node)
        if await stage.machines.read_blocks(node, device, [block]) != [f"{block}.{tag}"]:
            found.append(node)
    return found


async def prevented(stage: Stage, *, agent: bool) -> None:
    """3D: the first write after idleness waits in a cut, links heal one by one (E2: stale 6 of 6 without help).

    With its agent the user gets a new generation in time; without it the controllers find the stale copy and cure it.
    """
    machines = stage.machines
    node, device = await begin(stage, "3D")
    others = [each for each in (await homes(stage))[0] if each != node]
    await machines.sleep(10)
    if not agent:
        await machines.stop_agent(node)
    await machines.isolate(node)
    command, running = await begin_write(stage, node, device, 100, "w")
    await until_suspended(stage, node)
    await machines.sleep(5)
    for peer in others:
        await machines.heal((node, peer))
        await machines.sleep(8)
    await machines.heal()
    said = await machines.finish(node, command, running, 60)
    stage.hold("the write that waited is acknowledged", said.exit == 0, said)
    found = stage.answer("copies that lack it when links have healed", await lacking(stage, 100, "w"))
    if agent:
        stage.hold("no copy lacks an acknowledged write", not found, found)
    else:
        await machines.start_agent(node)
    await machines.sleep(5)
    await until_whole(stage)
    left = await lacking(stage, 100, "w")
    stage.hold("every copy has the write in the end, by no hand", not left, left)
    stage.see("healed", await people.state(stage))
    await end(stage, node)


async def forced_off(stage: Stage) -> None:
    """A suspended user is forced off by a person: another node goes on, and what the old one waited with is nowhere."""
    machines = stage.machines
    node, device = await begin(stage, "3D")
    other = next(each for each in (await homes(stage))[0] if each != node)
    writer = await write(stage, node, device, "a")
    await machines.isolate(node)
    await until_suspended(stage, node)
    await machines.store.delete(ReplicatedVolumeAttachment, f"v-on-{node}")
    await machines.sleep(5)
    forced = {annotation_keys.FORCE_DETACH: node, annotation_keys.ACCEPT_DATA_LOSS: "true"}
    await machines.store.patch(ReplicatedVolume, "v", patch={"metadata": {"annotations": forced}})

    await writer.stop()
    second = await write(stage, other, await attach(stage, other, seconds=240), "b", first=12_000)
    roles = {each["role"] for each in await machines.status(node, "used elsewhere", "v")}
    stage.answer("its role while another node goes on", sorted(roles))
    await machines.heal()
    await until_whole(stage)
    await second.stop()
    await machines.sleep(1)
    await compare(stage, second)
    stage.see("elsewhere", await people.state(stage))
    await end(stage, other)


async def link_given_up(stage: Stage) -> None:
    """A secondary's links are StandAlone, as a refused state leaves them: they are brought back under the writer."""
    machines = stage.machines
    node, device = await begin(stage, "3D")
    other = next(each for each in (await homes(stage))[0] if each != node)
    writer = await write(stage, node, device, "a")
    for link in (await machines.status(other, "before", "v"))[0]["connections"]:
        await machines.expect(other, f"drbdsetup disconnect v {link['peer-node-id']}")

    async def connected() -> bool:
        found = await machines.status(other, "waiting", "v")
        return bool(found) and all(each["connection-state"] == "Connected" for each in found[0]["connections"])

    stage.answer("seconds until they are back", round(await machines.until("its links are back", connected, 120), 1))
    await until_whole(stage)
    await machines.sleep(2)
    await writer.stop()
    await machines.sleep(1)
    await compare(stage, writer)
    stage.see("connected", await people.state(stage))
    await end(stage, node)


_volume = partial(Scenario, nodes=3, drbd=True, seconds=400.0)

SCENARIOS = (
    _volume(
        "shutdown-user",
        f"3D: a node with one volume in use and {_QUIET} quiet ones powers off by the shipped unit",
        powered_off_in_order,
        seconds=1200.0,
    ),
    _volume("shutdown-suspended", "3D: a suspended user with dirty pages powers off", powered_off_suspended),
    _volume("prevented", "3D: a write waits in a cut; the user's agent helps", partial(prevented, agent=True)),
    _volume("cured", "3D: the same with the user's agent stopped: found and cured", partial(prevented, agent=False)),
    _volume("forced-off", "3D: a suspended user is forced off by a person", forced_off),
    _volume("link-given-up", "3D: a secondary's links are StandAlone", link_given_up),
)
