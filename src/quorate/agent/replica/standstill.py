"""What should move in the kernel and does not: noticed within a minute, cured where that is safe, and told.

The kernel tells of every change and of no standstill, so each look at a resource notes what would have to go on by
itself, and since when it has not (``noted``). What is noted is only a cache: an agent that starts anew begins anew.

- A disk that is being attached (Attaching, Negotiating) for a minute waits for a word of its peers that never comes
  (F2). Without links it goes by its own: they are taken down, and come up again with ``adjust``.
- A copy beside a connected one that is UpToDate should be copying (F5). The word ``resync-suspended`` is no sign of
  anything (E3), and no counter is trusted to be sane; that no link copies, or that nothing is left less of, is. Its
  links are connected anew one by one. A copy that is not Inconsistent and has marks is invalidated instead: two that
  meet with equal generations throw their marks away without copying (E2). One that shows none may have had marks that
  only its peers showed.
- A link over which this member gives what nobody takes (the other side calls itself UpToDate) is connected anew, later:
  if it is the other side that stands still, its own agent sees to it. Its marks may be gone by that. A link that is
  paused is none of these: the other side copies from somebody else first, for as long as that takes.
- Before a link is made anew by which marks may be lost, ``actual.metUnsureAt`` says whose copy is in doubt from then
  on: nobody uses it before it has been compared (``volumes.attach.doubts``), whoever dies meanwhile.
- A link that is made and lost again many times a second is taken down, and tried once after each pause, ever longer.
- A link that is StandAlone is connected again by ``adjust``; here it is only told of.

A Primary is never touched: its users depend on each link. Nor is a member without whose vote one would lose quorum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from quorate.agent.backoff import Patience
from quorate.agent.memory import Outcome
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import (
    all_established,
    counted_copies,
    disk_state,
    good_copies,
    has_disk,
    holds_disk,
    is_diskful,
    is_primary,
    stand_alone,
)
from quorate.agent.replica.looking import look_work
from quorate.agent.replica.verdict import FINE, Verdict, attempt, failed
from quorate.agent.replica.view import View
from quorate.agent.steps import KERNEL, Look, Run
from quorate.api.conditions.rvr import DRBDMoving
from quorate.api.storage.drbd import (
    Connection,
    ConnectionState,
    DiskState,
    DrbdStatus,
    PeerDevice,
    ReplicationState,
    ReplicaType,
    Role,
    Standstill,
)
from quorate.drbd.marks import LinkRules, kept_links

#: Seconds after which what has not moved stands still: the first cure is then under way within a minute.
PATIENCE: Final = 45.0
#: The same of a link over which this member gives: whoever takes has had his turn.
GIVING_PATIENCE: Final = 120.0
#: Seconds for which a look holds when something is to be done about what it shows.
FRESH: Final = 5.0
#: Between two cures. The first time the other link is tried soon.
BETWEEN: Final = Patience(first=20.0, longest=600.0)
#: So many attempts to connect within so many seconds are a loop. A link whose peer is away waits, and makes none.
LOOP: Final = 10
WITHIN: Final = 5.0
#: Between two attempts of a link that loops.
LOOP_PAUSE: Final = Patience(first=15.0, longest=600.0)
#: What was not done again for so many seconds has helped, or is not needed any more.
CURED: Final = 900.0
#: A counter of the kernel above this has gone below zero.
_INSANE: Final = 2**62

_WITHOUT_GOOD_DATA: Final = frozenset({DiskState.INCONSISTENT, DiskState.OUTDATED, DiskState.CONSISTENT})
_GIVING: Final = frozenset(
    {
        ReplicationState.STARTING_SYNC_SOURCE,
        ReplicationState.WAITING_BITMAP_SOURCE,
        ReplicationState.SYNC_SOURCE,
    }
)


class Sign(StrEnum):
    """What should go on by itself."""

    ATTACHING = "attaching"
    TAKING = "taking"
    GIVING = "giving"
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Noted:
    """Since when a sign has been seen with nothing moving; and by peer the KiB that were last seen left to copy."""

    since: datetime
    left: Mapping[int, int] = field(default_factory=dict)


#: By sign, and by the peer that it is about; -1: about all of them.
Signs = Mapping[tuple[Sign, int], Noted]
_ALL: Final = -1


def noted(before: Signs, status: DrbdStatus | None, now: datetime) -> Signs:
    """What is noted after a look."""
    found: dict[tuple[Sign, int], Noted] = {}
    for key, left in _signs(status):
        known = before.get(key)
        if known is None or known.since > now:
            found[key] = Noted(now, left)
            continue
        # Less than at the last look, not than ever: one that begins anew, or from another peer, may have more to copy.
        moves = any(peer not in known.left or amount < known.left[peer] for peer, amount in left.items())
        found[key] = Noted(now if moves else known.since, {**known.left, **left})
    return found


def _signs(status: DrbdStatus | None) -> Iterable[tuple[tuple[Sign, int], Mapping[int, int]]]:
    """Each sign that a status shows, with what is left to copy where something is being copied."""
    if status is None:
        return
    if holds_disk(status) and not has_disk(status):
        yield (Sign.ATTACHING, _ALL), {}
    if disk_state(status) in _WITHOUT_GOOD_DATA and _good_peers(status):
        yield (Sign.TAKING, _ALL), _left(status, ReplicationState.SYNC_TARGET)
    given = _left(status, ReplicationState.SYNC_SOURCE)
    for link, volume in _volumes(status):
        if volume.replication_state in _GIVING:
            peer = link.peer_node_id
            yield (Sign.GIVING, peer), {peer: given[peer]} if peer in given else {}
    for peer in stand_alone(status):
        yield (Sign.ALONE, peer), {}


def _volumes(status: DrbdStatus) -> Iterable[tuple[Connection, PeerDevice]]:
    return (
        (link, volume)
        for link in status.connections
        if link.connection_state == ConnectionState.CONNECTED
        for volume in link.peer_devices
    )


def _good_peers(status: DrbdStatus) -> list[int]:
    """Who in touch has good data, those first over whose link something has been begun."""
    good = [(link, each) for link, each in _volumes(status) if _is_good(each)]
    good.sort(key=lambda one: one[1].replication_state == ReplicationState.ESTABLISHED)
    return [link.peer_node_id for link, _ in good]


def _is_good(volume: PeerDevice) -> bool:
    """Whether the peer has good data. In the middle of a resync the kernel shows it as no better than Consistent."""
    if volume.replication_state in _GIVING:
        return volume.peer_disk_state in (DiskState.CONSISTENT, DiskState.UP_TO_DATE)
    return volume.peer_disk_state == DiskState.UP_TO_DATE


def _left(status: DrbdStatus, state: ReplicationState) -> dict[int, int]:
    """By peer with a link in this state: KiB left to copy, where the counter is sane."""
    return {
        link.peer_node_id: each.out_of_sync
        for link, each in _volumes(status)
        if each.replication_state == state and each.out_of_sync < _INSANE
    }


def mend_standstill(view: View, now: datetime, settled: bool) -> Verdict:
    """Cure what stands still, where that is safe: one thing at a time, ever more rarely."""
    status = view.status
    if status is None or view.intended is None or not view.kernel.current:
        return FINE
    attaching = (Sign.ATTACHING, _ALL) in view.signs
    due = {key: _due(view, key) for key in view.signs if key[0] is not Sign.ALONE}
    if not due:
        return _is_over(view, status, now)
    first = min(due, key=lambda key: due[key])
    # What was noted a moment after this pass began, or before the clock was set back, has not stood for any time.
    wait = due[first] - max(0.0, (now - view.signs[first].since).total_seconds())
    if wait > 0:
        return Verdict(unsettled=attaching, again=wait)
    if view.seen_at is None or (now - view.seen_at).total_seconds() > FRESH:
        look = Look(KERNEL, view.resource)
        return Verdict(steps=(look,), work=look_work(view.resource), unsettled=attaching, again=FRESH)
    if why_not(view, status, first):
        return Verdict(unsettled=attaching, again=PATIENCE)
    steps = _cure(view, status, first)
    verdict = attempt(view, now, steps[0].purpose, steps[0].about, steps, patience=BETWEEN)
    unsure = _unsure(view, status, first) if verdict.steps else None
    actual = {} if unsure is None else {"met_unsure_at": now, "met_unsure": unsure}
    return Verdict(steps=verdict.steps, again=verdict.again, unsettled=attaching, actual=actual)


def _is_over(view: View, status: DrbdStatus, now: datetime) -> Verdict:
    """Nothing stands still any more: what was done about it is forgotten, once all is well again or it is long ago.

    A link that is just being made anew shows no sign either, and may stand still again as soon as it is there.
    """
    past = tuple(each for each in (commands.REJOIN, commands.INVALIDATE) if each in view.outcomes)
    if not past:
        return FINE
    well = disk_state(status) == DiskState.UP_TO_DATE and all_established(view.config, status)
    since = min((now - view.outcomes[each].at).total_seconds() for each in past)
    left = 0.0 if well else CURED + BETWEEN.longest - since
    return Verdict(again=left) if left > 0 else Verdict(drop=past)


_LOOPED: Final = "loop"


def part_from_loop(view: View, now: datetime, settled: bool) -> Verdict:
    """Take down a link that loops. ``adjust`` connects it again, when it may."""
    if view.status is None or not view.kernel.current:
        return FINE
    cured = tuple(
        purpose
        for purpose, last in view.outcomes.items()
        if purpose.startswith(f"{commands.PART} ") and (now - last.at).total_seconds() > CURED + LOOP_PAUSE.longest
    )
    for peer in _looping(view, now):
        if peer not in stand_alone(view.status) and may_connect(view, peer, now):
            return Verdict(steps=(commands.part(view, peer, _LOOPED),), unsettled=True, drop=cured)
    return Verdict(drop=cured) if cured else FINE


def _looping(view: View, now: datetime) -> list[int]:
    return [
        peer
        for peer, times in view.attempts.items()
        if len(times) >= LOOP and times[-1] >= times[0] and (times[-1] - times[0]).total_seconds() <= WITHIN
        if (now - times[-1]).total_seconds() <= WITHIN
    ]


def may_connect(view: View, peer: int, now: datetime) -> bool:
    """Whether a link that looped may be tried, as far as its pause goes."""
    return left_to_wait(view, peer, now) <= 0


def left_to_wait(view: View, peer: int, now: datetime) -> float:
    """Seconds until then."""
    return LOOP_PAUSE.left(view.outcomes.get(f"{commands.PART} {peer}"), _LOOPED, now)


def _due(view: View, key: tuple[Sign, int]) -> float:
    return GIVING_PATIENCE if key[0] is Sign.GIVING else PATIENCE


def why_not(view: View, status: DrbdStatus, key: tuple[Sign, int]) -> str:
    """Why a standstill is not ours to cure; "": it is."""
    if is_primary(status):
        return "it is Primary here, and its users depend on its links"
    if any("user" in volume.resync_suspended for _, volume in _volumes(status)):
        return "somebody has paused the resync by hand (drbdadm resume-sync)"
    giving_to_primary = any(
        link.peer_node_id == key[1] and link.peer_role == Role.PRIMARY for link in status.connections
    )
    if giving_to_primary:
        return "the peer is Primary, and may depend on this link"
    if key[1] in kept_links(status, LinkRules.of(view.config)):
        return "copies that are UpToDate may differ, and are compared first"
    if key[0] is not Sign.GIVING and _is_needed(view, status):
        return "it is in use elsewhere with too few other members in touch, and would lose quorum with this link"
    return ""


def _is_needed(view: View, status: DrbdStatus) -> bool:
    """Whether a user elsewhere would lose quorum without this member for a moment, as far as is seen from here.

    One that has too few good copies stands still already, and waits for nothing but the cure.
    """
    config = view.config
    in_use = any(link.peer_role == Role.PRIMARY for link in status.connections)
    if config.hidden or not is_diskful(config) or not in_use:
        return False
    if good_copies(status) < (config.quorum_minimum_redundancy or 1):
        return False
    here = {link.peer_node_id for link in status.connections if link.connection_state == ConnectionState.CONNECTED}
    voters = counted_copies(config)
    with_it, half = sum(each in here for each in voters), (len(voters) + 1) / 2
    ties = any(peer.type is ReplicaType.TIE_BREAKER and peer.node_id in here for peer in config.peers)
    return with_it < half or (with_it == half and not ties)


def _cure(view: View, status: DrbdStatus, key: tuple[Sign, int]) -> tuple[Run, ...]:
    sign, peer = key
    last = view.outcomes.get(commands.REJOIN)
    tries = last.times if last is not None and last.about == sign else 0
    if sign is Sign.ATTACHING:
        peers = [link.peer_node_id for link in status.connections]
        return commands.rejoin(view, peers, str(sign))
    if sign is Sign.GIVING:
        return commands.rejoin(view, [peer], f"{sign} {peer}")
    good = _good_peers(status)
    if _is_invalidated(status):
        refused = failed(view, commands.INVALIDATE) is not None
        return commands.invalidate(view, good if refused else [], str(sign))
    return commands.rejoin(view, [good[tries % len(good)]], str(sign))


def _is_invalidated(status: DrbdStatus) -> bool:
    """Whether a copy that stands still is copied as a whole: marks may be dropped when it is met anew."""
    return disk_state(status) != DiskState.INCONSISTENT and _has_marks(status)


def _unsure(view: View, status: DrbdStatus, key: tuple[Sign, int]) -> int | None:
    """The node id of whose copy may be taken for equal by the cure, although it is not; None: nobody's."""
    if key[0] is Sign.GIVING:
        return key[1]
    whole = _is_invalidated(status) or disk_state(status) == DiskState.INCONSISTENT
    return None if key[0] is Sign.ATTACHING or whole else view.config.node_id


