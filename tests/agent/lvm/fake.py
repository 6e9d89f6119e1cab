"""A machine that has nothing but LVM and ``dd``: what is on each MiB of a volume, and what was ever done wrong to it.

Not the lab's: it exists to be killed between any two commands, and to notice by itself what must never happen.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from itertools import pairwise

from quorate.agent.lvm.filtering import lvm, lvm_without_discards
from quorate.agent.lvm.seen import NEW
from quorate.agent.machine import CommandNotFound, Completed, FileBeneath

MIB = 1024 * 1024
EXTENT = 4 * MIB
#: What a MiB can hold: something from before, zeros, what a user wrote, what a file had.
OLD, ZEROS, DATA, FILE = b"ozdf"
GARBAGE = b"gggg"
CHECKSUM = "ab" * 64


@dataclass
class Lv:
    name: str
    uuid: str
    content: bytearray
    tags: set[str]
    pool: str = ""
    is_pool: bool = False
    open: bool = False
    active: bool = True
    #: Its extents of the one device that every group has here.
    extents: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.content) * MIB

    @property
    def attributes(self) -> str:
        kind = "t" if self.is_pool else "V" if self.pool else "-"
        flags = f"{'a' if self.active else '-'}{'o' if self.open else '-'}"
        return f"{kind}wi-{flags}{'tz' if kind != '-' else '--'}--"


@dataclass
class FakeMachine:
    """Implements :class:`quorate.agent.machine.Machine` as far as LVM's part needs it."""

    #: Free extents by volume group.
    free: dict[str, int] = field(default_factory=lambda: {"vg0": 64})
    devices: dict[str, str] = field(default_factory=lambda: {"/dev/sdb": "vg0"})
    volumes: dict[str, Lv] = field(default_factory=dict)
    ran: list[tuple[str, ...]] = field(default_factory=list)
    #: Words that make the first command that contains them fail, and how.
    failing: dict[str, Completed] = field(default_factory=dict)
    #: Called before and after every command that changes something.
    pause: Callable[[], None] = lambda: None
    violations: list[str] = field(default_factory=list)
    #: What was left on extents that nobody has, by group and number.
    left: dict[tuple[str, int], bytes] = field(default_factory=dict)
    #: Volumes whose zeros are in a drive's memory only.
    unflushed: set[str] = field(default_factory=set)
    #: Whether the command that runs lets LVM discard what it frees.
    discards: bool = False
    _made: int = 0

    async def run(self, *argv: str, silence: float, stdin: FileBeneath | None = None) -> Completed:
        await asyncio.sleep(0.001)
        self.ran.append(argv)
        for words, refusal in self.failing.items():
            if words in " ".join(argv):
                return refusal
        if argv[0].startswith(("lv", "vg", "pv")):
            if argv[1:3] not in (lvm("")[1:], lvm_without_discards("")[1:]):
                self.violations.append(f"{argv[0]} may read DRBD's devices")
            self.discards = argv[1:3] != lvm_without_discards("")[1:]
            argv = (argv[0], *argv[3:])
            if silence < (60 if argv[0] in ("lvs", "vgs", "pvs") else 300):
                self.violations.append(f"{argv[0]} may be killed after {silence} s")
        if argv[0] in ("lvs", "vgs", "pvs"):
            return Completed(0, json.dumps({"report": [getattr(self, f"_{argv[0]}")()]}))
        command = getattr(self, f"_{argv[0]}", None)
        if command is None:
            raise CommandNotFound(argv[0])
        self.pause()
        await asyncio.sleep(0.001)
        answer: Completed = command(argv[1:])
        self.pause()
        await asyncio.sleep(0.001)
        return answer

    async def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        await asyncio.Event().wait()
        yield ""

    async def read_file(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    async def write_file(self, path: str, content: bytes) -> None: ...
    async def move_file(self, source: str, destination: str) -> None: ...
    async def remove_file(self, path: str) -> None: ...
    async def list_directory(self, path: str) -> tuple[str, ...]:
        return ()

    async def port_is_free(self, address: str, port: int) -> bool:
        return True

    def changing(self) -> list[tuple[str, ...]]:
        """The commands that were not looks."""
        return [argv for argv in self.ran if argv[0] not in ("lvs", "vgs", "pvs")]

    # Reports.

    def _lvs(self) -> dict[str, object]:
        rows = [
            {
                "vg_name": group,
                "lv_name": lv.name,
                "lv_uuid": lv.uuid,
                "lv_size": str(lv.size),
                "lv_attr": lv.attributes,
                "lv_tags": ",".join(sorted(lv.tags)),
                "pool_lv": lv.pool,
                "data_percent": "",
                "devices": "" if lv.pool else "/dev/sdb(0)",
                "seg_pe_ranges": " ".join(f"/dev/sdb:{extent}-{extent}" for extent in lv.extents),
            }
            for key, lv in self.volumes.items()
            for group in [key.partition("/")[0]]
        ]
        return {"lv": rows}

    def _vgs(self) -> dict[str, object]:
        return {
            "vg": [
                {
                    "vg_name": name,
                    "vg_uuid": f"uuid-{name}",
                    "vg_size": str(256 * MIB),
                    "vg_free": str(free * EXTENT),
                    "vg_extent_size": str(EXTENT),
                    "vg_missing_pv_count": "0",
                }
                for name, free in self.free.items()
            ]
        }

    def _pvs(self) -> dict[str, object]:
        return {
            "pv": [
                {
                    "pv_name": path,
                    "vg_name": group,
                    "vg_uuid": f"uuid-{group}" if group else "",
                    "pv_size": str(256 * MIB),
                    "pv_missing": "",
                }
                for path, group in self.devices.items()
            ]
        }

    # Commands.

    def _lvcreate(self, words: tuple[str, ...]) -> Completed:
        options, group = _options(words), words[-1]
        if group not in self.free:
            return Completed(5, "", f'  Volume group "{group}" not found')
        name = options["--name"][0]
        if f"{group}/{name}" in self.volumes:
            return Completed(5, "", f'  Logical Volume "{name}" already exists in volume group "{group}"')
        if name.endswith("_tdata"):
            return Completed(3, "", '  Names including "_tdata" are reserved. Please choose a different LV name.')
        self._made += 1
        lv = Lv(name, f"lv-{self._made}", bytearray(), set(options.get("--addtag", ())))
        if "--thinpool" in options:
            lv.pool = options["--thinpool"][0]
            size = int(options["--virtualsize"][0].removesuffix("b"))
            lv.content = bytearray([ZEROS]) * (-(-size // EXTENT) * EXTENT // MIB)
        else:
            lv.is_pool = options.get("--type") == ["thin-pool"]
            size = int(options["--size"][0].removesuffix("b"))
            answer = self._take(lv, group, size)
            if answer is not None:
                return answer
        self.volumes[f"{group}/{name}"] = lv
        return Completed(0, f'  Logical volume "{name}" created.')

    def _lvextend(self, words: tuple[str, ...]) -> Completed:
        _, _, key, *named = words
        group, lv = key.partition("/")[0], self.volumes[key]
        size = int(_options(words)["--size"][0].removesuffix("b"))
        if lv.pool:
            lv.content += bytearray([ZEROS]) * (size // MIB - len(lv.content))
            return Completed(0, "")
        return self._take(lv, group, size, [int(each.rpartition("-")[2]) for each in named]) or Completed(0, "")

    def _take(self, lv: Lv, group: str, size: int, named: list[int] | None = None) -> Completed | None:
        needed = -(-size // EXTENT) - lv.size // EXTENT
        if needed > self.free[group]:
            available = f"{self.free[group]} extents available, {needed} extents required"
            return Completed(5, "", f'  Volume group "{group}" has insufficient free space ({available}).')
        taken = {extent for key, each in self.volumes.items() if key.startswith(f"{group}/") for extent in each.extents}
        usable = [extent for extent in named or range(20_000) if extent not in taken][:needed]
        if len(usable) < needed:
            return Completed(5, "", f"  Insufficient suitable allocatable extents for logical volume {lv.name}")
        self.free[group] -= needed
        lv.extents += usable
        added = b"".join(self.left.pop((group, extent), bytes([OLD]) * (EXTENT // MIB)) for extent in usable)
        if lv.content and set(added) != {ZEROS}:
            self.violations.append(f"{lv.name} grew by what is not zero: DRBD may use it at once")
        lv.content += added
        return None

    def _lvchange(self, words: tuple[str, ...]) -> Completed:
        options, lv = _options(words), self.volumes[words[-1]]
        lv.tags |= set(options.get("--addtag", ()))
        lv.tags -= set(options.get("--deltag", ()))
        lv.active = lv.active or "--activate" in options
        return Completed(0, "")

    def _lvremove(self, words: tuple[str, ...]) -> Completed:
        lv = self.volumes[words[-1]]
        if lv.open:
            return Completed(5, "", f"  Logical volume {words[-1]} in use.")
        del self.volumes[words[-1]]
        if not lv.pool:
            group = words[-1].partition("/")[0]
            self.free[group] += lv.size // EXTENT
            for number, extent in enumerate(lv.extents):
                # What a drive was told to forget reads as it pleases, and what it has in memory goes with the power.
                kept = not self.discards and lv.uuid not in self.unflushed
                self.left[group, extent] = bytes(lv.content[number * 4 : number * 4 + 4]) if kept else GARBAGE
        return Completed(0, "")

    def _vgcreate(self, words: tuple[str, ...]) -> Completed:
        group, *paths = words
        self.free[group] = 64 * len(paths)
        self.devices.update(dict.fromkeys(paths, group))
        return Completed(0, "")

    def _vgextend(self, words: tuple[str, ...]) -> Completed:
        group, *paths = words
        self.free[group] += 64 * len(paths)
        self.devices.update(dict.fromkeys(paths, group))
        return Completed(0, "")

    def _blkdiscard(self, words: tuple[str, ...]) -> Completed:
        lv = self._at(words[-1])
        if lv.open:
            return Completed(1, "", f"blkdiscard: {words[-1]}: Device or resource busy")
        self.unflushed.add(lv.uuid)
        return self._write(lv, 0, len(lv.content), ZEROS)

    def _sync(self, words: tuple[str, ...]) -> Completed:
        self.unflushed.discard(self._at(words[0]).uuid)
        return Completed(0, "")

    def _dd(self, words: tuple[str, ...]) -> Completed:
        given = dict(word.split("=", 1) for word in words)
        lv = self._at(given["of"])
        if given.get("count") == "8" and given["bs"] == "4096":
            return self._place_of_log(lv, given)
        if given.get("if") != "/dev/zero":
            return self._write(lv, 0, 1, FILE)
        block = int(given["bs"])
        start, count = int(given["seek"]) * block, int(given["count"]) * block
        if start + count > lv.size:
            return Completed(1, "", f"dd: error writing '{given['of']}': No space left on device")
        return self._write(lv, start // MIB, -(-count // MIB), ZEROS)

    def _place_of_log(self, lv: Lv, given: dict[str, str]) -> Completed:
        """Eight blocks before the last of a device: where DRBD looks for its activity log."""
        places = [(lv, given["seek"]), *([(self._at(given["if"]), given["skip"])] if "skip" in given else [])]
        for device, place in places:
            if int(place) != device.size // 4096 - 9:
                self.violations.append(f"block {place} of {device.name} is not where a log is")
        return Completed(0, "")

    def _sha512sum(self, words: tuple[str, ...]) -> Completed:
        return Completed(0, f"{CHECKSUM}  {words[0]}\n")

    def _cmp(self, words: tuple[str, ...]) -> Completed:
        if self._at(words[1]).content[0] != FILE:
            return Completed(1, f"{words[0]} {words[1]} differ: byte 1, line 1\n")
        return Completed(1, "", f"cmp: EOF on {words[0]} after byte 1048576, line 7\n")

    def _at(self, path: str) -> Lv:
        return self.volumes[path.removeprefix("/dev/")]

    def _write(self, lv: Lv, start: int, count: int, what: int) -> Completed:
        if NEW not in lv.tags:
            self.violations.append(f"{lv.name} was written to, and is somebody's")
        lv.content[start : start + count] = bytes([what]) * count
        return Completed(0, "")


def _options(words: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairwise(words):
        if name.startswith("--"):
            found.setdefault(name, []).append(value)
    return found
