"""A whole request: codes, what is granted, what is left, and how long permissions last."""

from __future__ import annotations

import pytest

from quorate.api.maintenance.action import ActionType, Issue, StatusCode
from quorate.maintenance.evaluation import Grant
from quorate.maintenance.messages import Action
from quorate.maintenance.nouns import Species
from quorate.maintenance.rules import evaluate
from tests.maintenance.rules.making import (
    MINUTE,
    NOW,
    Scene,
    granted,
    replace_devices,
    request,
    restart,
    settings,
    shut_down,
)

SUPPORTED = {ActionType.RESTART_SERVICES, ActionType.SHUTDOWN_HOST, ActionType.REPLACE_DEVICES}
UNSUPPORTED = sorted(set(ActionType) - SUPPORTED)

LOCKED = shut_down("h2")
OF_NO_REDUNDANCY = shut_down("h3")
WRONG = restart("h1", "mail")
ERROR = Action(type=ActionType.ADD_HOST, host="h9")
NO_HOST = shut_down("nobody")
NO_DEVICE = replace_devices("pdisk-1-9")
NO_SERVICE = restart("h1", "dynnode")


def scene() -> Scene:
    """h1 may go; h2 is locked; h3 has a group without redundancy."""
    made = Scene()
    made.hold("h2")
    made.group([3], Species.NONE)
    return made


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (LOCKED, StatusCode.DISALLOW_TEMP),
        (OF_NO_REDUNDANCY, StatusCode.DISALLOW),
        (WRONG, StatusCode.WRONG_REQUEST),
        (restart("h1"), StatusCode.WRONG_REQUEST),
        (Action(host="h1"), StatusCode.WRONG_REQUEST),
        (replace_devices(), StatusCode.WRONG_REQUEST),
        (ERROR, StatusCode.ERROR),
        (NO_HOST, StatusCode.NO_SUCH_HOST),
        (shut_down(""), StatusCode.NO_SUCH_HOST),
        (shut_down("0"), StatusCode.NO_SUCH_HOST),
        (shut_down("01"), StatusCode.NO_SUCH_HOST),
        (replace_devices("pdisk-1-1", host="nobody"), StatusCode.NO_SUCH_HOST),
        (NO_DEVICE, StatusCode.NO_SUCH_DEVICE),
        (replace_devices("/dev/sdb"), StatusCode.NO_SUCH_DEVICE),
        (replace_devices("/dev/sdz", host="h1"), StatusCode.NO_SUCH_DEVICE),
        (replace_devices("vdisk-3-1-0-0-0"), StatusCode.NO_SUCH_DEVICE),
        (replace_devices("pdisk-01-1"), StatusCode.NO_SUCH_DEVICE),
        (NO_SERVICE, StatusCode.NO_SUCH_SERVICE),
    ],
)
def test_each_fault_has_its_code(action: Action, code: StatusCode) -> None:
    answer = scene().ask(action)
    assert answer.code is code
    assert answer.reason
    assert [refusal.code for refusal in answer.refusals] == [code]


@pytest.mark.parametrize("type_", UNSUPPORTED)
def test_unsupported_actions_are_errors_that_name_what_is_supported(type_: ActionType) -> None:
    answer = scene().ask(Action(type=type_, host="h1"))
    assert answer.code is StatusCode.ERROR
    assert all(supported in answer.reason for supported in SUPPORTED)


#: From the most hopeful to the least.
RANKED = [LOCKED, OF_NO_REDUNDANCY, WRONG, ERROR, NO_HOST, NO_DEVICE]


@pytest.mark.parametrize("better", range(len(RANKED) - 1))
def test_of_two_refusals_the_more_hopeful_one_speaks_for_the_request(better: int) -> None:
    for worse in range(better + 1, len(RANKED)):
        for actions in ([RANKED[better], RANKED[worse]], [RANKED[worse], RANKED[better]]):
            alone = scene().ask(RANKED[better])
            both = scene().ask(*actions, partial=True)
            assert (both.code, both.reason) == (alone.code, alone.reason)


