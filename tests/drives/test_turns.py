"""Turns as they are written: one word for each Volume in a pass, and each successor is let once."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from quorate.api import annotation_keys
from quorate.api.annotation_keys import Release
from quorate.api.baremetal import Volume
from quorate.api.baremetal.volume import VolumeSpec
from quorate.api.cluster_config import DrainLimits
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.scalars import ReplicaName
from quorate.drives.limits import Move, Place
from quorate.drives.turns import Turns, Waiting, decide
from quorate.engine import Patch

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
HERE, THERE = Place("a"), Place("b")


def volume(name: str, **said: str) -> Volume:
    metadata = ObjectMeta(name=name, namespace="quorate-system", annotations=said)
    return Volume(metadata=metadata, spec=VolumeSpec(id=name, location="g", node_id=NodeName("a")))


def spoken(*of: tuple[Move, Waiting]) -> dict[str, dict[str, str]]:
    turns = Turns(DrainLimits(), tuple(move for move, _ in of), {move.name: waiting for move, waiting in of})
    writes = decide(turns, NOW, Random(0)).steps
    found = {}
    for write in writes:
        assert isinstance(write, Patch)
        found[write.target.name] = dict(write.intended.metadata.annotations)
    return found


def test_a_move_is_begun_with_nothing_copied_yet() -> None:
    said = spoken((Move("v-0-x", HERE, busy=True), Waiting(volume("v-0-x"), None)))
    assert said == {"v-0-x": {annotation_keys.RELEASE: Release.PROCESSING, annotation_keys.RELEASE_RECOVERY: "0"}}


def test_who_was_let_and_is_gone_is_forgotten_before_anything_else_is_said() -> None:
    old = volume("v-0-x", **{annotation_keys.MOVE_TO: "v-3"})
    assert spoken((Move("v-0-x", HERE, busy=True), Waiting(old, None, stale=True))) == {"v-0-x": {}}


def test_one_that_takes_over_from_two_is_let_once() -> None:
    successor = ReplicaName("v-3")
    moves = [
        (Move(f"v-{n}-x", HERE, THERE, begun=True, busy=True), Waiting(volume(f"v-{n}-x"), successor)) for n in (0, 1)
    ]
    assert spoken(*moves) == {"v-0-x": {annotation_keys.MOVE_TO: "v-3"}}
