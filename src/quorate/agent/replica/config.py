"""The resource's file: written only from a complete, stamped config, tested, and put in place."""

from __future__ import annotations

from datetime import datetime

from quorate.agent.replica.commands import CONFIG, write_config
from quorate.agent.replica.verdict import Verdict, attempt, cleared, own_error
from quorate.agent.replica.view import View


def write_file(view: View, now: datetime, settled: bool) -> Verdict:
    """``.res_tmp``, ``sh-nop``, ``.res_new``, ``.res``. A file that drbdadm cannot read never gets into place."""
    if view.unwritable:
        return Verdict(errors={"last_config_error": own_error("UnwritableConfig", view.unwritable)}, unsettled=True)
    if view.intended is None:
        return Verdict(unsettled=True)
    if view.written == view.intended.content:
        return cleared("last_config_error")
    if not settled:
        return Verdict(unsettled=True)
    steps = write_config(view, view.intended.content, view.intended.digest)
    return attempt(view, now, CONFIG, view.intended.digest, steps)
