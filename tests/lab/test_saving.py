"""Drives hold tomorrow what was written to them today."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from quorate.api import all_kinds
from quorate.api.core import Lease, Namespace
from quorate.api.meta import ObjectMeta, Resource
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.passing import PassingStore
from quorate.engine.store import Store
from quorate.errors import StoreUnreachable
from quorate.lab import faults, saving
from quorate.lab.cluster import Cluster
from quorate.lab.keeping import Hardware, Nodes, SavedFirst, _Journal, kept
from quorate.lab.kernel import metadata
from quorate.lab.layout import Layout


def cluster() -> Cluster:
    return Cluster(Layout(nodes=2, drives=2), clock=SystemClock())


def filled() -> Cluster:
    """Volume groups, a thick volume with DRBD's metadata and data, a thin pool with a thin one, and files."""
    made = cluster()
    host = made.node("node-1").host
    for words in (
        ("vgcreate", "vg", "/dev/sda"),
        ("lvcreate", "-y", "-n", "thick", "-L", "128M", "vg"),
        ("lvcreate", "-y", "--type", "thin-pool", "-n", "pool", "-L", "1G", "vg"),
        ("lvcreate", "-y", "-n", "thin", "-V", "4G", "--thinpool", "pool", "vg"),
        ("lvchange", "--addtag", "kept", "vg/thick"),
    ):
        result = host.execute(words)
        assert result.exit_code == 0, result.output
    found = host.lvm.find("vg/thick")
    assert found is not None
    device = found[1].device
    metadata.create(device, 7).peer(3).bitmap.add(5, 9)
    device.write(0, 8192, "data")
    host.files["/var/lib/drbd/x"] = b"\x00\xff"
    made.inject(faults.DrivePull("node-2", "1"))
    return made


async def keep(made: Cluster, file: Path) -> None:
    """Save a cluster once, as at the end of a life."""
    async with kept(Hardware(made, file)):
        pass


def save_as_before(made: Cluster, file: Path) -> None:
    """As the version before the journal did."""
    data = saving.dump({name: node.saved() for name, node in made.nodes.items()})
    file.with_suffix(".json").write_bytes(data)


@pytest.mark.parametrize("former", [False, True])
async def test_what_is_restored_is_what_was_saved(tmp_path: Path, former: bool) -> None:
    before, file = filled(), tmp_path / "hardware.journal"
    if former:
        save_as_before(before, file)
    else:
        await keep(before, file)
    after = cluster()
    Hardware(after, file).restore()
    host = after.node("node-1").host
    assert (
        host.execute(("lvs", "--noheadings", "-o", "lv_name,lv_tags,pool_lv", "vg")).stdout
        == before.node("node-1").host.execute(("lvs", "--noheadings", "-o", "lv_name,lv_tags,pool_lv", "vg")).stdout
    )
    found = host.lvm.find("vg/thick")
    assert found is not None
    device = found[1].device
    assert device.read(4096) == "data"
    kept_metadata = metadata.find(device)
    assert kept_metadata is not None
    assert list(kept_metadata.peer(3).bitmap) == [(5, 9)]
    assert host.files["/var/lib/drbd/x"] == b"\x00\xff"
    assert [drive.slot for drive in after.node("node-2").pulled] == ["1"]
    assert host.execute(("lvcreate", "-y", "-n", "more", "-L", "4M", "vg")).exit_code == 0


