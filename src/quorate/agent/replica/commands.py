"""The commands of a replica's life. Every ``drbdadm`` names this resource's own file, and so reads no other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quorate.agent.lvm.commands import CHANGING_SILENCE
from quorate.agent.lvm.filtering import lvm
from quorate.agent.lvm.seen import METADATA_TAG, SeenVolume
from quorate.agent.replica.view import View
from quorate.agent.steps import MoveFile, RemoveFile, Run, WriteFile, kernel_of, lvm_of
from quorate.api.meta import Bytes
from quorate.drbd.metadata import BLOCK, log_blocks
from quorate.drbd.resource_file import own_quorum

# Purposes.
CONFIG = "config"
METADATA = "metadata"
PROBE = "probe"
SHRINK = "shrink"
ADJUST = "adjust"
ADJUST_LINKS = "adjust-links"
CUT_OFF = "cut-off"
DETACH = "detach"
DOWN = "down"
ROLE = "role"
FORCE = "force"
RESIZE = "resize"
REMOVE = "remove"
FORGET = "forget"
RECOUNT = "recount"
MEET = "meet"
NOTE_PLACE = "note-place"
READ_LOG = "read-log"
RENEW_LOG = "renew-log"
RESTORE_LOG = "restore-log"
REJOIN = "rejoin"
INVALIDATE = "invalidate"
PART = "part"

#: Making metadata writes all of the bitmap, which takes a while on a large disk and says nothing meanwhile.
METADATA_SILENCE = 120.0
#: ``up`` applies the activity log, and moves metadata of a disk that grew.
UP_SILENCE = 60.0
_ANY = tuple(range(256))


def write_config(view: View, content: str, about: str) -> tuple[WriteFile | Run | MoveFile, ...]:
    """Write, test, put in place. The temporary file stays until the kernel is adjusted: it says that this is due.

    What is put in place is another copy, whole before it takes the name: a disk that is full costs the new text, not
    the old one, without which nothing could be done to the resource.
    """
    test = ("drbdadm", "-c", "/dev/null", "--config-to-test", view.temporary_file, "sh-nop")
    return (
        WriteFile(view.temporary_file, content, CONFIG, about),
        Run(test, CONFIG, about),
        WriteFile(view.new_file, content, CONFIG, about),
        MoveFile(view.new_file, view.file, CONFIG, about),
    )


def up_and_adjust(view: View, about: str) -> tuple[Run | RemoveFile, ...]:
    """Bring the resource up from nothing."""
    return (_drbdadm(view, "up", purpose=ADJUST, about=about, silence=UP_SILENCE), *adjust(view, about))


def anew(view: View, about: str) -> tuple[Run | RemoveFile, ...]:
    """The same of a resource that was half made."""
    down = Run(("drbdsetup", "down", view.resource), ADJUST, about, changes=(kernel_of(view.resource),))
    return (down, *up_and_adjust(view, about))


def adjust(view: View, about: str, *, despite_marks: bool = False) -> tuple[Run | RemoveFile, ...]:
    """Make the kernel what the file says."""
    adjusted = _drbdadm(view, "adjust", purpose=ADJUST, about=about, silence=UP_SILENCE)
    return (
        replace(adjusted, despite_marks=despite_marks),
        RemoveFile(view.temporary_file, ADJUST, about),
    )


def adjust_links(view: View, about: str) -> Run:
    """The same, but for the disk: it gives nothing any more, and the others still have to be heard."""
    return _adjust_all_but_disk(view, ADJUST_LINKS, about)


def cut_off(view: View, peer: int) -> Run:
    """End a link without asking the peer. Whatever comes of it, what follows is tried."""
    argv = ("drbdsetup", "disconnect", view.resource, str(peer), "--force")
    return Run(argv, CUT_OFF, accept=tuple(range(256)), changes=(kernel_of(view.resource),))


def detach(view: View) -> Run:
    """Let go of a disk that does not answer any more."""
    argv = ("drbdsetup", "detach", str(view.config.device_minor), "--force")
    return Run(argv, DETACH, changes=(kernel_of(view.resource),))


def down(view: View, about: str) -> Run:
    """Take the resource out of the kernel. Not by drbdadm: this needs no file.

    Whoever has it taken down for good has weighed what its bits tell; it is none of the agent's own cures.
    """
    argv = ("drbdsetup", "down", view.resource)
    return Run(argv, DOWN, about, changes=(kernel_of(view.resource),), despite_marks=True)


def create_metadata(view: View, about: str) -> Run:
    """Make metadata, whatever is on the disk now."""
    argv = (*_own_file(view), "create-md", f"--max-peers={view.max_peers}", "--force", view.resource)
    return Run(argv, METADATA, about, silence=METADATA_SILENCE)


def tag(volume: SeenVolume, about: str) -> Run:
    """Say on the disk itself that it has metadata: they are never made again."""
    argv = lvm("lvchange", "--addtag", METADATA_TAG, volume.place)
    return Run(argv, METADATA, about, silence=CHANGING_SILENCE, changes=(lvm_of(volume.place),))


def probe(view: View, about: str) -> Run:
    """Look for metadata at the end of the disk. Only the text tells what was found."""
    return Run((*_own_file(view), "dump-md", view.resource), PROBE, about, accept=tuple(range(256)))


def promote(view: View, about: str) -> Run:
    """Never by force: that would declare this copy good."""
    return _drbdadm(view, "primary", purpose=ROLE, about=about)


def demote(view: View, about: str) -> Run:
    """Give up the device."""
    return _drbdadm(view, "secondary", purpose=ROLE, about=about)


def demote_by_force(view: View) -> Run:
    """Give up the device whoever holds it open: what they write fails. Not by drbdadm: this needs no file."""
    return Run(("drbdsetup", "secondary", "--force", view.resource), FORCE, changes=(kernel_of(view.resource),))


def forget(view: View, node_id: int, purpose: str) -> Run:
    """Free a former member's place in the metadata, and with it its vote."""
    argv = ("drbdsetup", "forget-peer", view.resource, str(node_id))
    return Run(argv, purpose, changes=(kernel_of(view.resource),))


