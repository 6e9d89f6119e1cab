"""A replica on a failing drive is let go, and nothing is lost of what the others have."""

from __future__ import annotations

from quorate.lab.kernel import metadata as md
from quorate.lab.kernel.reply import Code
from tests.lab.kernel.lab import MINOR, Lab


def test_nobody_notices_before_the_first_request() -> None:
    lab = Lab(3)
    lab.disks[1].failed = True
    lab.wait(60)
    assert lab.disk(1) == "UpToDate"


def test_a_write_goes_on_without_the_disk_that_fails() -> None:
    lab = Lab(3)
    lab.primary(0)
    lab.disks[0].failed = True
    assert lab.wrote(0, "kept") == "done"
    assert lab.disk(0) == "Diskless"
    assert lab.role(0) == "Primary"
    assert [lab.disks[i].read(0) for i in range(3)] == [None, "kept", "kept"]
    assert lab.disks[0].holder is None


def test_a_read_that_fails_here_is_answered_by_a_peer() -> None:
    lab = Lab(3)
    lab.primary(0)
    lab.wrote(0, "kept")
    lab.disks[0].failed = True
    assert lab.kernels[0].open(MINOR, "dd", 99)
    io = lab.kernels[0].read(MINOR, 0)
    lab.wait(1)
    assert (io.state.value, io.result) == ("done", "kept")
    assert lab.disk(0) == "Diskless"


def test_a_peer_whose_disk_fails_has_to_catch_up_when_it_is_mended() -> None:
    lab = Lab(3)
    lab.primary(0)
    lab.disks[1].failed = True
    assert lab.wrote(0, "kept") == "done"
    assert lab.disk(1) == "Diskless"
    assert lab.peer(0, 1)["out-of-sync"] == 4
    lab.disks[1].failed = False
    found = md.find(lab.disks[1])
    assert found is not None
    md.apply_activity_log(found)
    assert lab.kernels[1].attach(MINOR, lab.disks[1], "/dev/disk1").ok
    lab.wait(10)
    assert lab.healthy()
    assert lab.disks[1].read(0) == "kept"


def test_a_write_that_no_disk_takes_fails() -> None:
    lab = Lab(1)
    lab.primary(0)
    lab.disks[0].failed = True
    assert lab.wrote(0, "lost") in ("failed", "blocked")
    assert lab.disks[0].read(0) is None
    assert lab.disk(0) == "Diskless"


def test_the_only_disk_is_taken_back_when_it_is_mended() -> None:
    lab = Lab(1)
    lab.primary(0)
    assert lab.wrote(0, "kept") == "done"
    lab.disks[0].failed = True
    lab.write(0, "lost")
    lab.wait(4)
    lab.disks[0].failed = False
    found = md.find(lab.disks[0])
    assert found is not None
    md.apply_activity_log(found)
    assert lab.kernels[0].attach(MINOR, lab.disks[0], "/dev/disk0").ok
    lab.wait(4)
    assert lab.disk(0) == "UpToDate"


def test_a_primary_takes_no_disk_back_that_lacks_what_it_has_seen_since() -> None:
    lab = Lab(3, diskless=[2])
    lab.primary(0)
    lab.disks[0].failed = True
    assert lab.wrote(0, "only on the other") == "done"
    lab.world.power_off("n1")
    lab.wait(10)
    lab.disks[0].failed = False
    found = md.find(lab.disks[0])
    assert found is not None
    md.apply_activity_log(found)
    assert lab.kernels[0].attach(MINOR, lab.disks[0], "/dev/disk0").code == Code.DATA_NOT_CURRENT
    lab.world.power_on("n1")
    lab.up(1)
    lab.wait(10)
    assert lab.kernels[0].attach(MINOR, lab.disks[0], "/dev/disk0").ok
    lab.wait(10)
    assert lab.healthy()
    assert lab.disks[0].read(0) == "only on the other"
