"""The real machine: where it finds files, what it does with those that hang, and which ports are free."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quorate.agent.linux import LinuxMachine, Roots, files
from quorate.agent.linux.aside import Aside
from tests.agent.linux.helpers import LONG, nothing_is_left, soon

# Where things are.


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/etc/hosts", "/host/etc/hosts"),
        ("/", "/host"),
        ("/sys", "/host-sys"),
        ("/sys/module/drbd/version", "/host-sys/module/drbd/version"),
        ("/system", "/host/system"),
        ("/sys/fs/x", "/fs/x"),
        ("/proc/crypto", "/proc/crypto"),
    ],
)
def test_the_innermost_root_decides_where_a_path_is(path: str, place: str) -> None:
    roots = Roots({"/": "/host", "/sys": "/host-sys", "/sys/fs": "/fs", "/proc": "/proc"})
    assert roots.locate(path) == place


def test_a_parent_within_a_root_is_left_to_the_links_on_the_way() -> None:
    path = "block/sda/device/enclosure_device:Slot 01/../id"
    assert Roots({"/sys": "/host/sys"}).locate(f"/sys/{path}") == f"/host/sys/{path}"
    assert Roots().locate(f"/sys/{path}") == f"/sys/{path}"


@pytest.mark.parametrize(
    "path", ["/sys/../etc/shadow", "/sys/fs/../x", "/sys/fs/x/../../y", "/var/../sys/x", "/../x", "/sys/x/../../.."]
)
def test_no_parent_leads_out_of_a_root(path: str) -> None:
    with pytest.raises(ValueError, match="cannot be used as a path"):
        Roots({"/sys": "/host/sys", "/sys/fs": "/fs"}).locate(path)


@pytest.mark.parametrize("path", ["etc/hosts", "", "/etc/../root", "//etc"])
def test_a_path_that_could_lead_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="cannot be used as a path"):
        Roots().locate(path)
    with pytest.raises(ValueError, match="cannot be used as a path"):
        Roots({"/sys": path})


# Files.


async def test_a_file_is_written_for_its_owner_alone_also_over_one_that_everybody_could_read(
    machine: LinuxMachine, tmp_path: Path
) -> None:
    path = tmp_path / "r.res"
    path.write_text("old and longer")
    path.chmod(0o644)
    with nothing_is_left():
        await machine.write_file(str(path), b"new")
        assert await machine.read_file(str(path)) == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_written_file_and_its_name_are_synced(
    machine: LinuxMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "to").mkdir()
    await machine.write_file(str(tmp_path / "a"), b"x")
    await machine.move_file(str(tmp_path / "a"), str(tmp_path / "b"))
    await machine.move_file(str(tmp_path / "b"), str(tmp_path / "to" / "c"))
    await machine.remove_file(str(tmp_path / "to" / "c"))
    here, there = str(tmp_path), str(tmp_path / "to")
    assert synced == [str(tmp_path / "a"), here, here, there, here, there]


async def test_files_are_moved_listed_and_removed_where_the_roots_say(tmp_path: Path) -> None:
    machine = LinuxMachine(roots=Roots({"/var/lib/quorate": str(tmp_path)}))
    await machine.write_file("/var/lib/quorate/b", b"x")
    await machine.write_file("/var/lib/quorate/c", b"y")
    await machine.move_file("/var/lib/quorate/c", "/var/lib/quorate/a")
    assert await machine.list_directory("/var/lib/quorate") == ("a", "b")
    assert (tmp_path / "a").read_bytes() == b"y"
    for _ in range(2):
        await machine.remove_file("/var/lib/quorate/a")
    assert await machine.list_directory("/var/lib/quorate") == ("b",)
    assert await machine.list_directory("/var/lib/quorate/none") == ()


async def test_only_regular_files_are_opened(machine: LinuxMachine, tmp_path: Path) -> None:
    """A device that is opened is held; a pipe would wait for somebody."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/null", str(pipe), str(tmp_path)):
        with pytest.raises(OSError, match="not a regular file"):
            await machine.read_file(path)
        with pytest.raises(OSError, match="not a regular file"):
            await machine.write_file(path, b"x")


