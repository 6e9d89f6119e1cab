"""``-o``: the same answer for people (a table, when rich is worth its import) and for programs (JSON, YAML)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def output_option(*formats: str) -> Callable[[F], F]:
    """``-o/--output`` with these formats; the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="The form of the answer.",
    )


def print_documents(documents: Sequence[Any], form: str) -> None:
    """Several documents: a YAML stream, or one JSON value (an array unless there is exactly one)."""
    if form == "json":
        import json

        value = documents[0] if len(documents) == 1 else list(documents)
        click.echo(json.dumps(value, indent=2))
    else:
        import yaml

        click.echo(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, explicit_start=True), nl=False)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table as wide as it needs to be: a pipe gets whole lines."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        # Measured without the limit of a terminal that is not there.
        unlimited = console.options.update(max_width=10_000)
        console.width = max(console.width, console.measure(table, options=unlimited).maximum)
    console.print(table)
