"""``quorate config``: the settings in force, and where each came from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from quorate.cli.output import output_option, print_documents, print_table


@click.group()
def config() -> None:
    """The settings of this process."""


@config.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="The configuration file.")
@output_option("table", "json", "yaml")
def show(file: Path | None, output: str) -> None:
    """Print every setting, its value, and the place that had the last word."""
    import msgspec

    from quorate.config import load

    loaded = load(file, os.environ, {})
    values = msgspec.to_builtins(loaded.config)
    if output == "table":
        print_table(
            ["SETTING", "VALUE", "FROM"], [[name, str(value), loaded.origins[name]] for name, value in values.items()]
        )
    else:
        print_documents(
            [{name: {"value": value, "from": loaded.origins[name]} for name, value in values.items()}], output
        )
