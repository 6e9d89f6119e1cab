"""What counts as an orphan, and what is said of it: pure, beside the stories of ``tests/volumes/test_orphans.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as replaced
from datetime import UTC, datetime
from random import Random
from typing import Any
from unittest.mock import Mock, patch

import pytest

from quorate.agent.lvm.seen import METADATA_TAG, NEW, SeenVolume, SeenVolumes, owner_tag, volume_tag
from quorate.agent.node import ORPHANS_KEY
from quorate.agent.node import Node as AgentsNode
from quorate.agent.orphans import Orphans as OrphansOfTheNode
from quorate.agent.orphans import OrphansView, found
from quorate.agent.steps import FILE, Look, Run, Step
from quorate.api import annotation_keys, longhorn, names
from quorate.api.conditions.inventory import Orphans
from quorate.api.core import Lease, Node
from quorate.api.core.lease import LeaseSpec
from quorate.api.longhorn.node import MAX_ORPHANS, NodeStatus, Orphan, OrphanType
from quorate.api.meta import Bytes, NodeName, ObjectMeta, Resource
from quorate.api.storage.drbd import Device, DiskState, DrbdStatus, Role
from quorate.api.struct import replace
from quorate.disks.inventory import INVENTORY_CONTROLLER
from quorate.engine import Patch, PatchStatus
from quorate.engine.clock import SystemClock
from tests.disks.making import pass_over, status_written

LONG = "v" * 200


def disk(name: str, *tags: str, uuid: str = "u1", attributes: str = "-wi-a-----") -> SeenVolume:
    return SeenVolume("vg0", name, uuid, size=4096, attributes=attributes, tags=frozenset(tags))


def resource(name: str = "web", role: str = Role.SECONDARY, state: str = DiskState.UP_TO_DATE) -> DrbdStatus:
    return DrbdStatus(name=name, role=role, devices=(Device(minor=7, disk_state=state, size=4),))


def told(name: str, volume: str, message: str = "", *, data: bool, id_: str = "u1") -> Orphan:
    sort = OrphanType.LOGICAL_VOLUME if "/" in name else OrphanType.RESOURCE
    return Orphan(id=id_, type=sort, name=name, volume_name=volume, size=Bytes(4096), holds_data=data, message=message)


def view(
    *left: SeenVolume,
    resources: Iterable[DrbdStatus] | None = (),
    files: Iterable[str] = ("web",),
    known: tuple[Orphan, ...] = (),
    incomplete: str = "",
    asked: str = "",
) -> OrphansView:
    annotations = {annotation_keys.REMOVE_ORPHANS: asked} if asked else {}
    return OrphansView(
        longhorn.Node(metadata=ObjectMeta(name="n1", annotations=annotations), status=NodeStatus(orphans=known)),
        "agent",
        SeenVolumes(left, incomplete),
        left,
        tuple(resources) if resources is not None else None,
        frozenset(files),
    )


def decided(seen: OrphansView) -> tuple[NodeStatus, list[Step]]:
    """What is reported, and begun after that."""
    node = AgentsNode(NodeName("n1"), Mock(), clock=SystemClock(), random=Random(1))
    with patch.object(node.hands, "start") as start:
        plan = OrphansOfTheNode(node).decide(seen, datetime(2026, 11, 18, tzinfo=UTC), Random(1))
        for effect in plan.effects:
            effect()
    assert isinstance(plan.status, PatchStatus)
    intended: Any = plan.status.intended
    return intended.status, [step for call in start.call_args_list for step in call.args[1]]


def after(seen: OrphansView) -> OrphansView:
    """The same, when that was reported."""
    return replaced(seen, inventory=replace(seen.inventory, status=decided(seen)[0]))


PLAIN = told("vg0/replica-web-0-01234567", "web", data=False)
UP = told("web", "web", data=True, id_="drbd/web")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (view(disk("replica-web-0-01234567", owner_tag("x"))), (PLAIN,)),
        (
            view(disk("replica-web-0-01234567", owner_tag("x"), METADATA_TAG)),
            (told("vg0/replica-web-0-01234567", "web", data=True),),
        ),
        # A name that was cut short says nothing; the tag does.
        (
            view(disk("replica-vvvv-0123456789abcdef", volume_tag(LONG), METADATA_TAG)),
            (told("vg0/replica-vvvv-0123456789abcdef", LONG, data=True),),
        ),
        (
            view(disk("image-web-0-copy-01234567", owner_tag("x"))),
            (told("vg0/image-web-0-copy-01234567", "", data=False),),
        ),
        (view(disk("quorate-spare-x", NEW)), (told("vg0/quorate-spare-x", "", data=False),)),
        (
            view(disk("replica-web-0-01234567", owner_tag("x"), attributes="-wi-ao----")),
            (told("vg0/replica-web-0-01234567", "web", "/dev/vg0/replica-web-0-01234567 is open", data=False),),
        ),
        (view(resources=[resource()]), (UP,)),
        (view(resources=[resource(state=DiskState.DISKLESS)]), (told("web", "web", data=False, id_="drbd/web"),)),
        (
            view(resources=[resource(role=Role.PRIMARY)]),
            (told("web", "web", "/dev/drbd7 is in use", data=True, id_="drbd/web"),),
        ),
        # Somebody else's: no file of ours is there.
        (view(resources=[resource("linstor-1")]), ()),
        # Gone.
        (view(known=(PLAIN, UP)), ()),
        # Not seen: that is not gone.
        (view(known=(PLAIN, UP), incomplete="lvs ended with 5"), (PLAIN,)),
        (view(known=(PLAIN, UP), resources=None), (UP,)),
    ],
)
def test_what_is_left_is_told_of_as_it_is(seen: OrphansView, expected: tuple[Orphan, ...]) -> None:
    assert found(seen) == expected


def looked_at(status: NodeStatus, said: str | None = None, holder: str = "agent") -> tuple[str, str | None]:
    """The condition's reason, and what becomes of a person's word."""
    annotations = {annotation_keys.REMOVE_ORPHANS: said} if said is not None else {}
    metadata = ObjectMeta(name="n1", namespace=names.NAMESPACE, annotations=annotations)
    objects: list[Resource] = [
        longhorn.Node(metadata=metadata, status=status),
        Node(metadata=ObjectMeta(name="n1")),
        Lease(
            metadata=ObjectMeta(name="quorate-agent-n1", namespace=names.NAMESPACE),
            spec=LeaseSpec(holder_identity=holder),
        ),
    ]
    plan = pass_over(INVENTORY_CONTROLLER, "n1", *objects)
    written = status_written(plan)
    reason = next(each.reason for each in written.status.conditions if each.type == Orphans.__name__)
    kept = [
        each.intended for each in plan.writes if isinstance(each, Patch) and isinstance(each.intended, longhorn.Node)
    ]
    word = (kept[0] if kept else written).metadata.annotations.get(annotation_keys.REMOVE_ORPHANS)
    return reason, word


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (NodeStatus(orphans_reported_by="agent"), None, ("NoOrphans", None)),
        (NodeStatus(orphans_reported_by="one before"), None, ("NotReported", None)),
        (NodeStatus(orphans=(PLAIN,), orphans_reported_by="agent"), None, ("OrphansFound", None)),
        (NodeStatus(orphans=(PLAIN,), orphans_reported_by="agent"), "u1", ("OrphansFound", "u1")),
        # A word about one that is gone is spent: it is not meant for one that comes back.
        (NodeStatus(orphans=(PLAIN,), orphans_reported_by="agent"), "u0,u1", ("OrphansFound", "u1")),
        (NodeStatus(orphans_reported_by="agent"), "u1", ("NoOrphans", None)),
        # Nobody has looked since.
        (NodeStatus(orphans_reported_by="one before"), "u1", ("NotReported", "u1")),
        (NodeStatus(orphans=(PLAIN,), orphans_reported_by="one before"), "u0,u1", ("NotReported", "u0,u1")),
    ],
)
def test_the_condition_and_a_persons_word_follow_the_report(
    status: NodeStatus, said: str | None, expected: tuple[str, str | None]
) -> None:
    assert looked_at(status, said) == expected


def test_orphans_are_an_event_once_and_not_at_each_start_of_the_agent() -> None:
    node = longhorn.Node(metadata=ObjectMeta(name="n1", namespace=names.NAMESPACE))
    node = replace(node, status=NodeStatus(orphans=(PLAIN,), orphans_reported_by="agent"))
    events = []
    for holder in ("agent", "agent", "the next one"):
        for reporter in dict.fromkeys((node.status.orphans_reported_by, holder)):
            node = replace(node, status=replace(node.status, orphans_reported_by=reporter))
            lease = Lease(
                metadata=ObjectMeta(name="quorate-agent-n1", namespace=names.NAMESPACE),
                spec=LeaseSpec(holder_identity=holder),
            )
            plan = pass_over(INVENTORY_CONTROLLER, "n1", node, Node(metadata=ObjectMeta(name="n1")), lease)
            node = status_written(plan)
            events += [each.message for each in plan.events if each.reason == "OrphansFound"]
    assert events == [f"n1 has, without an object: logical volume {PLAIN.name} of volume web, without data"]


@pytest.mark.parametrize("name", ["all", "minor-7"])
def test_by_a_name_that_means_other_resources_to_drbds_tools_nothing_is_done(name: str) -> None:
    """``drbdsetup down all`` takes down everything on the node."""
    seen = view(resources=[resource(name)], files=[name], asked=f"drbd/{name}")
    (left,) = found(seen)
    assert left.name == name
    assert "DRBD's tools give this name a meaning" in left.message
    assert decided(after(seen))[1] == []
    assert decided(after(view(resources=[resource()], asked="drbd/web")))[1]


def test_a_resource_whose_file_nobody_has_looked_for_yet_is_not_known_to_be_gone() -> None:
    unread = replaced(view(resources=[resource()], files=(), known=(UP,)), unread=frozenset({"web"}))
    assert found(unread) == (UP,)
    assert found(view(resources=[resource()], files=(), known=(UP,))) == ()


@pytest.mark.parametrize(
    ("seen", "reporter"),
    [
        (view(), "agent"),
        (view(incomplete="lvs ended with 5"), ""),
        (view(resources=None), ""),
        (replaced(view(), looks=(Look(FILE, "/etc/drbd.d/web.res"),)), ""),
        (replaced(view(), volumes=None), ""),
    ],
)
def test_an_agent_has_reported_when_it_has_looked_at_everything(seen: OrphansView, reporter: str) -> None:
    """Volumes wait for that report: one that is made too early lets them be formed beside their data."""
    assert decided(seen)[0].orphans_reported_by == reporter


def test_where_lvm_cannot_be_looked_at_resources_are_told_of_all_the_same() -> None:
    seen = replaced(view(resources=[resource()], known=(PLAIN,)), volumes=None)
    assert decided(seen)[0].orphans == (PLAIN, UP)


def test_nothing_is_removed_in_a_pass_that_writes_first() -> None:
    """By the time that it is written an object may be there, which the pass has not seen."""
    seen = view(disk("replica-web-0-01234567", owner_tag("x")), asked="u1")
    assert decided(seen)[1] == []
    assert decided(after(seen))[1]


def test_the_very_one_that_was_seen_is_removed_whatever_has_its_name_by_then() -> None:
    seen = view(disk("replica-web-0-01234567", owner_tag("x")), asked="u1")
    lvremove, *_ = decided(after(seen))[1]
    assert isinstance(lvremove, Run)
    assert lvremove.argv[-3:] == ("--select", "lv_uuid=u1", "vg0")


def test_where_orphans_are_too_many_those_with_data_are_listed() -> None:
    empty = [disk(f"replica-a{number}-0-01234567", owner_tag("x"), uuid=f"u{number}") for number in range(MAX_ORPHANS)]
    full = disk("replica-web-0-01234567", owner_tag("x"), METADATA_TAG, uuid="full")
    listed = found(view(*empty, full))
    assert len(listed) == MAX_ORPHANS
    assert [each.id for each in listed if each.holds_data] == ["full"]


def test_a_resource_of_which_the_kernels_words_could_not_be_read_is_not_known_to_be_gone() -> None:
    node = AgentsNode(NodeName("n1"), Mock(), clock=SystemClock(), random=Random(1))
    node.memory.whole_kernel.saw(("web",), marks=0)
    node.memory.resource("web").failed("too many peers", marks=0)
    known = longhorn.Node(metadata=ObjectMeta(name="n1", namespace=names.NAMESPACE), status=NodeStatus(orphans=(UP,)))
    reader = Mock(get=Mock(return_value=known), list=Mock(return_value=()))
    seen = OrphansOfTheNode(node).observe(reader, ORPHANS_KEY)
    assert seen is not None
    assert found(seen) == (UP,)
    node.memory.resource("web").saw(None, marks=node.memory.resource("web").marks)
    gone = OrphansOfTheNode(node).observe(reader, ORPHANS_KEY)
    assert gone is not None
    assert found(gone) == ()