def _has_marks(status: DrbdStatus) -> bool:
    return any(volume.out_of_sync for _, volume in _volumes(status))


def standstills(view: View, now: datetime) -> tuple[Standstill, ...]:
    """What is told of it, one for each reason."""
    status = view.status
    found: list[Standstill] = []
    hung = [each for each in view.outcomes.values() if each.hung] if view.hung else []
    if hung and (now - hung[0].at).total_seconds() >= PATIENCE:
        said = f"it waits for a command that hangs in the kernel: {hung[0].command}; others go on"
        found.append(Standstill(reason=DRBDMoving.COMMAND_HUNG.code, since=hung[0].at, message=said[:512]))
    if status is None:
        return tuple(found)
    parted = any(purpose.startswith(commands.PART) for purpose in view.outcomes)
    if not view.signs and not parted:
        return tuple(found)
    alone = [noted.since for (sign, _), noted in view.signs.items() if sign is Sign.ALONE]
    if view.port_taken and alone:
        port = view.config.address.port if view.config.address is not None else 0
        said = f"another program listens on port {port}, so that no peer can be met; another port is being chosen"
        found.append(Standstill(reason=DRBDMoving.PORT_TAKEN.code, since=min(alone), message=said))
    loops = {peer: last for peer in _linked(view) if (last := view.outcomes.get(f"{commands.PART} {peer}"))}
    waiting = {peer: last for peer, last in loops.items() if not may_connect(view, peer, now)}
    if waiting:
        found.append(_told_of_loops(view, waiting))
    for sign, (reason, words) in _TOLD.items():
        since = {
            peer: noted.since
            for (each, peer), noted in view.signs.items()
            if each is sign and peer not in waiting and (now - noted.since).total_seconds() >= _due(view, (each, peer))
        }
        if since and not any(each.reason == reason for each in found):
            found.append(_told(view, status, sign, reason, words, since))
    return tuple(found)


