"""Metadata that ``up`` did not find although they were made: looked for where the disk ended before it grew.

``up`` itself finds them there while ``/var/lib/drbd`` is kept (grow_power_loss_state_kept). If not, the disk is cut
back to that size and attached (grow_power_loss). Cutting off what is in use would be the end of it, so it takes proof:

1. ``dump-md`` finds none at the disk's present end;
2. DRBD was never reported larger than would fit on the former size;
3. ``dump-md`` finds them at the former end. It is shown nothing but the disk's beginning, read only. Metadata only ever
   move outward, so the largest former size at which there are some is the one.

It is tried once. Otherwise the disk stays as it is, LVM's part included, which grows no disk that DRBD has not got: the
error is MetadataMissing, and a person decides.
"""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime

from quorate.agent.lvm.commands import CHANGING_SILENCE
from quorate.agent.lvm.filtering import lvm_without_discards
from quorate.agent.lvm.seen import SeenVolume, former_ends
from quorate.agent.memory import Outcome
from quorate.agent.replica import commands
from quorate.agent.replica.kernel import device, is_diskful
from quorate.agent.replica.verdict import FINE, Verdict, failed, own_error
from quorate.agent.replica.view import View
from quorate.agent.steps import Run, lvm_of
from quorate.api.meta import Bytes
from quorate.api.storage.drbd import CommandError
from quorate.drbd.metadata import MetadataState, metadata_state, usable_size
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import understand

METADATA_MISSING = "MetadataMissing"
#: The purpose of letting go of the disk's beginning.
UNMAP = "unmap"
_SECTOR = 512
_ANY = tuple(range(256))
#: LVM before 2.03.17 does not know the option, and looks at no file system either.
_UNKNOWN_OPTION = 3


def recover(view: View, now: datetime, volume: SeenVolume) -> Verdict:
    """Metadata were made. If the last attempt to attach did not find them, look where they may be."""
    last = failed(view, commands.ADJUST)
    ends = _ends(view, volume)
    if last is None or not last.about.endswith(_size_mark(volume)):
        return FINE
    if not _says_missing(last):
        return _let_go(view, volume) if ends else FINE
    missing = {"last_metadata_error": _missing(view, last)}
    if not ends:
        return Verdict(errors=missing)
    about = f"missing {volume.size}"
    state = _found(view, commands.PROBE, about, last)
    if state is None:
        return Verdict(steps=(commands.probe(view, about),), unsettled=True, errors=missing, disk=True)
    if state is not MetadataState.NONE:
        return Verdict(errors=missing)
    for end in ends:
        state = _found(view, _purpose(end), about, last)
        if state is None:
            return Verdict(steps=_look_at(view, volume, end, about), unsettled=True, errors=missing, disk=True)
        if state in (MetadataState.CLEAN, MetadataState.UNCLEAN):
            return changed(_cut_back(view, volume, end), errors=missing)
        if state is not MetadataState.NONE:
            break
    return Verdict(errors=missing)


def _ends(view: View, volume: SeenVolume) -> tuple[int, ...]:
    """The former sizes at whose ends metadata may be, the largest first: by the disk's tags, and by the API."""
    written = view.actual.backing_size
    sizes = {*former_ends(volume.tags), *(() if written is None else (int(written),))}
    possible = (size for size in sizes if size < volume.size and not _used_more_than(view, size))
    return tuple(sorted(possible, reverse=True))


def _found(view: View, purpose: str, about: str, last: Outcome) -> MetadataState | None:
    """What ``dump-md`` found since the last attempt to attach; None: it was not asked."""
    probe = view.outcomes.get(purpose)
    if probe is None or probe.about != about or probe.at < last.at:
        return None
    return MetadataState.UNREADABLE if probe.exit_code is None else metadata_state(probe.exit_code, probe.output)


def _look_at(view: View, volume: SeenVolume, end: int, about: str) -> tuple[Run, ...]:
    """Show ``dump-md`` the first so many bytes of the disk, read only."""
    name, purpose = _mapping(volume), _purpose(end)
    table = f"0 {end // _SECTOR} linear {view.config.disk} 0"
    return (
        _unmap(volume),
        Run(("dmsetup", "create", name, "--readonly", "--table", table), purpose, about),
        # Without a minor nobody's last known size is looked at.
        Run(("drbdmeta", "-", "v09", f"/dev/mapper/{name}", "internal", "dump-md"), purpose, about, None, _ANY),
        _unmap(volume),
    )


def _let_go(view: View, volume: SeenVolume) -> Verdict:
    """Attaching failed. If we were killed while we looked at the disk's beginning, that is why: let go of it, once."""
    return FINE if UNMAP in view.outcomes else Verdict(steps=(_unmap(volume),), unsettled=True, disk=True)


def _unmap(volume: SeenVolume) -> Run:
    return Run(("dmsetup", "remove", "--retry", _mapping(volume)), UNMAP, accept=_ANY)


def _cut_back(view: View, volume: SeenVolume, end: int) -> Verdict:
    """Cut off what the disk has grown by, and attach it in the same piece of work: nobody may grow it in between."""
    about = f"{volume.size} to {end}"
    last = view.outcomes.get(commands.SHRINK)
    old = last is not None and last.about == about and last.exit_code == _UNKNOWN_OPTION and "--fs" in last.command
    if last is not None and last.about == about and not old:
        return FINE
    attach = commands.adjust if view.status is not None else commands.up_and_adjust
    steps = (_shrink(volume, end, about, old), *attach(view, f"cut back to {end}"))
    return Verdict(steps=steps, unsettled=True, disk=True)


def _shrink(volume: SeenVolume, size: int, about: str, old: bool) -> Run:
    # The file system is under DRBD, and none of LVM's business.
    ignored = () if old else ("--fs", "ignore")
    argv = lvm_without_discards("lvreduce", "--force", *ignored, "--size", f"{size}b", volume.place)
    return Run(argv, commands.SHRINK, about, silence=CHANGING_SILENCE, changes=(lvm_of(volume.place),))


def _missing(view: View, last: Outcome) -> CommandError:
    cut = view.outcomes.get(commands.SHRINK)
    done = f"It was cut back: {cut.about} bytes." if cut is not None and cut.succeeded else "Nothing was changed on it."
    message = (
        f"{view.config.disk} has no DRBD metadata although they were made. {done} "
        "If it grew before a power loss, they are at the end of a former size; a person must decide."
    )
    return own_error(METADATA_MISSING, message, last.command)


def _says_missing(last: Outcome) -> bool:
    return last.exit_code is not None and understand(last.exit_code, last.output).outcome is Meaning.METADATA_MISSING


def _used_more_than(view: View, former: int) -> bool:
    """Whether DRBD was last reported larger than it could be on the former size: then data is beyond it."""
    shown, size = device(view.replica.status.drbd.status), view.replica.status.size
    largest = max(shown.size * 1024 if shown is not None else 0, int(size) if size is not None else 0)
    return largest > usable_size(Bytes(former), view.max_peers)


def _purpose(end: int) -> str:
    return f"{commands.PROBE} {end}"


def _mapping(volume: SeenVolume) -> str:
    return f"quorate-{volume.group}-{volume.name}"[:127]


def on_disk(verdict: Verdict) -> Verdict:
    """The same, with the disk for itself."""
    return changed(verdict, disk=True)


def size_mark(view: View) -> str:
    """What an attempt to attach is about, beside the file: a disk of another size is worth another try."""
    return _size_mark(view.volume) if view.volume is not None and is_diskful(view.config) else ""


def _size_mark(volume: SeenVolume) -> str:
    return f"@{volume.size}"
