"""The vocabulary of faults: typed, and the same on the wire as in the code."""

from __future__ import annotations

import msgspec
import pytest

from quorate.lab import faults
from quorate.lab.faults import FAULTS, Fault


@pytest.mark.parametrize(
    ("fault", "wire"),
    [
        (faults.NodeDown("n1"), {"fault": "node-down", "node": "n1"}),
        (faults.Cut("n1", "n2", one_way=True), {"fault": "cut", "node": "n1", "peer": "n2", "oneWay": True}),
        (faults.Heal(), {"fault": "heal", "node": "", "peer": ""}),
        (faults.Slow("n1", "drbdadm", 2), {"fault": "slow", "node": "n1", "command": "drbdadm", "seconds": 2}),
    ],
)
def test_a_fault_reads_on_the_wire_as_it_is_called(fault: Fault, wire: dict[str, object]) -> None:
    assert msgspec.to_builtins(fault) == wire
    assert msgspec.convert(wire, Fault) == fault


@pytest.mark.parametrize(
    ("wire", "problem"),
    [
        ({"fault": "meteor", "node": "n1"}, "Invalid value 'meteor'"),
        ({"node": "n1"}, "missing required field `fault`"),
        ({"fault": "node-down"}, "missing required field `node`"),
        ({"fault": "node-down", "node": ""}, "length >= 1"),
        ({"fault": "node-down", "node": "n1", "nod": "n2"}, "unknown field `nod`"),
        ({"fault": "slow", "node": "n1", "command": "x", "seconds": -1}, "> 0"),
        ({"fault": "smart", "node": "n1", "drive": "sda", "says": "hello"}, "Invalid enum value 'hello'"),
    ],
)
def test_what_is_no_fault_is_refused_with_the_reason(wire: dict[str, object], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        msgspec.convert(wire, Fault)


def test_every_fault_has_a_word_and_says_what_it_does() -> None:
    assert {word for word, fault in FAULTS.items() if not (fault.__doc__ or "").strip()} == set()
    assert {"node-down", "node-up", "cut", "heal", "isolate", "drive-fail", "hang"} <= set(FAULTS)