#: GIVING and TAKING have one reason: of a member that does both, that it lacks data counts more.
_TOLD: Final = {
    Sign.ATTACHING: (DRBDMoving.ATTACH_STALLED.code, "its disk is {disk} and waits for a word of its peers"),
    Sign.TAKING: (
        DRBDMoving.SYNC_STALLED.code,
        "its disk is {disk} beside a good copy in touch, and nothing is copied",
    ),
    Sign.GIVING: (DRBDMoving.SYNC_STALLED.code, "it gives data to {peers}, and nothing moves"),
    Sign.ALONE: (DRBDMoving.LINK_STAND_ALONE.code, "the kernel has given up the link to {peers}"),
}


def _told(
    view: View, status: DrbdStatus, sign: Sign, reason: str, words: str, since: Mapping[int, datetime]
) -> Standstill:
    peers = tuple(sorted(peer for peer in since if peer != _ALL)) or tuple(sorted(_good_peers(status)))
    attempts = 0
    for purpose in (commands.REJOIN, commands.INVALIDATE, commands.ADJUST):
        last = view.outcomes.get(purpose)
        about = "" if last is None else last.about.partition(" ")[0]
        if last is not None and (about == sign or (sign is Sign.ALONE and purpose == commands.ADJUST)):
            attempts += last.times
    hindrance = why_not(view, status, (sign, next(iter(since)))) if sign is not Sign.ALONE else ""
    done = f"; left alone: {hindrance}" if hindrance else f"; connected anew {attempts} times so far"
    message = words.format(disk=disk_state(status), peers=_named(view, peers)) + done
    return Standstill(reason=reason, since=min(since.values()), peers=peers, attempts=attempts, message=message[:512])


def _told_of_loops(view: View, waiting: Mapping[int, Outcome]) -> Standstill:
    times = sum(last.times for last in waiting.values())
    return Standstill(
        reason=DRBDMoving.RECONNECT_LOOP.code,
        since=min(last.at for last in waiting.values()),
        peers=tuple(sorted(waiting)),
        attempts=times,
        message=f"the link to {_named(view, waiting)} was lost as often as made, {LOOP} times within {WITHIN:g} s,"
        f" {times} times so far; it is down, and tried again after a pause",
    )


def _linked(view: View) -> list[int]:
    return [peer.node_id for peer in view.config.peers]


def _named(view: View, peers: Iterable[int]) -> str:
    names = {peer.node_id: f"{peer.name} on {peer.node_name}" for peer in view.config.peers}
    return ", ".join(names.get(peer, f"node id {peer}") for peer in sorted(peers))