async def test_files_of_proc_are_read_whole(machine: LinuxMachine) -> None:
    assert await machine.read_file("/proc/self/stat")
    with pytest.raises(FileNotFoundError):
        await machine.read_file("/proc/quorate")


async def test_a_file_operation_that_never_returns_stops_only_its_caller() -> None:
    aside, stuck = Aside(patience=0.1), threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.1 s"):
        await aside.call(stuck.wait)
    assert await aside.call(len, "abc") == 3
    stuck.set()


async def test_operations_that_hang_do_not_take_up_more_and_more_threads() -> None:
    aside, stuck = Aside(patience=0.1), threading.Event()
    before = threading.active_count()
    results = await asyncio.gather(*(aside.call(stuck.wait) for _ in range(40)), return_exceptions=True)
    assert all(isinstance(result, TimeoutError) for result in results)
    assert threading.active_count() - before <= 16
    stuck.set()
    await soon(lambda: threading.active_count() > before)
    assert await aside.call(len, "abc") == 3


async def test_a_file_that_hangs_is_not_touched_again_before_its_last_call_has_returned() -> None:
    aside, stuck, calls = Aside(patience=0.1), threading.Event(), list[str]()

    def hang(path: str) -> None:
        calls.append(path)
        stuck.wait()

    for _ in range(40):
        with pytest.raises(TimeoutError, match="/sys/x"):
            await aside.call(hang, "/sys/x")
    assert calls == ["/sys/x"]
    assert await aside.call(len, "/sys/y") == 6
    stuck.set()
    await soon(lambda: aside._hanging["/sys/x"])
    await aside.call(hang, "/sys/x")


async def test_a_sysfs_that_hangs_keeps_no_configuration_from_being_written(
    machine: LinuxMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, real = threading.Event(), files.read
    monkeypatch.setattr(files, "read", lambda path: stuck.wait() if path.startswith("/sys/") else real(path))
    machine._asides["sys"] = Aside(patience=0.1)
    reads = [machine.read_file(f"/sys/{number}") for number in range(40)]
    assert all(isinstance(each, TimeoutError) for each in await asyncio.gather(*reads, return_exceptions=True))
    async with asyncio.timeout(LONG):
        await machine.write_file(f"{tmp_path}/pvc-1.res", b"resource {}")
        assert await machine.read_file(f"{tmp_path}/pvc-1.res") == b"resource {}"
    stuck.set()


async def test_an_error_of_a_file_operation_is_its_own() -> None:
    def fail() -> None:
        raise TimeoutError("the disk said so")

    with pytest.raises(TimeoutError, match="the disk said so"):
        await Aside().call(fail)


def test_a_process_ends_though_a_file_operation_hangs() -> None:
    code = (
        "import asyncio, threading\nfrom quorate.agent.linux.aside import Aside\n"
        "async def main():\n"
        "    try: await Aside(patience=0.05).call(threading.Event().wait)\n"
        "    except TimeoutError: print('given up')\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG, check=True)
    assert done.stdout == "given up\n"


# Ports.


async def test_a_port_is_free_until_somebody_listens_on_it(machine: LinuxMachine) -> None:
    with nothing_is_left(), socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.listen()
        assert not await machine.port_is_free("127.0.0.1", port)
        probe.close()
        assert await machine.port_is_free("127.0.0.1", port)


async def test_no_port_of_somebody_elses_address_is_free(machine: LinuxMachine) -> None:
    assert not await machine.port_is_free("192.0.2.1", 7000)


async def test_a_kernel_without_ipv6_has_no_free_port_there(
    machine: LinuxMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(family: socket.AddressFamily) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refuse)
    assert not await machine.port_is_free("fd00::1", 7000)
