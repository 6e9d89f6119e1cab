"""``quorate version``."""

from __future__ import annotations

import platform

import click

from quorate import __version__
from quorate.cli.output import output_option, print_documents


@click.command()
@output_option("text", "json", "yaml")
def version(output: str) -> None:
    """Print the version."""
    if output == "text":
        click.echo(f"quorate {__version__} (Python {platform.python_version()})")
    else:
        print_documents([{"quorate": __version__, "python": platform.python_version()}], output)
