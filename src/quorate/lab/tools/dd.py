"""``dd``: between devices, files, /dev/zero and /dev/urandom. On a suspended DRBD device it hangs, as it does.

Contents of devices are tags, not bytes. Zeroes are the tag None, random data is a tag of its own for every run of dd, a
file's data is its bytes, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass

from quorate.lab.drives import hash_of
from quorate.lab.kernel import BlockDevice, Io
from quorate.lab.kernel import metadata as kernel_metadata
from quorate.lab.kernel.block import BLOCK
from quorate.lab.kernel.io import IoState
from quorate.lab.tools.process import Descriptor, Process, Program, Resume, Wait

_UNITS = {"c": 1, "w": 2, "b": 512, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ENDLESS = ("/dev/zero", "/dev/urandom", "/dev/random")
_FLUSHING = {"conv": {"fsync", "fdatasync"}, "oflag": {"sync", "dsync"}}
#: A run of equal blocks: how many bytes, and the tag.
_Run = tuple[int, Hashable]


class _Failed(Exception):
    """dd's own words about why it stops."""


@dataclass(frozen=True, slots=True)
class _Order:
    source: str
    destination: str
    block_size: int
    count: int | None
    skip: int
    seek: int
    synchronous: bool
    """``oflag=sync`` and the like: what a flush meets is what dd says."""
    direct: bool
    """Past the page cache."""

    @property
    def limit(self) -> int | None:
        return None if self.count is None else self.count * self.block_size


def dd(process: Process, argv: list[str]) -> Program:
    """Copy, and say how many records."""
    try:
        order = _order(argv[1:])
        copied = yield from _copy(process, order)
    except _Failed as error:
        process.err(f"dd: {error}\n")
        return 1
    records = copied // order.block_size
    if "status=none" not in argv:
        process.err(f"{records}+0 records in\n{records}+0 records out\n")
    return 0


def _order(words: list[str]) -> _Order:
    given = {name: value for name, _, value in (word.partition("=") for word in words)}
    unknown = set(given) - {"if", "of", "bs", "ibs", "obs", "count", "skip", "seek", "conv", "oflag", "iflag", "status"}
    if unknown:
        raise _Failed(f"unknown operand '{min(unknown)}'")
    try:
        return _Order(
            given.get("if", "-"),
            given.get("of", "-"),
            _number(given.get("bs", given.get("obs", "512"))),
            _number(given["count"]) if "count" in given else None,
            _number(given.get("skip", "0")),
            _number(given.get("seek", "0")),
            synchronous=any(set(given.get(name, "").split(",")) & words for name, words in _FLUSHING.items()),
            direct="direct" in given.get("oflag", "").split(","),
        )
    except ValueError as error:
        raise _Failed(f"invalid number: {error}") from None


def _number(text: str) -> int:
    unit = _UNITS.get(text[-1:], 0)
    return int(text[:-1]) * unit if unit else int(text)


def _copy(process: Process, order: _Order) -> Generator[Wait, None, int]:
    """How many bytes went over."""
    room = _room(process, order)
    full = False
    runs: list[_Run]
    if order.source in _ENDLESS:
        sizes = [size for size in (order.limit, room) if size is not None]
        if not sizes:
            raise _Failed("this would never end")
        full = room is not None and (order.limit is None or order.limit > room)
        runs = [(min(sizes), _fresh_tag(process, order.source))]
    else:
        runs = yield from _read(process, order, order.limit)
    yield from _write(process, order, runs)
    if full:
        raise _Failed(f"error writing '{order.destination}': No space left on device")
    return sum(length for length, _ in runs)


def _fresh_tag(process: Process, source: str) -> Hashable:
    return None if source == "/dev/zero" else ("random", process.host.name, process.pid, process.host.world.now)


def _room(process: Process, order: _Order) -> int | None:
    """What fits on the destination; None for a file."""
    offset = order.seek * order.block_size
    minor = process.host.minor(order.destination)
    if minor is not None:
        return max(0, (process.host.kernel.device_size(minor) or 0) - offset)
    device = process.host.block_device(order.destination)
    return max(0, device.size - offset) if device else None


