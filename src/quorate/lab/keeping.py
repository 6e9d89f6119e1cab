"""Keeps a file like a cluster's hardware, so that a restarted ``quorate up`` finds its drives as they were.

**What an agent reports is saved before the report is.** An agent's writes go through a :class:`SavedFirst` store, which
lets none pass before everything that was done to the hardware until then, on all nodes, is in the file and flushed. So
whenever the process is killed, the hardware is that of one moment, and nobody was told of anything later: as if the
power of all nodes had gone at once. (Leases and Events say nothing of hardware and wait for nothing.) The same holds
for people: a fault is saved when its injection is answered.

The file is a journal. A **frame** holds every node that has changed since the last one, whole or not at all: its
length, a checksum and the nodes. Saving is a group commit: whoever comes while one is under way waits for the next, and
it takes a quarter of the process's time at most. When the journal has grown it is written anew with one frame, as at
every start. A frame that was cut off by the end of the process is not used: nobody was told of what is in it.

Nodes that were added to the layout since are new, those that were taken out of it are forgotten.
"""

from __future__ import annotations

import asyncio
import os
import struct
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import msgspec

from quorate.api.core import Event, Lease
from quorate.api.meta import Resource
from quorate.engine.durable import sync_directory, write_all
from quorate.engine.logs import get_logger
from quorate.engine.passing import PassingStore
from quorate.engine.store import MergePatch, Store
from quorate.errors import StoreUnreachable
from quorate.lab import saving
from quorate.lab.cluster import Cluster

log = get_logger(__name__)

R = TypeVar("R", bound=Resource)

#: Seconds after which changes are saved that nobody reports.
_INTERVAL: Final = 5.0
#: For every second that is spent on saving, so many are not.
_REST: Final = 3.0
#: The journal is written anew when it is so many times as large as that would make it, and not small.
_GROWTH, _SMALL = 8, 16 << 20

_MAGIC: Final = b"quorate lab hardware, journal 1\n"
#: Of a frame: the length of what follows, and its CRC-32.
_HEAD: Final = struct.Struct("<QI")

#: Every node's hardware, as ``saving`` has it.
Nodes = Mapping[str, bytes]


