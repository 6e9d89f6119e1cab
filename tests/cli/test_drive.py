"""``quorate drive`` as a command: what it shows, what it says to the cluster, and how it follows a replacement."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from quorate.api.annotation_keys import DRIVE_HEALTH, DRIVE_REPLACEMENT, MARKER
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec
from quorate.api.meta import Bytes, NodeName, ObjectMeta
from quorate.engine.store import Store
from tests.cli.test_controller import PATIENCE, api


async def started(*words: str) -> asyncio.subprocess.Process:
    """As from a terminal: whoever runs the tests in the background leaves them, and us, deaf to Ctrl-C."""
    deaf = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "quorate", "drive", *words, stdout=PIPE, stderr=PIPE
        )
    finally:
        signal.signal(signal.SIGINT, deaf)


async def drive(*words: str) -> tuple[int | None, str, str]:
    process = await started(*words)
    async with asyncio.timeout(PATIENCE):
        out, complaints = await process.communicate()
    assert "Traceback" not in complaints.decode()
    return process.returncode, out.decode(), complaints.decode()


async def made(store: Store, name: str, slot: str, *, system: bool = False, **status: Any) -> None:
    spec = DriveSpec(
        is_system=system,
        uuid=name,
        serial_number=f"SN-{name}",
        node_id=NodeName("node-1"),
        slot=slot,
        path=f"/dev/sd{name}",
        size=Bytes(960 * 10**9),
    )
    await store.create(Drive(metadata=ObjectMeta(name=name), spec=spec))
    if status:
        await store.patch_status(Drive, name, patch=status)


def released(message: str, status: str = "True", reason: str = "Released") -> list[dict[str, str]]:
    return [
        {
            "type": "Released",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": "2026-11-16T12:00:00Z",
        }
    ]


async def test_drives_are_listed_and_shown(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", health="GOOD", operationalStatus="OPERATIVE", presence="ONLINE")
        await made(
            store, "b", "2", health="BAD", operationalStatus="RELEASING", progress=40, message="3 of 7 have left"
        )
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        code, out, _ = await drive("list", *where)
        assert code == 0
        assert "SN-a" in out
        assert "3 of 7 have left" in out
        assert "40 %" in out
        code, out, _ = await drive("show", "node-1/2", *where)
        assert code == 0
        assert "→ Move data away" in out
        assert "960 GB" in out
        code, out, _ = await drive("show", "SN-a", *where, "-o", "json")
        assert json.loads(out)["drive"]["spec"]["SerialNumber"] == "SN-a"
        code, _, complaints = await drive("show", "node-9/9", *where)
        assert code == 1
        assert "there is no drive node-9/9" in complaints


async def test_a_replacement_is_asked_for_and_followed(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", health="GOOD", operationalStatus="OPERATIVE")
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))

        async def controllers() -> None:
            """What they would do, a moment after they are told."""
            while DRIVE_HEALTH[0] not in (await store.get(Drive, "a")).metadata.annotations:  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # a server cannot be waited for otherwise
            moving = released("v: 40 % copied", "False", "Releasing")
            await store.patch_status(
                Drive, "a", patch={"operationalStatus": "RELEASING", "progress": 40, "conditions": moving}
            )
            await asyncio.sleep(2)
            done = {"operationalStatus": "RELEASED", "progress": 100, "conditions": released("empty")}
            await store.patch_status(Drive, "a", patch=done)

        playing = asyncio.create_task(controllers())
        code, out, _ = await drive("replace", "node-1/1", *where)
        await playing
        assert code == 0
        assert "→ Move data away: v: 40 % copied" in out
        assert "quorate drive ready node-1/1" in out
        said = (await store.get(Drive, "a")).metadata.annotations
        assert said == {DRIVE_HEALTH[0]: "BAD"}


async def test_a_drive_with_somebody_elses_data_on_it_is_not_called_empty(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", health="BAD", operationalStatus="RELEASED", foreignData="ext4 on /dev/sdb1")
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        code, out, _ = await drive("show", "node-1/1", *where)
        assert code == 0
        assert "also on it: ext4 on /dev/sdb1" in out
        code, out, _ = await drive("replace", "node-1/1", *where)
        assert code == 0
        assert "empty" not in out
        assert "nothing of Quorate's, but ext4 on /dev/sdb1" in out


async def test_a_failure_is_an_error_with_the_reason(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", health="BAD", operationalStatus="FAILED", message="no copy of v is left")
        code, _, complaints = await drive("ready", "SN-a", "--kubeconfig", str(tmp_path / "kubeconfig"))
        assert code == 1
        assert "no copy of v is left" in complaints


async def test_a_drive_is_taken_back_with_one_word(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", operationalStatus="RELEASED")
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        code, _, _ = await drive("restart", "a", "--good", "--no-wait", *where)
        assert code == 0
        said = (await store.get(Drive, "a")).metadata.annotations
        assert said == {DRIVE_REPLACEMENT[0]: "restart", DRIVE_HEALTH[0]: "GOOD"}


async def test_a_new_replacement_does_not_take_the_word_that_was_given_for_an_earlier_one(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", operationalStatus="OPERATIVE")
        before = dict.fromkeys(DRIVE_REPLACEMENT, "ready")
        await store.patch(Drive, "a", patch={"metadata": {"annotations": before}})
        code, _, _ = await drive("replace", "a", "--no-wait", "--kubeconfig", str(tmp_path / "kubeconfig"))
        assert code == 0
        assert (await store.get(Drive, "a")).metadata.annotations == {DRIVE_HEALTH[0]: "BAD"}


async def test_a_replacement_that_takes_longer_than_the_time_given_is_no_success(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", health="BAD", operationalStatus="RELEASING", message="v: 40 % copied")
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        code, out, complaints = await drive("replace", "node-1/1", "--timeout", "1", *where)
        assert code == 10
        assert "RELEASING after 1 s: v: 40 % copied" in complaints
        assert "quorate drive show node-1/1" in complaints
        assert "quorate drive restart node-1/1 --good" in complaints
        code, out, complaints = await drive("replace", "node-1/1", "--timeout", "1", "-o", "json", *where)
        assert code == 10
        told = json.loads(out)
        assert told["drive"]["status"]["operationalStatus"] == "RELEASING"
        assert told["steps"][0]["name"] == "Health"


@pytest.mark.parametrize("words", [("replace", "--ready"), ("ready",), ("restart", "--good")])
async def test_who_stops_following_is_told_that_it_goes_on(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", health="BAD", operationalStatus="REMOVING", message="wipe signatures")
        command, *options = words
        process = await started(command, "a", *options, "--kubeconfig", str(tmp_path / "kubeconfig"))
        async with asyncio.timeout(PATIENCE):
            assert process.stdout is not None
            await process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, complaints = await process.communicate()
        assert process.returncode == 130
        told = complaints.decode()
        assert "Traceback" not in told
        assert "Aborted" not in told
        assert ("goes on without this command" in told) == (command != "restart")
        assert ("quorate drive restart a --good" in told) == (command != "restart")
        assert "quorate drive show a" in told


#: What is asked of which drive, and why it would never come.
IN_VAIN: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, str], str]] = {
    "ready of a drive in service": (
        ("ready",),
        {"health": "GOOD", "operationalStatus": "OPERATIVE", "smart": {"health": "GOOD"}},
        {},
        "quorate drive replace a --ready",
    ),
    "a drive that the node runs from": (
        ("replace", "--ready"),
        {"system": True, "health": "GOOD", "operationalStatus": "OPERATIVE"},
        {},
        "storage.deckhouse.io/evacuate=true",
    ),
    "ready of one that the node runs from": (
        ("ready",),
        {"system": True, "health": "BAD", "operationalStatus": "OPERATIVE"},
        {"health": "BAD"},
        "never emptied by itself",
    ),
    "one that the broker calls active": (
        ("replace",),
        {"health": "GOOD", "operationalStatus": "OPERATIVE"},
        {MARKER: "MARKER_DISK_ACTIVE"},
        "Reset the marker first",
    ),
    "restart of a removed drive": (
        ("restart", "--good"),
        {"health": "GOOD", "operationalStatus": "REMOVED"},
        {},
        "kubectl delete drive a",
    ),
    "restart of one that says itself that it fails": (
        ("restart",),
        {"health": "BAD", "operationalStatus": "RELEASED", "smart": {"health": "BAD", "message": "5 bad sectors"}},
        {},
        "quorate drive restart a --good",
    ),
    "replace, without ready, of one that is being removed": (
        ("replace",),
        {"health": "BAD", "operationalStatus": "REMOVING", "message": "wipe signatures"},
        {"replacement": "ready"},
        "quorate drive ready a",
    ),
}


@pytest.mark.parametrize(("words", "status", "said", "instead"), IN_VAIN.values(), ids=IN_VAIN.keys())
async def test_what_would_be_waited_for_for_ever_is_refused_at_once_with_what_to_do(
    tmp_path: Path, words: tuple[str, ...], status: dict[str, Any], said: dict[str, str], instead: str
) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", **status)
        await store.patch(Drive, "a", patch={"metadata": {"annotations": said}})
        command, *options = words
        code, _, complaints = await drive(command, "a", *options, "--kubeconfig", str(tmp_path / "kubeconfig"))
        assert code == 1
        assert instead in complaints
        assert (await store.get(Drive, "a")).metadata.annotations == said, "nothing was said"


async def test_restart_takes_back_that_a_drive_is_bad_in_either_spelling(tmp_path: Path) -> None:
    async with api(tmp_path) as store:
        await made(store, "a", "1", operationalStatus="RELEASED", smart={"health": "GOOD"})
        await store.patch(Drive, "a", patch={"metadata": {"annotations": dict.fromkeys(DRIVE_HEALTH, "BAD")}})
        where = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        code, out, _ = await drive("restart", "a", "--no-wait", "-o", "json", *where)
        assert code == 0
        assert json.loads(out)["drive"]["metadata"]["annotations"] == {DRIVE_REPLACEMENT[0]: "restart"}
        assert (await store.get(Drive, "a")).metadata.annotations == {DRIVE_REPLACEMENT[0]: "restart"}