def _read(process: Process, order: _Order, limit: int | None) -> Generator[Wait, None, list[_Run]]:
    offset = order.skip * order.block_size
    if (minor := process.host.minor(order.source)) is not None:
        return (yield from _read_drbd(process, order, minor, offset, limit))
    device = process.host.block_device(order.source)
    if device is not None:
        if device.failed:
            raise _Failed(f"error reading '{order.source}': Input/output error")
        end = device.size if limit is None else min(device.size, offset + limit)
        return [
            (_bytes(start, stop), tag)
            for start, stop, tag in kernel_metadata.runs(device, offset // BLOCK, -(-end // BLOCK))
        ]
    try:
        data = process.stdin() if order.source == "-" else process.host.read(order.source)
    except OSError as error:
        raise _Failed(f"can't open '{order.source}': {error.strerror}") from None
    data = data[offset : None if limit is None else offset + limit]
    return [
        (len(piece), piece if piece.strip(b"\0") else None)
        for piece in (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))
    ]


def _bytes(start: int, stop: int) -> int:
    return (stop - start) * BLOCK


def _read_drbd(
    process: Process, order: _Order, minor: int, offset: int, limit: int | None
) -> Generator[Wait, None, list[_Run]]:
    kernel = process.host.kernel
    process.own(10, _opened(process, order.source, "<"))
    size = kernel.device_size(minor) or 0
    end = size if limit is None else min(size, offset + limit)
    runs: list[_Run] = []
    for at in range(offset, end, BLOCK):
        request = kernel.read(minor, at)
        yield from _settled(request)
        if request.state is IoState.FAILED:
            raise _Failed(f"error reading '{order.source}': I/O error")
        runs.append((min(BLOCK, end - at), request.result))
    return runs


def _write(process: Process, order: _Order, runs: list[_Run]) -> Generator[Wait, None, None]:
    offset = order.seek * order.block_size
    minor = process.host.minor(order.destination)
    device = process.host.block_device(order.destination)
    if minor is not None:
        process.own(11, _opened(process, order.destination, ">"))
        for length, tag in runs:
            request = process.host.kernel.write(minor, offset, length, tag, synchronous=order.synchronous)
            # A write through the page cache has ended for its writer before it is written. dd waits all the same, as
            # closing the device flushes it. What differs is that a sync waits for it too.
            if request.blocked and not order.direct:
                process.host.soil(request)
            yield from _settled(request, process.host.clean)
            if request.state is IoState.FAILED:
                raise _Failed(f"error writing '{order.destination}': I/O error")
            offset += length
    elif device is not None:
        _write_device(order, device, offset, runs)
    elif order.destination != "/dev/null":
        data = b"".join(_as_bytes(length, tag) for length, tag in runs)
        if order.destination == "-":
            process.descriptors[1].write(data)
        elif order.destination.startswith("/dev/") and order.destination.count("/") > 2:
            raise _Failed(f"can't open '{order.destination}': No such file or directory")
        else:
            process.host.files[order.destination] = process.host.files.get(order.destination, b"")[:offset] + data


def _write_device(order: _Order, device: BlockDevice, offset: int, runs: list[_Run]) -> None:
    # That DRBD has the device does not keep others from writing to it: only exclusive opens exclude each other.
    if device.failed:
        raise _Failed(f"error writing '{order.destination}': Input/output error")
    for length, tag in runs:
        device.write(offset, length, tag)
        kernel_metadata.note_log(device, offset, tag)
        offset += length


def _opened(process: Process, path: str, operator: str) -> Descriptor:
    try:
        return process.host.open(process, path, operator)
    except OSError as error:
        raise _Failed(f"can't open '{path}': {error.strerror}") from None


def _settled(request: Io, told: Callable[[Io], None] = lambda _: None) -> Generator[Wait, None, None]:
    """Wait in the kernel until a request is over: no signal gets through. ``told`` also of one whose dd was killed."""

    def subscribe(resume: Resume) -> None:
        def settled(over: Io) -> None:
            told(over)
            resume()

        request.when_settled = settled

    if request.blocked:
        yield Wait(subscribe, interruptible=False)


def _as_bytes(length: int, tag: Hashable) -> bytes:
    if tag is None:
        return bytes(length)
    if isinstance(tag, bytes):
        return tag.ljust(length, b"\0")[:length]
    seed = hash_of(repr(tag)).to_bytes(8, "big")
    return (seed * (length // len(seed) + 1))[:length]