class SavedFirst(PassingStore):
    """The store of a simulated agent: what it writes is written when the hardware that it tells of is saved."""

    def __init__(self, store: Store, hardware: Hardware) -> None:
        super().__init__(store)
        self._hardware = hardware

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        await self._saved(type(obj))
        return await super().create(obj, dry_run=dry_run)

    async def patch(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        patch: MergePatch,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R:
        await self._saved(cls)
        return await super().patch(
            cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
        )

    async def patch_status(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        patch: MergePatch,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R:
        await self._saved(cls)
        return await super().patch_status(
            cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
        )

    async def delete(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R | None:
        await self._saved(cls)
        return await super().delete(cls, name, namespace, uid=uid, resource_version=resource_version, dry_run=dry_run)

    async def _saved(self, cls: type[Resource]) -> None:
        if cls not in (Lease, Event):
            await self._hardware.saved()


class Hardware:
    """A cluster's hardware, and the file that is kept like it."""

    def __init__(self, cluster: Cluster, file: Path) -> None:
        self._cluster = cluster
        self._journal = _Journal(file)
        self._known: dict[str, bytes] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._asked = asyncio.Event()
        self._over = False
        #: The last write of the file, which goes on when whoever waits for it is told to stop.
        self._writing: asyncio.Task[None] | None = None

    def restore(self) -> None:
        """Give the nodes the hardware in the file, if there is one that can be used."""
        cluster, file = self._cluster, self._journal.file
        try:
            for name, hardware in _loaded(file).items():
                if name in cluster.nodes:
                    cluster.nodes[name].restore(hardware)
        except FileNotFoundError:
            return
        except (OSError, saving.Unusable) as error:
            log.warning("simulated drives start empty: what was saved cannot be used", file=str(file), why=str(error))
        # What is drawn in this life was not drawn in an earlier one: DRBD's generations are told apart by it.
        lives = "/".join(str(node.host.boots) for node in cluster.nodes.values())
        cluster.world.random.seed(f"{cluster.seed}/{lives}")

    async def saved(self) -> None:
        """Wait until all that has been done to the hardware so far is in the file. Raises StoreUnreachable."""
        if self._over:
            raise StoreUnreachable("the simulated hardware is not saved any more")
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._asked.set()
        await waiter

    async def keep(self) -> NoReturn:
        """Save whenever somebody asks, and now and then."""
        clock = self._cluster.driver.clock
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_INTERVAL):
                        await self._asked.wait()
                begun = clock.monotonic()
                await self.save()
                await clock.sleep(_REST * (clock.monotonic() - begun))
        finally:
            self._over = True
            _refuse(self._waiting, "the simulated hardware is not saved any more")

    async def save(self) -> None:
        """Save what has changed, and answer whoever waited for it."""
        self._asked.clear()
        waiting, self._waiting = self._waiting, []
        try:
            if self._writing is not None:
                # One whose waiter was told to stop: two at once would be frames within one another.
                await asyncio.wait([self._writing])
            changed = self._changed()
            if changed or self._journal.is_closed:
                # Whoever is told to stop meanwhile still leaves a whole frame.
                self._writing = asyncio.create_task(self._write(changed), name="saving the lab's hardware")
                await asyncio.shield(self._writing)
        except OSError as error:
            log.warning("the simulated hardware could not be saved", file=str(self._journal.file), why=str(error))
            _refuse(waiting, f"the simulated hardware could not be saved: {error}")
        except BaseException as error:
            _refuse(waiting, "the simulated hardware could not be saved")
            if not isinstance(error, asyncio.CancelledError):
                log.error(
                    "the simulated hardware is not saved any more: restart quorate up, and report this",
                    file=str(self._journal.file),
                    why=repr(error),
                    exc_info=error,
                )
            raise
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def _write(self, changed: Nodes) -> None:
        await asyncio.to_thread(self._journal.append, changed, {**self._known, **changed})
        self._known.update(changed)

    def _changed(self) -> dict[str, bytes]:
        self._cluster.driver.catch_up()
        found = {name: saving.dump(node.saved()) for name, node in self._cluster.nodes.items()}
        return {name: data for name, data in found.items() if data != self._known.get(name)}


def _refuse(waiting: list[asyncio.Future[None]], why: str) -> None:
    for waiter in waiting:
        if not waiter.done():
            waiter.set_exception(StoreUnreachable(why))


@asynccontextmanager
async def kept(hardware: Hardware) -> AsyncIterator[Hardware]:
    """Keep the file like the hardware while the block lasts, and at its end."""
    task = asyncio.create_task(hardware.keep(), name="keeping the lab's hardware")
    try:
        yield hardware
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await hardware.save()


class _Journal:
    """The file. It is only its owner's: files of nodes hold secrets."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._opened: int | None = None
        self._size = 0
        self._size_anew = 0

    @property
    def is_closed(self) -> bool:
        """Whether it has to be written anew: it has not been yet, or its end is not known to be whole."""
        return self._opened is None

    def append(self, changed: Nodes, everything: Nodes) -> None:
        """Add a frame; or write the journal anew, with everything in one. Raises OSError."""
        if self._opened is None or self._size > max(_SMALL, _GROWTH * self._size_anew):
            self._write_anew(everything)
            return
        frame = _frame(changed)
        try:
            write_all(self._opened, frame)
            os.fsync(self._opened)
        except OSError:
            self._close()
            raise
        self._size += len(frame)

    def _write_anew(self, everything: Nodes) -> None:
        self._close()
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self.file.with_name(f".{self.file.name}.new")
        temporary.unlink(missing_ok=True)
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            content = _MAGIC + _frame(everything)
            write_all(opened, content)
            os.fsync(opened)
            temporary.replace(self.file)
            _former(self.file).unlink(missing_ok=True)
            sync_directory(self.file.parent)
        except BaseException:
            os.close(opened)
            raise
        self._opened, self._size, self._size_anew = opened, len(content), len(content)

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            os.close(opened)


def _frame(nodes: Nodes) -> bytes:
    content = zlib.compress(msgspec.msgpack.encode(nodes), 1)
    return _HEAD.pack(len(content), zlib.crc32(content)) + content


def _loaded(file: Path) -> dict[str, Mapping[str, object]]:
    """By node, what was last saved of it. Raises OSError, Unusable."""
    if not file.exists() and _former(file).exists():
        former: dict[str, Mapping[str, object]] = saving.load(_former(file).read_bytes())
        return former
    data = file.read_bytes()
    if not data.startswith(_MAGIC):
        raise saving.Unusable("it is no journal of simulated hardware, or another version's")
    last: dict[str, bytes] = {}
    for nodes in _frames(file, data):
        last.update(nodes)
    return {name: saving.load(hardware) for name, hardware in last.items()}


def _former(file: Path) -> Path:
    """Where hardware was kept, whole and without a journal, by the version before this one."""
    return file.with_suffix(".json")


def _frames(file: Path, data: bytes) -> Iterator[Nodes]:
    at = len(_MAGIC)
    while at < len(data):
        head = data[at : at + _HEAD.size]
        length, checksum = _HEAD.unpack(head) if len(head) == _HEAD.size else (len(data), 0)
        content = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(content) < length:
            log.info("the last save of simulated hardware was cut off; nobody was told of it", file=str(file))
            return
        if zlib.crc32(content) != checksum:
            left = len(data) - at
            log.warning("saved hardware is damaged: what was saved last is missing", file=str(file), bytes=left)
            return
        try:
            yield msgspec.msgpack.decode(zlib.decompress(content), type=dict[str, bytes])
        except (zlib.error, msgspec.DecodeError) as error:
            raise saving.Unusable(f"it was written by another version, or is damaged: {error!r}") from None
        at += _HEAD.size + length
