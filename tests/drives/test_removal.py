"""The removal pass by pass: what is asked of the broker, kept and destroyed, whatever a person takes back."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from quorate.api import core, names
from quorate.api.annotation_keys import BROKER_ID, DRIVE_HEALTH, DRIVE_REPLACEMENT
from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import (
    Detachment,
    DetachmentPhase,
    DriveSpec,
    DriveStatus,
    OperationalStatus,
    Presence,
)
from quorate.api.baremetal.volume import LocationType, VolumeSpec, VolumeStatus, VolumeUsage
from quorate.api.maintenance import PermissionRequest
from quorate.api.maintenance.action import Action, ActionType
from quorate.api.maintenance.permission_request import PermissionRequestSpec, PermissionRequestStatus
from quorate.api.meta import Bytes, NodeName, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.storage.llv import LogicalVolumeType, LVMLogicalVolumeSpec
from quorate.api.storage.lvg import LocalGroup, LVMVolumeGroupSpec, LVMVolumeGroupStatus
from quorate.api.struct import replace
from quorate.drives.controller import decide
from quorate.drives.view import USER, DriveView, Group, NodeView, Owner, Piece, request_name
from quorate.engine import Create, Delete, Patch, PatchStatus, Plan

OPERATIVE, RELEASING, RELEASED, FAILED, REMOVING, REMOVED = OperationalStatus
NODE = NodeName("n")
NOW = datetime(2026, 11, 16, tzinfo=UTC)


def a_drive(
    phase: OperationalStatus,
    said: str = "",
    *,
    health: str = "BAD",
    detachment: DetachmentPhase | None = None,
) -> Drive:
    """``said``: of its replacement. ``detachment``: how far the agent is with taking it apart."""
    annotations = {DRIVE_HEALTH[0]: health} | ({DRIVE_REPLACEMENT[0]: said} if said else {})
    return Drive(
        metadata=ObjectMeta(name="u", annotations=annotations),
        spec=DriveSpec(uuid="u", serial_number="S", node_id=NODE, path="/dev/sdb", vid="v", pid="p", size=Bytes(1000)),
        status=DriveStatus(
            presence=Presence.ONLINE,
            operational_status=phase,
            detach=detachment is not None,
            detachment=Detachment(phase=detachment, step="wipe", message="busy") if detachment is not None else None,
        ),
    )


def an_action(device: str = "/dev/sdb", *, type_: ActionType = ActionType.REPLACE_DEVICES, host: str = NODE) -> Action:
    return Action(type=type_, host=host, devices=(device,))


def a_request(drive: Drive, *permissions: str, user: str = USER, action: Action | None = None) -> PermissionRequest:
    return PermissionRequest(
        metadata=ObjectMeta(name=request_name(drive)),
        spec=PermissionRequestSpec(user=user, actions=(action or an_action(),)),
        status=PermissionRequestStatus(permissions=permissions),
    )


def with_a_copy(drive: Drive) -> Group:
    """The drive's group, with a replica's copy that has left."""
    lvg = LVMVolumeGroup(
        metadata=ObjectMeta(name="g"),
        spec=LVMVolumeGroupSpec(actual_vg_name_on_the_node="vg", local=LocalGroup(node_name=NODE)),
        status=LVMVolumeGroupStatus(vg_uuid="x"),
    )
    llv = LVMLogicalVolume(
        metadata=ObjectMeta(name="v-0-01234567"),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node="r",
            type=LogicalVolumeType.THICK,
            size=Quantity("64Mi"),
            lvm_volume_group_name="g",
        ),
    )
    volume = Volume(
        metadata=ObjectMeta(name=llv.name, namespace=names.NAMESPACE),
        spec=VolumeSpec(id=llv.name, location="g", location_type=LocationType.LVM, node_id=NODE),
        status=VolumeStatus(usage=VolumeUsage.RELEASED),
    )
    return Group(lvg, (drive,), (Piece(llv, volume, Owner.REPLICA),), (volume,))


def passed(drive: Drive, request: PermissionRequest | None = None, *groups: Group) -> Plan:
    """One pass over a node with this drive."""
    machine = core.Node(metadata=ObjectMeta(name=NODE))
    return decide(NodeView(NODE, machine, True, (DriveView(drive, groups, request),), groups), NOW, Random(0))


def after(plan: Plan, drive: Drive) -> Drive:
    """The drive as a pass leaves it."""
    for write in plan.writes:
        if isinstance(write, PatchStatus) and isinstance(write.intended, Drive):
            drive = replace(drive, status=write.intended.status)
        elif isinstance(write, Patch) and isinstance(write.intended, Drive):
            drive = replace(drive, metadata=write.intended.metadata)
    return drive


def deleted(plan: Plan) -> list[str]:
    return [write.obj.KIND.name for write in plan.writes if isinstance(write, Delete)]


def asks(plan: Plan) -> bool:
    return any(isinstance(write, Create) and isinstance(write.obj, PermissionRequest) for write in plan.writes)


@pytest.mark.parametrize("phase", [DetachmentPhase.FAILED, DetachmentPhase.DONE])
def test_the_permission_is_kept_while_the_agent_may_be_at_it_whatever_is_taken_back(phase: DetachmentPhase) -> None:
    drive = a_drive(FAILED, detachment=phase)
    plan = passed(drive, a_request(drive, "p-1"))
    assert deleted(plan) == []
    assert after(plan, drive).status.operational_status is FAILED


def test_a_drive_is_not_removed_before_the_broker_allows_it_even_if_its_agent_is_done() -> None:
    drive = a_drive(REMOVING, "ready", detachment=DetachmentPhase.DONE)
    assert after(passed(drive), drive).status.operational_status is REMOVING
    waiting = a_request(drive)
    assert after(passed(drive, waiting), drive).status.operational_status is REMOVING
    assert after(passed(drive, a_request(drive, "p-1")), drive).status.operational_status is REMOVED


def test_a_question_that_somebody_deletes_is_asked_again_while_its_answer_is_needed() -> None:
    assert asks(passed(a_drive(REMOVING, "ready")))
    assert asks(passed(a_drive(REMOVED, "ready", detachment=DetachmentPhase.DONE)))
    assert asks(passed(a_drive(FAILED, detachment=DetachmentPhase.FAILED)))
    assert not asks(passed(a_drive(RELEASED)))
    assert not asks(passed(a_drive(FAILED)))


def test_who_takes_ready_back_when_the_permission_comes_loses_nothing() -> None:
    said, unsaid = a_drive(REMOVING, "ready"), a_drive(REMOVING)
    assert "Volume" in deleted(passed(said, a_request(said, "p-1"), with_a_copy(said)))
    plan = passed(unsaid, a_request(unsaid, "p-1"), with_a_copy(unsaid))
    assert "Volume" not in deleted(plan)
    assert after(plan, unsaid).status.operational_status is RELEASED


@pytest.mark.parametrize(
    ("drive", "kept"),
    [
        # It returns: whoever says ``ready`` next must be a person.
        (a_drive(RELEASING, "ready", health="GOOD"), False),
        (a_drive(OPERATIVE, "ready", health="GOOD"), False),
        (a_drive(OPERATIVE, "ready", health="UNKNOWN"), False),
        (a_drive(OPERATIVE, "restart", health="BAD"), False),
        # It leaves, or is on its way out.
        (a_drive(OPERATIVE, "ready", health="BAD"), True),
        (a_drive(RELEASING, "ready", health="BAD"), True),
        (a_drive(RELEASED, "ready", health="GOOD"), True),
        (a_drive(RELEASED, "restart", health="GOOD"), True),
    ],
)
def test_what_was_said_of_one_replacement_is_not_kept_for_the_next(drive: Drive, kept: bool) -> None:
    """M15: nothing is removed without the word of a person."""
    assert (DRIVE_REPLACEMENT[0] in after(passed(drive), drive).metadata.annotations) is kept


def test_without_slots_a_new_drive_closes_one_that_is_out_and_of_two_neither() -> None:
    def out(name: str) -> DriveView:
        drive = a_drive(REMOVED, "ready", detachment=DetachmentPhase.DONE)
        spec = replace(drive.spec, uuid=name, serial_number=name)
        status = replace(drive.status, presence=Presence.OFFLINE, missing_since=NOW)
        return DriveView(replace(drive, metadata=replace(drive.metadata, name=name), spec=spec, status=status))

    new = a_drive(OPERATIVE, health="GOOD")
    new = replace(new, metadata=replace(new.metadata, creation_timestamp=NOW))

    def closed(new: Drive, *gone: DriveView) -> tuple[list[str], Drive]:
        plan = decide(NodeView(NODE, None, True, (*gone, DriveView(new))), NOW, Random(0))
        written = [write.intended for write in plan.writes if isinstance(write, PatchStatus)]
        words = [drive.status.message for drive in written if isinstance(drive, Drive)]
        assert any("in its place or in that of" in each for each in words) is (len(gone) > 1)
        ended = [write.obj.name for write in plan.writes if isinstance(write, Delete) and isinstance(write.obj, Drive)]
        return ended, after(plan, new)

    # Whose place it has taken is noted first: with the other's object nobody would know any more.
    ended, noted = closed(new, out("a"))
    assert (ended, noted.status.replaces) == ([], ("a",))
    assert closed(noted, out("a"))[0] == ["a"]
    ended, unnoted = closed(new, out("a"), out("b"))
    assert (ended, unnoted.status.replaces) == ([], ())


@pytest.mark.parametrize(
    ("user", "action", "asked_again"),
    [
        ("alice", an_action(), False),
        (USER, an_action(type_=ActionType.SHUTDOWN_HOST), True),
        (USER, an_action(host="elsewhere"), True),
        (USER, an_action("/dev/sdc"), True),
        (USER, an_action("pdisk-1-8"), True),
        (USER, Action(type=ActionType.REPLACE_DEVICES, host=NODE), True),
    ],
)
def test_only_a_permission_of_ours_for_this_very_drive_allows_its_removal(
    user: str, action: Action, asked_again: bool
) -> None:
    drive = a_drive(REMOVING, "ready")
    drive = replace(drive, metadata=replace(drive.metadata, annotations={**drive.metadata.annotations, BROKER_ID: "7"}))
    wrong = a_request(drive, "p-1", user=user, action=action)
    plan = passed(drive, wrong, with_a_copy(drive))
    found = after(plan, drive).status
    assert found.permission_id == ""
    assert not found.detach
    # What is somebody else's is not deleted; ours is, and asked anew for the right drive.
    assert deleted(plan) == (["PermissionRequest"] if asked_again else [])
    if not asked_again:
        assert "is alice's" in found.message
    for name in ("/dev/sdb", "pdisk-1-7", "u"):
        right = a_request(drive, "p-1", action=an_action(name))
        assert after(passed(drive, right, with_a_copy(drive)), drive).status.permission_id == "p-1"
