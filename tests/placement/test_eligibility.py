"""Which nodes a pool lists, and what it says of each: grace periods, label selectors, every field."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from quorate.api import annotation_keys, core
from quorate.api.cluster_config import ClusterConfigSpec
from quorate.api.duration import Duration
from quorate.api.storage.configuration import EligibleNodesPolicy
from quorate.api.storage.lvg import LVMVolumeGroup, ThinPoolStatus, VolumeGroupPhase
from quorate.api.storage.rsp import (
    EligibleNode,
    EligibleVolumeGroup,
    LabelRequirement,
    LabelSelector,
    SelectorOperator,
)
from quorate.placement.eligibility import MOST_NODES, Eligible, Machine, eligible
from quorate.placement.grace import grace_left, grace_period, not_ready_since
from quorate.placement.selector import flaw, matches
from tests.placement.objects import NOW, group, machine, pool

GRACE = Duration("10m")


def listing(
    *nodes: core.Node, groups: tuple[LVMVolumeGroup, ...] = (), silent_for: float | None = 0.0, **said: Any
) -> Eligible:
    """Of a pool that is made of all these groups, with an agent on every node."""
    members = said.pop("members", None) or [found.name for found in groups] or ["none"]
    spec = pool(*members, **said).spec
    machines = [Machine(node, silent_for, has_agent=True) for node in nodes]
    return eligible(spec, {g.name: g for g in groups}, machines, grace=GRACE, patience=40, now=NOW)


def only(found: Eligible) -> EligibleNode:
    (node,) = found.nodes
    return node


def names(found: Eligible) -> list[str]:
    return [node.node_name for node in found.nodes]


def ago(**span: float) -> Any:
    return NOW - timedelta(**span)


def test_a_node_is_listed_with_its_zone_and_its_groups_in_order() -> None:
    found = listing(machine("n", "a"), groups=(group("y", "n"), group("x", "n"), group("z", "other")))
    assert only(found) == EligibleNode(
        node_name=machine("n").name,  # type: ignore[arg-type]
        zone_name="a",
        lvm_volume_groups=(EligibleVolumeGroup(name="x", ready=True), EligibleVolumeGroup(name="y", ready=True)),
        node_ready=True,
        agent_ready=True,
    )


@pytest.mark.parametrize(
    ("made", "ready"),
    [
        (group("g", "n"), True),
        (group("g", "n", phase=VolumeGroupPhase.NOT_READY), False),
        (group("g", "n", phase=VolumeGroupPhase.PENDING), False),
        (group("g", "n", deletion_timestamp=NOW), False),
    ],
)
def test_a_group_is_ready_when_its_agent_says_so_and_it_is_not_going(made: LVMVolumeGroup, ready: bool) -> None:
    assert [found.ready for found in only(listing(machine("n"), groups=(made,))).lvm_volume_groups] == [ready]


@pytest.mark.parametrize(
    ("thin", "ready"),
    [
        ([ThinPoolStatus(name="t", ready=True)], True),
        ([ThinPoolStatus(name="t", ready=False)], False),
        ([ThinPoolStatus(name="other", ready=True)], False),
        ([], False),
    ],
)
def test_a_thin_pool_is_ready_when_it_is_there_and_well(thin: list[ThinPoolStatus], ready: bool) -> None:
    found = listing(machine("n"), groups=(group("g", "n", thin=thin),), members=["g/t"])
    assert only(found).lvm_volume_groups == (EligibleVolumeGroup(name="g", thin_pool_name="t", ready=ready),)


def test_a_group_that_a_person_marked_takes_nothing_new() -> None:
    marked = group("g", "n", annotations={annotation_keys.UNSCHEDULABLE: ""})
    assert [found.unschedulable for found in only(listing(machine("n"), groups=(marked,))).lvm_volume_groups] == [True]


@pytest.mark.parametrize(
    ("node", "barred"),
    [
        (machine("n"), False),
        (machine("n", unschedulable=True), True),
        (machine("n", annotations={annotation_keys.EVACUATE: "true"}), True),
        (machine("n", annotations={annotation_keys.EVACUATE: "false"}), False),
    ],
)
def test_a_node_that_is_cordoned_or_to_be_evacuated_takes_nothing_new(node: core.Node, barred: bool) -> None:
    """M29: the cordon of Kubernetes only bars new placement, the annotation does so as well."""
    assert only(listing(node)).unschedulable is barred


@pytest.mark.parametrize(("silent_for", "ready"), [(0.0, True), (40.0, True), (40.1, False), (None, False)])
def test_an_agent_is_ready_while_its_lease_is_seen_to_change(silent_for: float | None, ready: bool) -> None:
    assert only(listing(machine("n"), silent_for=silent_for)).agent_ready is ready


@pytest.mark.parametrize(
    ("node", "listed", "look_again"),
    [
        (machine("n", ready="True", since=ago(days=9)), True, None),
        (machine("n", ready="False", since=ago(minutes=4)), True, 360.0),
        (machine("n", ready="Unknown", since=ago(minutes=9, seconds=59)), True, 1.0),
        (machine("n", ready="False", since=ago(minutes=10)), False, None),
        (machine("n", ready=None, since=ago(minutes=1)), True, 540.0),
        (machine("n", ready=None, since=ago(minutes=11)), False, None),
        (machine("n", ready="False", since=NOW + timedelta(hours=1)), True, 600.0),
        (machine("n", deletion_timestamp=NOW), False, None),
    ],
)
def test_a_node_that_is_not_ready_stays_listed_until_its_grace_is_over(
    node: core.Node, listed: bool, look_again: float | None
) -> None:
    found = listing(node)
    assert (bool(found.nodes), found.look_again_in) == (listed, look_again)
    assert all(shown.node_ready is (look_again is None) for shown in found.nodes)


def test_it_looks_again_when_the_first_grace_is_over() -> None:
    found = listing(*(machine(f"n{m}", ready="False", since=ago(minutes=m)) for m in (1, 7, 3)))
    assert found.look_again_in == 180.0


def test_only_nodes_in_the_zones_of_the_pool_are_listed() -> None:
    found = listing(machine("x", "a"), machine("y", "b"), machine("z"), zones=("a",))
    assert names(found) == ["x"]


def test_only_nodes_with_the_labels_of_the_pool_are_listed() -> None:
    ssd = LabelSelector(match_labels={"disk": "ssd"})
    found = listing(machine("x", labels={"disk": "ssd"}), machine("y"), node_label_selector=ssd)
    assert names(found) == ["x"]


def test_a_node_without_an_agent_is_listed_only_for_its_groups() -> None:
    machines = [Machine(machine(name), None, has_agent=False) for name in ("with", "without")]
    groups = {"g": group("g", "with")}
    found = eligible(pool("g").spec, groups, machines, grace=GRACE, patience=40, now=NOW)
    assert names(found) == ["with"]


def test_where_not_all_can_be_listed_those_with_disks_are() -> None:
    nodes = [machine(f"n{number:04}") for number in range(MOST_NODES + 2)]
    last = nodes[-1].name
    found = listing(*nodes, groups=(group("g", last),))
    assert (len(found.nodes), found.beyond) == (MOST_NODES, 2)
    assert names(found) == sorted(names(found))
    assert names(found)[-1] == last


# Grace.


def test_the_grace_is_the_first_that_somebody_gives() -> None:
    config, none = ClusterConfigSpec(), EligibleNodesPolicy()
    hour, minute = (EligibleNodesPolicy(not_ready_grace_period=Duration(text)) for text in ("1h", "1m"))
    assert grace_period(config) == grace_period(config, none, None) == Duration("10m")
    assert grace_period(config, minute, hour) == Duration("1m")
    assert grace_period(config, none, hour) == Duration("1h")


def test_a_node_that_nobody_knows_a_time_of_is_never_lost() -> None:
    unknown = machine("n", ready=None, creation_timestamp=None)
    assert not_ready_since(unknown) is None
    assert grace_left(unknown, GRACE, NOW) is None
    assert names(listing(unknown)) == ["n"]


# Selectors.


def requirement(operator: str, *values: str, key: str = "tier") -> LabelSelector:
    return LabelSelector(
        match_expressions=(LabelRequirement(key=key, operator=SelectorOperator(operator), values=values),)
    )


@pytest.mark.parametrize(
    ("selector", "met_by", "not_met_by"),
    [
        (None, [{}, {"tier": "a"}], []),
        (LabelSelector(), [{}, {"tier": "a"}], []),
        (LabelSelector(match_labels={"tier": "a", "x": ""}), [{"tier": "a", "x": ""}], [{"tier": "a"}, {"x": ""}]),
        (requirement("In", "a", "b"), [{"tier": "a"}, {"tier": "b"}], [{"tier": "c"}, {}]),
        (requirement("NotIn", "a", "b"), [{"tier": "c"}, {}], [{"tier": "a"}]),
        (requirement("Exists"), [{"tier": ""}], [{}]),
        (requirement("DoesNotExist"), [{}], [{"tier": ""}]),
    ],
)
def test_a_selector_means_what_it_means_in_kubernetes(
    selector: LabelSelector | None, met_by: list[dict[str, str]], not_met_by: list[dict[str, str]]
) -> None:
    assert flaw(selector) is None
    assert all(matches(selector, labels) for labels in met_by)
    assert not any(matches(selector, labels) for labels in not_met_by)


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (requirement("In"), "tier In has no values: it needs at least one"),
        (requirement("NotIn"), "tier NotIn has no values: it needs at least one"),
        (requirement("Exists", "a"), "tier Exists has values: it takes none"),
        (requirement("DoesNotExist", "a"), "tier DoesNotExist has values: it takes none"),
        (requirement("Exists", key="a b"), "'a b' is not a label's key"),
        (LabelSelector(match_labels={"a/b/c": "x"}), "'a/b/c' is not a label's key"),
        (LabelSelector(match_labels={"a": "not ok"}), "'not ok' is not a label's value"),
    ],
)
def test_a_selector_that_cannot_be_used_is_named_with_its_flaw(selector: LabelSelector, words: str) -> None:
    assert (flaw(selector) or "").startswith(words)
