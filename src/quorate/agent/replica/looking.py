"""Before anything is decided: is what we know of the machine still so?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from quorate.agent.backoff import Patience
from quorate.agent.node import KERNEL_LOOK, LVM_LOOK
from quorate.agent.replica.verdict import FINE, Verdict, cleared, failed, own_error
from quorate.agent.replica.view import View
from quorate.agent.steps import FILE, KERNEL, LVM, Look, Step
from quorate.api.storage.drbd import CommandError

PATIENCE = Patience(first=1.0, longest=30.0)

# The outcomes of looks in a view, which are made under names of their own.
KERNEL_SEEN = "look at the kernel"
VOLUMES_SEEN = "look at the volumes"
FILES_SEEN = "look at the files"


def look_work(resource: str) -> str:
    """The name under which one resource is looked at: beside the work on it, which may hang."""
    return f"look/{resource}"


def look_at_kernel(view: View, now: datetime, settled: bool) -> Verdict:
    """``status --json`` is the truth; after each event, and after each command of ours, it is asked for again."""
    kernel = view.kernel
    if kernel.current:
        return cleared("last_status_error")
    if view.busy and not view.hung:
        return Verdict(stop=True)  # its end marks the kernel once more and wakes us
    if kernel.look_at_all:
        return Verdict(steps=(Look(KERNEL),), work=KERNEL_LOOK, stop=True)
    errors: Mapping[str, CommandError | None] = {}
    if kernel.error:
        command = f"drbdsetup status --json {view.resource}"
        errors = {"last_status_error": own_error("StatusUnreadable", kernel.error, command)}
    return _look(view, now, (Look(KERNEL, view.resource),), look_work(view.resource), KERNEL_SEEN, errors)


def look_at_files(view: View, now: datetime, settled: bool) -> Verdict:
    """The two files of the resource."""
    if view.files_current:
        return FINE
    steps = (Look(FILE, view.file, FILES_SEEN), Look(FILE, view.temporary_file, FILES_SEEN))
    return _look(view, now, steps, "", FILES_SEEN, _complaint(view, FILES_SEEN, "last_config_error", "FilesUnreadable"))


def look_at_volumes(view: View, now: datetime) -> Verdict:
    """All logical volumes of the node at once; whoever needs it joins the look that is under way."""
    errors = _complaint(view, VOLUMES_SEEN, "last_metadata_error", "VolumesUnreadable")
    return _look(view, now, (Look(LVM),), LVM_LOOK, VOLUMES_SEEN, errors)


def _complaint(view: View, seen: str, shown_as: str, reason: str) -> Mapping[str, CommandError | None]:
    """Why what we wait for cannot be seen. Its text is of LVM's tools or of the system: no secret is in it."""
    last = failed(view, seen)
    return {} if last is None else {shown_as: own_error(reason, last.output, last.command)}


def _look(
    view: View,
    now: datetime,
    steps: tuple[Step, ...],
    work: str,
    seen: str,
    errors: Mapping[str, CommandError | None],
) -> Verdict:
    last = failed(view, seen)
    wait = PATIENCE.left(last, last.about, now) if last is not None else 0.0
    return Verdict(
        steps=() if wait > 0 else steps, work=work, stop=True, unsettled=True, errors=errors, again=wait or None
    )
