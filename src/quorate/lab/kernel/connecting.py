"""From Unconnected to Connected: finding the peer, agreeing with everybody, and what happens when somebody objects."""

from __future__ import annotations

from functools import partial

from quorate.lab.kernel import events, handshake, recovery, resize, resync, roles, twopc, uuids
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.handshake import Meeting, Outcome
from quorate.lab.kernel.links import BROKEN, CLEAN_UP, clean_up, lose, session_over
from quorate.lab.kernel.options import OFF, votes
from quorate.lab.kernel.races import Race
from quorate.lab.kernel.reply import DONE, Code, Reply
from quorate.lab.kernel.resource import Connection, Resource
from quorate.lab.kernel.states import Conn, Disk, Repl, Role, Slip
from quorate.lab.kernel.telling import exchange
from quorate.lab.kernel.uuids import Verdict

FIRST_TRY = (1.0, 1.12)
AFTER_LOSS = (1.0, 2.4)
"""How long two ends take to find each other, seen in the recordings: new ones, and after a cut has healed."""
AT_FULL_SPEED = (0.03, 0.06)
"""Between two sessions of a link that loops: some 13 a second (16,000 in 20 minutes)."""


def after_change(connection: Connection) -> None:
    """Go on from a new connection state."""
    old, now, world = connection.old.conn, connection.now.conn, connection.resource.world
    if old is now:
        return
    if old is Conn.CONNECTED:
        session_over(connection)
    if now in BROKEN:
        world.later(world.jitter(*CLEAN_UP), partial(clean_up, connection))
    elif now is Conn.DISCONNECTING:
        world.soon(partial(_stand_alone, connection))
    elif now is Conn.UNCONNECTED:
        world.later(0.001, partial(begin, connection))
    elif now is Conn.CONNECTING:
        world.soon(partial(_seek, connection))


def _stand_alone(connection: Connection) -> None:
    if connection.now.conn is Conn.DISCONNECTING:
        change = Change(connection.resource, "disconnected", hard=True)
        connection.new.conn = Conn.STANDALONE
        change.commit()


def resume(resource: Resource) -> None:
    """Try again what waited: a link was mended, or the members were counted."""
    for connection in list(resource.connections.values()):
        if connection.now.conn is Conn.UNCONNECTED:
            begin(connection)
        elif connection.now.conn is Conn.CONNECTING:
            _seek(connection)


def begin(connection: Connection) -> None:
    """Start to look for the peer, unless the members are being counted."""
    resource = connection.resource
    if connection.now.conn is not Conn.UNCONNECTED or resource.counting or resource.gone:
        return
    change = Change(resource, "connecting")
    connection.new.conn = Conn.CONNECTING
    if not change.commit().ok:
        change = Change(resource, "connecting", hard=True)
        connection.new.conn = Conn.NETWORK_FAILURE
        change.commit()


def counterpart(connection: Connection) -> Connection | None:
    """The end that the peer has configured for this connection, if its paths and node ids fit."""
    world, resource = connection.resource.world, connection.resource
    for local, remote in connection.paths:
        kernel = world.by_address(remote.split(":")[-2])
        found = kernel.find(resource.name) if kernel is not None and kernel.powered else None
        if found is None or found.node_id != connection.peer_id:
            continue
        other = found.connections.get(resource.node_id)
        if other is not None and (remote, local) in other.paths:
            return other
    return None


def _seek(connection: Connection) -> None:
    """Plan a meeting if both ends look for each other and the link works."""
    other = counterpart(connection)
    if connection.now.conn is not Conn.CONNECTING or connection.meeting is not None or other is None:
        return
    world = connection.resource.world
    mine, theirs = connection.resource.kernel, other.resource.kernel
    if other.now.conn is not Conn.CONNECTING or not world.reachable(mine, theirs):
        return
    hint = world.reconnect_hint(connection.resource.name, mine.name, theirs.name)
    delay = world.jitter(*(FIRST_TRY if connection.fresh or other.fresh else AFTER_LOSS))
    if connection.looping or other.looping:
        delay = world.jitter(*AT_FULL_SPEED)
    _plan_meeting(connection, other, hint if hint is not None else world.now + delay)


