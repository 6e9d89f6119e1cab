"""Rolling restarts: each has a name, and two of them have no host in common at any time.

A run is what it has in the broker: its stored request, as long as somebody asks about it, and its permissions in force.
So every process on every machine sees it, and one that died is over by itself when its request has fallen silent and
its permissions have ended. Whoever goes on with a run uses its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.api.maintenance.action import StatusCode
from quorate.maintenance.broker.book import Book
from quorate.maintenance.broker.declined import Declined
from quorate.maintenance.entries import PermissionEntry, RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel

_NAMED = 5


def check_run(model: ClusterModel, book: Book, asked: RequestEntry) -> None:
    """Declined if another run has something to do with one of these hosts, or the name is another user's."""
    wanted = _nodes(model, asked.actions)
    for entry in _others(model, book, asked.run, asked.owner):
        same = sorted(wanted.keys() & _nodes(model, _actions(entry)).keys())
        if entry.run == asked.run:
            raise Declined(StatusCode.WRONG_REQUEST, f"Run is {asked.run!r}, which is a run of {entry.owner}")
        if same:
            hosts = list(dict.fromkeys(wanted[node] for node in same))
            told = ", ".join(hosts[:_NAMED]) + (f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else "")
            raise Declined(
                StatusCode.WRONG_REQUEST,
                f"run {entry.run} of {entry.owner} is restarting {told} ({entry.id}): wait for its end, or go on "
                f"with it (rolling-restart --resume JOURNAL, or --take-over {entry.run})",
            )


def _others(model: ClusterModel, book: Book, run: str, user: str) -> Iterator[RequestEntry | PermissionEntry]:
    """What other runs have; also what another user has under this name."""
    for request in book.requests.values():
        if request.run and (request.run, request.owner) != (run, user) and model.blocks(request.id):
            yield request
    for permission in book.permissions.values():
        if permission.run and (permission.run, permission.owner) != (run, user) and not permission.lapsed:
            yield permission


def _actions(entry: RequestEntry | PermissionEntry) -> tuple[Action, ...]:
    return (entry.action,) if isinstance(entry, PermissionEntry) else entry.actions


def _nodes(model: ClusterModel, actions: Iterable[Action]) -> dict[int, str]:
    """By number, so that a host is the same by whatever name it is called; and what it was called."""
    return {node.id: action.host for action in actions for node in model.nodes_of(action.host)}
