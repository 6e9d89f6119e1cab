"""What single calls answer, and what status, show and events2 say."""

from __future__ import annotations

import pytest

from quorate.lab.kernel import BlockDevice
from quorate.lab.kernel import metadata as md
from quorate.lab.kernel.reply import Code

from .lab import MIB, MINOR, NAME, NET, Lab


def test_calls_about_what_does_not_exist_answer_with_the_kernels_numbers() -> None:
    kernel = Lab(1, form=False).kernels[0]
    assert kernel.primary("nope").code == 158
    assert kernel.detach(7).code == 127
    kernel.new_resource(NAME, 0)
    assert kernel.connect(NAME, 5).code == 162
    assert kernel.new_resource(NAME, 0).code == Code.ALREADY_EXISTS


@pytest.mark.parametrize(
    ("prepare", "code"),
    [
        pytest.param({"form": False}, -2, id="a fresh member has no up-to-date data"),
        pytest.param({}, 0, id="a formed one promotes"),
    ],
)
def test_promotion_needs_up_to_date_data(prepare: dict[str, bool], code: int) -> None:
    lab = Lab(1, **prepare)  # type: ignore[arg-type]
    if not prepare.get("form", True):
        lab.up(0)
    assert lab.primary(0) == code


def test_promotion_is_refused_while_another_is_primary() -> None:
    lab = Lab(2)
    assert (lab.primary(0), lab.primary(1)) == (0, -1)


def test_a_forced_promotion_of_a_fresh_member_needs_the_minimum_redundancy() -> None:
    lab = Lab(3, form=False, options={"quorum": "2", "quorum-minimum-redundancy": "2"})
    for i in range(3):
        lab.up(i)
    lab.wait(3)
    reply = lab.kernels[0].primary(NAME, force=True)
    assert reply.code == -25
    assert reply.text == "1 of 3 nodes up_to_date, need 2 for quorum-minimum-redundancy"


def test_a_forced_promotion_without_quorum_configured_copies_to_everybody() -> None:
    lab = Lab(3, form=False, options={"quorum": "off", "quorum-minimum-redundancy": "off"})
    for i in range(3):
        lab.up(i)
    lab.wait(3)
    assert lab.primary(0, force=True) == 0
    assert lab.peer(0, 1)["replication-state"] == "WFBitMapS"
    lab.wait(4)
    assert lab.healthy()


@pytest.mark.parametrize("call", ["secondary", "down"])
def test_neither_demotion_nor_down_takes_the_device_from_a_process_that_has_it_open(call: str) -> None:
    lab = Lab(1)
    lab.primary(0)
    kernel = lab.kernels[0]
    assert kernel.open(MINOR, "mysqld", 42)
    reply = getattr(kernel, call)(NAME)
    assert reply.code == -12
    assert reply.text.startswith("drbd1000 opened by mysqld (pid 42) at ")
    kernel.close(MINOR, 42)
    assert getattr(kernel, call)(NAME).ok


def test_a_forced_demotion_fails_all_requests_until_the_device_is_closed() -> None:
    lab = Lab(1)
    lab.primary(0)
    kernel = lab.kernels[0]
    kernel.open(MINOR, "mysqld", 42)
    assert kernel.secondary(NAME, force=True).ok
    assert lab.status(0)["force-io-failures"]
    assert kernel.write(MINOR, 0, 4096, "x").state.value == "failed"
    assert lab.primary(0) == -12
    kernel.close(MINOR, 42)
    assert not lab.status(0)["force-io-failures"]


def test_a_graceful_disconnect_that_would_cost_a_primary_its_quorum_is_refused_by_the_primary() -> None:
    lab = Lab(3, options={"quorum": "2", "quorum-minimum-redundancy": "2"})
    lab.primary(0)
    for peer in (0, 1):
        assert lab.kernels[2].disconnect(NAME, peer).ok
    assert (lab.disk(2), lab.peer(0, 2)["peer-disk-state"]) == ("Outdated", "Outdated")
    reply = lab.kernels[1].disconnect(NAME, 0)
    assert reply.code == -10
    assert reply.text == "Declined by peer n0 (id: 0), see the kernel log there"
    assert lab.kernels[1].disconnect(NAME, 0, force=True).ok
    lab.wait(1)
    assert lab.suspended(0)


def test_two_primaries_can_not_be_disallowed_while_there_are_two() -> None:
    lab = Lab(2, net={"allow-two-primaries": "yes"})
    lab.primary(0), lab.primary(1)
    assert lab.kernels[0].net_options(NAME, 1, {"allow-two-primaries": "no"}).code == 164


def test_attaching_needs_clean_metadata_of_this_very_member() -> None:
    lab = Lab(1, form=False)
    kernel = lab.kernels[0]
    kernel.new_resource(NAME, 0)
    kernel.new_minor(NAME, MINOR, 0)
    assert kernel.attach(MINOR, BlockDevice(32 * MIB), "/dev/blank").code == 119
    found = md.find(lab.disks[0])
    assert found is not None
    found.flags &= ~md.Flag.AL_CLEAN
    assert kernel.attach(MINOR, lab.disks[0], "/dev/disk").code == 165
    md.apply_activity_log(found)
    found.node_id = 3
    assert kernel.attach(MINOR, lab.disks[0], "/dev/disk").code == 162
    found.node_id = 0
    assert kernel.attach(MINOR, lab.disks[0], "/dev/disk").ok
    assert kernel.attach(MINOR, lab.disks[0], "/dev/disk").code == 124


