"""The resource's file: written only from a complete, stamped config, tested, and put in place."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime
from typing import Final

from quorate.agent.backoff import Patience
from quorate.agent.replica.commands import CONFIG, write_config
from quorate.agent.replica.verdict import Verdict, attempt, cleared, failed, own_error
from quorate.agent.replica.view import View
from quorate.agent.steps import SECRET, Look

#: The outcome of the last look at the Secret.
SECRET_SEEN: Final = "look at the secret"  # noqa: S105 - a purpose
_PATIENCE: Final = Patience(first=0.5, longest=30.0)


def write_file(view: View, now: datetime, settled: bool) -> Verdict:
    """``.res_tmp``, ``sh-nop``, ``.res_new``, ``.res``. A file that drbdadm cannot read never gets into place."""
    if view.unwritable:
        return Verdict(errors={"last_config_error": own_error("UnwritableConfig", view.unwritable)}, unsettled=True)
    if view.unread_secret:
        return _read_secret(view, now)
    if view.intended is None:
        return Verdict(unsettled=True)
    if view.written == view.intended.content:
        return cleared("last_config_error")
    if not settled:
        return Verdict(unsettled=True)
    steps = write_config(view, view.intended.content, view.intended.digest)
    return attempt(view, now, CONFIG, view.intended.digest, steps)


def _read_secret(view: View, now: datetime) -> Verdict:
    """Nothing can be written without it. What runs goes on as it is."""
    look = Look(SECRET, view.unread_secret, SECRET_SEEN, view.unread_secret)
    verdict = attempt(view, now, SECRET_SEEN, view.unread_secret, (look,), patience=_PATIENCE)
    last = failed(view, SECRET_SEEN)
    # A first failure is no news: the volume may be so new that its members are being named to the API.
    if last is None or last.failures < 3:
        return verdict
    return changed(verdict, errors={"last_config_error": own_error("SecretUnreadable", last.output)})