async def test_every_life_has_boots_of_its_own_and_what_was_off_stays_off(tmp_path: Path) -> None:
    before, file = cluster(), tmp_path / "hardware.journal"
    before.inject(faults.NodeDown("node-2"))
    await keep(before, file)
    after = cluster()
    Hardware(after, file).restore()
    boot_id = "/proc/sys/kernel/random/boot_id"
    assert after.node("node-1").host.files[boot_id] != before.node("node-1").host.files[boot_id]
    assert after.node("node-1").host.powered
    assert not after.node("node-2").host.powered


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"rubbish",
        b'{"root": ["object", 0], "objects": [["Popen", {}]]}',
        b'{"root": ["object", 0], "objects": [["Run", {"first": 1}]]}',
        b'{"root": ["code", "1"], "objects": []}',
    ],
)
def test_a_file_that_cannot_be_used_leaves_new_drives(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(saving.Unusable):
        saving.load(content)
    (tmp_path / "hardware").write_bytes(content)
    made = cluster()
    Hardware(made, tmp_path / "hardware").restore()
    assert made.node("node-1").host.powered


def test_a_log_that_was_copied_is_kept_with_what_it_notes() -> None:
    """A disk that grows has one at its new end before DRBD has grown: quorate up must go on saving."""
    noted = saving.load(saving.dump({"copied": metadata.LogBlock([(0, 1024), (4096, 5120)])}))["copied"]
    assert noted == metadata.LOG_MAGIC
    assert noted.extents == ((0, 1024), (4096, 5120))


def test_only_hardware_is_ever_written() -> None:
    with pytest.raises(TypeError, match="not known as a part of the hardware"):
        saving.dump({"clock": SystemClock()})


async def test_no_two_lives_draw_the_same(tmp_path: Path) -> None:
    """Generations of DRBD are told apart by numbers that are drawn."""
    drawn = []
    for _ in range(3):
        made, file = cluster(), tmp_path / "hardware.journal"
        Hardware(made, file).restore()
        drawn.append(made.world.random.getrandbits(64))
        await keep(made, file)
    assert len(set(drawn)) == 3


async def test_hardware_is_written_at_the_end_and_only_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "lab" / "hardware.journal"
    async with kept(Hardware(cluster(), file)):
        assert not file.exists()
    assert file.stat().st_mode & 0o777 == 0o600


async def test_what_the_version_before_left_goes_when_it_is_in_the_journal(tmp_path: Path) -> None:
    file = tmp_path / "hardware.journal"
    save_as_before(cluster(), file)
    await keep(cluster(), file)
    assert file.exists()
    assert not file.with_suffix(".json").exists()


# What an agent reports.


class Recorder(PassingStore):
    """What is written, and the label that the hardware in the file has at that moment."""

    def __init__(self, store: Store, file: Path) -> None:
        super().__init__(store)
        self.file = file
        self.seen: list[tuple[str, object]] = []

    def _admit(self, verb: str, cls: type[Resource], name: str = "") -> None:
        after = cluster()
        Hardware(after, self.file).restore()
        self.seen.append((cls.__name__, after.node("node-1").host.files.get("/etc/label")))


@pytest.fixture
async def store() -> AsyncIterator[EmbeddedStore]:
    chance = Random(1)
    opened = await EmbeddedStore.open(None, kinds=all_kinds(), clock=SystemClock(), random=chance, inline=True)
    yield opened
    await opened.close()


async def test_what_an_agent_reports_is_saved_before_the_report_is(tmp_path: Path, store: EmbeddedStore) -> None:
    made, file = cluster(), tmp_path / "hardware.journal"
    files = made.node("node-1").host.files
    async with kept(Hardware(made, file)) as hardware:
        recorder = Recorder(store, file)
        agents = SavedFirst(recorder, hardware)
        for number in range(4):
            files["/etc/label"] = b"%d" % number
            await agents.create(Namespace(metadata=ObjectMeta(name=f"n{number}")))
        await agents.patch(Namespace, "n1", patch={"metadata": {"labels": {"a": "b"}}})
        files["/etc/label"] = b"last"
        await agents.delete(Namespace, "n1")
    assert recorder.seen == [
        *(("Namespace", b"%d" % number) for number in range(4)),
        ("Namespace", b"3"),
        ("Namespace", b"last"),
    ]


async def test_a_lease_waits_for_nothing(tmp_path: Path, store: EmbeddedStore) -> None:
    made = cluster()
    hardware = Hardware(made, tmp_path / "hardware.journal")  # which nobody keeps
    lease = Lease(metadata=ObjectMeta(name="agent", namespace="default"))
    async with asyncio.timeout(5):
        await SavedFirst(store, hardware).create(lease)


async def test_many_reports_at_once_take_a_save_or_two(tmp_path: Path) -> None:
    made, file = cluster(), tmp_path / "hardware.journal"
    async with kept(Hardware(made, file)) as hardware:
        await hardware.saved()
        before = file.stat().st_size
        made.node("node-1").host.files["/etc/label"] = b"1"
        await asyncio.gather(*(hardware.saved() for _ in range(200)))
        assert frames(file) == 2
        assert file.stat().st_size > before


async def test_what_could_not_be_saved_is_not_reported(
    tmp_path: Path, store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, say. The next save writes everything anew: what is at the journal's end may be half a frame."""
    made, file = cluster(), tmp_path / "hardware.journal"
    real = os.fsync
    async with kept(Hardware(made, file)) as hardware:
        agents = SavedFirst(store, hardware)
        await agents.create(Namespace(metadata=ObjectMeta(name="good")))

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("quorate.lab.keeping.os.fsync", full)
        made.node("node-1").host.files["/etc/label"] = b"unsaved"
        with pytest.raises(StoreUnreachable, match=r"could not be saved: .*No space left"):
            await agents.create(Namespace(metadata=ObjectMeta(name="bad")))
        monkeypatch.setattr("quorate.lab.keeping.os.fsync", real)
        await agents.create(Namespace(metadata=ObjectMeta(name="better")))
        after = cluster()
        Hardware(after, file).restore()
        assert after.node("node-1").host.files["/etc/label"] == b"unsaved"
        assert frames(file) == 1
    names = {each.name for each in (await store.list(Namespace)).items}
    assert {"good", "better"} <= names
    assert "bad" not in names


async def test_a_save_that_is_cut_off_anywhere_leaves_the_one_before_it(tmp_path: Path) -> None:
    made, file = cluster(), tmp_path / "hardware.journal"
    ends = []
    async with kept(Hardware(made, file)) as hardware:
        for number in range(3):
            made.node("node-1").host.files["/etc/label"] = b"%d" % number
            await hardware.saved()
            ends.append(file.stat().st_size)
    whole = file.read_bytes()[: ends[-1]]
    for at in sorted({*ends, ends[0] + 1, ends[0] + 11, ends[0] + 12, ends[0] + 13, *range(ends[0], ends[2], 97)}):
        file.write_bytes(whole[:at])
        after = cluster()
        Hardware(after, file).restore()
        expected = max(number for number, end in enumerate(ends) if end <= at)
        assert after.node("node-1").host.files["/etc/label"] == b"%d" % expected, f"cut at {at} of {ends}"


async def test_what_follows_damage_is_not_used(tmp_path: Path) -> None:
    made, file = cluster(), tmp_path / "hardware.journal"
    async with kept(Hardware(made, file)) as hardware:
        for number in range(3):
            made.node("node-1").host.files["/etc/label"] = b"%d" % number
            await hardware.saved()
            if not number:
                first = file.stat().st_size
    data = bytearray(file.read_bytes())
    data[first + 20] ^= 1
    file.write_bytes(data)
    after = cluster()
    Hardware(after, file).restore()
    assert after.node("node-1").host.files["/etc/label"] == b"0"


async def test_the_journal_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.lab.keeping._SMALL", 0)
    made, file = cluster(), tmp_path / "hardware.journal"
    sizes = []
    async with kept(Hardware(made, file)) as hardware:
        for number in range(60):
            made.node("node-1").host.files["/etc/label"] = b"%d" % number
            await hardware.saved()
            sizes.append(file.stat().st_size)
    assert max(sizes) < 10 * sizes[0]
    after = cluster()
    Hardware(after, file).restore()
    assert after.node("node-1").host.files["/etc/label"] == b"59"


def frames(file: Path) -> int:
    """How many saves are in a journal."""
    data, at, count = file.read_bytes(), len(b"quorate lab hardware, journal 1\n"), 0
    while at < len(data):
        at += 12 + int.from_bytes(data[at : at + 8], "little")
        count += 1
    return count


async def test_a_write_that_is_under_way_at_the_end_is_over_before_the_last_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once would be frames within one another, and nothing in the file could be used."""
    made, file = cluster(), tmp_path / "hardware.journal"
    real, at_once, most, slow = _Journal.append, 0, 0, threading.Event()

    def append(journal: _Journal, changed: Nodes, everything: Nodes) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        slow.set()
        time.sleep(0.1)
        real(journal, changed, everything)
        at_once -= 1

    async with kept(Hardware(made, file)) as hardware:
        await hardware.saved()
        monkeypatch.setattr(_Journal, "append", append)
        made.node("node-1").host.files["/etc/label"] = b"1"
        waiting = asyncio.ensure_future(hardware.saved())
        await asyncio.to_thread(slow.wait, 10)
        made.node("node-1").host.files["/etc/label"] = b"2"
    with pytest.raises(StoreUnreachable):
        await waiting
    assert most == 1
    assert frames(file) == 3
    after = cluster()
    Hardware(after, file).restore()
    assert after.node("node-1").host.files["/etc/label"] == b"2"


async def test_a_fault_that_ends_the_saving_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, file = cluster(), tmp_path / "hardware.journal"

    def broken(_: Nodes) -> bytes:
        raise TypeError("cannot be encoded")

    hardware = Hardware(made, file)
    keeping = asyncio.ensure_future(hardware.keep())
    monkeypatch.setattr("quorate.lab.keeping._frame", broken)
    with pytest.raises(StoreUnreachable, match="could not be saved"):
        await hardware.saved()
    with pytest.raises(TypeError):
        await keeping
    told = capsys.readouterr()
    assert "is not saved any more" in told.out + told.err
    assert "cannot be encoded" in told.out + told.err
