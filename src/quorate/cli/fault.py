"""``quorate fault``: break simulated hardware, and mend it again.

The commands are made from the vocabulary itself (``lab.faults``): a new fault there is a new command here.
"""

from __future__ import annotations

import typing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

if TYPE_CHECKING:
    from quorate.lab.truth import NodeTruth, Truth


class _Vocabulary(click.Group):
    """Every fault as a command. Made when it is asked for: other commands need not load the vocabulary."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from quorate.lab.faults import FAULTS

        return [*FAULTS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from quorate.lab.faults import FAULTS

        fault = FAULTS.get(name)
        return _command(name, fault) if fault is not None else super().get_command(ctx, name)


@click.group(cls=_Vocabulary)
@click.option("--data", help="The data directory of the running `quorate up`; default: as up's, else KUBECONFIG.")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Its kubeconfig, if it is not in its data directory."
)
@click.pass_context
def fault(context: click.Context, data: str | None, kubeconfig: Path | None) -> None:
    """Break the simulated hardware of a running `quorate up`, or mend it.

    A drive is named as one sees it: sdb, /dev/sdb, its slot or its serial number. `quorate lab status` shows them.
    """
    context.obj = {"data": data, "kubeconfig": kubeconfig}


@fault.command("list")
@click.pass_obj
def list_troubles(where: dict[str, Any]) -> None:
    """Say what is broken at the moment."""
    from quorate.cli import lab_client

    for line in troubles(lab_client.truth(**where)) or ["nothing is broken"]:
        click.echo(line)


def troubles(truth: Truth) -> list[str]:
    """What is not as it should be, a line each."""
    found = [line for node in truth.nodes for line in _node_troubles(node)]
    return found + [f"{pair}: cut" for pair in truth.cut]


def _node_troubles(node: NodeTruth) -> list[str]:
    found = []
    if not node.powered:
        found.append(f"{node.name}: no power")
    elif node.is_stopping:
        found.append(f"{node.name}: is shutting down")
    elif not node.agent_runs:
        found.append(f"{node.name}: its agent does not run")
    if not node.reaches_api:
        found.append(f"{node.name}: cut off from the API")
    found += [f"{node.name}: {command!r} hangs" for command in node.hanging_commands]
    found += [f"{node.name}: {command!r} takes {late:g} s longer" for command, late in node.slow_commands.items()]
    found += [f"{node.name}: the next {slip} of {what or 'any resource'} is due" for slip, what in node.planned_slips]
    for drive in node.drives:
        name = f"{node.name}: drive {drive.serial} of slot {drive.slot}"
        if not drive.device:
            found.append(f"{name}: pulled out")
        elif drive.failing:
            found.append(f"{name} ({drive.device}): fails")
        elif not drive.smart_passed:
            found.append(f"{name} ({drive.device}): says that it is failing")
    return found


def _command(name: str, fault_type: type[Any]) -> click.Command:
    @click.pass_obj
    def run(where: dict[str, Any], /, **given: Any) -> None:
        from quorate.cli import lab_client

        fault = fault_type(**{field: value for field, value in given.items() if value is not None})
        click.echo(lab_client.inject(fault, **where))

    return click.Command(
        name, callback=run, params=_parameters(fault_type), help=_help(fault_type), short_help=fault_type.__doc__
    )


def _parameters(fault_type: type[Any]) -> list[click.Parameter]:
    import msgspec

    hints = typing.get_type_hints(fault_type, include_extras=True)
    return [_parameter(field, hints[field.name]) for field in msgspec.structs.fields(fault_type)]


def _parameter(field: Any, hint: Any) -> click.Parameter:
    kind, meta = get_args(hint)[:2]
    if kind is bool:
        return click.Option([f"--{field.name.replace('_', '-')}"], is_flag=True, default=None, help=meta.description)
    if get_origin(kind) is Literal:
        kind = click.Choice(get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        kind = click.Choice([str(each) for each in kind])
    return click.Argument([field.name], type=kind, required=field.required)


def _help(fault_type: type[Any]) -> str:
    """What a fault does, and what its arguments are: click shows help only for options."""
    hints = typing.get_type_hints(fault_type, include_extras=True)
    lines = [
        f"  {name.upper():10}{get_args(hint)[1].description}"
        for name, hint in hints.items()
        if get_args(hint)[0] is not bool
    ]
    return "\n".join([fault_type.__doc__ or "", "", "\b", *lines])