def recount(view: View, content: str, about: str, *, without_disk: bool) -> tuple[WriteFile | Run | RemoveFile, ...]:
    """Have the kernel count the votes anew: it does so when its quorum setting changes, and not when it forgets a peer.

    ``all`` asks for no fewer votes than a majority, and one less than what nobody reaches is not reached either: nobody
    is quorate meanwhile who would not be anyway. That the file is due to be adjusted is said first: whoever dies in
    between sets it right when it is back.
    """
    due = WriteFile(view.temporary_file, content, RECOUNT, about)
    if without_disk:
        # What is left to be adjusted is the disk.
        return (due, _ask_for_more(view, RECOUNT, about), _adjust_all_but_disk(view, RECOUNT, about))
    return (
        due,
        _ask_for_more(view, RECOUNT, about),
        _drbdadm(view, "adjust", purpose=RECOUNT, about=about, silence=UP_SILENCE),
        RemoveFile(view.temporary_file, RECOUNT, about),
    )


def rejoin(view: View, peers: Iterable[int], about: str) -> tuple[Run, ...]:
    """Take links down, and let ``adjust`` make them anew. Whoever dies in between finds links that are StandAlone."""
    return (*_part(view, peers, REJOIN, about), _adjust(view, REJOIN, about))


def invalidate(view: View, peers: Iterable[int], about: str) -> tuple[Run, ...]:
    """Have everything copied anew from who has it; after parting from these peers, so that nothing is in the way."""
    argv = ("drbdsetup", "invalidate", str(view.config.device_minor))
    changes = (kernel_of(view.resource),)
    parting = _part(view, peers, INVALIDATE, about)
    again = (_adjust(view, INVALIDATE, about),) if parting else ()
    return (*parting, Run(argv, INVALIDATE, about, changes=changes), *again)


def part(view: View, peer: int, about: str) -> Run:
    """Take a link down that is made and lost over and over: what its ends could forget they have forgotten."""
    argv = ("drbdsetup", "disconnect", view.resource, str(peer))
    return Run(argv, f"{PART} {peer}", about, changes=(kernel_of(view.resource),), despite_marks=True)


