"""An object with a name that the tools take for something else is in the store: its agent only tells of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quorate.agent.machine import Completed
from quorate.api.cel import Program
from quorate.api.finalizers import AGENT
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.scalars import ReplicaName
from quorate.api.storage import DRBDResourceOperation, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.drbdrop import CreateNewUUID, DRBDResourceOperationSpec, OperationPhase, OperationType
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.engine.simulation import Simulation, run
from tests.agent.lvm.fake import FakeMachine
from tests.agent.lvm.rig import Rig, llv, lvg
from tests.agent.replica.test_controller import HERE, Agent, agent, kernel_json
from tests.lab.tools.conftest import Node, node, world

__all__ = ["node", "world"]

RESOURCES = ["all", "global", "minor-1000"]


@contextmanager
def as_by_an_older_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No rule is tried: what is written was taken by an API that did not have them."""
    with monkeypatch.context() as patch:
        patch.setattr(Program, "holds", lambda *_: True)
        yield


def commands(here: Agent) -> set[str]:
    return {said for said in here.machine.ran if "events2" not in said}


@pytest.mark.parametrize("name", RESOURCES)
def test_a_replica_with_such_a_name_is_told_of_and_nothing_is_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            here.machine.answers["drbdsetup status"] = Completed(0, json.dumps([kernel_json("pvc-1")]))
            with as_by_an_older_api(monkeypatch):
                await here.create(f"{name}-0")
                await here.create("pvc-1-0")
                spec = DRBDResourceOperationSpec(
                    node_name=NodeName(HERE),
                    drbd_resource_name=ReplicaName(f"{name}-0"),
                    type=OperationType.CREATE_NEW_UUID,
                    create_new_uuid=CreateNewUUID(clear_bitmap=True),
                )
                await here.store.create(DRBDResourceOperation(metadata=ObjectMeta(name="o"), spec=spec))
            await sim.clock.sleep(60)
            error = (await here.replica(f"{name}-0")).status.drbd.errors.last_config_error
            assert error is not None
            assert (error.reason, name in error.output) == ("UnusableName", True)
            operation = await here.store.get(DRBDResourceOperation, "o")
            assert operation.status.phase is OperationPhase.FAILED

            await here.store.delete(ReplicatedVolumeReplica, f"{name}-0")
            await sim.clock.sleep(60)
            names = [each.name for each in (await here.store.list(ReplicatedVolumeReplica)).items]
            assert names == ["pvc-1-0"]
            assert not [said for said in commands(here) if name in said.split()], "no command ever named it"
            assert not [path for path in here.machine.files if f"/{name}." in path]

    run(main, seed=1)


def test_one_that_the_kernel_has_is_left_to_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        async with agent(sim) as here:
            here.machine.answers["drbdsetup status"] = Completed(0, json.dumps([kernel_json("all")]))
            with as_by_an_older_api(monkeypatch):
                await here.create("all-0")
            await here.store.delete(ReplicatedVolumeReplica, "all-0")
            await sim.clock.sleep(60)
            left = await here.replica("all-0")
            assert left.metadata.finalizers == (AGENT,)
            assert left.status.drbd.errors.last_config_error is not None
            assert "the kernel has it" in left.status.drbd.errors.last_config_error.output
            assert not [said for said in commands(here) if "all" in said.split()]

    run(main, seed=1)


@pytest.mark.parametrize("name", [".", "..", "snapshot1", "pvmove0", "x_tdata", "pool_mlog_0", "x" * 125])
def test_a_logical_volume_or_pool_with_such_a_name_is_told_of_and_nothing_is_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        with as_by_an_older_api(monkeypatch):
            await rig.store.create(lvg(*((name,) if len(name) < 64 else ())))
            await rig.store.create(llv(lv_name=name))
        rig.start()
        await sim.clock.sleep(60)
        status = (await rig.created()).status
        assert (status.phase, status.reason) == (LogicalVolumePhase.FAILED, "UnusableName")
        if len(name) < 64:
            group = await rig.store.get(LVMVolumeGroup, "disk-1")
            assert "choose another" in group.status.thin_pools[0].message
        await rig.delete()
        await sim.clock.sleep(60)
        assert await rig.names() == []
        assert {argv[0] for argv in machine.ran} <= {"lvs", "vgs", "pvs", "lvm"}, "it looked, and did nothing"

    run(main, seed=1)


@pytest.mark.parametrize("group", [".", ".."])
def test_a_group_with_such_a_name_is_told_of_and_nothing_is_run(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        with as_by_an_older_api(monkeypatch):
            await rig.store.create(lvg(group=group))
            await rig.store.create(llv())
        rig.start()
        await sim.clock.sleep(60)
        assert "cannot be a volume group's name" in (await rig.store.get(LVMVolumeGroup, "disk-1")).status.message
        assert (await rig.created()).status.reason == "UnusableName"
        assert not [argv for argv in machine.ran if any(word.startswith(f"{group}/") or word == group for word in argv)]

    run(main, seed=1)


def test_the_labs_tools_know_these_names(node: Node) -> None:
    for name, minor in (("one", 1000), ("two", 1001)):
        node.run(f"drbdsetup new-resource {name} 0")
        node.run(f"drbdsetup new-minor {name} {minor} 0 --diskless")
    assert node.run("drbdsetup down three").output == ""
    assert len(json.loads(node.run("drbdsetup status --json").stdout)) == 2
    node.run("drbdsetup down all")
    assert json.loads(node.run("drbdsetup status --json").stdout) == []

    one = "on n1 { node-id 0; address ipv4 10.77.0.1:7000; volume 0 { device minor 7; disk none; } }"
    node.host.files["/tmp/g.res"] = f"global {{ usage-count no; }}\nresource global {{ {one} }}\n".encode()
    said = node.run("drbdadm -c /dev/null --config-to-test /tmp/g.res sh-nop", expect=10)
    assert "conflicting use of resource section 'global'" in said.output
    node.host.files["/tmp/a.res"] = f"resource a {{ {one} }}\n".encode()
    assert "secondary a" in node.run("drbdadm -c /tmp/a.res --dry-run secondary minor-7").output

    for name in ("snapshot1", "pvmove0"):
        assert "are reserved" in node.run(f"lvcreate -y -n {name} -L 4M vg0", expect=5).output
    assert 'Names including "_tdata"' in node.run("lvcreate -y -n a_tdata -L 4M vg0", expect=5).output
    assert "is invalid" in node.run("lvcreate -y -n .. -L 4M vg0", expect=5).output
    assert "is invalid" in node.run("vgcreate .. /dev/sdb", expect=5).output