def _plan_meeting(connection: Connection, other: Connection, at: float) -> None:
    token = object()
    connection.meeting = other.meeting = token
    connection.resource.world.at(at, partial(_meet, connection, other, token))


def _meet(connection: Connection, other: Connection, token: object) -> None:
    if connection.meeting is not token or other.meeting is not token:
        return
    connection.meeting = other.meeting = None
    world = connection.resource.world
    if connection.resource.gone or other.resource.gone:
        return
    if connection.now.conn is not Conn.CONNECTING or other.now.conn is not Conn.CONNECTING:
        return
    if not world.reachable(connection.resource.kernel, other.resource.kernel):
        return
    for end in (connection, other):
        if not end.established:
            end.established = True
            events.path_changed(end)
    meeting = handshake.decide(connection, other)
    if Outcome.FORCE_SECONDARY in (meeting.mine, meeting.theirs):
        _part(connection, other, meeting)
        return
    reach = twopc.explore(connection.resource, other.resource)
    objection = Reply(Code.IN_TRANSIENT_STATE) if reach.dead else roles.check_primaries(reach, connection, other)
    if not objection.ok and not _only_between(connection, other, reach):
        # Somebody further away objects. The two stay on the line and ask again.
        for end in (connection, other):
            if objection.code == Code.TWO_PRIMARIES:
                roles.yield_if_suspended(end.resource, always_fail_io=False)
        _try_again(connection, other)
    elif not meeting.agreed:
        _part(connection, other, meeting)
    elif not objection.ok:
        for end in (connection, other):
            roles.yield_if_suspended(end.resource, always_fail_io=False)
        _try_again(connection, other)
    else:
        _connect(connection, other, meeting, reach)


def _only_between(connection: Connection, other: Connection, reach: twopc.Reach) -> bool:
    """Whether nobody but the two ends is Primary."""
    return not reach.dead and all(p in (connection.resource, other.resource) for p in reach.primaries())


def _hang_up(end: Connection) -> None:
    if end.established:
        end.established = False
        events.path_changed(end)


def _try_again(connection: Connection, other: Connection) -> None:
    world = connection.resource.world
    _plan_meeting(connection, other, world.now + world.jitter(1.0, 1.1))


def _part(connection: Connection, other: Connection, meeting: Meeting) -> None:
    """No agreement: each side does what it decided."""
    for end, outcome in ((connection, meeting.mine), (other, meeting.theirs)):
        _hang_up(end)
        if outcome is Outcome.STAND_ALONE:
            change = Change(end.resource, "connected", hard=True)
            end.new.conn = Conn.DISCONNECTING
            change.commit()
        elif outcome is Outcome.FORCE_SECONDARY:
            roles.yield_if_suspended(end.resource, always_fail_io=True)
    if Outcome.STAND_ALONE not in (meeting.mine, meeting.theirs):
        _try_again(connection, other)


def _state_is_refused(connection: Connection, other: Connection) -> bool:
    """A primary that is quorate again meets the second of its peers, which is not: the race that leaves it StandAlone.

    It takes the peer's state for one that would cost it the quorum, and refuses to hear it.
    """
    primary, peer = (connection, other) if connection.resource.now.role is Role.PRIMARY else (other, connection)
    if primary.resource.now.role is not Role.PRIMARY or primary.resource.now.suspended:
        return False
    if not any(device.backing is not None and not device.now.quorum for device in peer.resource.devices.values()):
        return False
    if not primary.resource.world.loses(Race.REFUSED_STATE):
        return False
    log, name = primary.resource.kernel.log, primary.resource.name
    log(f"drbd {name}: State change failed: {Reply(Code.NO_QUORUM).message} ({Code.NO_QUORUM})")
    log(f"drbd {name} {primary.name}: error receiving P_STATE, e: -5 l: 0!")
    for end in (connection, other):
        _hang_up(end)
    change = Change(primary.resource, "connected", hard=True)
    primary.new.conn = Conn.DISCONNECTING
    change.commit()
    return True