def connect(view: View, peers: Iterable[int], about: str) -> tuple[Run, ...]:
    """Make these links only: another one loops, and is left in peace."""
    commands = (("drbdsetup", "connect", view.resource, str(peer)) for peer in peers)
    return tuple(Run(argv, ADJUST, about, changes=(kernel_of(view.resource),)) for argv in commands)


def _part(view: View, peers: Iterable[int], purpose: str, about: str) -> tuple[Run, ...]:
    changes = (kernel_of(view.resource),)
    commands = (("drbdsetup", "disconnect", view.resource, str(peer)) for peer in peers)
    return tuple(Run(argv, purpose, about, changes=changes) for argv in commands)


def _adjust(view: View, purpose: str, about: str) -> Run:
    return _drbdadm(view, "adjust", purpose=purpose, about=about, silence=UP_SILENCE)


def meet_again(view: View, peers: tuple[int, ...], about: str, *, without_disk: bool) -> tuple[Run, ...]:
    """Disconnect these peers and connect them again. Whoever dies in between finds links that are StandAlone."""
    again = _adjust_all_but_disk(view, MEET, about) if without_disk else _adjust(view, MEET, about)
    return (*_part(view, peers, MEET, about), again)


def count_and_adjust_links(view: View, about: str) -> tuple[Run, ...]:
    """Have the kernel count, then make links. That the file is due is said already: its disk has yet to come."""
    return (_ask_for_more(view, ADJUST_LINKS, about), adjust_links(view, about))


def _ask_for_more(view: View, purpose: str, about: str) -> Run:
    number = own_quorum(view.config)
    setting = "all" if number is None else str(number - 1)
    argv = ("drbdsetup", "resource-options", view.resource, f"--quorum={setting}")
    return Run(argv, purpose, about, changes=(kernel_of(view.resource),))


def resize(view: View, about: str, *, assume_clean: bool) -> Run:
    """Take the grown disks into use."""
    option = ("--", "--assume-clean") if assume_clean else ()
    argv = (*_own_file(view), *option, "resize", view.resource)
    return Run(argv, RESIZE, about, silence=UP_SILENCE, changes=(kernel_of(view.resource),))


def read_log(view: View, backing_size: int, about: str) -> tuple[Run, ...]:
    """Note where DRBD's metadata are now, as ``resize`` does on its own node alone; and read the log that is there.

    Not through the page cache: it would show for ever what was read first.
    """
    noted = Run(("drbdsetup", "check-resize", str(view.config.device_minor)), NOTE_PLACE, about, accept=_ANY)
    first, count = log_blocks(Bytes(backing_size))
    place = (f"if={view.config.disk}", f"bs={BLOCK}", f"skip={first}", f"count={count}")
    return (noted, Run(("dd", *place, "iflag=direct", "status=none"), READ_LOG, about))


def renew_log(view: View, about: str) -> Run:
    """Have DRBD take no extent for active any more: the next write, wherever it is, is noted in the log.

    It does so when the number of the log's extents changes, to whatever.
    """
    return _log_extents(view, 1236, RENEW_LOG, about)


def restore_log(view: View, about: str) -> Run:
    """Back to DRBD's default, which is what the file says: else the next ``adjust`` would have to do it."""
    return _log_extents(view, 1237, RESTORE_LOG, about)


def _log_extents(view: View, number: int, purpose: str, about: str) -> Run:
    argv = ("drbdsetup", "disk-options", str(view.config.device_minor), f"--al-extents={number}")
    return Run(argv, purpose, about, changes=(kernel_of(view.resource),))


def _drbdadm(view: View, verb: str, *, purpose: str, about: str, silence: float | None = None) -> Run:
    argv = (*_own_file(view), verb, view.resource)
    return Run(argv, purpose, about, silence=silence, changes=(kernel_of(view.resource),))


def _adjust_all_but_disk(view: View, purpose: str, about: str) -> Run:
    argv = (*_own_file(view), "adjust", "--skip-disk", view.resource)
    return Run(argv, purpose, about, silence=UP_SILENCE, changes=(kernel_of(view.resource),))


def _own_file(view: View) -> tuple[str, ...]:
    return ("drbdadm", "-c", view.file)
