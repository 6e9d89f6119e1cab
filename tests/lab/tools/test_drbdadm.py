"""drbdadm, drbdsetup and drbdmeta on simulated nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.lab.drives import Drive
from quorate.lab.kernel import World
from quorate.lab.tools.conf.configuration import Configuration
from quorate.lab.tools.drbd.adjust import plan
from tests.lab.tools.conftest import Node
from tests.support.drbd_utils import drbdadm as real_drbdadm

RESOURCE = """resource "r" {{
  options {{ auto-promote no; quorum {quorum}; on-no-quorum suspend-io; }}
  net {{ protocol C; cram-hmac-alg sha256; shared-secret "s3cret"; verify-alg crc32c; ping-int {ping}; }}
  disk {{ c-plan-ahead 0; resync-rate 4M; on-io-error detach; }}
{hosts}{connections}}}
"""
HOST = """  on n{number} {{
    node-id {id}; address ipv4 10.77.0.{number}:7000;
    volume 0 {{ device minor 1000; disk {disk}; {meta} }}
  }}
"""
CONNECTION = "  connection {{ host n{one}; host n{two}; {net} }}\n"


def resource(
    *diskful: int, diskless: tuple[int, ...] = (), quorum: str = "majority", ping: int = 3, net: str = ""
) -> str:
    members = [*diskful, *diskless]
    hosts = "".join(
        HOST.format(
            number=number,
            id=number - 1,
            disk="none" if number in diskless else "/dev/vg0/r",
            meta="" if number in diskless else "meta-disk internal;",
        )
        for number in members
    )
    connections = "".join(
        CONNECTION.format(one=one, two=two, net=net if two in diskless else "")
        for index, one in enumerate(members)
        for two in members[index + 1 :]
        if not (one in diskless and two in diskless)
    )
    return RESOURCE.format(quorum=quorum, ping=ping, hosts=hosts, connections=connections)


@pytest.fixture
def nodes(world: World) -> list[Node]:
    made = [Node(world, f"n{number}", f"10.77.0.{number}") for number in (1, 2, 3)]
    for node in made:
        node.host.insert_drive(Drive(f"S-{node.host.name}", 1 << 30))
        node.run("vgcreate vg0 /dev/sda; lvcreate -y -n r -L 32M vg0")
    return made


def write(nodes: list[Node], text: str) -> None:
    for node in nodes:
        node.host.files["/etc/drbd.d/r.res"] = text.encode()


def bring_up(nodes: list[Node], text: str) -> None:
    write(nodes, text)
    for node in nodes:
        node.run("drbdadm create-md --max-peers=7 --force r; drbdadm up r")
    nodes[0].world.advance(nodes[0].world.now + 5)
    nodes[0].run("drbdadm new-current-uuid --clear-bitmap r/0")
    nodes[0].world.advance(nodes[0].world.now + 2)


def status(node: Node) -> dict[str, Any]:
    (found,) = json.loads(node.run("drbdsetup status r --json").stdout)
    result: dict[str, Any] = found
    return result


@pytest.mark.parametrize("node", ["n1", "n2", "n3"])
@pytest.mark.parametrize(
    "text",
    [
        resource(1),
        resource(1, 2),
        resource(1, 2, 3),
        resource(1, 2, diskless=(3,)),
        resource(1, 2, diskless=(3,), net="net { allow-remote-read no; ping-int 5; }"),
        resource(1, 2, 3, quorum="32"),
    ],
)
def test_up_runs_the_very_commands_that_the_real_drbdadm_would(
    tmp_path: Path, world: World, node: str, text: str
) -> None:
    path = tmp_path / "r.res"
    path.write_text(text)
    part = Configuration.of({"/etc/drbd.conf": text.encode()}).part("r", node)
    if part is None:
        return
    kernel = world.add_node(node, ["10.77.0.9"])
    ours = [command for stage in plan(part, kernel) for command in stage]
    real = real_drbdadm().would_run("up", path, node, "r")
    assert _without_connects(ours) == _without_connects(real)


def _without_connects(commands: list[list[str]]) -> list[list[str]]:
    """Whom to connect is asked of the kernel, and nothing was really done to it."""
    return [command for command in commands if command[1] != "connect"]


def test_dump_prints_a_resource_as_the_real_drbdadm_does(tmp_path: Path, nodes: list[Node]) -> None:
    text = resource(1, 2, diskless=(3,), net="net { allow-remote-read no; }")
    path = tmp_path / "r.res"
    path.write_text(text)
    nodes[0].host.files[str(path)] = text.encode()
    ours = nodes[0].run(f"drbdadm -c {path} dump r").stdout
    assert ours == real_drbdadm()._run("-c", str(path), "dump", "r", node="n1").stdout


def test_three_members_form_and_serve(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    nodes[0].run("drbdadm primary r")
    nodes[0].run("dd if=/dev/urandom of=/dev/drbd1000 bs=1M count=4")
    found = status(nodes[0])
    assert found["role"] == "Primary"
    assert [peer["connection-state"] for peer in found["connections"]] == ["Connected", "Connected"]
    assert nodes[0].run("drbdadm role r").stdout == "Primary\n"
    assert nodes[1].run("drbdadm dstate r").stdout == "UpToDate/UpToDate/UpToDate\n"
    assert nodes[1].run("drbdadm cstate r:n1").stdout == "Connected\n"


def test_adjust_does_nothing_when_nothing_changed(nodes: list[Node]) -> None:
    text = resource(1, 2, diskless=(3,), net="net { allow-remote-read no; }")
    bring_up(nodes, text)
    for node in nodes:
        part = Configuration.of(node.host.files).part("r", node.host.name)
        assert part is not None
        assert [command for stage in plan(part, node.host.kernel) for command in stage] == []


def test_adjust_changes_only_what_differs(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    write(nodes, resource(1, 2, 3, quorum="2", ping=7))
    part = Configuration.of(nodes[0].host.files).part("r", "n1")
    assert part is not None
    kinds = [command[1] for stage in plan(part, nodes[0].host.kernel) for command in stage]
    assert kinds == ["resource-options", "net-options", "net-options"]
    nodes[0].run("drbdadm adjust r")
    shown = json.loads(nodes[0].run("drbdsetup show --json r").stdout)[0]
    assert shown["options"]["quorum"] == "2"
    assert {connection["net"]["ping-int"] for connection in shown["connections"]} == {"7"}


def test_adjust_drops_a_peer_that_is_gone_from_the_file_and_connects_one_that_is_new(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    write(nodes[:2], resource(1, 2))
    nodes[2].run("drbdadm down r")
    nodes[0].run("drbdadm adjust r")
    assert [peer["name"] for peer in status(nodes[0])["connections"]] == ["n2"]
    write(nodes[:1], resource(1, 2, 3))
    nodes[0].run("drbdadm adjust r")
    assert [peer["name"] for peer in status(nodes[0])["connections"]] == ["n2", "n3"]


def test_adjust_attaches_what_was_detached_and_connects_what_stands_alone(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    nodes[2].run("drbdadm detach r; drbdadm disconnect --force r")
    found = status(nodes[2])
    assert [device["disk-state"] for device in found["devices"]] == ["Diskless"]
    nodes[2].run("drbdadm adjust r")
    nodes[2].world.advance(nodes[2].world.now + 10)
    found = status(nodes[2])
    assert [device["disk-state"] for device in found["devices"]] == ["UpToDate"]
    assert {peer["connection-state"] for peer in found["connections"]} == {"Connected"}


def test_a_failing_new_peer_is_named_with_its_secret_and_the_next_is_skipped(nodes: list[Node]) -> None:
    write(nodes, resource(1, 2, 3).replace("sha256", "nosuchalg"))
    nodes[0].run("drbdadm create-md --max-peers=7 --force r")
    said = nodes[0].run("drbdadm up r", expect=1).stderr
    assert "r: Failure: (120) The 'cram-hmac-alg' you specified is not known in the kernel." in said
    assert "--shared-secret=s3cret" in said
    assert said.endswith("terminated with exit code 10\ndrbdadm: new-peer r: skipped due to earlier error\n")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("drbdadm primary r", 10, "r: Failure: (158) Unknown resource"),
        ("drbdadm status r", 10, "r: No such resource"),
        ("drbdadm down r", 0, ""),
        ("drbdadm dump-md r", 1, "No valid meta data found"),
        ("drbdadm up nothing", 1, "'nothing' not defined in your config (for this host)."),
        ("drbdadm up r/7", 1, "Resource 'r' has no volume 7"),
        ("drbdadm frob r", 1, "Unknown command 'frob'"),
        ("drbdadm -c /etc/none.res up r", 20, "Can not open '/etc/none.res'."),
        ("drbdadm -c /etc/drbd.d/r.res sh-nop", 0, ""),
        ("drbdadm -c /dev/null --config-to-test /etc/drbd.d/r.res sh-nop", 0, ""),
        ("drbdadm -c /dev/null up r", 1, "no resources defined!"),
        ("drbdsetup frob", 20, "unknown command frob"),
        (
            "drbdmeta 1000 v09 /dev/vg0/none internal dump-md",
            20,
            "open(/dev/vg0/none) failed: No such file or directory",
        ),
    ],
)
def test_what_is_not_there_has_its_exit_code(nodes: list[Node], line: str, code: int, said: str) -> None:
    write(nodes, resource(1, 2, 3))
    assert said in nodes[0].run(line, expect=code).output


def test_metadata_is_not_created_over_a_device_that_drbd_has(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    said = nodes[0].run("drbdadm create-md --max-peers=7 --force r", expect=20).output
    assert said.startswith("Device '1000' is configured!\n")
    assert "in use." in nodes[0].run("lvremove -y vg0/r", expect=5).output


def test_a_device_that_grew_is_found_by_its_last_known_size_only(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    node = nodes[2]
    assert node.host.files["/var/lib/drbd/drbd-minor-1000.lkbd"].startswith(b"33554432\t/dev/vg0/r\nuuid:\t")
    node.run("drbdadm down r; lvextend -L 48M vg0/r")
    kept = node.host.files.pop("/var/lib/drbd/drbd-minor-1000.lkbd")
    assert node.run("drbdadm up r", expect=1).output == "No valid meta data found\n"
    node.run("drbdadm down r")
    node.host.files["/var/lib/drbd/drbd-minor-1000.lkbd"] = kept
    assert node.run("drbdadm up r").output.startswith("Moving the internal meta data to its proper location\n")
    node.world.advance(node.world.now + 10)
    assert [device["disk-state"] for device in status(node)["devices"]] == ["UpToDate"]


def test_events2_streams_changes_until_it_is_killed(nodes: list[Node]) -> None:
    heard: list[str] = []
    stream = nodes[0].host.start(["drbdsetup", "events2", "--timestamps"], listener=heard.append)
    bring_up(nodes, resource(1, 2, 3))
    nodes[0].run("drbdadm primary r")
    lines = "".join(heard).splitlines()
    assert lines[0].endswith(" exists -")
    assert any("change resource name:r role:Primary" in line for line in lines)
    assert not any(" out-of-sync:" in line for line in lines), "no counters unless asked for"
    stream.kill()
    assert stream.result is not None
    before = len(heard)
    nodes[0].run("drbdadm secondary r")
    assert len(heard) == before


def test_events2_now_says_what_exists_and_ends(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    said = nodes[0].run("drbdsetup events2 --now r").stdout.splitlines()
    assert {line.split(" ")[1] for line in said} == {"resource", "device", "connection", "peer-device", "path", "-"}


def test_a_write_on_a_suspended_device_hangs_and_a_signal_does_not_help(nodes: list[Node]) -> None:
    bring_up(nodes, resource(1, 2, 3))
    world = nodes[0].world
    nodes[0].run("drbdadm primary r")
    world.set_cut([("n1", "n2"), ("n1", "n3")])
    world.advance(world.now + 10)
    writer = nodes[0].host.start(["dd", "if=/dev/zero", "of=/dev/drbd1000", "bs=4k", "count=1"])
    assert writer.result is None
    writer.kill()
    assert writer.result is None
    assert "opened by dd" in nodes[0].run("drbdadm secondary r", expect=11).output
    world.set_cut([])
    world.advance(world.now + 20)
    assert writer.result is not None


def test_what_prevents_and_cures_a_lost_mark_is_done_by_drbdadm_as_by_drbdsetup(
    world: World, nodes: list[Node]
) -> None:
    bring_up(nodes, resource(1, 2, 3))
    one, _, three = nodes
    one.run("drbdadm primary r")
    world.set_cut([("n1", "n2"), ("n1", "n3")])
    blocked = one.host.start(["sh", "-c", "dd if=/dev/urandom of=/dev/drbd1000 bs=4k count=1 oflag=direct"])
    world.advance(world.now + 7)
    one.run("drbdadm suspend-io r/0")
    assert status(one)["suspended-user"]
    one.run("drbdsetup resume-io 1000")
    assert not status(one)["suspended-user"]
    world.set_cut([("n1", "n3")])
    world.advance(world.now + 10)
    assert blocked.result is not None
    world.set_cut([])
    world.advance(world.now + 10)
    wrong = three.host.block_device("/dev/vg0/r")
    right = one.host.block_device("/dev/vg0/r")
    assert wrong is not None
    assert right is not None
    assert wrong.read(0) != right.read(0)
    one.run("drbdadm verify r:n3/0")
    world.advance(world.now + 5)
    one.run("drbdadm invalidate-remote --reset-bitmap=no r:n3/0")
    world.advance(world.now + 5)
    assert wrong.read(0) == right.read(0)

    one.run("drbdadm secondary r; drbdadm primary r")
    world.set_cut([("n1", "n2"), ("n1", "n3")])
    one.host.start(["sh", "-c", "dd if=/dev/urandom of=/dev/drbd1000 bs=4k count=1 seek=9 oflag=direct"])
    world.advance(world.now + 7)
    one.run("drbdadm new-current-uuid r/0")
    world.set_cut([("n1", "n3")])
    world.advance(world.now + 10)
    world.set_cut([])
    world.advance(world.now + 10)
    assert right.read(9 * 4096) is not None
    assert wrong.read(9 * 4096) == right.read(9 * 4096)