def _is_aborted(connection: Connection, other: Connection) -> bool:
    """Whether one end drops each session as soon as it is agreed on, and both begin anew at once."""
    for end in (connection, other):
        end.looping = end.looping or end.resource.kernel.slips(Slip.RECONNECT_LOOP, end.resource)
    if not (connection.looping or other.looping):
        return False
    for end in (connection, other):
        end.resource.kernel.log(f"drbd {end.resource.name} {end.name}: Aborting cluster-wide state change")
        _refused(end)
    return True


def _connect(connection: Connection, other: Connection, meeting: Meeting, reach: twopc.Reach) -> None:
    """Both ends commit, each on its own: one that would lose its quorum refuses, and the other finds it gone again."""
    if _state_is_refused(connection, other) or _is_aborted(connection, other):
        return
    primaries = reach.primaries()
    ends = ((connection, other, False), (other, connection, True))
    for end, peer, _ in ends:
        for volume, mine in end.peer_devices.items():
            if volume in peer.peer_devices:
                exchange(peer.peer_devices[volume], mine)
    resize.meet(connection, other)
    changes = [_prepare(end, peer, meeting, primaries, mirrored=mirrored) for end, peer, mirrored in ends]
    replies = [change.prepare() for change in changes]
    connection.other, other.other = other, connection
    for (end, _, _), change, reply in zip(ends, changes, replies, strict=True):
        end.discard_my_data = False
        end.fresh = False
        end.since = end.resource.world.now
        if reply.ok:
            change.apply()
        else:
            change.drop()
    if not all(reply.ok for reply in replies):
        for (end, _, _), reply in zip(ends, replies, strict=True):
            _refused(end) if not reply.ok else end.resource.world.later(0.012, partial(lose, end))
        return
    _connected(connection, other, meeting, reach, primaries)


def _refused(end: Connection) -> None:
    end.other = None
    _hang_up(end)
    change = Change(end.resource, "connected", hard=True)
    end.new.conn = Conn.NETWORK_FAILURE
    change.commit()


def _prepare(
    end: Connection, peer: Connection, meeting: Meeting, primaries: list[Resource], *, mirrored: bool
) -> Change:
    change = Change(end.resource, "connected")
    end.new.conn = Conn.CONNECTED
    end.new.peer_role = peer.resource.now.role
    for volume, mine in end.peer_devices.items():
        theirs = peer.peer_devices.get(volume)
        mine.new.repl = Repl.ESTABLISHED
        mine.new.disk = theirs.device.now.disk if theirs is not None else Disk.DISKLESS
        verdict = meeting.verdicts.get(volume, Verdict.NONE)
        mine.new.repl = resync.first_step(verdict.mirrored if mirrored else verdict)
        if volume in meeting.both_sources:
            mine.new.repl = Repl.WF_BITMAP_S
    neighbours = twopc.directly_connected(end.resource) | {end.peer_id}
    end.resource.weak = twopc.far_primary(end.resource, primaries, neighbours)
    if end.resource.weak:
        twopc.outdate(end.resource)
    return change


def _connected(
    connection: Connection, other: Connection, meeting: Meeting, reach: twopc.Reach, primaries: list[Resource]
) -> None:
    for resource in reach.participants:
        ends = (connection.resource, other.resource)
        if resource not in ends and twopc.far_primary(resource, primaries, twopc.directly_connected(resource)):
            change = Change(resource, "remote")
            twopc.outdate(resource)
            change.commit()
    twopc.agree_on_members(reach)
    for volume, mine in connection.peer_devices.items():
        theirs = other.peer_devices.get(volume)
        if theirs is None:
            continue
        verdict = meeting.verdicts.get(volume, Verdict.NONE)
        if volume in meeting.both_sources:
            resync.begin_mutual(mine, theirs)
        elif verdict is Verdict.NONE:
            if Disk.NEGOTIATING not in (mine.device.now.disk, theirs.device.now.disk):
                uuids.met_without_resync(mine, theirs)
        else:
            resync.begin(mine, theirs, verdict)
    recovery.refresh(reach)
    resize.grow_if_possible(connection)


