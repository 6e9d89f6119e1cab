"""``config``, ``configure``, ``accept-time``: the broker's own settings, and its clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.client import Where, run
from quorate.cli.maintenance.options import GOOD_CODES, connected, json_or_text, show
from quorate.cli.output import output_option, print_documents


class Configuration(wire.Message, frozen=True):
    """All settings, as the broker spells them."""

    status: wire.Status = wire.Status()
    config: dict[str, Any] = msgspec.field(default_factory=dict)


class NewConfiguration(wire.Message, frozen=True):
    """Settings that replace all others."""

    config: dict[str, Any]


class Nothing(wire.Message, frozen=True):
    """A question that says it all by being asked."""


@click.command()
@output_option("yaml", "json")
@connected
def config(where: Where, output: str) -> None:
    """Show the settings in force; durations are microseconds."""
    answer = run(where, lambda client: client.ask("getconfigrequest", Nothing(), Configuration))
    if answer.status.code not in GOOD_CODES:
        show(wire.OnlyStatus(status=answer.status), output, lambda: None)
    print_documents([answer.config], output)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@json_or_text
@connected
def configure(where: Where, file: Path, output: str) -> None:
    """Replace all settings by those of a file, in the form of `config`: what it leaves out returns to its default."""
    import yaml

    from quorate.errors import ConfigError

    try:
        given = yaml.safe_load(file.read_bytes())
    except yaml.YAMLError as error:
        raise ConfigError(f"{file} is not YAML: {error}") from None
    if not isinstance(given, dict):
        raise ConfigError(f"{file} must hold a mapping, as `quorate maintenance config` shows it")
    asked = NewConfiguration(config=given)
    answer = run(where, lambda client: client.ask("setconfigrequest", asked, wire.OnlyStatus))
    show(answer, output, lambda: None)


@click.command("accept-time")
@json_or_text
@connected
def accept_time(where: Where, output: str) -> None:
    """Say that the wall clock, which jumped, is right now. What was promised keeps its length."""
    answer = run(where, lambda client: client.ask("accepttimerequest", Nothing(), wire.OnlyStatus))
    show(answer, output, lambda: None)
