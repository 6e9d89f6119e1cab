"""The core Node that an agent registers: made once, kept like the machine, its readiness left to the leader."""

from __future__ import annotations

from datetime import UTC, datetime

from quorate.agent.inventory.registration import NodeView, Registration, read_info, register
from quorate.agent.node import Node
from quorate.api import all_kinds, labels
from quorate.api.core import Node as CoreNode
from quorate.api.core.node import NodeSystemInfo
from quorate.api.meta import NodeName, ObjectMeta
from quorate.engine import Create, Patch
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Process, Simulation, run
from tests.agent.inventory.test_drives import FakeMachine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE = NodeName("n1")
REGISTRATION = Registration("10.0.0.1", {labels.ZONE: "a"})
INFO = NodeSystemInfo(boot_id="b1", kernel_version="6.1.0")
FILES = {
    "/proc/sys/kernel/random/boot_id": "b1\n",
    "/proc/sys/kernel/osrelease": "6.1.0\n",
    "/etc/machine-id": "m1\n",
    "/etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n',
}


async def test_what_runs_on_the_machine_is_read_from_its_files() -> None:
    machine = FakeMachine()
    machine.files = FILES
    info = await read_info(machine, "/proc")
    assert (info.boot_id, info.machine_id, info.kernel_version) == ("b1", "m1", "6.1.0")
    assert info.os_image == "Debian GNU/Linux 12"


def test_a_node_that_is_not_there_is_made_and_marked_as_the_agents() -> None:
    (write,) = register(NodeView(HERE, None, INFO), REGISTRATION, NOW).steps
    assert isinstance(write, Create)
    assert write.obj.metadata.labels == {
        "kubernetes.io/hostname": "n1",
        labels.ZONE: "a",
        labels.REGISTERED: "agent",
    }


def test_labels_that_others_gave_it_are_kept() -> None:
    there = CoreNode(metadata=ObjectMeta(name="n1", uid="u", labels={"mine": "yes", labels.ZONE: "b"}))
    write = register(NodeView(HERE, there, INFO), REGISTRATION, NOW).steps[0]
    assert isinstance(write, Patch)
    assert write.intended.metadata.labels["mine"] == "yes"
    assert write.intended.metadata.labels[labels.ZONE] == "a"


def test_a_node_registers_itself_follows_a_reboot_and_never_says_again_that_it_is_ready() -> None:
    async def main(sim: Simulation) -> None:
        clock, random = sim.clock, sim.random("agent")
        store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=random, inline=True)
        sim.cleanup.push_async_callback(store.close)
        machine = FakeMachine()
        machine.files = dict(FILES)

        def start(life: int) -> Process:
            node = Node(HERE, machine, clock=clock, random=random)
            process = sim.process(f"agent-{life}")
            manager = Manager(
                store, REGISTRATION.controllers(node), clock=clock, random=random, identity=f"agent-{life}"
            )
            process.spawn(manager.run())
            return process

        first = start(1)
        await clock.sleep(30)
        found = await store.get(CoreNode, "n1")
        internal, _ = found.status.addresses
        assert (internal.type, internal.address) == ("InternalIP", "10.0.0.1")
        assert [(each.type, each.status) for each in found.status.conditions] == [("Ready", "True")]
        await store.patch_status(
            CoreNode, "n1", patch={"conditions": [{"type": "Ready", "status": "Unknown", "reason": "AgentSilent"}]}
        )
        machine.files["/proc/sys/kernel/random/boot_id"] = "b2\n"
        first.kill()
        start(2)
        await clock.sleep(30)
        found = await store.get(CoreNode, "n1")
        assert found.status.node_info is not None
        assert found.status.node_info.boot_id == "b2"
        assert found.status.conditions[0].status == "Unknown"
        await clock.sleep(3600)
        assert await store.get(CoreNode, "n1") == found

    run(main, seed=1)
