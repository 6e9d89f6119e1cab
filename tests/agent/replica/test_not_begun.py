"""A replica for which nothing was done yet, and that is no member, costs no view: there is nothing to decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.agent.memory import Outcome
from quorate.agent.node import Node, resource_work
from quorate.agent.replica.controller import Replicas
from quorate.agent.replica.verdict import own_error
from quorate.agent.steps import Run
from quorate.api import labels
from quorate.api.finalizers import AGENT, CONTROLLER
from quorate.api.storage.drbd import Address, DrbdActual, DrbdConfig, DrbdErrors, ReplicaDrbd, ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplica, ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.engine import Key
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node
from tests.agent.replica.builders import (
    LLV,
    NOW,
    config,
    decided,
    kernel,
    logical_volume,
    reader,
    replica,
    view,
    volume,
)

RESOURCE = "pvc-1"


def new(**drbd: Any) -> ReplicatedVolumeReplica:
    """One that was just made."""
    made = replica()
    return replace(made, status=ReplicatedVolumeReplicaStatus(drbd=ReplicaDrbd(**{"config": DrbdConfig(), **drbd})))


def empty_node(sim: Simulation) -> Node:
    """A node whose kernel was looked at, and has nothing."""
    node, _ = scripted_node(sim.clock)
    resource = node.memory.resource(RESOURCE)
    resource.saw(None, marks=resource.marks)
    return node


def is_not_begun(node: Node, obj: ReplicatedVolumeReplica) -> bool:
    return not Replicas(node).are_concerned(None, obj)


@given(
    finalizers=st.sampled_from([(), (CONTROLLER,), (CONTROLLER, AGENT)]),
    given_config=st.sampled_from(
        [
            DrbdConfig(),
            DrbdConfig(address=Address(ipv4="10.0.0.1", port=7000)),
            DrbdConfig(address=Address(ipv4="10.0.0.1", port=7000), node_id=0, type=ReplicaType.DISKFUL),
            config(datamesh_revision=0),
            config(datamesh_revision=0, disk=None, type=ReplicaType.TIE_BREAKER),
            config(datamesh_revision=0, primary=True),
            config(datamesh_revision=0, down=True),
            config(datamesh_revision=0, yields=True),
        ]
    ),
    owner=st.sampled_from(["", LLV]),
    disk=st.sampled_from([None, logical_volume()]),
    files=st.sampled_from([(False, None, False), (True, None, False), (True, "old text", True)]),
    seen=st.sampled_from([(False, None), (True, None), (True, volume()), (True, volume(tags=()))]),
)
def test_all_that_is_known_of_it_leads_to_nothing(
    finalizers: tuple[str, ...],
    given_config: DrbdConfig,
    owner: str,
    disk: object,
    files: tuple[bool, str | None, bool],
    seen: tuple[bool, object],
) -> None:
    obj = new(config=given_config)
    obj = replace(
        obj,
        metadata=replace(obj.metadata, finalizers=finalizers),
        status=replace(obj.status, lvm_logical_volume_name=owner),
    )
    decision = decided(
        view(
            obj,
            None,
            incomplete="datameshRevision",
            intended=None,
            logical_volume=disk,
            metadata_owner_exists=False,
            files_current=files[0],
            written=files[1],
            unadjusted=files[2],
            volumes_current=seen[0],
            volume=seen[1],
        )
    )
    assert decision.status == obj.status
    assert (decision.steps, decision.drop, decision.again) == ((), (), None)
    assert (decision.release, decision.progress, decision.held_back) == (False, False, False)

    async def main(sim: Simulation) -> None:
        assert is_not_begun(empty_node(sim), obj)

    run(main, seed=1)


def tried(node: Node) -> None:
    node.memory.remember(resource_work(RESOURCE), Outcome("config", "", "write", NOW, None, failures=1))


def busy(node: Node) -> None:
    node.hands.start(resource_work(RESOURCE), (Run(("sleep",), "p"),), lambda: None)


OBSTACLES: dict[str, Callable[[Node], None]] = {
    "the kernel has it": lambda node: node.memory.resource(RESOURCE).saw(kernel(), marks=0),
    "something has happened to it": lambda node: node.memory.resource(RESOURCE).mark(),
    "something was tried": tried,
    "work on it is under way": busy,
}

OTHERS = {
    "a member": new(config=config()),
    "one that reports something": new(status=kernel()),
    "one that has failed": new(errors=DrbdErrors(last_config_error=own_error("SecondReplicaOnNode", "why"))),
    "one that is being deleted": replace(new(), metadata=replace(new().metadata, deletion_timestamp=NOW)),
    "one with metadata": new(actual=DrbdActual(metadata_created=LLV)),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_whatever_is_known_of_it_here_is_looked_at(obstacle: str) -> None:
    async def main(sim: Simulation) -> None:
        node = empty_node(sim)
        assert is_not_begun(node, new())
        OBSTACLES[obstacle](node)
        assert not is_not_begun(node, new())

    run(main, seed=1)


@pytest.mark.parametrize("other", OTHERS)
def test_of_whom_the_api_knows_more_is_looked_at(other: str) -> None:
    async def main(sim: Simulation) -> None:
        assert not is_not_begun(empty_node(sim), OTHERS[other])

    run(main, seed=1)


def test_a_disk_is_no_matter_before_anything_was_decided_of_its_replica() -> None:
    async def main(sim: Simulation) -> None:
        replicas, disk = Replicas(empty_node(sim)), logical_volume()
        disk = replace(disk, metadata=replace(disk.metadata, labels={labels.REPLICATED_VOLUME: RESOURCE}))
        assert disk.volume_name == RESOURCE
        assert replicas.observe(reader(new()), Key("", RESOURCE)) is None
        assert not replicas.have_begun_on(None, disk)
        assert replicas.observe(reader(new(config=config())), Key("", RESOURCE)) is not None
        assert replicas.have_begun_on(None, disk)
        assert replicas.have_begun_on(disk, None)

    run(main, seed=1)
