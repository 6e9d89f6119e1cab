"""``plan``, ``ok-to-stop``: in how many rounds, and what may all stop now."""

from __future__ import annotations

import click

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.client import Where, run
from quorate.cli.maintenance.options import (
    MODES,
    SPAN,
    connected,
    ignore_tenants_option,
    json_or_text,
    mode_option,
    moment,
    show,
    show_refusals,
    tenant_policy,
)

#: Hosts told by name in a line, before it is said how many more there are.
_NAMED = 8


@click.command()
@click.argument("hosts", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every host of the cluster.")
@click.option("--for", "duration", type=SPAN, help="How long each host takes; default: the broker's.")
@mode_option
@ignore_tenants_option
@json_or_text
@connected
def plan(
    where: Where,
    hosts: tuple[str, ...],
    everything: bool,
    duration: int | None,
    mode: str,
    ignore_tenants: bool,
    output: str,
) -> None:
    """Plan rounds in which hosts can be served, and say when that would end. It reserves nothing."""
    if bool(hosts) == everything:
        raise click.UsageError("name hosts, or --all")
    answer = run(
        where, lambda client: client.ask("planrequest", _asked(where, hosts, duration, mode, ignore_tenants), wire.Plan)
    )

    def lines() -> None:
        for number, each in enumerate(answer.rounds, 1):
            click.echo(f"{number:>3}  {moment(each.start)}  {len(each.hosts):>5}  {_names(each.hosts)}")
        if answer.rounds:
            few = "as few as there can be" if len(answer.rounds) == answer.lower_bound else "no plan needs fewer than"
            bound = "" if len(answer.rounds) == answer.lower_bound else f" {answer.lower_bound}"
            click.echo(f"{len(answer.rounds)} rounds; {few}{bound}: {answer.lower_bound_reason}")
            click.echo(f"the last ends at about {moment(answer.estimated_end)}")
        if answer.blocked:
            click.echo(f"{len(answer.blocked)} cannot go for now:")
            show_refusals(answer.blocked)
        _show_note(answer.status)

    show(answer, output, lines)


@click.command("ok-to-stop")
@click.argument("hosts", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Of every host of the cluster; so it is without names too.")
@click.option("--for", "duration", type=SPAN, help="How long each host is away; default: the broker's.")
@mode_option
@ignore_tenants_option
@json_or_text
@connected
def ok_to_stop(
    where: Where,
    hosts: tuple[str, ...],
    everything: bool,
    duration: int | None,
    mode: str,
    ignore_tenants: bool,
    output: str,
) -> None:
    """Find the largest set of hosts (of those named, or of all) that may stop now, together. It reserves nothing."""
    if hosts and everything:
        raise click.UsageError("name hosts, or --all")
    answer = run(
        where,
        lambda client: client.ask(
            "oktostoprequest", _asked(where, hosts, duration, mode, ignore_tenants), wire.OkToStop
        ),
    )

    def lines() -> None:
        for host in answer.hosts:
            click.echo(host)
        click.echo(f"{len(answer.hosts)} hosts may stop together; at most {answer.upper_bound} could", err=True)
        if hosts:
            show_refusals(answer.refused)
        _show_note(answer.status)

    show(answer, output, lines)


def _asked(
    where: Where, hosts: tuple[str, ...], duration: int | None, mode: str, ignore_tenants: bool
) -> wire.PlanRequest:
    return wire.PlanRequest(
        user=where.who(),
        hosts=hosts,
        availability_mode=MODES[mode],
        tenant_policy=tenant_policy(ignore_tenants),
        duration=duration,
    )


def _show_note(status: wire.Status) -> None:
    if status.reason:
        click.echo(status.reason, err=True)


def _names(hosts: tuple[str, ...]) -> str:
    named = ", ".join(hosts[:_NAMED])
    return f"{named} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else named
