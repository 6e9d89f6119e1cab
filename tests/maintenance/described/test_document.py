"""What a description may say, and what is said about a wrong one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorate.api.duration import Duration
from quorate.api.maintenance.action import HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.errors import ConfigError
from quorate.maintenance.described import describe, load, parse, settings, state
from quorate.maintenance.nouns import DriveId, DriveInfo, NodeInfo, Ring, Rings, Species, VDiskId, VDiskInfo

TEXT = """
nodes:
  - {id: 1, host: h1, tenant: null, dc: a, room: r, rack: k1, state: UP, services: [storage], startTime: 0}
  - {id: 2, host: h2, tenant: red, services: [dynnode], state: DOWN, startTime: 1800000000000000}
  - {id: 3, host: h3, interconnectPort: 19001}
drives:
  - {node: 1, id: 1, state: UP, path: /dev/sdb}
  - {node: 2, id: 1, state: DOWN, path: /dev/sdb}
  - {node: 3, id: 0}
groups:
  - id: 0
    erasure: mirror-3
    generation: 4
    vdisks:
      - {realm: 0, domain: 0, vdisk: 0, node: 1, drive: 1, state: UP}
      - {realm: 0, domain: 1, vdisk: 0, node: 2, drive: 1, state: RESTART}
      - {realm: 0, domain: 2, vdisk: 0, node: 3, drive: 0}
rings: {nToSelect: 1, rings: [{nodes: [1]}, {nodes: [2, 3], disabled: true}]}
config:
  clusterLimits: {disabledNodesLimit: 2, disabledNodesRatioLimit: 0}
  defaultRetryTime: 60s
