"""The controller of BackingImages: as many copies as there should be, each on a disk that granted the space.

For a copy on one disk, in this order; each step is seen before the next, so that no crash leaves bytes behind:

    chosen: its disk is in spec.diskFileSpecMap → asked of the ledger → granted → logical volume → Ready
    not intended any more: logical volume deleted → gone → withdrawn from the ledger (M31) → out of the status map
    on a drive that leaves: another one is made; its own bytes stay until a person says that the drive may go, and then
    until as many good ones as there should be are elsewhere

A disk that rejects is withdrawn from and given up, and another one chosen. No memory is needed of who said no: a ledger
that shows no room is no candidate, and one that does is worth asking.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from random import Random
from typing import Final

from quorate.api import conditions, core, finalizers, labels, names
from quorate.api.baremetal import Volume
from quorate.api.conditions import Verdict
from quorate.api.conditions.backing_image import Ready
from quorate.api.longhorn import BackingImage, DiskSchedule, Node
from quorate.api.longhorn.backing_image import MAX_COPIES, CopyState, DiskFileSpec
from quorate.api.meta import Bytes
from quorate.api.storage import LVMLogicalVolume
from quorate.api.struct import replace
from quorate.disks import requests
from quorate.disks.images.choice import Choice, choose
from quorate.disks.images.copies import IMAGE_LABEL, copy_on, reported
from quorate.disks.images.view import BY_IMAGE, Copy, ImageView, image_in, images_on, observe, shortfall
from quorate.disks.requests import State
from quorate.engine import (
    NOTHING,
    AddFinalizer,
    Controller,
    Create,
    Delete,
    Index,
    Key,
    NoneLeft,
    Patch,
    PatchStatus,
    Plan,
    PlanEvent,
    ReleaseFinalizer,
    Watch,
    Write,
    no_keys,
)
from quorate.engine.selectors import match

#: An image that no disk has room for is looked at again after so many seconds.
LOOK_FOR_SPACE: Final = 30.0


def decide(view: ImageView, now: datetime, _: Random) -> Plan:
    """One step for every copy, and a report."""
    image = view.image
    if image.namespace != names.NAMESPACE:
        return Plan(status=_status(view, Ready.WRONG_NAMESPACE(), now))
    if image.deleting:
        return _remove(view, now)
    if image.spec.size is None:
        return Plan(status=_status(view, Ready.SIZE_UNKNOWN(), now))
    if finalizers.LONGHORN not in image.metadata.finalizers:
        return Plan(writes=(AddFinalizer(image, finalizers.LONGHORN),))
    missing = shortfall(image, view.copies)
    choice = choose(view, missing)
    verdict = _verdict(view, choice, missing)
    return Plan(
        writes=(
            _intended(view, choice),
            *(write for copy in view.copies for write in _next(image, copy)),
            *_strays(view),
        ),
        status=_status(view, verdict, now),
        events=tuple(_events(view, verdict)),
        requeue_after=LOOK_FOR_SPACE if missing > len(choice.chosen) else None,
    )


def _remove(view: ImageView, now: datetime) -> Plan:
    """Deallocate wherever either map, a ledger or a logical volume says that something may be; then let go."""
    image = view.image
    if finalizers.LONGHORN not in image.metadata.finalizers:
        return NOTHING
    if view.strays or any(copy.volume is not None or copy.held for copy in view.copies):
        status = _status(view, Ready.COPIES_PENDING("The copies are being removed."), now)
        writes = (write for copy in view.copies for write in _let_go(copy))
        return Plan(writes=(*writes, *_strays(view)), status=status)
    volumes = NoneLeft(LVMLogicalVolume, labels=match({IMAGE_LABEL: labels.value(image.name)}))
    return Plan(writes=(ReleaseFinalizer(image, finalizers.LONGHORN, after=(volumes,)),))


def _next(image: BackingImage, copy: Copy) -> Iterable[Write]:
    """The next step for one copy."""
    schedule, size = copy.schedule, copy.size
    if not copy.intended or (copy.volume is not None and copy.volume.deleting):
        yield from () if copy.kept else _let_go(copy)
    elif schedule is None or size is None:
        return  # The disk is not to be seen.
    elif copy.answer.state is State.NOT_ASKED:
        yield requests.ask(schedule, copy.entry, size)
    elif copy.answer.state is State.REJECTED:
        yield requests.withdraw(schedule, copy.entry)
    elif copy.answer.state is State.GRANTED and copy.volume is None:
        yield Create(copy_on(image, schedule, size))


def _let_go(copy: Copy) -> Iterable[Write]:
    """The next step towards a disk that has nothing of the image."""
    if copy.volume is not None:
        yield from _delete(copy.volume, copy.machine_gone)
    elif copy.schedule is not None:
        yield requests.withdraw(copy.schedule, copy.entry)


def _strays(view: ImageView) -> Iterable[Write]:
    return (write for volume, machine_gone in view.strays for write in _delete(volume, machine_gone))


def _delete(volume: LVMLogicalVolume, machine_gone: bool) -> Iterable[Write]:
    """The next step towards a logical volume that is gone."""
    if not volume.deleting:
        yield Delete(volume)
    elif finalizers.CONTROLLER in volume.metadata.finalizers:
        yield ReleaseFinalizer(volume, finalizers.CONTROLLER, after=())
    elif machine_gone:
        # Nobody is left who could: the one case in which we let go in an agent's stead.
        machine = NoneLeft(core.Node, fields=match({"metadata.name": volume.metadata.labels.get(labels.NODE, "")}))
        yield ReleaseFinalizer(volume, finalizers.AGENT, after=(machine,))


def _intended(view: ImageView, choice: Choice) -> Patch:
    """The map of disks that should have a copy: without those given up, and with those newly chosen."""
    image = view.image
    ready = sum(_is_good(copy) for copy in view.copies if not copy.may_go)
    given_up = {
        copy.uuid
        for copy in view.copies
        if copy.answer.state is State.REJECTED
        or ((copy.may_go or copy.state()[0] is CopyState.FAILED) and ready >= image.spec.min_number_of_copies)
    }
    kept = {uuid: said for uuid, said in image.spec.disk_file_spec_map.items() if uuid not in given_up}
    added = {candidate.uuid: DiskFileSpec() for candidate in choice.chosen[: MAX_COPIES - len(kept)]}
    intended = replace(image, spec=replace(image.spec, disk_file_spec_map={**kept, **added}))
    # People may write this map too, and without its last key it would be removed as a whole.
    return Patch(image, intended, if_unchanged=True)


def _is_good(copy: Copy) -> bool:
    return copy.intended and not copy.leaving and copy.state()[0] is CopyState.READY


def _verdict(view: ImageView, choice: Choice, missing: int) -> Verdict:
    image = view.image
    ready, intended = sum(_is_good(copy) for copy in view.copies), image.spec.min_number_of_copies
    count = f"{ready} of {intended} copies are ready"
    if ready >= intended:
        return Ready.READY(count)
    states = [(copy.uuid, *copy.state()) for copy in view.copies if copy.intended]
    why = "; ".join(f"{uuid}: {message}" for uuid, state, message in states if state is CopyState.FAILED)
    if why:
        return Ready.COPY_FAILED(f"{count}; {why}")
    if missing > len(choice.chosen):
        return Ready.NO_SPACE(f"{count}; {choice.why_not or 'there is no other disk with the tags asked for'}")
    return Ready.COPIES_PENDING(count)


def _status(view: ImageView, verdict: Verdict, now: datetime) -> PatchStatus:
    image = view.image
    known = image.status.disk_file_status_map
    copies = {
        copy.uuid: reported(known.get(copy.uuid), *copy.state(), now)
        for copy in view.copies
        if copy.intended or copy.held or copy.volume is not None
    }
    generation = image.metadata.generation
    status = replace(
        image.status,
        observed_generation=generation,
        size=Bytes(0 if image.spec.size is None else int(image.spec.size)),
        checksum=next((copy.volume.status.checksum for copy in view.copies if copy.volume and _is_good(copy)), ""),
        ready_copies=sum(_is_good(copy) for copy in view.copies),
        disk_file_status_map=copies,
        conditions=conditions.merge(image.status.conditions, [verdict], now=now, generation=generation),
    )
    return PatchStatus(image, replace(image, status=status))


def _events(view: ImageView, verdict: Verdict) -> Iterable[PlanEvent]:
    known = conditions.find(view.image.status.conditions, Ready)
    if known is None or known.reason != verdict.reason:
        warning = verdict.reason in (Ready.NO_SPACE.code, Ready.COPY_FAILED.code)
        yield PlanEvent(view.image, verdict.reason, verdict.message, warning=warning)


def _of_schedule(schedule: DiskSchedule) -> Iterable[Key]:
    return (Key(names.NAMESPACE, name) for name in images_on(schedule))


def _of_volume(volume: LVMLogicalVolume | Volume) -> Iterable[Key]:
    return (Key(names.NAMESPACE, name) for name in image_in(volume))


def _matters(old: DiskSchedule | None, new: DiskSchedule | None) -> bool:
    """Replicas' entries are none of an image's business."""
    if old is None or new is None:
        return True
    return (
        old.spec.backing_images != new.spec.backing_images
        or old.status.backing_images != new.status.backing_images
        or old.status.conditions != new.status.conditions
    )


IMAGE_CONTROLLER = Controller(
    name="backing-images",
    watches=(
        Watch(BackingImage),
        Watch(DiskSchedule, _of_schedule, when=_matters),
        Watch(LVMLogicalVolume, _of_volume),
        Watch(Volume, _of_volume),
        Watch(Node, no_keys),
        Watch(core.Node, no_keys),
    ),
    indexes=(Index(DiskSchedule, BY_IMAGE, images_on), Index(LVMLogicalVolume, BY_IMAGE, image_in)),
    observe=observe,
    decide=decide,
)
