"""The removal of an empty drive, step by step, once a person has said ``ready``.

    permission    REPLACE_DEVICES of user ``quorate-drives``, asked by a PermissionRequest: so a host's restart and the
                  swap of a drive never meet. Held until the drive is replaced, or the removal given up
    logical       deleted with their Volumes, by whoever owns them; replicas look once more whether the promised copies
    volumes       are elsewhere
    space         given back
    the device    out of its group, wiped, its light on: by the agent (``status.detach``, ``status.detachment``)

Whatever is next is said, with the objects that it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.api import annotation_keys, conditions, names
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DetachmentPhase, OperationalStatus, Presence
from quorate.api.conditions import Verdict
from quorate.api.conditions.drive import Removed
from quorate.api.conditions.lvm import LogicalVolumeFailure
from quorate.api.duration import Duration
from quorate.api.maintenance import PermissionRequest
from quorate.api.maintenance.action import Action, ActionType, StatusCode
from quorate.api.maintenance.permission_request import PermissionRequestSpec
from quorate.api.meta import Condition, ObjectMeta
from quorate.api.storage import LVMLogicalVolume
from quorate.drives.phases import Removal
from quorate.drives.view import USER, DriveView, NodeView, Owner, Piece, request_name
from quorate.engine import Create, Delete, Write
from quorate.volumes.waits import shortened

#: A technician may take as long as it takes: the permission is given back when the drive is replaced. The broker knows
#: nothing longer than 64 bits of microseconds.
AWAY: Final = Duration(f"{2**64 - 1}us")

_GONE_WRONG: Final = (LogicalVolumeFailure.COMMAND_FAILED.code, LogicalVolumeFailure.VOLUME_GROUP_NOT_FOUND.code)
_HOLDS: Final = (OperationalStatus.REMOVING, OperationalStatus.REMOVED)


def state_of(view: DriveView) -> Removal:
    """How far it is, by what was done and what became of it."""
    status = view.drive.status
    if status.detach and status.detachment is not None:
        match status.detachment.phase:
            case DetachmentPhase.DONE:
                return Removal.DONE
            case DetachmentPhase.FAILED:
                return Removal.FAILED
    if _is_blocked(view):
        return Removal.FAILED
    given_up = any(_is_given_up(piece) for piece in view.pieces)
    begun = status.detach or given_up or _was_withdrawn(view) is not None
    if given_up and any(_has_failed(piece.llv) for piece in view.pieces if _is_given_up(piece)):
        return Removal.FAILED
    return Removal.UNDER_WAY if begun else Removal.NOT_BEGUN


def is_permitted(view: DriveView) -> bool:
    """Whether the broker has allowed it: this drive's removal, and to us. Anybody may make a request of that name."""
    request = view.request
    if request is None or request.deleting or not request.status.permissions:
        return False
    return request.spec.user == USER and _is_about(request, view.drive)


def _is_about(request: PermissionRequest, drive: Drive) -> bool:
    """Whether it asks for the removal of this drive, by path, name or the broker's number, and for nothing else."""
    return bool(request.spec.actions) and all(
        action.type is ActionType.REPLACE_DEVICES
        and action.host == drive.spec.node_id
        and all(_is_its_name(device, drive) for device in action.devices)
        and bool(action.devices)
        for action in request.spec.actions
    )


def _is_its_name(device: str, drive: Drive) -> bool:
    numbers, own = names.parse_pdisk(device), drive.metadata.annotations.get(annotation_keys.BROKER_ID, "")
    by_number = numbers is not None and str(numbers[1]) == own
    return by_number or device in (drive.spec.path, drive.name)


def is_emptied(view: DriveView) -> bool:
    """Whether nothing is on it any more, and nobody holds space there."""
    return not view.contents and not any(group.entries for group in view.groups)


def may_be_given_up(view: DriveView, following: OperationalStatus | None) -> bool:
    """Whether what is on it may now be destroyed: the person still says so (``following``: the phase to come)."""
    return view.phase is following is OperationalStatus.REMOVING and is_permitted(view)


def writes(view: DriveView, node: NodeView) -> Iterator[Write]:
    """The question to the broker: asked while the drive is removed or out, withdrawn when it is not."""
    request = view.request
    begun = view.phase is OperationalStatus.FAILED and state_of(view) is not Removal.NOT_BEGUN
    holds = view.phase in _HOLDS or begun
    if request is None:
        if holds:
            yield Create(_request(view.drive, node))
    elif request.spec.user == USER and not request.deleting and not (holds and _is_about(request, view.drive)):
        # Not needed any more; or of another device, since the path has changed: asked anew then.
        yield Delete(request)


def verdict(view: DriveView, node: NodeView) -> Verdict:
    """What a removal under way waits for: the condition Removed."""
    drive = view.drive
    if not is_permitted(view):
        return Removed.WAITING_FOR_PERMISSION(_refusal(view))
    if view.pieces:
        told = [f"{piece.title}: {words}" for piece in view.pieces if (words := _words(piece))]
        if told:
            return Removed.WAITING_FOR_COPIES(shortened("; ".join(told), 1000))
        left = ", ".join(_being_removed(piece) for piece in view.pieces)
        return Removed.REMOVING(shortened(f"Being removed from it: {left}.", 1000))
    entries = [entry for group in view.groups for entry in group.entries]
    if entries:
        return Removed.REMOVING(shortened(f"Space is still held by {', '.join(entries)}.", 1000))
    if not node.up:
        return Removed.REMOVING(f"Node {node.name} is down: only its agent can take the drive out of its group.")
    said = drive.status.detachment
    if said is None or not said.step:
        return Removed.REMOVING(f"The agent of node {node.name} has yet to begin with the device.")
    return Removed.REMOVING(shortened(": ".join(filter(None, (said.step, said.message))), 1000))


