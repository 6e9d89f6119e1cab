"""How to look at DRBD, at a file and at a port. What is seen goes to memory; what cannot be seen is an error.

LVM's part brings its own look.
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from quorate.agent.hands import LookFailed
from quorate.agent.memory import Sighting
from quorate.agent.node import Node
from quorate.agent.steps import FILE, KERNEL, PORT
from quorate.api import names
from quorate.api.core import SecretObject
from quorate.api.storage.drbd import Connection, DrbdStatus
from quorate.api.struct import replace
from quorate.drbd.errors import UnreadableOutput
from quorate.drbd.masking import presentable
from quorate.drbd.status import parse_status
from quorate.engine.store import Store
from quorate.errors import QuorateError

#: Seconds for the API to answer.
_REQUEST = 10.0


def register(node: Node) -> None:
    """Teach the hands these looks."""
    node.hands.lookers[KERNEL] = partial(look_at_kernel, node)
    node.hands.lookers[FILE] = partial(look_at_file, node)
    node.hands.lookers[PORT] = partial(look_at_port, node)


async def look_at_kernel(node: Node, resource: str) -> None:
    """``drbdsetup status --json``, of one resource or of all."""
    if resource:
        await _look_at_resource(node, resource)
    else:
        await _look_at_everything(node)


async def look_at_file(node: Node, path: str) -> None:
    """The text of a file. One that is not text cannot be ours: it is seen as something that we never write."""
    sighting = node.memory.file(path)
    marks = sighting.marks
    try:
        content = await node.machine.read_file(path)
    except FileNotFoundError:
        sighting.saw(None, marks=marks)
    except OSError as error:
        sighting.failed(str(error), marks=marks)
        raise
    else:
        sighting.saw(content.decode(errors="replace"), marks=marks)


async def look_at_port(node: Node, subject: str) -> None:
    """Whether a port could be listened on."""
    sighting = node.memory.port(subject)
    marks = sighting.marks
    address, _, port = subject.rpartition(":")
    try:
        free = await node.machine.port_is_free(address, int(port))
    except OSError:
        free = False
    sighting.saw(free, marks=marks)


async def look_at_secret(node: Node, store: Store, name: str) -> None:
    """What a Secret holds for DRBD. It is read once, and again only while there was nothing to be read."""
    sighting = node.memory.secrets.setdefault(name, Sighting())
    marks = sighting.marks
    try:
        async with asyncio.timeout(_REQUEST):
            found = await store.get(SecretObject, name, names.NAMESPACE)
        value = names.secret_value(found.data)
    except (QuorateError, TimeoutError) as error:
        why = f"the Secret {names.NAMESPACE}/{name} cannot be read: {str(error) or 'no answer'}"
        sighting.failed(why, marks=marks)
        raise LookFailed(why) from None
    if value is None:
        why = f"the Secret {names.NAMESPACE}/{name} has no {names.SECRET_KEY} that could be read"
        sighting.failed(why, marks=marks)
        raise LookFailed(why)
    sighting.saw(value, marks=marks)


async def _look_at_resource(node: Node, resource: str) -> None:
    sighting = node.memory.resource(resource)
    marks = sighting.marks
    try:
        output = await _status(node, resource)
        found = _read(output) if output else {}
    except (QuorateError, OSError) as error:
        sighting.failed(str(error), marks=marks)
        raise
    sighting.saw(_with_paths(node, found.get(resource)), marks=marks)


async def _look_at_everything(node: Node) -> None:
    memory = node.memory
    marks = {name: sighting.marks for name, sighting in memory.kernel.items()}
    whole: Sighting[tuple[str, ...]] = memory.whole_kernel
    whole_marks = whole.marks
    try:
        found, unreadable = _read_each(await _status(node, ""))
    except (QuorateError, OSError) as error:
        whole.failed(str(error), marks=whole_marks)
        raise
    whole.saw((*found, *unreadable), marks=whole_marks)
    # Those that were asked about meanwhile, and whose marks say that nothing has happened to them, are seen as well.
    for name in {**memory.kernel, **found, **unreadable}:
        sighting = memory.resource(name)
        if name in unreadable:
            sighting.failed(unreadable[name], marks=marks.get(name, 0))
        else:
            sighting.saw(_with_paths(node, found.get(name)), marks=marks.get(name, 0))


async def _status(node: Node, resource: str) -> str:
    """What ``drbdsetup status --json`` says; "" where the kernel has no such resource."""
    argv = ("drbdsetup", "status", "--json", *((resource,) if resource else ()))
    completed = await node.hands.run(*argv)
    # No such resource: exit code 10, and an empty list before the complaint.
    if resource and completed.exit_code == 10 and "No such resource" in completed.output:
        return ""
    if completed.exit_code != 0:
        raise LookFailed(
            f"{' '.join(argv)} ended with exit code {completed.exit_code}: {presentable(completed.output)}"
        )
    return completed.stdout


def _read(output: str | bytes) -> dict[str, DrbdStatus]:
    return {status.name: status for status in parse_status(output)}


def _read_each(output: str) -> tuple[dict[str, DrbdStatus], dict[str, str]]:
    """The resources that can be read, and why those cannot that can not.

    One of somebody else, with more members than ours may have, must not blind us. One without even a name might be
    ours: then nothing is known of any.
    """
    try:
        return _read(output), {}
    except UnreadableOutput as error:
        unreadable: dict[str, str] = {}
        found: dict[str, DrbdStatus] = {}
        try:
            for entry in msgspec.json.decode(output, type=list[msgspec.Raw]):
                name = msgspec.json.decode(entry, type=_Named).name
                try:
                    found |= _read(b"[" + bytes(entry) + b"]")
                except UnreadableOutput as why:
                    unreadable[name] = str(why)
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            raise error from None
        return found, unreadable


class _Named(msgspec.Struct):
    name: str


def _with_paths(node: Node, status: DrbdStatus | None) -> DrbdStatus | None:
    """The status with the paths that events2 told of, where its own output has none."""
    told = node.memory.paths.get(status.name) if status is not None else None
    if status is None or not told or any(connection.paths for connection in status.connections):
        return status

    def with_paths(connection: Connection) -> Connection:
        paths = told.get(connection.peer_node_id)
        return replace(connection, paths=tuple(paths.values())) if paths else connection

    return replace(status, connections=tuple(with_paths(connection) for connection in status.connections))
