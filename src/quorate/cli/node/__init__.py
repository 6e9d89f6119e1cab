"""``quorate node``: machines that come to a `quorate up`, go again, and are switched off.

``invite`` is for the person at the server, ``join`` for the one at the node; ``shutdown`` is what a node's own unit
runs when it powers off. In ``units`` are the units of systemd, which ``join`` puts in place; ``deploy/systemd`` is the
same directory.
"""

from __future__ import annotations

from importlib import import_module

import click

#: In which module a command is. It is imported when it is used: a node that powers off must not load a client.
_MODULES = {
    "invite": "invite",
    "revoke": "invite",
    "forget": "invite",
    "join": "join",
    "shutdown": "shutdown",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f"quorate.cli.node.{_MODULES[name]}"), name)
        return command


@click.group(cls=_Commands)
def node() -> None:
    """Let machines join a `quorate up` as nodes, and leave it; and power a node off in order."""