def test_a_missing_service_ranks_as_a_temporary_refusal_and_the_first_stays() -> None:
    assert scene().ask(NO_SERVICE, LOCKED, partial=True).code is StatusCode.NO_SUCH_SERVICE
    assert scene().ask(LOCKED, NO_SERVICE, partial=True).code is StatusCode.DISALLOW_TEMP


def test_nothing_asked_is_allowed() -> None:
    answer = scene().ask()
    assert (answer.code, answer.grants) == (StatusCode.ALLOW, ())


def test_all_or_nothing_ends_with_the_first_failure() -> None:
    answer = scene().ask("h1", "h2", "nobody")
    assert (answer.code, answer.grants) == (StatusCode.DISALLOW_TEMP, ())
    assert len(answer.refusals) == 1


def test_in_part_whatever_passes_is_granted_in_the_order_asked() -> None:
    answer = scene().ask("h5", "h2", "h1", "nobody", partial=True)
    assert answer.code is StatusCode.ALLOW_PARTIAL
    assert granted(answer) == ["h5", "h1"]
    assert (answer.reason, answer.deadline) == ("", None)


@pytest.mark.parametrize(
    ("actions", "partial", "left"),
    [
        (["h1", "h2", "nobody"], True, ["h2", "nobody"]),
        (["h2", "nobody"], True, ["h2", "nobody"]),
        (["h1", "h2", "h5"], False, ["h1", "h2", "h5"]),
        (["nobody", "h1"], False, []),
        (["nobody"], True, []),
        (["h3"], True, []),
        (["h1", "h5"], True, []),
    ],
)
def test_what_a_stored_request_keeps(actions: list[str], partial: bool, left: list[str]) -> None:
    assert [action.host for action in scene().ask(*actions, partial=partial).left] == left


def test_what_is_left_carries_why_and_is_asked_again_without_it() -> None:
    made = scene()
    answer = made.ask("h1", "h2", partial=True)
    assert answer.left[0].issue is not None
    made.model.release("bob-p-1")
    again = evaluate(made.model, request(*answer.left, partial=True), NOW)
    assert again.grants == (Grant(shut_down("h2"), MINUTE),)


def test_why_is_kept_for_a_hundred_actions() -> None:
    made = Scene(1)
    made.hold("h1")
    left = made.ask(*["h1"] * 150, partial=True).left
    assert sum(action.issue is not None for action in left) == 100
    assert len(left) == 150


def test_an_old_issue_does_not_stand_in_the_way() -> None:
    asked = Action(type=ActionType.SHUTDOWN_HOST, host="h1", issue=Issue(message="old"))
    assert scene().ask(asked).grants[0].action.issue is None


@pytest.mark.parametrize(
    ("action", "given", "lasts"),
    [
        (3 * MINUTE, 7 * MINUTE, 3 * MINUTE),
        (None, 7 * MINUTE, 7 * MINUTE),
        (None, None, 10 * MINUTE),
        (0, 7 * MINUTE, 7 * MINUTE),
        (0, 0, 10 * MINUTE),
        (None, 0, 10 * MINUTE),
    ],
)
def test_a_permission_lasts_as_the_action_says_or_the_request_or_the_settings(
    action: int | None, given: int | None, lasts: int
) -> None:
    answer = scene().ask(shut_down("h1", action), duration=given)
    assert answer.grants[0].permission_duration == lasts


def test_the_deadline_is_the_earliest_at_which_any_action_may_be_granted() -> None:
    made = Scene()
    made.hold("h1", lasts=9 * MINUTE)
    made.hold("h2", lasts=3 * MINUTE)
    assert made.ask("h1", "h2", partial=True).deadline == NOW + 3 * MINUTE
    assert made.ask("h1", "h2").deadline == NOW + 9 * MINUTE


