"""``quorate drive``: drives, how they are, and their replacement from the first word to the new one in the slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quorate.cli.output import output_option, print_documents, print_table
from quorate.cli.reaching import Where, reaching

if TYPE_CHECKING:
    from quorate.api.baremetal import Drive
    from quorate.api.baremetal.drive import OperationalStatus
    from quorate.engine.store import Store

F = TypeVar("F", bound=Callable[..., Any])

#: Seconds between two looks while a replacement is followed.
INTERVAL = 1.0


def _followed(command: F) -> F:
    options = (
        click.option("--wait/--no-wait", default=True, show_default=True, help="Follow it, step by step."),
        click.option("--timeout", type=float, default=0.0, help="Seconds after which to stop following; 0: never."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def drive() -> None:
    """Show drives, and replace one.

    A drive is named by its object, its serial number, or its place: node-1/3 is slot 3 of node-1, node-1/sdb a device.
    Without --data and --kubeconfig the API server of KUBECONFIG, of the pod, or of ~/.kube/config is asked.
    """


@drive.command(name="list")
@reaching
@output_option("table", "json", "yaml")
def list_(where: Where, output: str) -> None:
    """List the drives of the cluster."""
    from quorate.api.baremetal import Drive
    from quorate.api.codec import to_builtins

    async def ask(store: Store) -> tuple[Drive, ...]:
        found = (await store.list(Drive)).items
        return tuple(sorted(found, key=lambda each: (each.spec.node_id, len(each.spec.slot), each.spec.slot)))

    drives = where.ask(ask)
    if output != "table":
        print_documents([to_builtins(each) for each in drives], output)
        return
    print_table(
        ["NODE", "SLOT", "DEVICE", "SERIAL", "TYPE", "SIZE", "HEALTH", "STATUS", "MOVED", "MESSAGE"],
        [_row(each) for each in drives],
    )


@drive.command()
@click.argument("name")
@reaching
@output_option("text", "json", "yaml")
def show(where: Where, name: str, output: str) -> None:
    """Show a drive: its health, how far its replacement is, and what each thing on it waits for."""
    import msgspec

    from quorate.drives.steps import steps_of

    async def ask(store: Store) -> tuple[Drive, Any]:
        found = await _found(store, name)
        return found, await _moving(store, found)

    found, things = where.ask(ask)
    if output != "text":
        from quorate.api.codec import to_builtins

        told = {"steps": msgspec.to_builtins(steps_of(found)), "volumes": msgspec.to_builtins(things)}
        print_documents([{"drive": to_builtins(found), **told}], output)
        return
    for line in _lines(found, things):
        click.echo(line)


@drive.command()
@click.argument("name")
@click.option("--polite", is_flag=True, help="Only while all its volumes are whole (SUSPECT, not BAD).")
@click.option("--ready", is_flag=True, help="The new drive is at hand: go on without asking once it is empty.")
@_followed
@reaching
def replace(where: Where, name: str, polite: bool, ready: bool, wait: bool, timeout: float) -> None:
    """Move everything away from a drive, and make it ready to be pulled.

    Nothing on it is destroyed before you say that the new drive is at hand: with --ready, or later with
    `quorate drive ready`.
    """
    from quorate.api.annotation_keys import DRIVE_HEALTH, DRIVE_REPLACEMENT, Replacement
    from quorate.api.baremetal.drive import DriveHealth, OperationalStatus

    # What was said of an earlier replacement does not count for this one.
    said: dict[str, str | None] = dict.fromkeys(DRIVE_REPLACEMENT)
    said[DRIVE_HEALTH[0]] = str(DriveHealth.SUSPECT if polite else DriveHealth.BAD)
    if ready:
        said[DRIVE_REPLACEMENT[0]] = str(Replacement.READY)
    goal = OperationalStatus.REMOVED if ready else OperationalStatus.RELEASED
    _say_and_follow(where, name, said, goal if wait else None, timeout)


@drive.command()
@click.argument("name")
@_followed
@reaching
def ready(where: Where, name: str, wait: bool, timeout: float) -> None:
    """Say that the new drive is at hand: what is left on the old one is destroyed, and its light goes on."""
    from quorate.api.annotation_keys import DRIVE_REPLACEMENT, Replacement
    from quorate.api.baremetal.drive import OperationalStatus

    said = {DRIVE_REPLACEMENT[0]: str(Replacement.READY)}
    _say_and_follow(where, name, said, OperationalStatus.REMOVED if wait else None, timeout)


@drive.command()
@click.argument("name")
@click.option("--good", is_flag=True, help="Whatever it says of itself: it is good. Overrides its health.")
@_followed
@reaching
def restart(where: Where, name: str, good: bool, wait: bool, timeout: float) -> None:
    """Take a drive that is released, or whose release failed, into service again. Its health must be GOOD."""
    from quorate.api.annotation_keys import DRIVE_HEALTH, DRIVE_REPLACEMENT, Replacement
    from quorate.api.baremetal.drive import DriveHealth, OperationalStatus

    said: dict[str, str | None] = {DRIVE_REPLACEMENT[0]: str(Replacement.RESTART), DRIVE_HEALTH[0]: None}
    if good:
        said[DRIVE_HEALTH[0]] = str(DriveHealth.GOOD)
    goal = OperationalStatus.OPERATIVE if wait else None
    _say_and_follow(where, name, said, goal, timeout)


def _say_and_follow(
    where: Where,
    name: str,
    said: dict[str, str | None] | dict[str, str],
    goal: OperationalStatus | None,
    timeout: float,
) -> None:
    from quorate.api.baremetal import Drive
    from quorate.api.baremetal.drive import OperationalStatus
    from quorate.errors import QuorateError

    async def ask(store: Store) -> Drive:
        found = await _found(store, name)
        found = await store.patch(Drive, found.name, patch={"metadata": {"annotations": dict(said)}})
        return found if goal is None else await _follow(store, found, goal, timeout)

    found = where.ask(ask)
    phase = found.status.operational_status
    if goal is not None and phase is OperationalStatus.FAILED and goal is not OperationalStatus.FAILED:
        raise QuorateError(f"drive {found.spec.serial_number}: {found.status.message}")
    if phase is OperationalStatus.RELEASED:
        left = f"holds nothing of Quorate's, but {also}" if (also := _foreign(found)) else "is empty"
        click.echo(f"Drive {found.spec.serial_number} {left}. When the new one is at hand: quorate drive ready {name}")
    elif phase is OperationalStatus.REMOVED:
        click.echo(f"Drive {found.spec.serial_number} can be pulled: {found.status.message}")


async def _follow(store: Store, found: Drive, goal: OperationalStatus, timeout: float) -> Drive:
    """Show each step, what it waits for, and a progress bar, until it is over."""
    import asyncio
    import time

    from quorate.api.baremetal import Drive
    from quorate.drives.steps import is_over, steps_of

    began, shown = time.monotonic(), _Shown()
    # What was just said takes a moment to be heard.
    patience = began + 3 * INTERVAL
    while True:
        found = await store.get(Drive, found.name)
        shown.show(steps_of(found), found.status.progress)
        now = time.monotonic()
        if (is_over(found, goal) and now > patience) or (timeout and now - began > timeout):
            shown.end()
            return found
        await asyncio.sleep(INTERVAL)


class _Shown:
    """On a terminal a line that changes, with a bar; otherwise a line for each change."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console()
        self._last: tuple[str, ...] = ()
        self._live: Any = None

    def show(self, steps: tuple[Any, ...], progress: int | None) -> None:
        lines = tuple(_step(step) for step in steps)
        if self._console.is_terminal:
            self._update(lines, progress)
        else:
            for line in lines:
                if line not in self._last:
                    self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._last = lines

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _update(self, lines: tuple[str, ...], progress: int | None) -> None:
        from rich.console import Group
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        bar = ProgressBar(total=100, completed=progress or 0, width=50)
        shown = Group(*(Text(line) for line in lines), bar)
        if self._live is None:
            self._live = Live(shown, console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(shown, refresh=True)


def _step(step: Any) -> str:
    mark = {"done": "✓", "now": "→", "failed": "✗"}.get(step.state, "·")
    return f"{mark} {step.name}" + (f": {step.message}" if step.message else "")


def _lines(found: Drive, things: Any) -> list[str]:
    from quorate.drives.steps import steps_of

    spec, status = found.spec, found.status
    place = f"slot {spec.slot}" if spec.slot else spec.path
    lines = [
        f"Drive {spec.serial_number} ({spec.vid} {spec.pid}), {place} of {spec.node_id}, {spec.path}, {_size(found)}",
        f"  object {found.name}, {status.presence or 'not seen'}, {status.operational_status or 'new'}",
    ]
    if also := _foreign(found):
        lines.append(f"  also on it: {also}")
    lines += [f"  {_step(step)}" for step in steps_of(found)]
    for thing in things:
        bar = "█" * (thing.percent // 10) + "░" * (10 - thing.percent // 10)
        lines.append(f"    {bar} {thing.percent:3} % {thing.state:<9} {thing.name}  {thing.message}".rstrip())
    return lines


def _row(each: Drive) -> list[str]:
    spec, status = each.spec, each.status
    moved = "" if status.progress is None else f"{status.progress} %"
    gone = " (gone)" if status.presence == "OFFLINE" else ""
    return [
        spec.node_id,
        spec.slot,
        spec.path.removeprefix("/dev/") + gone,
        spec.serial_number,
        str(spec.type or ""),
        _size(each),
        str(status.health or ""),
        str(status.operational_status or ""),
        moved,
        status.message[:100],
    ]


def _foreign(found: Drive) -> str:
    """What else is on it."""
    data = found.status.foreign_data if found.status.presence != "OFFLINE" else ""
    return f"{data} (not Quorate's: neither moved nor wiped; save it, then wipefs --all)" if data else ""


def _size(each: Drive) -> str:
    return f"{each.spec.size / 1e9:.0f} GB"


async def _found(store: Store, name: str) -> Drive:
    from quorate.api.baremetal import Drive
    from quorate.drives.steps import find
    from quorate.errors import NotFound, QuorateError

    found = find((await store.list(Drive)).items, name)
    if not found:
        raise NotFound(f"there is no drive {name}: give its object, its serial number, node/slot or node/device")
    present = [each for each in found if each.status.presence != "OFFLINE"] or list(found)
    if len(present) > 1:
        serials = ", ".join(each.spec.serial_number for each in present)
        raise QuorateError(f"{name} may be any of {serials}: give the serial number")
    return present[0]


async def _moving(store: Store, found: Drive) -> Any:
    from quorate.api.baremetal import Volume
    from quorate.api.storage import LVMVolumeGroup
    from quorate.drives.steps import moving

    groups = [
        group.name
        for group in (await store.list(LVMVolumeGroup)).items
        if any(device.drive_uuid == found.name for device in group.status.devices)
    ]
    return moving(found, (await store.list(Volume)).items, groups)
