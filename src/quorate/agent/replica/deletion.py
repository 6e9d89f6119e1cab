"""The end of a replica: the agent's finalizer goes last, when the kernel and the directory are clean."""

from __future__ import annotations

from datetime import datetime

from quorate.agent.replica import commands
from quorate.agent.replica.down import PATIENCE, is_foreign
from quorate.agent.replica.verdict import Verdict, attempt
from quorate.agent.replica.view import View
from quorate.agent.steps import RemoveFile
from quorate.api.finalizers import AGENT


def is_last(view: View) -> bool:
    """Whether everybody else has let go: only then the agent may."""
    return view.replica.deleting and view.replica.metadata.finalizers == (AGENT,)


def is_clean(view: View) -> bool:
    """Whether nothing of the replica is left on the node, as far as what was seen of the kernel holds."""
    return view.without_files and (view.status is None or is_foreign(view)) and not view.busy


def keeps_its_disk(view: View) -> bool:
    """Whether it has never been a member, as the API has it, and its disk is still there.

    On that may be more than the API knows of, and whoever removes it asks this object (``lvm.piece``): it goes last.
    """
    return not view.config.datamesh_revision and view.logical_volume is not None


def take_away(view: View, now: datetime) -> Verdict:
    """``down``, then the files. A device that is held open says by whom, and is tried again."""
    if view.status is not None:
        verdict = attempt(view, now, commands.DOWN, "end", (commands.down(view, "end"),), patience=PATIENCE)
    else:
        # The file last: as long as it is there, the others are looked for.
        paths = (view.last_known_file, view.temporary_file, view.new_file, view.file)
        steps = tuple(RemoveFile(path, commands.REMOVE) for path in paths if path)
        verdict = attempt(view, now, commands.REMOVE, "", steps)
    return Verdict(steps=verdict.steps, again=verdict.again, stop=True)
