"""Noticing that a peer is gone, and cleaning up after it.

Pings are not simulated one by one: when a link is cut, the time at which each end will notice is drawn once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from quorate.lab.kernel import events
from quorate.lab.kernel.change import Change
from quorate.lab.kernel.resource import Connection, Resource
from quorate.lab.kernel.states import Conn

if TYPE_CHECKING:
    from quorate.lab.kernel.module import Module

CLEAN_UP = (0.015, 0.025)
"""How long a receiver takes to clean up after its peer was lost, seen in the recordings."""
RETRY = 0.012
BROKEN = frozenset({Conn.TIMEOUT, Conn.BROKEN_PIPE, Conn.NETWORK_FAILURE, Conn.PROTOCOL_ERROR, Conn.TEAR_DOWN})


def alive(connection: Connection) -> bool:
    """Whether the peer would answer now."""
    other = connection.other
    if other is None or other.other is not connection or other.resource.gone:
        return False
    return connection.resource.world.reachable(connection.resource.kernel, other.resource.kernel)


def lose(connection: Connection, state: Conn = Conn.NETWORK_FAILURE) -> None:
    """This end notices that the peer is gone."""
    connection.loss_at = None
    if connection.now.conn is not Conn.CONNECTED:
        return
    change = Change(connection.resource, "lost-peer", hard=True)
    connection.new.conn = state
    change.commit()


def _notice(connection: Connection, planned: float) -> None:
    if connection.loss_at != planned or connection.resource.gone or not connection.resource.kernel.powered:
        return
    connection.loss_at = None
    if not alive(connection):
        lose(connection)


def _plan_loss(connection: Connection, at: float) -> None:
    if connection.loss_at is None or at < connection.loss_at:
        connection.loss_at = at
        connection.resource.world.at(at, partial(_notice, connection, at))


def _ping_timeout(connection: Connection) -> float:
    return connection.options.number("ping-timeout") / 10


def hasten_loss(connection: Connection) -> None:
    """Something was sent to a peer that does not answer: a missing answer to a ping settles it."""
    resource, world = connection.resource, connection.resource.world
    if world.loss_is_awaited(resource.name, resource.kernel.name, connection.name):
        return
    _plan_loss(connection, world.now + _ping_timeout(connection) + world.jitter(0.01, 0.03))


def _begin_silence(connection: Connection, phase: float) -> None:
    """From now on the peer does not answer; ``phase`` says where in its rhythm of pings this end is, 0 to 1."""
    if connection.now.conn is not Conn.CONNECTED:
        return
    resource = connection.resource
    assert connection.other is not None
    hint = resource.world.loss_hint(resource.name, resource.kernel.name, connection.other.resource.kernel.name)
    delay = _ping_timeout(connection) + phase * connection.options.number("ping-int")
    connection.loss_at = None
    _plan_loss(connection, hint if hint is not None else resource.world.now + delay + resource.world.jitter(0, 0.1))


def link_changed(first: Module, second: Module) -> None:
    """The link between two nodes was cut or mended."""
    world = first.world
    if world.reachable(first, second):
        for connection in (*first.connections_to(second), *second.connections_to(first)):
            _mended(connection)
        return
    for connection in first.connections_to(second):
        # Both ends ping each other, so they notice at about the same time.
        phase, other = world.random.random(), connection.other
        _begin_silence(connection, phase)
        if other is not None and other.other is connection:
            _begin_silence(other, phase)


def _mended(connection: Connection) -> None:
    resource = connection.resource
    if connection.now.conn is not Conn.CONNECTED:
        resource.kernel.resume_connecting(resource)
    elif alive(connection):
        # Nothing was lost; requests that waited for an answer get it now.
        connection.loss_at = None
        resource.world.soon(partial(resource.kernel.pump, resource))
    else:
        connection.loss_at = None
        _plan_loss(connection, resource.world.now + RETRY)


def peer_vanished(connection: Connection) -> None:
    """The node at the other end lost its power."""
    if connection.loss_at is None:
        _begin_silence(connection, connection.resource.world.random.random())


def session_over(connection: Connection) -> None:
    """This end has left Connected; the other end will hear of it, at once if the link works."""
    other, world = connection.other, connection.resource.world
    connection.other = None
    connection.loss_at = None
    connection.fresh = False
    if connection.established:
        connection.established = False
        events.path_changed(connection)
    if other is not None and other.now.conn is Conn.CONNECTED and other.other is connection:
        if world.reachable(connection.resource.kernel, other.resource.kernel):
            _plan_loss(other, world.now + RETRY)
        else:
            peer_vanished(other)


def clean_up(connection: Connection) -> None:
    """The receiver is done with a lost peer and gets ready to connect again; `change` says why it may be refused."""
    connection.retrying = False
    resource = connection.resource
    if connection.now.conn not in BROKEN or resource.gone or not resource.kernel.powered:
        connection.stuck = False
        return
    hanging = resource.world.hangs_until(resource.name, resource.kernel.name, connection.name)
    if hanging > resource.world.now:
        resource.world.at(hanging, partial(clean_up, connection))
        return
    change = Change(resource, "disconnected")
    connection.new.conn = Conn.UNCONNECTED
    reply = change.commit()
    if not reply.ok and not connection.stuck:
        resource.kernel.log(f"drbd {resource.name}: {reply.text}")
        resource.kernel.log(f"drbd {resource.name}: State change failed: {reply.message} ({reply.code})")
        resource.kernel.log(f"drbd {resource.name}: Failed: susp-io( no -> quorum ) [disconnected]")
    connection.stuck = not reply.ok


def retry_stuck(resource: Resource) -> None:
    """Something changed: connections whose clean-up was refused try again."""
    for connection in resource.connections.values():
        if connection.stuck and not connection.retrying:
            connection.retrying = True
            resource.world.later(RETRY, partial(clean_up, connection))
