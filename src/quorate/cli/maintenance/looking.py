"""``state``, ``mark``, ``unmark``, ``log``: how the cluster is, what is marked in it, and what happened."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import click
import msgspec

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.client import Client, Where, run
from quorate.cli.maintenance.options import connected, json_or_text, moment, show
from quorate.cli.output import print_table

MARKERS = ("broken", "faulty", "active", "inactive")
_RECORDS = ("CMS_LOADED", "PDISK_MONITOR_ACTION", "MARKERS_MODIFICATION", "PERMISSION_GRANTED", "PERMISSION_ENDED")


class Hosts(wire.Message, frozen=True):
    """Whose state."""

    hosts: tuple[str, ...] = ()


class Items(msgspec.Struct, frozen=True):
    """What is marked, in the proto file's own spelling."""

    hosts: tuple[str, ...] = msgspec.field(name="Hosts", default=())
    drives: tuple[str, ...] = msgspec.field(name="PDisks", default=())
    replicas: tuple[str, ...] = msgspec.field(name="VDisks", default=())


class Marking(wire.Message, frozen=True):
    """A marker for items."""

    marker: str
    items: Items


class Filter(wire.Message, frozen=True):
    """Which records."""

    record_type: str | None = None
    min_timestamp: int = 0
    limit: int = 100


class Tail(wire.Message, frozen=True):
    """The newest records."""

    log_filter: Filter
    include_data: bool = False
    text_format: str = "SHORT"


@click.command()
@click.argument("hosts", nargs=-1)
@json_or_text
@connected
def state(where: Where, hosts: tuple[str, ...], output: str) -> None:
    """Show how hosts and their devices are, as the broker sees them."""
    answer = run(where, lambda client: client.ask("clusterstaterequest", Hosts(hosts=hosts), wire.ClusterState))

    def lines() -> None:
        rows = [
            (
                host.name,
                str(host.node_id),
                host.state,
                "/".join(filter(None, (host.location.data_center, host.location.room, host.location.rack))),
                host.tenant,
                " ".join(_devices(host)),
            )
            for host in answer.state.hosts
        ]
        print_table(("HOST", "NODE", "STATE", "PLACE", "TENANT", "DEVICES NOT WELL"), rows)

    show(answer, output, lines)


def _devices(host: wire.Host) -> list[str]:
    return [
        ":".join((_called(device), device.state if device.state != "UP" else "", *device.markers)).replace("::", ":")
        for device in host.devices
        if device.state != "UP" or device.markers
    ]


def _called(device: wire.Device) -> str:
    """As people call it, and as requests do."""
    return f"{device.title}({device.name})" if device.title else device.name


@click.command()
@click.argument("marker", type=click.Choice(MARKERS))
@click.argument("items", nargs=-1, required=True)
@json_or_text
@connected
def mark(where: Where, marker: str, items: tuple[str, ...], output: str) -> None:
    """Mark hosts (all their drives), drives or replicas: a marker decides over everything else.

    broken: move everything off it at once; faulty: when it can be done safely; inactive: put nothing new on it;
    active: it is well, whatever else says.
    """
    show(_marked(where, "setmarkerrequest", marker, items), output, lambda: None)


@click.command()
@click.argument("marker", type=click.Choice(MARKERS))
@click.argument("items", nargs=-1, required=True)
@json_or_text
@connected
def unmark(where: Where, marker: str, items: tuple[str, ...], output: str) -> None:
    """Take a marker away again."""
    show(_marked(where, "resetmarkerrequest", marker, items), output, lambda: None)


def _marked(where: Where, path: str, marker: str, items: tuple[str, ...]) -> wire.OnlyStatus:
    drives = tuple(item for item in items if item.startswith("pdisk-"))
    replicas = tuple(item for item in items if item.startswith("vdisk-"))
    hosts = tuple(item for item in items if item not in (*drives, *replicas))
    asked = Marking(marker=f"MARKER_DISK_{marker.upper()}", items=Items(hosts=hosts, drives=drives, replicas=replicas))
    return run(where, lambda client: client.ask(path, asked, wire.OnlyStatus))


@click.command()
@click.option("--type", "record_type", type=click.Choice(_RECORDS), help="Only these.")
@click.option("--since", type=click.DateTime(("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")), help="UTC.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--follow", is_flag=True, help="Go on with what comes.")
@json_or_text
@connected
def log(where: Where, record_type: str | None, since: datetime | None, limit: int, follow: bool, output: str) -> None:
    """Show what the broker did: grants, ends, markers, its monitor."""
    begin = 0 if since is None else int(since.replace(tzinfo=UTC).timestamp()) * 1_000_000

    async def ask(client: Client) -> None:
        import asyncio

        start = begin
        while True:
            asked = Tail(
                log_filter=Filter(record_type=record_type, min_timestamp=start, limit=limit),
                include_data=output == "json",
            )
            answer = await client.ask("getlogtailrequest", asked, wire.Log)
            if not follow:
                show(answer, output, partial(_lines, answer))
                return
            _follow(answer, output)
            start = max((record.timestamp + 1 for record in answer.log_records), default=start)
            await asyncio.sleep(2)

    run(where, ask)


def _follow(answer: wire.Log, output: str) -> None:
    """A stream has no end at which it could be one document: a line of JSON for each record."""
    if output == "text":
        _lines(answer)
        return
    for record in answer.log_records:
        click.echo(msgspec.json.encode(record))


def _lines(answer: wire.Log) -> None:
    for record in answer.log_records:
        click.echo(f"{moment(record.timestamp)}  {record.record_type:<20}  {record.message}")


@click.command()
@click.option("--request", "request_id", default="", help="Only of this request.")
@connected
def watch(where: Where, request_id: str) -> None:
    """Tell what changes of your requests and permissions, as it happens: a line of JSON each."""

    async def listen(client: Client) -> None:
        async with client.changes(where.who(), request_id) as changes:
            click.echo("listening", err=True)
            async for change in changes:
                click.echo(change.decode())

    run(where, listen)
