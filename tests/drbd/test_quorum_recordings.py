"""The quorum rule against a real cluster: every ``quorum`` flag of every recorded status is predicted.

What a member sees is in its status; its configuration is the file that was there at its last ``up`` or ``adjust``.
Whether it had quorum before its last change, whom it lost in it and whom it ever met is in its event stream.

One thing is left to chance by the kernel, and here: after a loss under a numeric quorum in a layout of two diskful
members and a tie-breaker, timing decides (``facts/drbd9.md``).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest
from msgspec.structs import replace

from quorate.api.storage.drbd import DrbdConfig, DrbdStatus, ReplicaType
from quorate.drbd.quorum import MemberView, Setting, Verdict, verdict
from quorate.drbd.status import parse_status
from quorate.drbd.views import view_of
from tests.drbd import recordings
from tests.drbd.recordings import File, Moment, Step

#: The kernel counts when something changes at a member. That a peer became quorate is word of mouth and no such change:
#: a member without a disk can stand still beside quorate peers until it is made to count, as agents do (`recount`).
NOT_COUNTED_SINCE = {("diskless_own_quorum_32", "n3", "healed"), ("diskless_own_quorum_32", "n4", "healed")}

RES = "/etc/drbd.d/pvc-1.res"


@dataclass
class Member:
    """What has become of one node in the course of a recording."""

    moments: list[Moment]
    files: dict[str, str]
    applied: File | None = None
    forgotten: frozenset[int] = frozenset()
    heard_of: frozenset[int] = frozenset()
    position: int = 0

    def now(self, status: DrbdStatus) -> Moment:
        """The next moment of the stream at which it says what the status says."""
        if not self.moments:
            # It went with the node's power, and the member began anew: without quorum, and without having lost anybody.
            return Moment(met=frozenset(link.peer_node_id for link in status.connections))
        for position in range(self.position, len(self.moments)):
            if says(self.moments[position]) == seen(status):
                self.position = position
                return self.moments[position]
        raise AssertionError(f"the event stream never comes to {seen(status)}")


@dataclass(frozen=True)
class Prediction:
    recording: str
    node: str
    label: str
    recorded: bool
    predicted: Verdict
    left_to_chance: bool
    view: MemberView

    @property
    def where(self) -> tuple[str, str, str]:
        return self.recording, self.node, self.label


def says(moment: Moment) -> object:
    return moment.disk, moment.quorum, moment.peers


def seen(status: DrbdStatus) -> object:
    device = status.devices[0]
    peers = {
        link.peer_node_id: (link.peer_devices[0].replication_state, link.peer_devices[0].peer_disk_state)
        for link in status.connections
    }
    return device.disk_state, device.quorum, peers


def members_of(name: str) -> dict[str, Member]:
    members: defaultdict[str, Member] = defaultdict(lambda: Member([], {}))
    for step in recordings.steps(name):
        if step["kind"] == "events2" and "exists -" in step["text"]:
            members[step["node"]].moments += recordings.history(step["text"])
    return members


def rounds(name: str) -> Iterator[tuple[str, dict[str, DrbdStatus], dict[str, Member]]]:
    """The statuses that were taken together, with the members as they were then."""
    members = members_of(name)
    label, statuses = "", dict[str, DrbdStatus]()
    for step in recordings.steps(name):
        if statuses and (step["kind"] != "status" or step["label"] != label):
            yield label, statuses, members
            statuses = {}
        if step["kind"] == "status":
            label = step["label"]
            for status in parse_status(msgspec.json.encode(step["status"])):
                statuses[step["node"]] = status
        elif "node" in step:
            play(members[step["node"]], step)


def play(member: Member, step: Step) -> None:
    match step:
        case {"kind": "file", "path": str(path), "text": str(text)}:
            member.files[path] = text
        case {"kind": "command", "command": str(command)}:
            words = command.split()
            if words[0] == "mv":
                member.files[words[2]] = member.files.pop(words[1])
            elif words[:2] in (["drbdadm", "up"], ["drbdadm", "adjust"]):
                member.applied = recordings.read_file(member.files[f"/etc/drbd.d/{words[2]}.res"], step["node"])
            elif words[:2] == ["drbdsetup", "forget-peer"]:
                member.forgotten |= {int(words[3])}


def predictions(name: str) -> Iterator[Prediction]:
    for label, statuses, members in rounds(name):
        reports = {status.node_id: status for status in statuses.values()}
        spread_the_word(statuses, members)
        for node, status in statuses.items():
            member = members[node]
            assert member.applied is not None
            moment = member.now(status)
            view = view_at(member, moment, status, reports)
            predicted = verdict(undeparted(view, reached_before(status.node_id, moment, reports)))
            if predicted.quorate and moment.had_quorum:
                predicted = verdict(view)
            chance = left_to_chance(member.applied, view)
            yield Prediction(name, node, label, status.devices[0].quorum, predicted, chance, view)


def spread_the_word(statuses: dict[str, DrbdStatus], members: dict[str, Member]) -> None:
    """A diskful member hears from its diskful peers whom they keep a bitmap for."""
    bitmaps = {
        status.node_id: frozenset(
            peer.node_id
            for peer in config_of(members[node]).peers
            if peer.type is ReplicaType.DISKFUL and config_of(members[node]).type is ReplicaType.DISKFUL
        )
        for node, status in statuses.items()
    }
    for node, status in statuses.items():
        for link in status.connections:
            if link.connection_state == "Connected":
                members[node].heard_of |= bitmaps.get(link.peer_node_id, frozenset()) - {status.node_id}


def config_of(member: Member) -> DrbdConfig:
    assert member.applied is not None
    return member.applied.config


def view_at(member: Member, moment: Moment, status: DrbdStatus, reports: dict[int, DrbdStatus]) -> MemberView:
    assert member.applied is not None
    config = member.applied.config
    with_disk = {peer.node_id for peer in config.peers if peer.type is ReplicaType.DISKFUL}
    diskful = config.type is ReplicaType.DISKFUL
    remembered = (moment.met - member.forgotten) & (with_disk | (moment.met - {peer.node_id for peer in config.peers}))
    view = view_of(
        config,
        status,
        had_quorum=moment.had_quorum,
        reports=reports,
        remembered=remembered if diskful else None,
        heard_of=member.heard_of - {peer.node_id for peer in config.peers} - remembered if diskful else (),
    )
    # The recordings also try what we never write: numbers, and hiding on the diskless side.
    hidden = member.applied.hidden
    peers = tuple(replace(peer, hidden=peer.node_id in hidden) for peer in view.peers)
    return replace(view, quorum=member.applied.quorum, peers=peers)


def reached_before(node_id: int, moment: Moment, reports: dict[int, DrbdStatus]) -> frozenset[int]:
    """Those that the last change cut off, themselves or with the one that led to them, and all others still there."""
    reached, ahead = {node_id}, set(moment.connected_before)
    while ahead:
        peer = ahead.pop()
        reached.add(peer)
        links = reports[peer].connections if peer in reports else ()
        ahead |= {link.peer_node_id for link in links if link.connection_state == "Connected"} - reached
    return frozenset(reached)


def undeparted(view: MemberView, reached: frozenset[int]) -> MemberView:
    """As it was when the links broke, before all had agreed on who is left."""
    peers = (replace(peer, departed=peer.departed and peer.node_id not in reached) for peer in view.peers)
    return replace(view, peers=tuple(peers))


def left_to_chance(file: File, view: MemberView) -> bool:
    numeric = isinstance(file.quorum, int)
    diskful = [peer for peer in view.peers if peer.diskful]
    two_and_a_tie_breaker = len(diskful) + view.diskful == 2 and len(diskful) < len(view.peers) + (not view.diskful)
    return numeric and two_and_a_tie_breaker and not all(peer.connected for peer in view.peers)


@pytest.mark.parametrize("name", recordings.NAMES)
def test_every_flag_of_the_recording_is_predicted(name: str) -> None:
    for prediction in predictions(name):
        if prediction.where in NOT_COUNTED_SINCE:
            assert (prediction.predicted.quorate, prediction.recorded) == (True, False)
            assert "peer" in prediction.predicted.explanation
        elif not prediction.left_to_chance:
            assert prediction.predicted.quorate == prediction.recorded, prediction


def test_chance_is_rare_and_only_ever_keeps_quorum_that_a_second_look_would_take() -> None:
    made = [prediction for name in recordings.NAMES for prediction in predictions(name)]
    assert len(made) == sum(len(step["status"]) for _, step in recordings.of_kind("status")) >= 400
    assert {prediction.recorded for prediction in made if not prediction.left_to_chance} == {True, False}
    wrong = [
        prediction
        for prediction in made
        if prediction.predicted.quorate != prediction.recorded and prediction.where not in NOT_COUNTED_SINCE
    ]
    assert len(wrong) <= 6
    assert all(prediction.left_to_chance and prediction.recorded for prediction in wrong)


def refusals() -> Iterator[tuple[Prediction, tuple[int, int, int]]]:
    """Promotions that the kernel refused, with its own count, and what was predicted of that member just before."""
    for name in recordings.NAMES:
        made = list(predictions(name))
        taken: Counter[str] = Counter()
        for step in recordings.steps(name):
            if step["kind"] == "status" and step["status"]:
                taken[step["node"]] += 1
            counted = re.search(r"(\d+) of (\d+) nodes visible, need (\d+) for quorum", step.get("output", ""))
            # Forcing it declares the absent outdated first, and so counts others.
            if counted and step["command"] == "drbdadm primary pvc-1":
                of_node = [prediction for prediction in made if prediction.node == step["node"]]
                present, voters, needed = map(int, counted.groups())
                yield of_node[taken[step["node"]] - 1], (present, voters, needed)


def test_where_the_kernel_shows_its_count_ours_is_the_same() -> None:
    found = list(refusals())
    assert len(found) >= 5
    for prediction, counted in found:
        # It has lost quorum by now, and so fears again whoever left.
        said = verdict(replace(prediction.view, had_quorum=False))
        assert (said.present, said.voters, said.needed) == counted, prediction


def test_the_recordings_have_numbers_majorities_and_no_quorum_at_all() -> None:
    files = [recordings.read_file(step["text"], step["node"]) for _, step in recordings.of_kind("file") if is_res(step)]
    assert {file.quorum for file in files} >= {Setting.OFF, Setting.MAJORITY, 2, 32}


def is_res(step: Step) -> bool:
    # bad_config writes files that nobody can read.
    return step["path"] == RES and f"on {step['node']} {{" in step["text"]
