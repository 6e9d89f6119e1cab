"""What a logical volume is filled from: a regular file beneath one directory, whatever its path says or becomes."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from quorate.agent.linux import LinuxMachine
from quorate.agent.lvm import commands
from quorate.agent.lvm.seen import SeenVolume
from quorate.agent.machine import FileBeneath
from quorate.agent.settings import IMAGE_DIRECTORY
from quorate.api.cel import Program
from quorate.api.longhorn import BackingImage
from quorate.api.storage import LVMLogicalVolume
from quorate.engine.simulation import Simulation, run
from tests.agent.lvm.fake import FakeMachine
from tests.agent.lvm.rig import Rig, llv, lvg
from tests.api.rules import messages

OUTSIDE = [
    "/etc/shadow",
    "/dev/sda",
    "../drbd.d/pvc-1.res",
    "a/../../lock",
    "./a",
    "a//b",
    "a/",
    "..",
    ".",
    f"{IMAGE_DIRECTORY}/../lock",
    f"{IMAGE_DIRECTORY}-other/a",
]
INSIDE = ["os.img", "debian/12/disk.raw", "..hidden", "a..b", "...", "with space"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_elsewhere_is_refused_by_the_api_and_by_an_agent(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = {"metadata": {"name": "i"}, "spec": {"sourcePath": path}}
    assert messages(BackingImage.KIND, image), path
    spec = {"actualLVNameOnTheNode": "v", "type": "Thick", "size": "1Gi", "lvmVolumeGroupName": "g"}
    volume = {"metadata": {"name": "v"}, "spec": {**spec, "source": {"path": path}}}
    assert messages(LVMLogicalVolume.KIND, volume), path

    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        with monkeypatch.context() as patch:
            patch.setattr(Program, "holds", lambda *_: True)  # taken by an API of before
            await rig.store.create(llv(source=path))
        rig.start()
        await sim.clock.sleep(60)
        assert (await rig.created()).status.reason == "SourceRefused"
        assert {argv[0] for argv in machine.ran} <= {"lvs", "vgs", "pvs", "lvm"}, "it looked, and did nothing"
        await rig.delete()
        await sim.clock.sleep(60)
        assert await rig.names() == []

    run(main, seed=1)


@pytest.mark.parametrize("path", INSIDE)
def test_a_path_beneath_the_directory_is_taken(path: str) -> None:
    assert messages(BackingImage.KIND, {"metadata": {"name": "i"}, "spec": {"sourcePath": path}}) == []


def test_no_command_is_told_a_files_name() -> None:
    source = FileBeneath("/images", "-x if=/dev/sda")
    for step in commands.fill(SeenVolume("vg0", "a", size=1 << 20), source, about="x"):
        assert step.stdin == source
        assert not [word for word in step.argv if "images" in word or "sda" in word]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A directory with one good file, and everything that is none."""
    inside, outside = tmp_path / "images", tmp_path / "outside"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (inside / "good").write_bytes(b"good")
    (inside / "deep" / "good").write_bytes(b"deep")
    (inside / "link").symlink_to(outside / "secret")
    (inside / "link-to-good").symlink_to("good")
    (inside / "directory-link").symlink_to(outside)
    (inside / "dangling").symlink_to("nowhere")
    os.mkfifo(inside / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(inside / "socket"))
    return inside


async def read(images: Path, path: str) -> bytes:
    machine = LinuxMachine()
    try:
        done = await machine.run("cat", silence=5.0, stdin=FileBeneath(str(images), path))
    finally:
        await machine.close()
    assert done.exit_code == 0
    return done.stdout.encode()


async def test_a_regular_file_is_read_whole(images: Path) -> None:
    assert await read(images, "good") == b"good"
    assert await read(images, "deep/good") == b"deep"
    machine = LinuxMachine()
    summed = await machine.run("sha512sum", "-", silence=5.0, stdin=FileBeneath(str(images), "good"))
    assert summed.stdout.split()[0] == hashlib.sha512(b"good").hexdigest()
    compared = await machine.run("cmp", "-", "/dev/zero", silence=5.0, stdin=FileBeneath(str(images), "good"))
    assert compared.exit_code == 1
    await machine.close()


@pytest.mark.parametrize(
    "path", ["link", "link-to-good", "directory-link/secret", "dangling", "fifo", "socket", "deep", "deep/../good", ""]
)
async def test_nothing_else_is_read_or_even_opened(images: Path, path: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=r"is not a|does not stay"):
        await read(images, path)
    assert len(os.listdir("/proc/self/fd")) <= before + 1, "no descriptor is left open"


async def test_one_that_is_not_there_is_told_as_that(images: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await read(images, "nothing")
    with pytest.raises(FileNotFoundError):
        await read(images / "nothing", "good")


async def test_a_file_that_is_exchanged_all_the_time_never_shows_what_is_elsewhere(images: Path) -> None:
    secret, stop = images.parent / "outside" / "secret", threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            new = images / "new"
            new.symlink_to(secret)
            new.rename(images / "changing")
            new.write_bytes(b"good")
            new.rename(images / "changing")

    (images / "changing").write_bytes(b"good")
    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        seen = set()
        for _ in range(40):
            try:
                seen.add(await read(images, "changing"))
            except OSError:
                seen.add(b"refused")
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"good", b"refused"}
