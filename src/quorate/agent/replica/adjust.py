"""Making the kernel what the file says: ``up``, ``adjust``, and forgetting who has left.

``adjust`` runs only if the file has changed since (its temporary copy is still there) or the kernel differs in a way
that it repairs. One that succeeds and changes nothing is repeated with back-off, as one that fails.
"""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime
from typing import Final

from quorate.agent.replica import commands
from quorate.agent.replica.former_end import on_disk, size_mark
from quorate.agent.replica.kernel import (
    connection_to,
    difference,
    disk_state,
    has_disk,
    holds_disk,
    is_diskful,
    is_primary,
    link_difference,
    stand_alone,
)
from quorate.agent.replica.metadata import is_attached
from quorate.agent.replica.standstill import left_to_wait
from quorate.agent.replica.verdict import FINE, Verdict, attempt, cleared, command_error, failed, own_error
from quorate.agent.replica.view import View
from quorate.agent.steps import Run, Step
from quorate.api.storage.drbd import (
    Connection,
    ConnectionState,
    DiskState,
    DrbdStatus,
    ReplicationState,
    ReplicaType,
    Role,
)
from quorate.drbd.marks import LinkRules, would_part
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import is_about_disk, understand
from quorate.drbd.resource_file import own_quorum

LINKS_KEPT: Final = "LinksKept"
_KEPT: Final = (
    "what is new in the config is adjusted to when the copies have been compared: some are UpToDate and may differ, and"
    " making their links anew would erase what tells so"
)
#: So often in a row the kernel has counted in vain: a quarter of a minute.
_COUNTED_ENOUGH: Final = 4


def adjust(view: View, now: datetime, settled: bool) -> Verdict:
    """Bring the resource up, or to what its file says."""
    if not settled or view.intended is None:
        return Verdict(unsettled=True)
    why = "not up" if view.status is None else difference(view.config, view.status)
    # What differs by more than its options is mended in spite of everything: nothing good is parted by that.
    mends = bool(why)
    if not why and view.unadjusted:
        why = "file changed"
    alone = stand_alone(view.status) if not why else []
    pauses = {peer: left for peer in alone if (left := left_to_wait(view, peer, now)) > 0}
    if alone and len(pauses) == len(alone):
        return Verdict(again=min(pauses.values()))  # they loop when they are connected
    if not why and not alone:
        return cleared("last_adjustment_error")
    about = f"{view.intended.digest}: {why or f'stand-alone {alone}'} {size_mark(view)}"
    steps: tuple[Step, ...]
    if view.status is None:
        steps = commands.up_and_adjust(view, about)
    elif _is_half_up(view):
        steps = commands.anew(view, about)
    elif pauses:
        steps = commands.connect(view, [peer for peer in alone if peer not in pauses], about)
    else:
        steps = (*_out_of_sight(view, view.status), *commands.adjust(view, about, despite_marks=mends))
    if not mends and _would_part(view, steps):
        return Verdict(errors={"last_adjustment_error": own_error(LINKS_KEPT, _KEPT)}, unsettled=True)
    verdict = attempt(view, now, commands.ADJUST, about, steps)
    if is_diskful(view.config) and not is_attached(view):
        verdict = on_disk(verdict)
    if _has_lost_its_disk(view, now):
        return _without_disk(view, now, verdict)
    if why or verdict.steps:
        return verdict
    # A link that does not want to come up is no reason to hold up the rest: the kernel judges by the others.
    return Verdict(again=verdict.again)


def _out_of_sight(view: View, status: DrbdStatus) -> tuple[Step, ...]:
    """If a disk was refused by a peer (-10): cut the links to the users without a disk, who alone refuse it.

    The kernel says "Probably this node is marked as intentional diskless on a peer", which is not so: such a user goes
    on with a quorum that it would not get any more, and refuses whatever makes it count (``e4_hidden_primary_detach``).
    Its agent sees to that (``hold``), if it is there to do so. Without the link it counts and stands still, and the
    disk is taken; ``adjust`` makes the link again then. There is no disk here that it could miss meanwhile.
    """
    last = failed(view, commands.ADJUST)
    if last is None or last.exit_code is None or not is_diskful(view.config) or holds_disk(status):
        return ()
    if understand(last.exit_code, last.output).outcome is not Meaning.REFUSED_BY_PEER:
        return ()
    return tuple(
        commands.cut_off(view, link.peer_node_id) for link in status.connections if _is_used_without_disk(link)
    )


def _is_used_without_disk(link: Connection) -> bool:
    disks = {each.peer_disk_state for each in link.peer_devices}
    connected = link.connection_state == ConnectionState.CONNECTED
    return connected and link.peer_role == Role.PRIMARY and disks == {DiskState.DISKLESS}


def _would_part(view: View, steps: tuple[Step, ...]) -> bool:
    """Whether links would be made anew that tell of a stale copy: whatever else is new can wait."""
    rules = LinkRules.of(view.config)
    return any(isinstance(step, Run) and would_part(step.argv, view.status, rules) for step in steps)