def configure(connection: Connection, *, discard_my_data: bool) -> Reply:
    """``connect``: start to look for the peer."""
    if connection.now.conn is not Conn.STANDALONE:
        return Reply(Code.NET_CONFIGURED)
    connection.looping = False
    connection.discard_my_data = discard_my_data
    for peer in connection.peer_devices.values():
        if peer.device.metadata is not None and peer.wants_bitmap:
            # The bitmap is what gives a peer that was never seen its vote.
            peer.device.metadata.give_bitmap(connection.peer_id)
    blocked = not connection.resource.kernel.may_listen(connection)
    change = Change(connection.resource, "connect")
    connection.new.conn = Conn.UNCONNECTED
    reply = change.commit()
    if blocked and reply.ok:
        # The command has succeeded; its receiver finds the port taken, and gives the link up.
        connection.resource.kernel.log(f"drbd {connection.resource.name} {connection.name}: Failed to listen, err=-98")
        change = Change(connection.resource, "connecting", hard=True)
        connection.new.conn = Conn.DISCONNECTING
        change.commit()
    return reply


def disconnect(connection: Connection, *, force: bool) -> Reply:
    """``disconnect``: with the peer's consent if it answers, unless forced."""
    if connection.now.conn is Conn.STANDALONE:
        return DONE
    if connection.now.conn is Conn.CONNECTED and not force:
        reach = twopc.explore_now(connection.resource)
        if connection.now.conn is Conn.CONNECTED:
            return _disconnect_gracefully(connection, reach)
    change = Change(connection.resource, "disconnect", hard=force or connection.now.conn is not Conn.CONNECTED)
    connection.new.conn = Conn.DISCONNECTING
    connection.meeting = None
    return change.commit()


def _leaves_behind(connection: Connection, reach: twopc.Reach) -> bool:
    """Whether a primary leaves a member that then has no primary in sight, and misses what is written from now on."""
    resource, other = connection.resource, connection.other
    assert other is not None
    if resource.now.role is not Role.PRIMARY or other.resource.now.role is Role.PRIMARY:
        return False
    left = twopc.directly_connected(other.resource) - {resource.node_id}
    return twopc.far_primary(other.resource, reach.primaries(), left)


def _see_outdated(end: Connection, of: Connection) -> None:
    """Within a change: know the disks of the other end to be outdated from now on."""
    for volume, peer in end.peer_devices.items():
        theirs = of.peer_devices.get(volume)
        if theirs is not None and theirs.device.now.disk > Disk.OUTDATED:
            peer.new.disk = Disk.OUTDATED


def _disconnect_gracefully(connection: Connection, reach: twopc.Reach) -> Reply:
    other, resource = connection.other, connection.resource
    assert other is not None
    change = Change(resource, "disconnect")
    connection.new.conn = Conn.DISCONNECTING
    neighbours = twopc.directly_connected(resource) - {connection.peer_id}
    outdated = twopc.far_primary(resource, reach.primaries(), neighbours)
    if outdated:
        twopc.outdate(resource)
    # Who counts votes says it with the request: the one that stays knows that the other cannot go on without it.
    told = votes(resource.options["quorum"]) != OFF
    peer_outdated = told and _leaves_behind(connection, reach)
    if peer_outdated:
        _see_outdated(connection, other)
    reply = change.prepare()
    if not reply.ok:
        change.drop()
        return reply
    far = Change(other.resource, "remote")
    other.new.conn = Conn.TEAR_DOWN
    if peer_outdated:
        twopc.outdate(other.resource)
    elif told and outdated and other.resource.now.role is Role.PRIMARY:
        _see_outdated(other, connection)
    if not far.prepare().ok:
        far.drop()
        change.drop()
        name = connection.name
        return Reply(
            Code.REFUSED_BY_PEER, f"Declined by peer {name} (id: {connection.peer_id}), see the kernel log there"
        )
    for third in reach.participants:
        if third is not resource and third is not other.resource:
            # It commits along, and counts before it hears what the parting has cost the two.
            Change(third, "far-away", recalculate=True).commit()
    connection.graceful = other.graceful = True
    far.apply()
    change.apply()
    connection.graceful = other.graceful = False
    left = twopc.explore(resource)
    rest = twopc.explore(other.resource)
    for part in (left, rest):
        twopc.agree_on_members(part)
    return DONE