def test_an_unknown_algorithm_is_refused_without_naming_the_secret() -> None:
    lab = Lab(1, form=False)
    lab.kernels[0].new_resource(NAME, 0)
    reply = lab.kernels[0].new_peer(NAME, 1, {**NET, "cram-hmac-alg": "nosuchalg", "shared-secret": "hush"})
    assert reply.code == 120
    assert "nosuchalg" in reply.text
    assert "hush" not in reply.text + reply.message


def test_without_quorum_and_with_io_error_writes_fail_instead_of_waiting() -> None:
    lab = Lab(3, options={"on-no-quorum": "io-error", "quorum-minimum-redundancy": "2"})
    lab.primary(0)
    lab.cut({0}, {1}, {2})
    assert not lab.suspended(0)
    assert lab.wrote(0) == "failed"


def test_suspending_by_hand_blocks_and_resuming_lets_go() -> None:
    lab = Lab(1)
    lab.primary(0)
    lab.kernels[0].suspend_io(MINOR)
    io = lab.write(0)
    assert (io.blocked, lab.status(0)["suspended-user"]) == (True, True)
    lab.kernels[0].resume_io(MINOR)
    assert io.state.value == "done"


def test_invalidate_copies_everything_back() -> None:
    lab = Lab(2)
    lab.disks[1].write(8192, 4096, "rot")
    assert lab.kernels[1].invalidate(MINOR).ok
    assert lab.disk(1) == "Outdated"
    lab.wait(3)
    assert lab.healthy()
    assert lab.disks[1].read(8192) is None


def test_pausing_a_resync_holds_it_where_it_is() -> None:
    lab = Lab(2, size=512 * MIB)
    lab.kernels[0].invalidate_remote(NAME, 1, 0)
    lab.wait(2)
    assert lab.kernels[0].pause_sync(NAME, 1, 0).ok
    left = lab.peer(0, 1)["out-of-sync"]
    lab.wait(5)
    assert (lab.peer(0, 1)["out-of-sync"], lab.peer(0, 1)["replication-state"]) == (left, "PausedSyncS")
    assert 0 < left < 512 * 1024
    lab.kernels[0].resume_sync(NAME, 1, 0)
    lab.wait(15)
    assert lab.healthy()


def test_an_interrupted_copy_goes_on_where_it_was() -> None:
    lab = Lab(2, size=512 * MIB, options={"quorum": "off"})
    lab.kernels[0].invalidate_remote(NAME, 1, 0)
    lab.wait(6)
    lab.cut({0}, {1})
    assert lab.disk(1) == "Inconsistent"
    left = lab.peer(0, 1)["out-of-sync"]
    assert 0 < left < 400 * 1024
    lab.heal(20)
    assert lab.healthy()


def test_a_look_at_the_status_changes_nothing_but_the_progress_seen() -> None:
    watched, alone = Lab(2, size=256 * MIB, seed=3), Lab(2, size=256 * MIB, seed=3)
    for lab in (watched, alone):
        lab.kernels[0].invalidate_remote(NAME, 1, 0)
    for _ in range(20):
        watched.wait(0.5)
        watched.status(0)
    alone.wait(10)
    assert watched.status(0) == alone.status(0)
    assert watched.healthy()


def test_events_tell_what_exists_and_then_what_changes() -> None:
    lab = Lab(2)
    heard: list[str] = []
    stop = lab.kernels[1].subscribe(lambda event: heard.append(str(event)))
    existing = [str(event) for event in lab.kernels[1].dump()]
    assert existing[0].startswith("exists resource name:v role:Secondary suspended:no")
    assert existing[-1] == "exists -"
    lab.primary(0)
    assert "change connection name:v peer-node-id:0 conn-name:n0 role:Primary" in heard
    heard.clear()
    lab.kernels[0].down(NAME)
    assert any("connection:TearDown" in line for line in heard)
    assert any("replication:Off" in line for line in heard)
    stop()
    heard.clear()
    lab.kernels[1].down(NAME)
    assert not heard


def test_show_names_what_differs_from_the_defaults_and_on_request_all() -> None:
    lab = Lab(2, (1,))
    shown = lab.kernels[0].show()[0]
    assert shown["options"]["quorum"] == "majority"
    assert "peer-ack-delay" not in shown["options"]
    assert shown["_this_host"]["volumes"][0]["backing-disk"] == "/dev/disk0"
    assert shown["connections"][0]["path"]["_remote_host"] == "ipv4 10.0.0.1:7000"
    assert lab.kernels[0].show(defaults=True)[0]["options"]["peer-ack-delay"] == "100"
    assert lab.kernels[1].show()[0]["_this_host"]["volumes"][0]["disk"] == "none"


def test_the_kernel_log_tells_of_the_tie_breaker_and_of_outdating() -> None:
    lab = Lab(3, (2,))
    lab.primary(0)
    lab.cut({0, 2}, {1})
    assert any("using tiebreaker logic to keep" in line for _, line in lab.world.log("n0"))
    lab.heal()
    lab.cut_pairs((0, 1))
    assert any("-> Outdated" in line for _, line in lab.world.log("n1"))


@pytest.mark.parametrize(
    ("device", "usable"),
    [(45056, 4096), (1089536, 1 * MIB), (104919040, 100 * MIB), (33554432, 32724 * 1024), (1 << 30, 1073475584)],
)
def test_metadata_takes_what_it_takes_on_a_real_device(device: int, usable: int) -> None:
    assert md.usable(device, 7) == usable
