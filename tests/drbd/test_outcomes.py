"""What the tools' answers mean: all the failures of the recordings, and more that the kernel can give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.drbd.outcomes import Answer, Holder, Outcome, is_about_disk, understand
from tests.drbd import recordings

TOOLS = ("drbdadm", "drbdsetup", "drbdmeta")


def test_every_recorded_failure_of_a_tool_is_known() -> None:
    failures = [
        (step["exit"], step["output"])
        for _, step in recordings.of_kind("command")
        if step["exit"] and step["command"].startswith(TOOLS)
    ]
    assert len(failures) >= 30
    for exit_code, output in failures:
        answer = understand(exit_code, output)
        assert answer.outcome not in (Outcome.FAILED, Outcome.SUCCEEDED), output
        assert answer.message


@pytest.mark.parametrize(
    ("exit_code", "output", "answer"),
    [
        (0, "Moving the internal meta data to its proper location", Answer(Outcome.SUCCEEDED)),
        (
            11,
            (
                "r: State change failed: (-25) No quorum\nadditional info from kernel:\n"
                "1 of 2 nodes visible, need 2 for quorum\nCommand 'drbdsetup primary r' terminated with exit code 11"
            ),
            Answer(Outcome.NO_QUORUM, -25, "No quorum: 1 of 2 nodes visible, need 2 for quorum"),
        ),
        (
            11,
            (
                "r: State change failed: (-12) Device is held open by someone\nadditional info from kernel:\n"
                "drbd1000 opened by my shell (x) (pid 480) at 2026-11-15\n"
                "drbd1000 opened by dd (pid 481) at 2026-11-15\n"
            ),
            Answer(
                Outcome.HELD_OPEN,
                -12,
                "Device is held open by someone: drbd1000 opened by my shell (x) (pid 480) at 2026-11-15 "
                "drbd1000 opened by dd (pid 481) at 2026-11-15",
                (Holder("my shell (x)", 480), Holder("dd", 481)),
            ),
        ),
        (
            1,
            (
                "r: Failure: (164) Can not clear allow_two_primaries as long as\nthere a primaries on both sides\n"
                "Command 'drbdsetup net-options r 1 --shared-secret=s3cret' terminated with exit code 10"
            ),
            Answer(
                Outcome.TWO_PRIMARIES_IN_USE,
                164,
                "Can not clear allow_two_primaries as long as there a primaries on both sides",
            ),
        ),
        (
            1,
            (
                "r: Failure: (120) The 'cram-hmac-alg' you specified is not known\nCommand 'drbdsetup new-peer r 1 "
                "--cram-hmac-alg=nosuchalg --protocol=C' terminated with exit code 10\n"
            ),
            Answer(
                Outcome.UNSUPPORTED_ALGORITHM,
                120,
                "The 'cram-hmac-alg' you specified is not known",
                algorithm="nosuchalg",
            ),
        ),
        (10, "\x1b[1;31mr: Failure: (158) Unknown resource\x1b[0m", Answer(Outcome.NOT_UP, 158, "Unknown resource")),
        (10, "[\n]\n\nr: No such resource", Answer(Outcome.NOT_UP, message="r: No such resource")),
        (1, "no resources defined!", Answer(Outcome.NOT_CONFIGURED, message="no resources defined!")),
        (
            10,
            "'r' not defined in your config (for this host).",
            Answer(Outcome.NOT_CONFIGURED, message="'r' not defined in your config (for this host)."),
        ),
        (10, "r: Failure: (999) Something new", Answer(Outcome.FAILED, 999, "Something new")),
        (2, "\nusage: drbdadm\n", Answer(Outcome.FAILED, message="usage: drbdadm")),
        (1, "", Answer(Outcome.FAILED)),
    ],
)
def test_an_answer_means(exit_code: int, output: str, answer: Answer) -> None:
    assert understand(exit_code, output) == answer


@pytest.mark.parametrize(
    ("number", "outcome"),
    [
        (-1, Outcome.MULTIPLE_PRIMARIES),
        (-2, Outcome.NEED_UP_TO_DATE),
        (-10, Outcome.REFUSED_BY_PEER),
        (102, Outcome.ADDRESS_IN_USE),
        (103, Outcome.ADDRESS_IN_USE),
        (104, Outcome.BACKING_UNAVAILABLE),
        (111, Outcome.BACKING_TOO_SMALL),
        (119, Outcome.METADATA_MISSING),
        (125, Outcome.ALREADY_UP),
        (161, Outcome.ALREADY_UP),
        (165, Outcome.METADATA_UNCLEAN),
    ],
)
def test_a_number_means(number: int, outcome: Outcome) -> None:
    kind = "State change failed" if number < 0 else "Failure"
    assert understand(10, f"r: {kind}: ({number}) whatever it says").outcome is outcome


def test_the_first_failure_is_the_one_that_counts() -> None:
    both = "r: Failure: (102) Local address in use\nCommand 'x' terminated\nr: Failure: (158) Unknown resource\n"
    assert understand(10, both).outcome is Outcome.ADDRESS_IN_USE


@given(st.integers(-1, 255), st.text(max_size=200))
def test_garbage_is_always_an_answer(exit_code: int, output: str) -> None:
    answer = understand(exit_code, output)
    assert (answer.outcome is Outcome.SUCCEEDED) == (exit_code == 0)


@pytest.mark.parametrize(
    ("exit_code", "output", "about_disk"),
    [
        (0, "", False),
        (20, "Command 'drbdsetup new-peer web 0 --_name=n2' did not terminate within 5 seconds\n", False),
        (20, "Command 'drbdsetup attach 1 /dev/vg0/a /dev/vg0/a internal' did not terminate within 5 seconds\n", False),
        (10, "Command 'drbdsetup connect web 2' terminated with exit code 10\n", False),
        (10, "a: Failure: (104)\nCommand 'drbdsetup attach 1 /dev/a' terminated with exit code 10\n", True),
        (1, "pread(5,...) in v09_md_disk_to_cpu failed: Input/output error\nCommand 'drbdmeta 1 v09 /dev/a'", True),
        (1, "No usable activity log found. Do you need to create-md?\n", True),
        (1, "open(/dev/vg0/a) failed: No such file or directory\n", True),
    ],
)  # fmt: skip
def test_only_what_is_about_the_disk_is_taken_for_a_lost_disk(exit_code: int, output: str, about_disk: bool) -> None:
    assert is_about_disk(exit_code, output) is about_disk
