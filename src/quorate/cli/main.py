"""The command and its subcommands."""

from __future__ import annotations

from importlib import import_module

import click

from quorate.cli import failures

#: In the order in which they are listed. Each is in the module of its name.
_COMMANDS = (
    "up",
    "node",
    "controller",
    "agent",
    "broker",
    "explain",
    "drive",
    "volume",
    "orphan",
    "maintenance",
    "fault",
    "lab",
    "crds",
    "config",
    "kubeconfig",
    "version",
    "completion",
)


class _Commands(click.Group):
    """Imports only the command that is asked for: an agent runs on every node, and needs none of the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"quorate.cli.{name}"), name)
        return command


@click.group(
    cls=_Commands,
    epilog=failures.EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def quorate() -> None:
    """The control plane of a bare-metal storage cluster."""


def main() -> None:
    """The entry point: errors become one line on standard error and an exit code."""
    with failures.reported():
        quorate()
