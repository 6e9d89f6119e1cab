"""What ``drbdsetup status --json`` prints, read: all of the recordings, newer tools' fields, and garbage."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.storage.drbd import Connection, Device, DrbdStatus, Host, Path, PeerDevice
from quorate.drbd.errors import UnreadableOutput
from quorate.drbd.status import parse_status
from tests.drbd import recordings

RECORDED = [(f"{name}, {step['node']}: {step['label']}", step["status"]) for name, step in recordings.of_kind("status")]


def kebab(name: str) -> str:
    return {"peer_devices": "peer_devices", "this_host": "this_host", "remote_host": "remote_host"}.get(
        name, name.replace("_", "-")
    )


def assert_says(read: Any, printed: dict[str, Any]) -> None:
    """Every field that the tool printed is the one of its name; those it did not print have their defaults."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(read)}
    for name in read.__struct_fields__:
        value, spelled = getattr(read, name), kebab(name)
        if isinstance(value, tuple):
            assert len(value) == len(printed.get(spelled, ()))
            for inner, inner_printed in zip(value, printed.get(spelled, ()), strict=True):
                assert_says(inner, inner_printed)
        elif name == "percent_in_sync":
            assert value <= printed[spelled] < value + 1
        else:
            assert value == printed.get(spelled, defaults[name]), name


def test_every_recorded_status_is_read_field_by_field() -> None:
    assert len(RECORDED) >= 400
    for label, printed in RECORDED:
        read = parse_status(json.dumps(printed))
        assert len(read) == len(printed), label
        for status, resource in zip(read, printed, strict=True):
            assert_says(status, resource)


def test_a_sync_that_is_nearly_done_is_not_done() -> None:
    device = {"percent-in-sync": 99.99}
    text = json.dumps([{"name": "r", "connections": [{"peer-node-id": 1, "peer_devices": [device]}]}])
    assert parse_status(text)[0].connections[0].peer_devices == (PeerDevice(percent_in_sync=99),)


def test_what_newer_tools_print_is_read_and_what_is_unknown_is_passed_over() -> None:
    path = {
        "this_host": {"address": "10.0.0.1", "port": 7000, "family": "ipv4"},
        "remote_host": {"address": "10.0.0.2", "port": 7001, "family": "ipv4"},
        "established": True,
    }
    connection = {"peer-node-id": 1, "tls": True, "paths": [path], "next-year": {"deep": [1]}}
    text = json.dumps([{"name": "r", "devices": [{"open": True}], "connections": [connection], "surprise": None}])
    assert parse_status(text) == (
        DrbdStatus(
            name="r",
            devices=(Device(open=True),),
            connections=(
                Connection(
                    peer_node_id=1,
                    tls=True,
                    paths=(
                        Path(
                            this_host=Host(address="10.0.0.1", port=7000, family="ipv4"),
                            remote_host=Host(address="10.0.0.2", port=7001, family="ipv4"),
                            established=True,
                        ),
                    ),
                ),
            ),
        ),
    )


def test_nothing_up_is_an_empty_answer() -> None:
    assert parse_status("[\n]\n") == ()
    assert parse_status(b"[\n]\n") == ()


@pytest.mark.parametrize(
    "output",
    [
        "",
        "{}",
        "[1]",
        "[{}]",
        "[" * 100_000,
        "# No currently configured DRBD found.",
        '[{"name": 5}]',
        '[{"name": "r", "node-id": -1}]',
        '[{"name": "r", "devices": [{"size": "big"}]}]',
        '[{"name": "r", "connections": [{"peer-node-id": 8}]}]',
        '[{"name": "r", "connections": [{}]}]',
        '[{"name": "r", "devices": [{}, {}, {}, {}, {}]}]',
        b'[{"name": "\xff"}]',
        '[{"name": "\ud800"}]',
        '[{"name": "\\ud800"}]',
        '[{"name": "r", "connections": [{"peer-node-id": 1}, {"peer-node-id": 1}]}]',
    ],
)
def test_what_is_no_status_or_says_of_nobody_we_know_is_unreadable(output: str | bytes) -> None:
    with pytest.raises(UnreadableOutput, match="drbdsetup status"):
        parse_status(output)


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        ({"percent-in-sync": -0.5}, PeerDevice()),
        ({"percent-in-sync": 100.01}, PeerDevice(percent_in_sync=100)),
        ({"out-of-sync": -4, "peer-disk-state": "UpToDate"}, PeerDevice(peer_disk_state="UpToDate")),
        ({"out-of-sync": 2**64 - 4, "pending": -1}, PeerDevice(out_of_sync=2**63 - 1)),
        ({"replication-state": "x" * 33}, PeerDevice(replication_state="x" * 32)),
        ({"resync-suspended": "user,peer,dependency"}, PeerDevice(resync_suspended="user,peer,dependency")),
    ],
)
def test_a_number_or_a_word_that_is_out_of_bounds_hides_nothing_else(
    printed: dict[str, object], read: PeerDevice
) -> None:
    link = {"peer-node-id": 1, "connection-state": "Connected", "peer_devices": [printed]}
    (found,) = parse_status(
        json.dumps([{"name": "a-resource-with-a-name-longer-than-any-state", "connections": [link]}])
    )
    assert found.name == "a-resource-with-a-name-longer-than-any-state"
    assert found.connections[0].connection_state == "Connected"
    assert found.connections[0].peer_devices == (read,)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=12,
)


@given(st.binary(max_size=200) | st.text(max_size=200) | json_values.map(json.dumps))
def test_garbage_is_read_or_unreadable_and_nothing_else(output: str | bytes) -> None:
    with contextlib.suppress(UnreadableOutput):
        parse_status(output)


@given(st.data())
def test_a_damaged_status_is_read_or_unreadable_and_nothing_else(data: st.DataObject) -> None:
    text = bytearray(json.dumps(data.draw(st.sampled_from(RECORDED))[1]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = parse_status(bytes(text[: data.draw(st.integers(0, len(text)))]))
    except UnreadableOutput:
        return
    # Whatever was read fits the schema: a report that a store refuses would hide the whole node.
    assert msgspec.convert(msgspec.to_builtins(read), tuple[DrbdStatus, ...]) == read


def test_reading_it_into_our_types_takes_less_than_pythons_own_reader_takes_for_the_json() -> None:
    """500 resources take four milliseconds on an idle machine; a ratio holds on a busy one too."""
    one = next(printed for label, printed in RECORDED if label.startswith("access_primary_3d"))[0]
    text = json.dumps([{**one, "name": f"pvc-{number}"} for number in range(500)], indent=4)
    ours, pythons = (min(_seconds(read, text) for _ in range(10)) for read in (parse_status, json.loads))
    assert ours < pythons


def _seconds(read: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    read(text)
    return time.process_time() - start
