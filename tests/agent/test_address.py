"""Who gets which port."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.agent.address import Addresses, Choice, choose
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.storage.drbd import Address, DrbdConfig, ReplicaDrbd, ReplicaType
from quorate.api.storage.rvr import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec, ReplicatedVolumeReplicaStatus
from tests.agent.replica.builders import NOW

IP = "10.0.0.1"


def replica(number: int, port: int | None = None, *, deleting: bool = False) -> ReplicatedVolumeReplica:
    """The higher the number, the younger."""
    volume = VolumeName(f"pvc-{number}")
    address = None if port is None else Address(ipv4=IP, port=port)
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(
            name=f"{volume}-0",
            creation_timestamp=NOW + timedelta(seconds=number),
            deletion_timestamp=NOW if deleting else None,
        ),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=volume, type=ReplicaType.DISKFUL, node_name=NodeName("n0")
        ),
        status=ReplicatedVolumeReplicaStatus(drbd=ReplicaDrbd(config=DrbdConfig(address=address))),
    )


def chosen(
    *replicas: ReplicatedVolumeReplica, ip: str = IP, ports: tuple[int, int] = (7000, 7003), **more: Any
) -> Choice:
    return choose(Addresses(replicas, ip, *ports, **more))


def given_to(choice: Choice) -> list[tuple[str, int]]:
    found = []
    for write in choice.writes:
        address = write.intended.status.drbd.config.address  # type: ignore[attr-defined]
        if address is not None:
            found.append((write.intended.name, address.port))
    return found


def reasons(choice: Choice) -> list[str]:
    return [write.intended.status.drbd.errors.last_config_error.reason for write in choice.writes]  # type: ignore[attr-defined]


def test_a_port_is_tried_before_it_is_given() -> None:
    first = chosen(replica(1))
    assert first.writes == ()
    assert first.to_try == (7000, 7001, 7002, 7003)
    assert given_to(chosen(replica(1), tried={7000: True, 7001: True})) == [("pvc-1-0", 7000)]


def test_the_lowest_port_that_nobody_has_is_given() -> None:
    there = (replica(1, 7000), replica(2, 7002), replica(3))
    assert given_to(chosen(*there, tried={7001: True, 7003: True})) == [("pvc-3-0", 7001)]
    assert given_to(chosen(*there, tried={7001: False, 7003: True})) == [("pvc-3-0", 7003)]


def test_an_address_is_kept_whatever_becomes_of_the_range_or_the_node() -> None:
    assert chosen(replica(1, 9000)) == Choice()
    assert chosen(replica(1, 7000), ip="10.9.9.9") == Choice()
    assert chosen(replica(1, 7000), ip="") == Choice()


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
        choice = choose(Addresses(tuple(replicas.values()), IP, 7000, 7006, tried))
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
    given_ports = [address.port for address in addresses if address is not None]
    complete = None not in addresses and len(set(given_ports)) == len(given_ports)
    free = set(range(7000, 7007)) - taken - set(given_ports)
    assert complete or not free