def test_a_permanent_refusal_has_no_deadline() -> None:
    assert scene().ask("nobody").deadline is None
    assert scene().ask("h3").deadline is None


def test_a_cap_defers_the_rest_of_a_partial_request() -> None:
    made = scene()
    capped = evaluate(made.model, request("h1", "h5", "h6", partial=True), NOW, max_permissions=2)
    assert (capped.code, granted(capped)) == (StatusCode.ALLOW_PARTIAL, ["h1", "h5"])
    assert [action.host for action in capped.left] == ["h6"]
    none = evaluate(made.model, request("h1", partial=True), NOW, max_permissions=0)
    assert (none.code, none.deadline) == (StatusCode.DISALLOW_TEMP, NOW + 5 * MINUTE)
    together = evaluate(made.model, request("h1", "h5"), NOW, max_permissions=1)
    assert together.code is StatusCode.ALLOW


def test_weighing_a_request_leaves_the_model_as_it_was() -> None:
    made = scene()
    made.group(range(1, 9), group=7)
    version = made.model.version
    before = made.ask("h1", "h5", "h2", partial=True)
    assert made.model.version == version
    assert made.ask("h1", "h5", "h2", partial=True) == before


# Hosts, services, tenants, devices.


def test_a_host_is_named_or_numbered_and_means_all_its_nodes() -> None:
    made = Scene(3)
    made.node(2, host="h1")
    made.hold("1")
    assert made.ask("h1").code is StatusCode.DISALLOW_TEMP
    assert made.ask("2").code is StatusCode.ALLOW


def test_services_are_restarted_on_the_nodes_that_have_them() -> None:
    made = Scene(2)
    made.node(2, host="h1", services=("dynnode",))
    made.hold("2")
    assert made.ask(restart("h1", "storage")).code is StatusCode.ALLOW
    assert made.ask(restart("h1", "dynnode")).code is StatusCode.DISALLOW_TEMP
    assert made.ask(restart("h1", "dynnode", "storage")).code is StatusCode.DISALLOW_TEMP


def test_an_action_for_a_tenant_is_one_for_each_of_its_hosts() -> None:
    made = Scene(4, tenants={1: "red", 3: "red"})
    asked = Action(type=ActionType.SHUTDOWN_HOST, tenant="red", duration=MINUTE)
    assert made.ask(asked).grants == tuple(Grant(shut_down(host), MINUTE) for host in ("h1", "h3"))
    assert made.ask(Action(type=ActionType.SHUTDOWN_HOST, tenant="blue")).code is StatusCode.NO_SUCH_HOST


def test_a_device_is_named_or_given_by_its_path_on_the_host() -> None:
    made = Scene()
    made.group(range(1, 9))
    permission = made.hold(replace_devices("/dev/sdb", host="h2"))
    for device in ("pdisk-2-1", "vdisk-0-1-0-1-0"):
        assert made.ask(replace_devices(device)).code is StatusCode.DISALLOW_TEMP
    made.model.release(permission.id)
    assert made.ask(replace_devices("/dev/sdb", host="2")).code is StatusCode.ALLOW


def test_replacing_a_drive_asks_for_every_replica_on_it_and_only_those() -> None:
    made = Scene()
    made.group(range(1, 9), down=[5])
    assert made.ask(replace_devices("pdisk-1-1")).code is StatusCode.DISALLOW_TEMP
    made.group([2, 3, 4], group=1)
    made.model.remove_group(0)
    assert made.ask(replace_devices("pdisk-1-1")).code is StatusCode.ALLOW


def test_devices_are_taken_one_after_another_and_see_each_other() -> None:
    made = Scene()
    made.group(range(1, 9))
    assert made.ask(replace_devices("pdisk-1-1", "pdisk-2-1")).code is StatusCode.DISALLOW
    made.model.configure(settings())
    assert made.ask(replace_devices("pdisk-1-1")).code is StatusCode.ALLOW
