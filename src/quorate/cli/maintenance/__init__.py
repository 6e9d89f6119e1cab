"""``quorate maintenance``: everything the broker can be asked, as commands.

They speak the broker's JSON (``wire``) over HTTP (``client``). ``asking``, ``permissions``, ``telling`` and ``looking``
are the seed's questions, ``planning`` and ``rolling`` go beyond them. A rolling restart is a command that can be killed
at any moment and taken up again: what it did is in its ``journal``, what it may do is in the broker.
"""

from __future__ import annotations

import click

from quorate.cli.maintenance.asking import check, request, requests, withdraw
from quorate.cli.maintenance.looking import log, mark, state, unmark
from quorate.cli.maintenance.permissions import done, extend, give_back, permissions
from quorate.cli.maintenance.planning import ok_to_stop, plan
from quorate.cli.maintenance.rolling_command import rolling_restart
from quorate.cli.maintenance.telling import cancel, notifications, notify


@click.group()
def maintenance() -> None:
    """Ask the broker which hosts and drives may go down, and tell it what is done."""


for _command in (
    request,
    check,
    requests,
    withdraw,
    permissions,
    done,
    extend,
    give_back,
    notify,
    notifications,
    cancel,
    plan,
    ok_to_stop,
    rolling_restart,
    state,
    mark,
    unmark,
    log,
):
    maintenance.add_command(_command)