def _has_lost_its_disk(view: View, now: datetime) -> bool:
    """Whether the kernel has let go of a disk that fails, and does not get it back."""
    return (
        view.status is not None
        and is_diskful(view.config)
        and not holds_disk(view.status)
        and (view.has_lost_its_drive(now) or _failed_by_its_disk(view))
    )


def _failed_by_its_disk(view: View) -> bool:
    last = failed(view, commands.ADJUST)
    return last is not None and last.exit_code is not None and is_about_disk(last.exit_code, last.output)


def _is_half_up(view: View) -> bool:
    """Whether ``up`` came to an end before the disk was attached, for another reason than the disk.

    Links that are made first, and the disk afterwards, may leave the disk Negotiating for ever (F2). So it is taken
    down and begun anew. Whoever is Primary has been whole before, and keeps what it has.
    """
    last = failed(view, commands.ADJUST)
    return (
        last is not None
        and view.status is not None
        and is_diskful(view.config)
        and not holds_disk(view.status)
        and not is_primary(view.status)
        and not _failed_by_its_disk(view)
    )


def _without_disk(view: View, now: datetime, verdict: Verdict) -> Verdict:
    """A member whose drive is dead is still one: it hears who else is, and says so. Its disk is tried ever again.

    Neither waits for the other. A link may be refused for as long as the disk is away, and the disk may be back.
    """
    assert view.intended is not None
    assert view.status is not None
    about, last = view.intended.digest, view.outcomes.get(commands.ADJUST_LINKS)
    heard = last is not None and last.succeeded and last.about == about
    unheard = failed(view, commands.ADJUST_LINKS)
    wrong = unheard or failed(view, commands.ADJUST)
    errors = {} if wrong is None else {"last_adjustment_error": command_error(wrong, view)}
    again = verdict.again
    if not heard or link_difference(view.config, view.status) or stand_alone(view.status):
        links = attempt(view, now, commands.ADJUST_LINKS, about, _links(view, about))
        if links.steps:
            return changed(links, errors=errors)
        again = min(filter(None, (links.again, again)), default=None)
    if verdict.steps and not view.has_lost_its_drive(now):
        return changed(verdict, errors=errors)
    return Verdict(again=again, errors=errors, unsettled=unheard is not None)


def _links(view: View, about: str) -> tuple[Step, ...]:
    """Make them; if the kernel has refused one for the sake of its quorum, have it count first.

    Who loses its disk under a user may keep a quorum that it would not get any more: its peers with a disk have lost
    theirs since, for want of copies, and it does not count by itself (``e4_hidden_primary_detach``). It then refuses
    whatever makes it count, a link to the very member that is to bring a new copy too. Counted again it stands still,
    as is promised of a volume with too few copies; and goes on when there are enough.
    """
    last = failed(view, commands.ADJUST_LINKS)
    refused = last is not None and last.exit_code is not None and _is_for_quorum(last.exit_code, last.output)
    return commands.count_and_adjust_links(view, about) if refused else (commands.adjust_links(view, about),)


def _is_for_quorum(exit_code: int, output: str) -> bool:
    return understand(exit_code, output).outcome is Meaning.NO_QUORUM


def forget(view: View, now: datetime, settled: bool) -> Verdict:
    """``config.forget``: members that have left lose their place in the metadata, one at a time."""
    if not settled:
        return FINE
    config, forgotten = view.config, view.actual.forgotten
    stale = tuple(purpose for purpose in view.outcomes if _forgets(purpose) and not _still_asked(view, purpose))
    # Who is to have no disk has nothing to remember them by.
    done = config.forget
    if is_diskful(config):
        done = tuple(each for each in config.forget if each in forgotten or _has_forgotten(view, each))
    actual = {"forgotten": done} if done != forgotten else {}
    if not has_disk(view.status):
        # It is what its config says, as far as it can be. But a disk that comes back remembers whom it remembered.
        return Verdict(actual=actual, drop=stale)
    left = [node_id for node_id in config.forget if node_id not in done]
    present = {peer.node_id for peer in config.peers}
    for node_id in left:
        if node_id in present:
            continue
        purpose = _purpose(node_id)
        verdict = attempt(view, now, purpose, "", (commands.forget(view, node_id, purpose),))
        # Said here: ``adjust`` has just said that it has nothing to complain of, and that would count more.
        last = failed(view, purpose)
        errors = {} if last is None else {"last_adjustment_error": command_error(last, view)}
        return Verdict(
            steps=verdict.steps, again=verdict.again, unsettled=True, actual=actual, drop=stale, errors=errors
        )
    return Verdict(actual=actual, drop=stale, unsettled=bool(left)) if actual or stale or left else FINE


