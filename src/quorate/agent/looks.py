"""How to look at DRBD, at a file and at a port. What is seen goes to memory; what cannot be seen is an error.

LVM's part brings its own look.
"""

from __future__ import annotations

from functools import partial

from quorate.agent.memory import Sighting
from quorate.agent.node import Node
from quorate.agent.steps import FILE, KERNEL, PORT
from quorate.api.storage.drbd import Connection, DrbdStatus
from quorate.api.struct import replace
from quorate.drbd.errors import UnreadableOutput
from quorate.drbd.masking import presentable
from quorate.drbd.status import parse_status
from quorate.errors import QuorateError


class LookFailed(QuorateError):
    """Something on the machine could not be looked at."""


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


async def _look_at_resource(node: Node, resource: str) -> None:
    sighting = node.memory.resource(resource)
    marks = sighting.marks
    try:
        found = await _status(node, resource)
    except (QuorateError, OSError) as error:
        sighting.failed(str(error), marks=marks)
        raise
    sighting.saw(found.get(resource), marks=marks)


async def _look_at_everything(node: Node) -> None:
    memory = node.memory
    marks = {name: sighting.marks for name, sighting in memory.kernel.items()}
    whole: Sighting[tuple[str, ...]] = memory.whole_kernel
    whole_marks = whole.marks
    try:
        found = await _status(node, "")
    except (QuorateError, OSError) as error:
        whole.failed(str(error), marks=whole_marks)
        raise
    whole.saw(tuple(found), marks=whole_marks)
    # Those that were asked about meanwhile, and whose marks say that nothing has happened to them, are seen as well.
    for name in {**memory.kernel, **found}:
        memory.resource(name).saw(found.get(name), marks=marks.get(name, 0))


async def _status(node: Node, resource: str) -> dict[str, DrbdStatus]:
    argv = ("drbdsetup", "status", "--json", *((resource,) if resource else ()))
    completed = await node.hands.run(*argv)
    # The kernel without such a resource: exit code 10, and an empty list before the complaint.
    if completed.exit_code not in (0, 10) or (completed.exit_code == 10 and "No such resource" not in completed.output):
        raise LookFailed(
            f"{' '.join(argv)} ended with exit code {completed.exit_code}: {presentable(completed.output)}"
        )
    if completed.exit_code == 10:
        return {}
    try:
        seen = parse_status(completed.stdout)
    except UnreadableOutput as error:
        raise LookFailed(f"{' '.join(argv)}: {error}") from None
    return {status.name: _with_paths(node, status) for status in seen}


def _with_paths(node: Node, status: DrbdStatus) -> DrbdStatus:
    """The status with the paths that events2 told of, where its own output has none."""
    told = node.memory.paths.get(status.name)
    if not told or any(connection.paths for connection in status.connections):
        return status

    def with_paths(connection: Connection) -> Connection:
        paths = told.get(connection.peer_node_id)
        return replace(connection, paths=tuple(paths.values())) if paths else connection

    return replace(status, connections=tuple(with_paths(connection) for connection in status.connections))