def withdrawal(view: DriveView) -> Verdict:
    """What became of a removal whose ``ready`` was taken back: at which step it stands."""
    known = _was_withdrawn(view)
    if known is not None:
        return Removed.mirror(known)
    words = (
        f"ready was taken back in the middle of the removal, at this step: {_step(view)}. Nothing more is destroyed."
    )
    return Removed.WITHDRAWN(shortened(f"{words} Say ready again to go on, or restart to take it into service.", 1000))


def unmanaged_words(view: DriveView) -> str:
    """What to say of logical volumes on it that no object stands for; "": there are none."""
    if not view.unmanaged:
        return ""
    named = ", ".join(view.unmanaged)
    if view.drive.status.presence is Presence.OFFLINE:
        words = (
            "were on it when it was last seen, and no object stands for them: put it back, or give them up by deleting"
        )
        return shortened(f"{named} {words} its Drive object.", 1000)
    return shortened(
        f"Logical volumes {named} are on it, and no object stands for them: they may be the last of something.",
        1000,
    )


def failure(view: DriveView) -> str:
    """Which step failed, and how."""
    said = view.drive.status.detachment
    if said is not None and said.phase is DetachmentPhase.FAILED:
        return f"{said.step}: {said.message}"
    wrong = [piece for piece in view.pieces if _is_given_up(piece) and _has_failed(piece.llv)]
    if _is_blocked(view):
        return f"remove what is on it: {unmanaged_words(view)}"
    return "; ".join(f"logical volume {piece.name}: {piece.llv.status.message}" for piece in wrong)


def _is_blocked(view: DriveView) -> bool:
    """Whether all that is left on a drive that may be taken apart is what nobody here may remove."""
    removing = view.phase in (OperationalStatus.REMOVING, OperationalStatus.FAILED) and is_permitted(view)
    return removing and bool(view.unmanaged) and not view.pieces


def _was_withdrawn(view: DriveView) -> Condition | None:
    """The condition that says so: while the drive has failed for that, nothing else remembers that it had begun."""
    found = conditions.find(view.drive.status.conditions, Removed)
    failed = view.phase is OperationalStatus.FAILED
    return found if failed and found is not None and found.reason == Removed.WITHDRAWN.code else None


def _step(view: DriveView) -> str:
    """Where a removal is, for people."""
    if wrong := failure(view):
        return wrong
    if view.pieces:
        return f"removing {', '.join(piece.title for piece in view.pieces)}"
    if any(group.entries for group in view.groups):
        return "giving the space back"
    said = view.drive.status.detachment
    return said.step if said is not None and said.step else "taking the device out of its volume group"


def _request(drive: Drive, node: NodeView) -> PermissionRequest:
    action = Action(type=ActionType.REPLACE_DEVICES, host=node.name, devices=(_device(drive, node),), duration=AWAY)
    return PermissionRequest(
        metadata=ObjectMeta(name=request_name(drive)),
        spec=PermissionRequestSpec(
            user=USER,
            actions=(action,),
            schedule=True,
            reason=f"Drive {drive.spec.serial_number} (slot {drive.spec.slot or 'unknown'}) is to be replaced.",
        ),
    )


def _device(drive: Drive, node: NodeView) -> str:
    """By the broker's numbers; before it has given any, by the path."""
    ids = [
        obj.metadata.annotations.get(annotation_keys.BROKER_ID, "") for obj in (node.machine, drive) if obj is not None
    ]
    if len(ids) == 2 and all(text.isdecimal() for text in ids):
        return names.pdisk(int(ids[0]), int(ids[1]))
    return drive.spec.path or drive.name


def _refusal(view: DriveView) -> str:
    request = view.request
    if request is not None and request.spec.user != USER:
        whose = f"PermissionRequest {request.name} is {request.spec.user or 'nobody'}'s"
        return f"{whose}, and says nothing of this removal: delete it, so that it can be asked for under that name."
    if request is None or request.status.code is None:
        return "The maintenance broker has not answered yet."
    status = request.status
    why = [refused.issue.message for refused in status.refused if refused.issue.message]
    code = status.code if status.code is not StatusCode.ALLOW else "ALLOW, but no permission is in force"
    return shortened(f"The broker says {code}: {'; '.join(why) or status.message or 'without a reason'}", 1000)


def _is_given_up(piece: Piece) -> bool:
    """Whether the removal has begun with it: whoever else deletes its Volume begins nothing."""
    given_up = piece.volume is not None and piece.volume.given_up
    return given_up and (piece.owner is not Owner.FOREIGN or piece.llv.deleting)


def _being_removed(piece: Piece) -> str:
    """By the name that people know, with what its agent says of it."""
    return f"{piece.title} ({piece.llv.status.message.rstrip('.')})" if piece.llv.status.message else piece.title


def _has_failed(piece: LVMLogicalVolume) -> bool:
    return piece.deleting and piece.status.reason in _GONE_WRONG


def _words(piece: Piece) -> str:
    return piece.volume.status.message if piece.volume is not None else ""
