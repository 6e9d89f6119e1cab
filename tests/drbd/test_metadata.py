"""Sizes, by the numbers of a real cluster, and what dump-md's answers mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.meta import Bytes
from quorate.drbd.metadata import MetadataState, lower_size, metadata_state, usable_size
from tests.drbd import recordings

KIB, MIB, GIB, TIB = (1024**power for power in range(1, 5))


@pytest.mark.parametrize(
    ("usable", "lower"),
    [
        (4 * KIB, 45056),
        (MIB, 1089536),
        (100 * MIB, 104919040),
        (GIB, 1074012160),
        (TIB, 1099746598912),
    ],
)
def test_so_much_data_needs_a_device_of(usable: int, lower: int) -> None:
    assert lower_size(Bytes(usable)) == lower


@pytest.mark.parametrize(
    ("lower", "usable"),
    [
        (32 * MIB, 32724 * KIB),
        (48 * MIB, 50282496),
        (64 * MIB, 67055616),
        (100 * MIB, 104796160),
        (GIB, 1073475584),
        (10 * GIB, 10735087616),
        (100 * GIB, 107351207936),
        (TIB, 1099276709888),
        (40 * KIB, 0),
        (0, 0),
    ],
)
def test_a_device_of_so_much_has_room_for(lower: int, usable: int) -> None:
    assert usable_size(Bytes(lower)) == usable


sizes = st.integers(0, 64 * TIB)
peer_counts = st.integers(1, 31)


@given(sizes, peer_counts)
def test_the_device_is_big_enough_and_one_block_less_is_not(usable: int, peers: int) -> None:
    lower = lower_size(Bytes(usable), peers)
    assert lower % 4096 == 0
    assert usable_size(lower, peers) >= usable
    if usable:
        assert usable_size(Bytes(lower - 1), peers) < usable


@given(sizes, sizes, peer_counts)
def test_more_needs_no_less(one: int, other: int, peers: int) -> None:
    less, more = sorted((one, other))
    assert lower_size(Bytes(less), peers) <= lower_size(Bytes(more), peers)
    assert usable_size(Bytes(less), peers) <= usable_size(Bytes(more), peers)


@given(sizes, peer_counts)
def test_what_a_device_has_room_for_never_needs_a_bigger_one(lower: int, peers: int) -> None:
    usable = usable_size(Bytes(lower), peers)
    if usable:
        assert lower_size(usable, peers) <= lower
        assert usable_size(lower_size(usable, peers), peers) == usable


# What dump-md found.


def answers() -> list[tuple[str, int, str]]:
    return [
        (name, step["exit"], step["output"])
        for name, step in recordings.of_kind("command")
        if step["command"].startswith("drbdadm dump-md")
    ]


def test_every_recorded_answer_is_understood() -> None:
    assert len(answers()) >= 18
    for name, exit_code, output in answers():
        assert metadata_state(exit_code, output) is not MetadataState.UNREADABLE, (name, output)


def test_a_device_that_grew_before_the_power_went_looks_like_one_that_never_had_any() -> None:
    grown = {metadata_state(code, output) for name, code, output in answers() if name == "grow_power_loss"}
    kept = {metadata_state(code, output) for name, code, output in answers() if name == "grow_power_loss_state_kept"}
    assert (grown, kept) == ({MetadataState.NONE}, {MetadataState.UNCLEAN})


DUMP = '# DRBD meta data dump\nversion "v09";\nmax-peers 7;\n'
UNCLEAN = 'Found meta data is "unclean", please apply-al first\n'


@pytest.mark.parametrize(
    ("exit_code", "output", "state"),
    [
        (0, DUMP, MetadataState.CLEAN),
        (0, UNCLEAN + DUMP, MetadataState.UNCLEAN),
        (1, UNCLEAN, MetadataState.UNCLEAN),
        (255, UNCLEAN, MetadataState.UNCLEAN),
        (1, "No valid meta data found\n", MetadataState.NONE),
        (255, "No valid meta data found\n", MetadataState.NONE),
        (20, "open(/dev/vg0/x) failed: No such file or directory\n", MetadataState.DEVICE_MISSING),
        (20, "open(/dev/vg0/x) failed: Device or resource busy\n", MetadataState.IN_USE),
        (20, "Device '1000' is configured!\n", MetadataState.IN_USE),
        # Nothing that could be mistaken for an empty device.
        (0, "", MetadataState.UNREADABLE),
        (1, "", MetadataState.UNREADABLE),
        (20, "No valid meta data found\n", MetadataState.UNREADABLE),
        (1, "No valid meta data found\n" + DUMP, MetadataState.UNREADABLE),
        (1, "No valid meta data found\n" + UNCLEAN, MetadataState.UNCLEAN),
        (1, "read error: Input/output error\n", MetadataState.UNREADABLE),
    ],
)
def test_an_answer_means(exit_code: int, output: str, state: MetadataState) -> None:
    assert metadata_state(exit_code, output) is state


@given(st.integers(0, 255), st.text(max_size=100))
def test_garbage_never_looks_like_an_empty_device(exit_code: int, output: str) -> None:
    if "No valid meta data found" not in output:
        assert metadata_state(exit_code, output) is not MetadataState.NONE
