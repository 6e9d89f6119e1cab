"""``kill -9`` of ``quorate up`` under load: the hardware is never older than what agents have reported of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.cli.test_up import PATIENCE, call

STORAGE = "/apis/storage.deckhouse.io/v1alpha1"
VOLUMES = 40
ROUNDS = 4
#: Real seconds in which everything is well again on a busy machine.
CONVERGENCE = 240.0
LEVELS = ("None", "Consistency", "Availability", "ConsistencyAndAvailability")


@contextmanager
def up(data: Path) -> Iterator[dict[str, Any]]:
    """The process, killed at the end of the block whatever it does, and its kubeconfig."""
    words = [sys.executable, "-m", "quorate", "up", "--port", "0", "--nodes", "6", "--drives", "2", "--data", str(data)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            assert "ready" in process.stdout.readline()
            yield yaml.safe_load((data / "kubeconfig").read_text())
        finally:
            process.kill()
            process.wait(PATIENCE)


def provide(server: dict[str, Any]) -> None:
    """A pool of every disk, and a class for each level."""
    groups = [item["metadata"]["name"] for item in call(server, f"{STORAGE}/lvmvolumegroups")["items"]]
    pool = {"type": "LVM", "lvmVolumeGroups": [{"name": name} for name in groups]}
    create(server, "ReplicatedStoragePool", "pool", pool)
    for level in LEVELS:
        spec = {"storagePool": "pool", "replication": level, "topology": "Ignored"}
        create(server, "ReplicatedStorageClass", level.lower(), spec)


def create(server: dict[str, Any], kind: str, name: str, spec: dict[str, Any]) -> None:
    body = {"apiVersion": STORAGE.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name}, "spec": spec}
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    call(server, f"{STORAGE}/{plural}", body)


def unready(server: dict[str, Any]) -> dict[str, str]:
    """The volumes that are not as promised, and what they say."""
    found = {}
    for volume in call(server, f"{STORAGE}/replicatedvolumes")["items"]:
        status = volume.get("status", {})
        told = {each["type"]: each["status"] for each in status.get("conditions", ())}
        if told.get("Ready") != "True":
            found[volume["metadata"]["name"]] = status.get("message", "")
    return found


def test_volumes_that_were_being_formed_are_formed_whenever_it_is_killed(tmp_path: Path) -> None:
    chance = Random(12)
    made = 0
    for _ in range(ROUNDS):
        with up(tmp_path) as server:
            if not made:
                provide(server)
            for number in range(made, made + VOLUMES // ROUNDS):
                level = LEVELS[number % len(LEVELS)].lower()
                create(server, "ReplicatedVolume", f"v{number}", {"size": "64Mi", "replicatedStorageClassName": level})
            made += VOLUMES // ROUNDS
            time.sleep(chance.uniform(0.5, 6.0))
    with up(tmp_path) as server:
        end = time.monotonic() + CONVERGENCE
        while left := unready(server):
            assert time.monotonic() < end, f"{len(left)} of {made} are not Ready: {left}"
            time.sleep(1)


def test_a_fault_that_was_answered_has_happened(tmp_path: Path) -> None:
    with up(tmp_path) as server:
        call(server, "/lab/v1/faults", {"fault": "node-down", "node": "node-2"})
    with up(tmp_path) as server:
        powered = {node["name"]: node["powered"] for node in call(server, "/lab/v1/truth")["nodes"]}
        assert [name for name, on in powered.items() if not on] == ["node-2"]