"""


def test_a_description_says_everything_of_a_cluster() -> None:
    found = parse(TEXT)
    assert found.nodes[0] == NodeInfo(id=1, host="h1", data_center="a", room="r", rack="k1")
    assert found.nodes[1] == NodeInfo(
        id=2,
        host="h2",
        tenant="red",
        services=("dynnode",),
        state=HostState.DOWN,
        surely_down=True,
        start_time=1_800_000_000_000_000,
    )
    assert found.nodes[2].interconnect_port == 19001
    assert found.drives[1] == DriveInfo(id=DriveId(2, 1), state=HostState.DOWN, path="/dev/sdb")
    group = found.groups[0]
    assert (group.species, group.generation) == (Species.MIRROR_3, 4)
    assert group.vdisks[1] == VDiskInfo(
        id=VDiskId(0, 4, 0, 1, 0), node=2, drives=(DriveId(2, 1),), state=HostState.RESTART
    )
    assert found.rings == Rings(1, (Ring((1,)), Ring((2, 3), disabled=True)))
    assert found.settings.cluster_limits == Limits(disabled_nodes_limit=2, disabled_nodes_ratio_limit=0)
    assert found.settings.default_retry_time == Duration("60s")
    assert found.settings.default_permission_duration == Duration("300s")


def test_json_is_read_as_yaml_is() -> None:
    assert parse(json.dumps(yaml.safe_load(TEXT))) == parse(TEXT)


def test_a_mapping_in_braces_may_be_yaml() -> None:
    assert parse("{nodes: [{id: 1, host: h1}]}").nodes == (NodeInfo(id=1, host="h1"),)


def test_nodes_are_all_that_must_be_there() -> None:
    found = describe({"nodes": [{"id": 1, "host": "h1"}]})
    assert (found.drives, found.groups, found.rings) == ((), (), None)
    assert found.settings == BrokerConfigSpec()


def test_a_file_is_named_in_its_error(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    with pytest.raises(ConfigError, match=r"cluster\.yaml: cannot be read"):
        load(file)
    file.write_text("nodes: []\ncolour: red\n")
    with pytest.raises(ConfigError, match=r"cluster\.yaml: colour: 'red' is not expected"):
        load(file)
    file.write_text(TEXT)
    assert load(file) == parse(TEXT)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(file)


def changed(path: list[Any], value: Any) -> Any:
    """The description with one thing another."""
    tree = copy.deepcopy(yaml.safe_load(TEXT))
    place = tree
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return tree


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (["nodes", 0, "id"], 0, "nodes[0].id: 0 is not a whole number from 1 to 4294967295"),
        (["nodes", 0, "id"], "one", "nodes[0].id: 'one' is not a whole number"),
        (["nodes", 0, "id"], True, "nodes[0].id: True is not a whole number"),
        (["nodes", 0, "id"], 2, "nodes[1]: 2 is at nodes[0] already"),
        (["nodes", 0, "host"], "", "nodes[0].host: '' is not a line of text of 1 to 253 characters"),
        (["nodes", 0, "host"], "a\nb", "nodes[0].host: 'a\\nb' is not a line of text"),
        (["nodes", 0, "host"], None, "nodes[0].host: is missing"),
        (["nodes", 0, "state"], "SIDEWAYS", "nodes[0].state: 'SIDEWAYS' is not one of UNKNOWN, UP, RESTART, DOWN"),
        (["nodes", 0, "state"], ["UP"], "nodes[0].state: ['UP'] is not one of"),
        (["nodes", 0, "services"], ["mail"], "nodes[0].services[0]: 'mail' is not one of storage, dynnode"),
        (["nodes", 0, "services"], [["storage"]], "nodes[0].services[0]: ['storage'] is not one of"),
        (["nodes", 0, "services"], "storage", "nodes[0].services: 'storage' is not a list"),
        (["nodes", 0, "startTime"], -1, "nodes[0].startTime: -1 is not a whole number from 0"),
        (["nodes", 0, "colour"], "red", "nodes[0].colour: 'red' is not expected: allowed here are id, host, tenant"),
        (["nodes", 0], 7, "nodes[0]: 7 is not a mapping"),
        (["nodes"], {}, "nodes: {} is not a list"),
        (["nodes"], None, "nodes: is missing"),
        (["drives", 0, "node"], 9, "drives[0].node: 9 is not the id of a node in nodes"),
        (["drives", 0, "node"], 2, "drives[1]: pdisk-2-1 is at drives[0] already"),
        (
            ["drives", 0],
            {"node": 2, "id": 7, "path": "/dev/sdb"},
            "drives[1]: /dev/sdb of node 2 is at drives[0] already",
        ),
        (["drives", 0, "path"], 7, "drives[0].path: 7 is not a line of text of 1 to 512 characters"),
        (["groups", 0, "erasure"], "raid6", "groups[0].erasure: 'raid6' is not one of none, mirror-3, mirror-3of4"),
        (["groups", 0, "vdisks", 0, "drive"], 2, "groups[0].vdisks[0].drive: 2 is not a drive of node 1 in drives"),
        (["groups", 0, "vdisks", 0, "node"], 9, "groups[0].vdisks[0].drive: 1 is not a drive of node 9 in drives"),
        (["groups", 0, "vdisks", 0, "domain"], 1, "groups[0].vdisks[1]: vdisk-0-4-0-1-0 is at groups[0].vdisks[0]"),
        (
            ["groups", 0, "vdisks", 0, "realm"],
            256,
            "groups[0].vdisks[0].realm: 256 is not a whole number from 0 to 255",
        ),
        (
            ["groups", 0, "vdisks", 0, "realm"],
            1,
            "groups[0].vdisks: the layout is wrong: mirror-3 has one realm, not 2",
        ),
        (["groups", 0, "vdisks"], [], "groups[0].vdisks: the layout is wrong: mirror-3 has parts"),
        (["groups", 0, "erasure"], "block-4-2", "the layout is wrong: block-4-2 needs 6 domains at least, not 3"),
        (["groups", 0, "erasure"], "mirror-3-dc", "the layout is wrong: mirror-3-dc needs 3 realms of 3 domains"),
        (["rings", "nToSelect"], 3, "rings.nToSelect: 3 is not a whole number from 1 to 2"),
        (["rings", "rings", 0, "nodes"], [], "rings.rings[0].nodes: [] is not a list of at least one node"),
        (["rings", "rings", 0, "nodes"], [9], "rings.rings[0].nodes[0]: 9 is not the id of a node in nodes"),
        (["rings", "rings", 0, "nodes"], [2], "rings.rings[1].nodes[0]: 2 is at rings.rings[0].nodes[0] already"),
        (["rings", "rings", 1, "disabled"], "yes", "rings.rings[1].disabled: 'yes' is not true or false"),
        (
            ["config", "defaultRetryTime"],
            "soon",
            "config.defaultRetryTime: 'soon' is refused: 'soon' is not a duration",
        ),
        (["config", "defaultRetryTime"], 60, "config.defaultRetryTime: 60 is refused"),
        (["config", "defaultRetryTime"], "0s", "config.defaultRetryTime must be more than zero"),
        (["config", "defaultPermissionDuration"], "0h", "config.defaultPermissionDuration must be more than zero"),
        (
            ["config", "monitorConfig"],
            {"updateInterval": "0us"},
            "config.monitorConfig.updateInterval must be more than zero",
        ),
        (["config", "limits"], 1, "config.limits: 1 is not expected: allowed here are defaultRetryTime"),
        (
            ["config", "clusterLimits", "disabledNodesRatioLimit"],
            101,
            "config.clusterLimits.disabledNodesRatioLimit: 101 is refused: Expected int <= 100",
        ),
        (["config", "clusterLimits", "some"], 1, "config.clusterLimits.some: 1 is not expected"),
        (["config", "monitorConfig"], {"roomRatio": -1}, "config.monitorConfig.roomRatio: -1 is refused"),
        (["colour"], "red", "colour: 'red' is not expected: allowed here are nodes, drives, groups, rings, config"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_what_is_allowed(path: list[Any], value: Any, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        describe(changed(path, value))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nodes: [\n", "neither YAML nor JSON"),
        ("nodes:\n  - {id: 1, host: a, host: b}\n", "line 2: the key 'host' is given twice"),
        ('{"nodes": [], "nodes": []}', "the key 'nodes' is given twice"),
        ("7", "the document: 7 is not a mapping"),
        ("", "the document: None is not a mapping"),
        ("nodes: !!python/object:os.system []", "neither YAML nor JSON"),
        ("a: 2026-99-99", "neither YAML nor JSON"),
    ],
)
def test_text_that_cannot_be_read_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(text)
    assert told in str(error.value)


@pytest.mark.parametrize("species", list(Species))
def test_every_species_has_a_layout_that_is_accepted_and_one_part_less_that_is_not(species: Species) -> None:
    fewest = {"none": 1, "mirror-3": 3, "mirror-3of4": 4, "mirror-3-dc": 9}
    number = fewest.get(species.word) or sum(int(digit) for digit in species.word if digit.isdigit())
    realm = (lambda domain: domain // 3) if species is Species.MIRROR_3_DC else (lambda _: 0)
    parts = [
        {"realm": realm(domain), "domain": domain, "vdisk": 0, "node": domain + 1, "drive": 1}
        for domain in range(number)
    ]
    tree = {
        "nodes": [{"id": domain + 1, "host": f"h{domain}"} for domain in range(number)],
        "drives": [{"node": domain + 1, "id": 1} for domain in range(number)],
        "groups": [{"id": 0, "erasure": species.word, "vdisks": parts}],
    }
    assert len(describe(tree).groups[0].vdisks) == number
    with pytest.raises(ConfigError, match="layout is wrong"):
        describe({**tree, "groups": [{"id": 0, "erasure": species.word, "vdisks": parts[:-1]}]})


def test_settings_and_states_are_read_as_strictly_on_their_own() -> None:
    assert settings({"defaultRetryTime": "1m"}) == BrokerConfigSpec(default_retry_time=Duration("1m"))
    assert state("DOWN") is HostState.DOWN
    with pytest.raises(ConfigError, match=r"config\.colour"):
        settings({"colour": 1})
    with pytest.raises(ConfigError, match="config: 7 is not a mapping"):
        settings(7)
    with pytest.raises(ConfigError, match="state: None is not one of"):
        state(None)
