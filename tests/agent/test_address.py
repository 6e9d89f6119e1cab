"""Who gets which port."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.agent import address, looks
from quorate.agent.address import Addresses, Choice, _internal_ips, choose
from quorate.agent.steps import PORT
from quorate.api import all_kinds, labels
from quorate.api.core.node import Node as CoreNode
from quorate.api.core.node import NodeAddress, NodeStatus
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.storage.drbd import Address, DrbdConfig, ReplicaDrbd, ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec, ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.manager import Manager
from quorate.engine.simulation import Simulation, run
from tests.agent.machines import scripted_node
from tests.agent.replica.builders import NOW

IP = "10.0.0.1"


def replica(number: int, port: int | None = None, *, deleting: bool = False) -> ReplicatedVolumeReplica:
    """The higher the number, the younger."""
    volume = VolumeName(f"pvc-{number}")
    listens = None if port is None else Address(ipv4=IP, port=port)
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(
            name=f"{volume}-0",
            creation_timestamp=NOW + timedelta(seconds=number),
            deletion_timestamp=NOW if deleting else None,
        ),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=volume, type=ReplicaType.DISKFUL, node_name=NodeName("n0")
        ),
        status=ReplicatedVolumeReplicaStatus(drbd=ReplicaDrbd(config=DrbdConfig(address=listens))),
    )


def chosen(
    *replicas: ReplicatedVolumeReplica, ip: str = IP, ports: tuple[int, int] = (7000, 7003), **more: Any
) -> Choice:
    return choose(Addresses(replicas, (ip,) if ip else (), *ports, **more))


def given_to(choice: Choice) -> list[tuple[str, int]]:
    found = []
    for write in choice.writes:
        listens = write.intended.status.drbd.config.address  # type: ignore[attr-defined]
        if listens is not None:
            found.append((write.intended.name, listens.port))
    return found


def reasons(choice: Choice) -> list[str]:
    return [write.intended.status.drbd.errors.last_config_error.reason for write in choice.writes]  # type: ignore[attr-defined]


def test_a_port_is_tried_before_it_is_given() -> None:
    first = chosen(replica(1))
    assert first.writes == ()
    assert first.to_try == (7000,)
    assert given_to(chosen(replica(1), tried={7000: True, 7001: True})) == [("pvc-1-0", 7000)]


def test_as_many_are_tried_at_once_as_are_needed_and_were_found_taken() -> None:
    assert chosen(replica(1), replica(2), replica(3, 7001)).to_try == (7000, 7002)
    assert chosen(replica(1), tried={7000: False}).to_try == (7001, 7002)
    everybody = chosen(*(replica(number) for number in range(100)), ports=(7000, 7999))
    assert everybody.to_try == tuple(range(7000, 7000 + address.AT_ONCE))


def test_several_are_given_theirs_at_once_the_oldest_first_each_another() -> None:
    there = (replica(1, 7000), replica(4), replica(2), replica(3))
    assert given_to(chosen(*there, tried={7001: True, 7002: True})) == [("pvc-2-0", 7001), ("pvc-3-0", 7002)]


def test_the_lowest_port_that_nobody_has_is_given() -> None:
    there = (replica(1, 7000), replica(2, 7002), replica(3))
    assert given_to(chosen(*there, tried={7001: True, 7003: True})) == [("pvc-3-0", 7001)]
    assert given_to(chosen(*there, tried={7001: False, 7003: True})) == [("pvc-3-0", 7003)]


def test_an_address_is_kept_whatever_becomes_of_the_range_and_while_the_node_has_none() -> None:
    assert chosen(replica(1, 9000)) == Choice()
    assert chosen(replica(1, 7000), ip="") == Choice()
    assert choose(Addresses((replica(1, 7000),), ("10.9.9.9", IP), 7000, 7003)) == Choice()


def test_when_the_node_has_another_address_its_replicas_move_there_with_their_ports() -> None:
    moved = chosen(replica(1, 7000), replica(2, 9000), replica(3, 7001, deleting=True), replica(4), ip="10.9.9.9")
    found = [write.intended.status.drbd.config.address for write in moved.writes]  # type: ignore[attr-defined]
    assert found == [Address(ipv4="10.9.9.9", port=7000), Address(ipv4="10.9.9.9", port=9000)]


def test_a_node_of_two_address_families_is_reached_by_the_one_that_replicas_speak() -> None:
    def node(*addresses: str) -> CoreNode:
        listed = tuple(NodeAddress(type="InternalIP", address=each) for each in addresses)
        return CoreNode(
            metadata=ObjectMeta(name="n0"),
            status=NodeStatus(addresses=(NodeAddress(type="Hostname", address="10.0.0.9"), *listed)),
        )

    assert _internal_ips(node("fd00::1", "10.0.0.1")) == ("10.0.0.1",)
    assert _internal_ips(node("10.0.0.1", "fd00::1", "10.0.0.2")) == ("10.0.0.1", "10.0.0.2")
    assert _internal_ips(node("fd00::1")) == ()
    assert _internal_ips(None) == ()


def test_ports_that_could_not_be_tried_are_tried_again_after_a_minute() -> None:
    async def main(sim: Simulation) -> None:
        node, _ = scripted_node(sim.clock)
        (controller,) = address.controllers(node)
        failing = True

        async def look(subject: str) -> None:
            if failing:
                raise OSError("no descriptors left")
            await looks.look_at_port(node, subject)

        node.hands.lookers[PORT] = look
        store = await EmbeddedStore.open(
            None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True
        )
        sim.cleanup.push_async_callback(store.close)
        await store.create(CoreNode(metadata=ObjectMeta(name="n0")))
        listed = {"addresses": [{"type": "InternalIP", "address": IP}]}
        await store.patch_status(CoreNode, "n0", patch=listed)
        await store.create(replace(replica(1), metadata=ObjectMeta(name="pvc-1-0", labels={labels.NODE: "n0"})))
        manager = Manager(store, [controller], clock=sim.clock, random=sim.random("manager"), identity="n0")
        sim.process("n0").spawn(manager.run())
        await sim.clock.sleep(200)
        assert (await store.get(ReplicatedVolumeReplica, "pvc-1-0")).status.drbd.config.address is None
        failing = False
        await sim.clock.sleep(61)
        found = (await store.get(ReplicatedVolumeReplica, "pvc-1-0")).status.drbd.config.address
        assert found == Address(ipv4=IP, port=7000)

    run(main, seed=1)


def test_of_two_with_one_port_the_younger_chooses_again() -> None:
    assert given_to(chosen(replica(2, 7000), replica(1, 7000), tried={7001: True})) == [("pvc-2-0", 7001)]


def test_a_deleted_replica_keeps_its_port_and_is_given_none() -> None:
    assert given_to(chosen(replica(1, 7000, deleting=True), replica(2), tried={7001: True})) == [("pvc-2-0", 7001)]
    assert chosen(replica(1, deleting=True)) == Choice()


def test_without_an_address_of_the_node_it_says_so_and_churns_nothing() -> None:
    refused = chosen(replica(1), ip="")
    assert reasons(refused) == ["NoInternalIP"]
    after = refused.writes[0].intended
    assert isinstance(after, ReplicatedVolumeReplica)
    assert chosen(after, ip="").writes == ()


def test_without_a_free_port_it_says_so_and_looks_again_later() -> None:
    full = tuple(replica(number, 7000 + number) for number in range(4))
    refused = chosen(*full, replica(9))
    assert reasons(refused) == ["NoFreePortAvailable"]
    assert refused.again == 60.0
    taken = chosen(replica(9), tried=dict.fromkeys(range(7000, 7004), False))
    assert reasons(taken) == ["NoFreePortAvailable"]


def test_the_error_goes_with_the_address() -> None:
    refused = chosen(replica(1), ip="").writes[0].intended
    assert isinstance(refused, ReplicatedVolumeReplica)
    (write,) = chosen(refused, tried={7000: True}).writes
    assert isinstance(write.intended, ReplicatedVolumeReplica)
    assert write.intended.status.drbd.errors.last_config_error is None


@given(st.lists(st.one_of(st.none(), st.integers(7000, 7006)), max_size=8), st.frozensets(st.integers(7000, 7006)))
def test_in_the_end_every_replica_has_a_port_of_its_own_or_there_is_none_left(
    ports: list[int | None], taken: frozenset[int]
) -> None:
    replicas = {number: replica(number, port) for number, port in enumerate(ports)}
    tried: dict[int, bool] = {}
    for _ in range(40):
        choice = choose(Addresses(tuple(replicas.values()), (IP,), 7000, 7006, tried))
        if choice.to_try:
            tried |= {port: port not in taken for port in choice.to_try}
            continue
        if not choice.writes:
            break
        tried = {}
        for write in choice.writes:
            after = write.intended
            assert isinstance(after, ReplicatedVolumeReplica)
            replicas[int(after.name.split("-")[1])] = after
    else:
        raise AssertionError("it does not come to rest")
    addresses = [each.status.drbd.config.address for each in replicas.values()]
    given_ports = [each.port for each in addresses if each is not None]
    complete = None not in addresses and len(set(given_ports)) == len(given_ports)
    free = set(range(7000, 7007)) - taken - set(given_ports)
    assert complete or not free
