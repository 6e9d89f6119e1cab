"""DRBD as the API shows it: what is observed is told in full, and an address is one."""

from __future__ import annotations

import msgspec
import pytest

from quorate.api.codec import convert, decode, encode, to_builtins
from quorate.api.storage.drbd import (
    Address,
    Connection,
    Device,
    DrbdStatus,
    Host,
    Path,
    PeerDevice,
    ReplicaDrbd,
)
from quorate.api.struct import Struct, attributes
from quorate.drbd.errors import UnwritableConfig
from quorate.drbd.resource_file import _endpoint

OBSERVED: list[Struct] = [Host(), Path(), PeerDevice(), Connection(peer_node_id=0), Device(), DrbdStatus()]


@pytest.mark.parametrize("observed", OBSERVED, ids=lambda each: type(each).__name__)
def test_what_is_zero_empty_or_false_is_told_of_what_was_observed(observed: Struct) -> None:
    """Absent would mean: nobody knows."""
    assert set(to_builtins(observed)) == set(attributes(type(observed)))


def test_what_nobody_has_observed_is_absent() -> None:
    assert to_builtins(ReplicaDrbd()) == {}
    assert "suspended" in to_builtins(ReplicaDrbd(status=DrbdStatus()))["status"]


def test_what_was_stored_without_zeros_reads_as_before() -> None:
    assert decode(DrbdStatus, b'{"name": "v", "devices": [{"minor": 7}]}') == DrbdStatus(
        name="v", devices=(Device(minor=7),)
    )
    assert decode(DrbdStatus, encode(DrbdStatus(name="v"))) == DrbdStatus(name="v")


@pytest.mark.parametrize("ip", ["0.0.0.0", "10.0.0.1", "192.168.199.249", "255.255.255.255"])
def test_an_ipv4_address_is_taken(ip: str) -> None:
    assert convert(Address, {"ipv4": ip, "port": 7000}).ipv4 == ip


@pytest.mark.parametrize(
    "ip", ["999.1.1.1", "256.0.0.1", "1.2.3.256", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4 ", "a.b.c.d", "", "::1"]
)
def test_what_is_no_ipv4_address_is_refused_at_the_door_and_never_written_to_a_file(ip: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        convert(Address, {"ipv4": ip, "port": 7000})
    with pytest.raises(UnwritableConfig):
        _endpoint(Address(ipv4=ip, port=7000))
