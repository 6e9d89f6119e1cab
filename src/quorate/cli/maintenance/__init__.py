"""``quorate maintenance``: everything the broker can be asked, as commands.

They speak the broker's JSON (``wire``) over HTTP (``client``). ``asking``, ``permissions``, ``telling`` and ``looking``
are the seed's questions, ``settings`` the broker's own; ``planning`` and ``rolling`` go beyond them. A rolling restart
is a command that can be killed at any moment and taken up again: what it did is in its ``journal``, what it may do is
in the broker.
"""

from __future__ import annotations

from importlib import import_module

import click

#: In which module a command is. It is imported when it is used: other commands need nothing of it.
_MODULES = {
    "request": "asking",
    "check": "asking",
    "requests": "asking",
    "withdraw": "asking",
    "permissions": "permissions",
    "done": "permissions",
    "extend": "permissions",
    "give-back": "permissions",
    "notify": "telling",
    "notifications": "telling",
    "cancel": "telling",
    "plan": "planning",
    "ok-to-stop": "planning",
    "rolling-restart": "rolling_command",
    "state": "looking",
    "mark": "looking",
    "unmark": "looking",
    "log": "looking",
    "watch": "looking",
    "config": "settings",
    "configure": "settings",
    "accept-time": "settings",
}


class _Commands(click.Group):
    """All of them, in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _MODULES:
            return None
        found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name.replace("-", "_"))
        assert isinstance(found, click.Command)
        return found


@click.group(cls=_Commands)
def maintenance() -> None:
    """Ask the broker which hosts and drives may go down, and tell it what is done."""
