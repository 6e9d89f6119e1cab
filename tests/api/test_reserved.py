"""What the rules of the API and an agent say of a name is the same, and both engines refuse what has to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorate.api.kind import Kind
from quorate.api.reserved import why_no_group, why_no_logical_volume, why_no_resource
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from tests.api.rules import messages
from tests.conformance.targets import facade, real
from tests.conformance.wire import Wire
from tests.support.apiserver import ApiServer

#: Names that an object can have, and whether DRBD may have them.
RESOURCES = {
    "all": False,
    "global": False,
    "minor-0": False,
    "minor-1048575": False,
    "all-1": True,
    "alle": True,
    "minor": True,
    "minor-x": True,
    "minor-1-data": True,
    "my-minor-1": True,
    "common": True,
    "7": True,
    "pvc-0b5e": True,
}
LOGICAL_VOLUMES = {
    ".": False,
    "..": False,
    "snapshot": False,
    "snapshot-of-x": False,
    "pvmove0": False,
    "x" * 123: False,
    **{f"a{part}_0": False for part in ("_tdata", "_tmeta", "_mlog", "_mimage", "_rimage", "_rmeta", "_cdata")},
    **{f"a{part}": False for part in ("_cmeta", "_corig", "_cpool", "_cvol", "_wcorig", "_imeta", "_iorig")},
    **{f"a{part}": False for part in ("_pmspare", "_vdata", "_vorigin")},
    "a-snapshot": True,
    "tdata": True,
    "x" * 122: True,
    "replica-all-0": True,
    ".hidden": True,
}
GROUPS = {".": False, "..": False, "x" * 91: False, "x" * 90: True, "snapshot": True, "vg0_tdata": True, "all": True}


def volume(name: str) -> dict[str, Any]:
    return _object(ReplicatedVolume.KIND, name, size="1Gi", replicatedStorageClassName="c")


def replica(volume: str) -> dict[str, Any]:
    return _object(ReplicatedVolumeReplica.KIND, f"{volume}-0", replicatedVolumeName=volume, type="Access")


def logical_volume(name: str) -> dict[str, Any]:
    spec = {"actualLVNameOnTheNode": name, "type": "Thick", "size": "1Gi", "lvmVolumeGroupName": "g"}
    return _object(LVMLogicalVolume.KIND, "a", **spec)


def in_pool(name: str) -> dict[str, Any]:
    spec = {"actualLVNameOnTheNode": "lv", "type": "Thin", "size": "1Gi", "lvmVolumeGroupName": "g"}
    return _object(LVMLogicalVolume.KIND, "a", **spec, thin={"poolName": name})


def with_pool(name: str) -> dict[str, Any]:
    return _group("vg", thinPools=[{"name": name, "size": "1Gi"}])


def group(name: str) -> dict[str, Any]:
    return _group(name)


def _group(name: str, **spec: Any) -> dict[str, Any]:
    return _object(LVMVolumeGroup.KIND, "a", actualVGNameOnTheNode=name, local={"nodeName": "n"}, **spec)


def _object(kind: Kind, name: str, **spec: Any) -> dict[str, Any]:
    version = f"{kind.group}/{kind.version}"
    return {"apiVersion": version, "kind": kind.name, "metadata": {"name": name}, "spec": spec}


CASES = [
    *((ReplicatedVolume.KIND, volume(name), good) for name, good in RESOURCES.items()),
    *((ReplicatedVolumeReplica.KIND, replica(name), good) for name, good in RESOURCES.items()),
    *((LVMLogicalVolume.KIND, logical_volume(name), good) for name, good in LOGICAL_VOLUMES.items()),
    # Words are shorter than that by their own rule.
    *((LVMLogicalVolume.KIND, in_pool(name), good) for name, good in LOGICAL_VOLUMES.items() if len(name) < 64),
    *((LVMVolumeGroup.KIND, with_pool(name), good) for name, good in LOGICAL_VOLUMES.items() if len(name) < 64),
    *((LVMVolumeGroup.KIND, group(name), good) for name, good in GROUPS.items()),
]


def test_rules_and_agents_agree_on_every_name() -> None:
    for name, good in RESOURCES.items():
        assert (why_no_resource(name) == "") is good, name
    for name, good in LOGICAL_VOLUMES.items():
        assert (why_no_logical_volume(name, "g") == "") is good, name
    # Of a long group an agent says only what LVM would: there may be one already.
    for name, good in GROUPS.items():
        assert (why_no_group(name) == "") is (good or len(name) > 2), name
    for kind, body, good in CASES:
        assert (messages(kind, body) == []) is good, body


@pytest.mark.parametrize("name", ["-x", "--force", "a/0", "a:b", "", "a b", "../../etc/x", "ä", "a\n", "/dev/drbd1"])
def test_an_agent_refuses_also_what_no_object_can_be_called(name: str) -> None:
    assert why_no_resource(name)
    assert why_no_group(name)
    assert why_no_logical_volume(name, "g")
    assert why_no_logical_volume("a", name)


def test_names_that_the_device_mapper_has_no_room_for_are_refused() -> None:
    assert why_no_logical_volume("x" * 60, "y" * 66) == ""
    assert "127 characters for both, 128 needed" in why_no_logical_volume("x" * 60, "y" * 67)
    assert "128 needed" in why_no_logical_volume("x-" * 20 + "x", "y" * 66)  # hyphens count twice


def test_an_object_of_that_name_that_is_there_can_be_changed_and_so_deleted() -> None:
    for body in (volume("all"), replica("all")):
        kind = ReplicatedVolume.KIND if body["kind"] == "ReplicatedVolume" else ReplicatedVolumeReplica.KIND
        assert messages(kind, body) != []
        assert messages(kind, {**body, "status": {"message": "m"}}, body) == []


@pytest.mark.apiserver
async def test_both_engines_say_so(apiserver: ApiServer, tmp_path: Path) -> None:
    kinds = tuple({kind.name: kind for kind, _, _ in CASES}.values())
    apiserver.install_crds(kinds)
    wrong: list[str] = []
    async with real(apiserver) as oracle, facade(tmp_path, kinds) as ours:
        assert oracle.wire is not None
        assert ours.wire is not None
        for kind, body, good in CASES:
            answers = [await _created(wire, kind, body) for wire in (oracle.wire, ours.wire)]
            refused = [(answer[0], answer[1]) for answer in answers]
            if refused[0] != refused[1] or (refused[0][0] == 201) is not good:
                wrong.append(f"{body}: {answers}")
            elif not good and "choose another" not in refused[0][1]:
                wrong.append(f"{body}: {answers[0]}")
    assert wrong == []


async def _created(wire: Wire, kind: Kind, body: dict[str, Any]) -> tuple[int, str]:
    path = f"/apis/{kind.group}/{kind.version}/{kind.plural}"
    answer = await wire.request("POST", path, body, query={"dryRun": "All"})
    return answer.code, answer.body.get("message", "")
