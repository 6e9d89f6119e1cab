"""Primary and Secondary."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from quorate.api.storage.drbd import Connection, DrbdStatus
from quorate.api.struct import replace
from tests.agent.replica.builders import (
    DISKLESS,
    NOW,
    actual,
    commands,
    config,
    decided,
    errors,
    kernel,
    link,
    outcome,
    outcomes,
    replica,
    view,
)

PRIMARY, SECONDARY = "drbdadm primary pvc-1", "drbdadm secondary pvc-1"
CONNECTING = link(2, "Connecting", flow="Off", disk="DUnknown")
HELD_OPEN = (
    "pvc-1: State change failed: (-12) Device is held open by someone\n"
    "additional info from kernel:\ndrbd1000 opened by qemu (pid 480) at 2030-01-01"
)


@pytest.mark.parametrize(
    ("intended", "role", "expected"),
    [
        (True, "Secondary", [PRIMARY]),
        (True, "Primary", []),
        (False, "Primary", [SECONDARY]),
        (False, "Secondary", []),
    ],
)
def test_the_role_is_changed_when_it_differs_and_only_then(intended: bool, role: str, expected: list[str]) -> None:
    assert commands(decided(view(replica(config=config(primary=intended)), kernel(role=role)))) == expected


@pytest.mark.parametrize(
    ("shown", "given", "expected"),
    [
        (kernel(), {}, [PRIMARY]),
        (kernel(quorum=False, links=(link(1, "Connecting"), CONNECTING)), {}, []),
        (kernel("Outdated"), {}, [PRIMARY]),  # through a peer that is up to date; the kernel decides
        (kernel("Inconsistent"), {"initial_sync_completed": False}, []),
        (kernel(links=(link(1), CONNECTING)), {}, [PRIMARY]),
    ],
)
def test_a_promotion_needs_data_that_was_once_good_and_quorum_now(
    shown: DrbdStatus, given: dict[str, Any], expected: list[str]
) -> None:
    asked = replica(config=config(primary=True), actual=actual(**given))
    assert commands(decided(view(asked, shown))) == expected


def test_a_promotion_is_never_forced() -> None:
    for state in ("Inconsistent", "Outdated", "Consistent", "UpToDate", "Diskless"):
        for quorum in (True, False):
            asked = view(replica(config=config(primary=True)), kernel(state, quorum=quorum))
            assert not any("--force" in each for each in commands(decided(asked)))


@pytest.mark.parametrize(
    "links",
    [(link(1), CONNECTING), (link(1), link(2, flow="SyncSource", disk="Inconsistent"))],
)
def test_the_second_of_two_primaries_needs_every_link_and_no_resync(links: tuple[Connection, ...]) -> None:
    asked = replica(config=config(primary=True, yields=True, allow_two_primaries=True))
    assert commands(decided(view(asked, kernel(links=links)))) == []
    assert commands(decided(view(asked, kernel()))) == [PRIMARY]


def test_the_second_of_two_primaries_waits_until_its_duty_is_noted() -> None:
    asked = replica(config=config(primary=True, yields=True, allow_two_primaries=True))
    assert commands(decided(view(asked, kernel(), duty_noted=False))) == []
    assert commands(decided(view(replica(config=config(primary=True)), kernel(), duty_noted=False))) == [PRIMARY]


def test_a_member_without_a_disk_may_be_promoted() -> None:
    asked = replica(config=config(primary=True, **DISKLESS), actual=actual(disk="", metadata_created=""))
    assert commands(decided(view(asked, kernel("Diskless")))) == [PRIMARY]


def test_a_role_comes_after_the_adjustment() -> None:
    changed_file = view(replica(config=config(primary=True)), unadjusted=True)
    assert commands(decided(changed_file)) == ["drbdadm adjust pvc-1"]


def test_a_link_that_stays_alone_does_not_forbid_a_promotion() -> None:
    """After a split brain with one member the others must be able to go on."""
    asked = view(replica(config=config(primary=True)), kernel(links=(link(1), link(2, "StandAlone"))))
    first = decided(asked)
    assert commands(first) == ["drbdadm adjust pvc-1"]
    tried = changed(asked, outcomes=outcomes(outcome("adjust", first.steps[0].about, exit_code=0)))
    assert commands(decided(tried)) == [PRIMARY]


def test_a_member_whose_disk_is_not_there_is_not_promoted() -> None:
    """Its own file says majority: without a disk it would count itself (diskless_own_quorum_majority)."""
    asked = view(replica(config=config(primary=True)), kernel("Diskless"))
    failed = outcome("adjust", decided(asked).steps[0].about, output="Failure: (104) Can not open backing device.")
    asked = changed(asked, outcomes=outcomes(failed))
    links = decided(asked)
    assert commands(links) == ["drbdadm adjust --skip-disk pvc-1"]
    # It is still a member, and hears of the others; but it does not serve.
    heard = outcome("adjust-links", links.steps[0].about)
    told = decided(changed(asked, outcomes=outcomes(failed, heard)))
    assert commands(told) == []
    assert told.status.datamesh_revision == asked.config.datamesh_revision


def test_a_demotion_is_allowed_also_while_the_adjustment_fails() -> None:
    asked = view(replica(config=config()), kernel(role="Primary"), unadjusted=True)
    first = decided(asked)
    refused = outcome("adjust", first.steps[0].about, output="Failure: (164) two primaries in use")
    assert commands(decided(changed(asked, outcomes=outcomes(refused)))) == [SECONDARY]
    promotion = changed(asked, replica=replica(config=config(primary=True)), outcomes=outcomes(refused))
    promotion = changed(promotion, kernel=view().kernel)
    assert commands(decided(promotion)) == []


def test_a_device_that_is_held_open_names_the_holder_and_is_tried_again() -> None:
    held = outcome("role", "secondary", exit_code=11, output=HELD_OPEN, times=9)
    asked = view(replica(), kernel(role="Primary"), outcomes=outcomes(held))
    decision = decided(asked)
    shown = errors(decision).last_promotion_error
    assert shown is not None
    assert shown.reason == "HeldOpen"
    assert "qemu (pid 480)" in shown.output
    assert shown.exit_code == 11
    assert decision.again == 10.0
    assert commands(decided(asked, NOW + timedelta(seconds=10))) == [SECONDARY]


def test_the_error_is_cleared_when_the_role_is_right_whoever_made_it_so() -> None:
    failed = outcome("role", "primary", exit_code=17, output="State change failed: (-2) Need access to UpToDate data")
    asked = view(replica(config=config(primary=True)), outcomes=outcomes(failed))
    shown = errors(decided(asked))
    assert shown.last_promotion_error is not None
    done = view(replica(config=config(primary=True), errors=shown), kernel(role="Primary"), outcomes=outcomes(failed))
    assert errors(decided(done)).last_promotion_error is None


HELD_BY_NOBODY = HELD_OPEN.partition("additional")[0]


@pytest.mark.parametrize(
    ("failing", "disk", "output", "expected"),
    [
        (True, "Diskless", HELD_BY_NOBODY, ["drbdsetup down pvc-1"]),
        (True, "Diskless", HELD_OPEN, [PRIMARY]),
        (False, "Diskless", HELD_BY_NOBODY, [PRIMARY]),
        (True, "UpToDate", HELD_BY_NOBODY, [PRIMARY]),
    ],
)
def test_who_fails_the_io_of_nobody_starts_anew_if_it_has_nothing_to_lose(
    failing: bool, disk: str, output: str, expected: list[str]
) -> None:
    kind = {} if disk == "UpToDate" else DISKLESS
    shown = replace(kernel(disk), force_io_failures=failing)
    tried = outcomes(outcome("role", "primary", exit_code=11, output=output, age=60.0))
    one = view(replica(config=config(primary=True, **kind)), shown, outcomes=tried)
    assert commands(decided(one)) == expected


# By force, as a person has said.

FORCED = "drbdsetup secondary --force pvc-1"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"unadjusted": True},
        {"files_current": False},
        {"busy": True, "hung": True},
        {"outcomes": outcomes(outcome("role", "secondary", exit_code=11, output=HELD_OPEN))},
    ],
    ids=["at rest", "not adjusted", "nothing known of its files", "other work hangs", "refused so far"],
)
def test_a_demotion_by_force_comes_before_all_else_and_waits_for_no_other_work(given: dict[str, Any]) -> None:
    asked = view(replica(config=config(force_secondary=True)), kernel(role="Primary", quorum=False), **given)
    decision = decided(asked)
    assert commands(decision) == [FORCED]
    assert decision.work == "force/pvc-1"
    assert decision.status.datamesh_revision == asked.replica.status.datamesh_revision


@pytest.mark.parametrize("down", [False, True])
def test_a_replica_that_is_to_be_down_is_demoted_by_force_first(down: bool) -> None:
    asked = view(replica(config=config(force_secondary=True, down=down)), kernel(role="Primary"))
    assert commands(decided(asked)) == [FORCED]


def test_nothing_is_forced_that_is_secondary_or_is_to_be_primary_or_is_somebody_elses() -> None:
    told = config(force_secondary=True)
    assert commands(decided(view(replica(config=told), kernel()))) == []
    assert commands(decided(view(replica(config=replace(told, primary=True)), kernel(role="Primary")))) == []
    other = kernel(role="Primary")
    foreign = replace(other, devices=(replace(other.devices[0], minor=7),))
    assert FORCED not in commands(decided(view(replica(config=told), foreign)))


def test_a_demotion_by_force_that_hangs_or_fails_is_told_and_the_latter_tried_again() -> None:
    asked = view(replica(config=config(force_secondary=True)), kernel(role="Primary"))
    hangs = changed(outcome("force", exit_code=None, output="drbdsetup says nothing"), hung=True)
    shown = errors(decided(changed(asked, outcomes=outcomes(hangs)))).last_promotion_error
    assert shown is not None
    assert shown.reason == "CommandHung"
    refused = outcome("force", exit_code=11, output="State change failed: (-10) refused by peer", times=9)
    decision = decided(changed(asked, outcomes=outcomes(refused)))
    assert commands(decision) == []
    assert decision.again == 10.0
    shown = errors(decision).last_promotion_error
    assert shown is not None
    assert shown.exit_code == 11
    assert commands(decided(changed(asked, outcomes=outcomes(refused)), NOW + timedelta(seconds=10))) == [FORCED]
