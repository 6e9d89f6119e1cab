"""``quorate completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands: source <(quorate completion bash)"""
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(context.find_root().command, {}, "quorate", "_QUORATE_COMPLETE").source())
