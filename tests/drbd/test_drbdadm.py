"""Our files before the real drbdadm: every layout from one to eight members, as each member has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.api.secret import Secret
from quorate.drbd.outcomes import Outcome, understand
from quorate.drbd.resource_file import render
from tests.drbd.layouts import DISKFUL, TIE_BREAKER, VOLUME, Layout, Member, address, config_of, layouts, node
from tests.support.drbd_utils import Drbdadm, drbdadm

LAYOUTS = sorted(set(layouts()), key=lambda layout: (len(layout), str(list(map(str, layout)))))
BY_SIZE = [[layout for layout in LAYOUTS if len(layout) == size] for size in range(1, 9)]


@pytest.fixture(scope="module")
def tool() -> Drbdadm:
    return drbdadm()


def written(directory: Path, layout: Layout, node_id: int) -> Path:
    file = directory / "pvc-1.res"
    file.write_text(render(VOLUME, node(node_id), config_of(layout, node_id)))
    return file


@pytest.mark.parametrize("of_size", BY_SIZE, ids=lambda of_size: f"{len(of_size[0])} members")
def test_drbdadm_takes_every_layout_and_would_do_what_we_mean(
    tool: Drbdadm, tmp_path: Path, of_size: list[Layout]
) -> None:
    for layout in of_size:
        for node_id in range(len(layout)):
            file = written(tmp_path, layout, node_id)
            said = tool.check(file)
            assert said.exit_code == 0, (said, file.read_text())
            for command in ("up", "adjust"):
                assert_means(layout, node_id, tool.would_run(command, file, node(node_id), VOLUME))


def assert_means(layout: Layout, node_id: int, commands: list[list[str]]) -> None:
    own = layout[node_id]
    linked = {
        other: member
        for other, member in enumerate(layout)
        if other != node_id and (own.type is DISKFUL or member.type is DISKFUL)
    }
    [(_, _, _, own_id, *options)] = named(commands, "new-resource")
    assert own_id == str(node_id)
    assert ("--quorum=majority" if own == Member(DISKFUL) else "--quorum=32") in options
    assert "--quorum-minimum-redundancy=1" in options

    [new_minor] = named(commands, "new-minor")
    assert ("--diskless" in new_minor) is (own.type is not DISKFUL)
    attached = [words[3] for words in named(commands, "attach")]
    assert attached == ([f"/dev/vg0/pvc-1-{node_id}"] if own.type is DISKFUL else [])

    new_peers = {int(words[3]): words for words in named(commands, "new-peer")}
    assert set(new_peers) == set(linked)
    assert {int(words[3]) for words in named(commands, "connect")} == set(linked)
    unseen = {other for other, words in new_peers.items() if "--allow-remote-read=no" in words}
    assert unseen == {other for other, member in linked.items() if member.hidden and own.type is DISKFUL}
    assert all(f"--_name={node(other)}" in words for other, words in new_peers.items())

    without_bitmap = {int(words[3]) for words in named(commands, "peer-device-options") if "--bitmap=no" in words}
    assert without_bitmap == {other for other, member in linked.items() if member.type is not DISKFUL}

    paths = {int(words[3]): words[4:] for words in named(commands, "new-path")}
    assert paths == {other: [endpoint(node_id), endpoint(other)] for other in linked}


def named(commands: list[list[str]], name: str) -> list[list[str]]:
    return [words for words in commands if words[:2] == ["drbdsetup", name]]


def endpoint(node_id: int) -> str:
    return f"ipv4:{address(node_id).ipv4}:{address(node_id).port}"


@pytest.mark.parametrize(
    "secret",
    ["s3cret", "x" * 63, "with spaces", 'quo"te', "back\\slash", "back\\", '\\"; } #', "${HOME} $(id) `id`"],
)
def test_drbdadm_reads_exactly_the_secret_that_was_meant(tool: Drbdadm, tmp_path: Path, secret: str) -> None:
    layout = (Member(DISKFUL), Member(DISKFUL), Member(TIE_BREAKER))
    file = tmp_path / "pvc-1.res"
    file.write_text(render(VOLUME, node(0), config_of(layout, 0, shared_secret=Secret(secret))))
    assert tool.check(file).exit_code == 0
    for words in named(tool.would_run("up", file, node(0), VOLUME), "new-peer"):
        assert f"--shared-secret={secret}" in words


def test_a_file_that_drbdadm_refuses_is_understood_as_that(tool: Drbdadm, tmp_path: Path) -> None:
    layout = (Member(DISKFUL), Member(DISKFUL))
    file = tmp_path / "pvc-1.res"
    file.write_text(render(VOLUME, node(0), config_of(layout, 0)).replace("quorum majority", "quorumm majority"))
    said = tool.check(file)
    assert understand(said.exit_code, said.stdout + said.stderr).outcome is Outcome.INVALID_CONFIG


def test_the_layouts_are_many_and_have_everything(tmp_path: Path) -> None:
    assert len(LAYOUTS) >= 100
    assert {member for layout in LAYOUTS for member in layout} >= {
        Member(DISKFUL),
        Member(DISKFUL, hidden=True),
        Member(TIE_BREAKER),
        Member(TIE_BREAKER, hidden=True),
    }
    assert {len(layout) for layout in LAYOUTS} == set(range(1, 9))


SHOWN = """resource "pvc-1" { options { auto-promote no; quorum majority; quorum-minimum-redundancy 1;
on-no-quorum suspend-io; on-no-data-accessible suspend-io; on-suspended-primary-outdated force-secondary; }
_this_host { node-id 0; volume 0 { device minor 1000; disk "/dev/vg0/pvc-1-0"; meta-disk internal; disk { SIZE } } } }
"""


@pytest.mark.parametrize(
    ("in_the_file", "in_the_kernel", "expected"),
    [
        ("", "", []),
        ("", "size 65536s;", ["resize 1000", "check-resize 1000"]),
        ("size 65536s;", "", ["resize 1000 --size=65536s", "check-resize 1000"]),
        ("size 65536s;", "size 65536s;", []),
        ("size 131072s;", "size 65536s;", ["resize 1000 --size=131072s", "check-resize 1000"]),
        ("size 65536s;", "size 131072s;", ["resize 1000 --size=65536s", "check-resize 1000"]),
    ],
)
def test_a_size_in_the_file_would_make_every_adjust_a_resize(
    tool: Drbdadm, tmp_path: Path, in_the_file: str, in_the_kernel: str, expected: list[str]
) -> None:
    """Why there is none in ours (decision 0023): it copies where the file has more, and cuts off where it has less."""
    file, shown = written(tmp_path, (Member(DISKFUL),), 0), tmp_path / "shown"
    file.write_text(file.read_text().replace("meta-disk internal;", f"meta-disk internal; disk {{ {in_the_file} }}", 1))
    shown.write_text(SHOWN.replace("SIZE", in_the_kernel))
    ran = tool.would_run("adjust", file, node(0), VOLUME, shown=shown)
    assert [" ".join(words[1:]) for words in ran if "resize" in words[1]] == expected