def recount(view: View, now: datetime, settled: bool) -> Verdict:
    """Whoever stands still for want of quorum may have it by now: the kernel does not always count again by itself.

    Who has a vote and has just forgotten a member may be enough without it. That is asked once. One that sees as many
    votes and good copies as it takes has missed that one of them counts now: the kernel shows a peer with its next
    change of state, and where everybody stands still nothing changes.

    Who has no disk has quorum through an up-to-date peer that has it. The kernel counts again when a peer's role or
    disk changes; whether that peer is quorate only travels along (``diskless_own_quorum_32_split``: an access replica
    keeps the quorum that its peer lost 20 s ago). So one whose peers become quorate after it has met them stands still
    for ever, with everybody connected and up to date: two copies and an access replica, of which the latter and one
    copy lost their power. Its agent cannot see the peers' quorum either, so it has the kernel count again and again,
    ever more rarely.
    """
    config = view.config
    if not settled or view.intended is None or not _stands_still(view):
        return FINE
    about = ""
    if has_disk(view.status) and not _sees_enough(view):
        about = f"{config.datamesh_revision} {config.forget}"
        last = view.outcomes.get(commands.RECOUNT)
        if not config.forget or (last is not None and last.about == about and last.succeeded):
            return FINE  # It is not enough.
    without_disk = is_diskful(config) and not has_disk(view.status)
    steps = commands.recount(view, view.intended.content, about, without_disk=without_disk)
    if _would_part(view, steps):
        return FINE
    verdict = attempt(view, now, commands.RECOUNT, about, steps)
    return Verdict(steps=verdict.steps, again=verdict.again)


def _stands_still(view: View) -> bool:
    """Whether it has no quorum, and could: by its own vote, or without a disk by that of a peer in sight."""
    status = view.status
    if status is None or all(device.quorum for device in status.devices):
        return False
    if has_disk(status):
        return own_quorum(view.config) is None
    return bool(_in_sight(status, DiskState.UP_TO_DATE) or _in_sight(status, DiskState.CONSISTENT))


def meet_again(view: View, now: datetime, settled: bool) -> Verdict:
    """A user without a disk stands still beside a copy that it takes for something else than it has shown: reconnect.

    The kernel does not trust a copy with another generation than a Primary without a disk has last exposed: it shows it
    as Consistent, however good it is, and never looks again. Generations part when the copy was away, and somebody else
    wrote first when it was back: of two users on 1D, say. At a meeting the two are compared. A user that stands
    still and has been overtaken becomes Secondary there, its writes that were never acknowledged fail, and it is
    promoted again. Nothing is given up by that: it has no data of its own, and between the two there is no bitmap.

    A copy is Consistent for a moment in the best of times; so the kernel is made to count a few times first.
    """
    status, last = view.status, view.outcomes.get(commands.RECOUNT)
    if not settled or status is None or has_disk(status):
        return FINE
    if all(device.quorum for device in status.devices):
        # The next time that it stands still is counted from the beginning. That nobody is in sight is no end of this
        # time: so it is just after parting.
        past = tuple(purpose for purpose in (commands.RECOUNT, commands.MEET) if purpose in view.outcomes)
        return Verdict(drop=past) if past else FINE
    if not is_primary(status) or not _stands_still(view):
        return FINE
    if _in_sight(status, DiskState.UP_TO_DATE) or last is None or last.times < _COUNTED_ENOUGH:
        return FINE
    peers = _in_sight(status, DiskState.CONSISTENT)
    steps = commands.meet_again(view, peers, str(peers), without_disk=is_diskful(view.config))
    verdict = attempt(view, now, commands.MEET, str(peers), steps)
    return Verdict(steps=verdict.steps, again=verdict.again)


def _in_sight(status: DrbdStatus, disk: DiskState) -> tuple[int, ...]:
    """The peers in touch whose disks the kernel shows so, with nothing being copied."""
    return tuple(
        connection.peer_node_id
        for connection in status.connections
        if connection.connection_state == ConnectionState.CONNECTED
        for device in connection.peer_devices
        if device.peer_disk_state == disk and device.replication_state == ReplicationState.ESTABLISHED
    )


def _sees_enough(view: View) -> bool:
    """Whether this voter and those in touch with it are a majority with as many good copies as a write takes."""
    config, status = view.config, view.status
    assert status is not None
    votes = [peer for peer in config.peers if peer.type is ReplicaType.DISKFUL and not peer.hidden]
    links = [link for peer in votes if (link := connection_to(status, peer)) is not None]
    here = [link for link in links if link.connection_state == ConnectionState.CONNECTED]
    disks = [each.peer_disk_state for link in here for each in link.peer_devices]
    good = [disk_state(status), *disks].count(DiskState.UP_TO_DATE)
    return 2 * (len(here) + 1) > len(votes) + 1 and good >= (config.quorum_minimum_redundancy or 1)


def _purpose(node_id: int) -> str:
    return f"{commands.FORGET} {node_id}"


def _forgets(purpose: str) -> bool:
    return purpose.startswith(f"{commands.FORGET} ")


def _still_asked(view: View, purpose: str) -> bool:
    return any(_purpose(node_id) == purpose for node_id in view.config.forget)


def _has_forgotten(view: View, node_id: int) -> bool:
    """Told so by the kernel: it has just done it, or never knew that one, or an agent before us had it done."""
    last = view.outcomes.get(_purpose(node_id))
    if last is None or last.exit_code is None:
        return False
    return last.succeeded or understand(last.exit_code, last.output).outcome is Meaning.UNKNOWN_PEER
