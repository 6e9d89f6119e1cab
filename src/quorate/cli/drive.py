"""``quorate drive``: drives, how they are, and their replacement from the first word to the new one in the slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quorate.cli.output import output_option, print_documents, print_table
from quorate.cli.reaching import Where, reaching

if TYPE_CHECKING:
    from quorate.api.baremetal import Drive
    from quorate.api.baremetal.drive import OperationalStatus
    from quorate.drives.steps import Wish
    from quorate.engine.store import Store

F = TypeVar("F", bound=Callable[..., Any])

#: Seconds between two looks while a replacement is followed.
INTERVAL = 1.0


def _followed(command: F) -> F:
    options = (
        click.option("--wait/--no-wait", default=True, show_default=True, help="Follow it, step by step."),
        click.option(
            "--timeout",
            type=float,
            default=0.0,
            help="Seconds after which to stop following (exit code 10; it goes on); 0: never.",
        ),
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

    async def ask(store: Store) -> tuple[Drive, Any]:
        found = await _found(store, name)
        return found, await _moving(store, found)

    found, things = where.ask(ask)
    if output != "text":
        _print_whole(found, things, output)
        return
    for line in _lines(found, things):
        click.echo(line)


@drive.command()
@click.argument("name")
@click.option("--polite", is_flag=True, help="Only while all its volumes are whole (SUSPECT, not BAD).")
@click.option("--ready", is_flag=True, help="The new drive is at hand: go on without asking once it is empty.")
@_followed
@reaching
@output_option("text", "json", "yaml")
def replace(where: Where, name: str, polite: bool, ready: bool, wait: bool, timeout: float, output: str) -> None:
    """Move everything away from a drive, and make it ready to be pulled.

    Nothing on it is destroyed before you say that the new drive is at hand: with --ready, or later with
    `quorate drive ready`.
    """
    from quorate.api.annotation_keys import DRIVE_HEALTH, DRIVE_REPLACEMENT, Replacement
    from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
    from quorate.drives.steps import Wish

    # What was said of an earlier replacement does not count for this one.
    said: dict[str, str | None] = dict.fromkeys((*DRIVE_REPLACEMENT, *DRIVE_HEALTH))
    said[DRIVE_HEALTH[0]] = str(DriveHealth.SUSPECT if polite else DriveHealth.BAD)
    if ready:
        said[DRIVE_REPLACEMENT[0]] = str(Replacement.READY)
    goal = OperationalStatus.REMOVED if ready else OperationalStatus.RELEASED
    asked = _Asked(name, Wish.REPLACE_READY if ready else Wish.REPLACE, said, goal, wait, timeout)
    _say_and_follow(where, asked, output)


@drive.command()
@click.argument("name")
@_followed
@reaching
@output_option("text", "json", "yaml")
def ready(where: Where, name: str, wait: bool, timeout: float, output: str) -> None:
    """Say that the new drive is at hand: what is left on the old one is destroyed, and its light goes on."""
    from quorate.api.annotation_keys import DRIVE_REPLACEMENT, Replacement
    from quorate.api.baremetal.drive import OperationalStatus
    from quorate.drives.steps import Wish

    said: dict[str, str | None] = dict.fromkeys(DRIVE_REPLACEMENT)
    said[DRIVE_REPLACEMENT[0]] = str(Replacement.READY)
    _say_and_follow(where, _Asked(name, Wish.READY, said, OperationalStatus.REMOVED, wait, timeout), output)


@drive.command()
@click.argument("name")
@click.option("--good", is_flag=True, help="Whatever it says of itself: it is good. Overrides its health.")
@_followed
@reaching
@output_option("text", "json", "yaml")
def restart(where: Where, name: str, good: bool, wait: bool, timeout: float, output: str) -> None:
    """Take a drive that is released, or whose release failed, into service again. Its health must be GOOD."""
    from quorate.api.annotation_keys import DRIVE_HEALTH, DRIVE_REPLACEMENT, Replacement
    from quorate.api.baremetal.drive import DriveHealth, OperationalStatus
    from quorate.drives.steps import Wish

    # Either spelling may have said that it is bad.
    said: dict[str, str | None] = dict.fromkeys((*DRIVE_REPLACEMENT, *DRIVE_HEALTH))
    said[DRIVE_REPLACEMENT[0]] = str(Replacement.RESTART)
    if good:
        said[DRIVE_HEALTH[0]] = str(DriveHealth.GOOD)
    _say_and_follow(where, _Asked(name, Wish.RESTART, said, OperationalStatus.OPERATIVE, wait, timeout), output)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a person asks of a drive."""

    name: str
    wish: Wish
    #: Annotations; None: taken away.
    said: Mapping[str, str | None]
    goal: OperationalStatus
    wait: bool
    timeout: float


def _say_and_follow(where: Where, asked: _Asked, output: str) -> None:
    from quorate.api.baremetal.drive import OperationalStatus
    from quorate.drives.steps import is_over
    from quorate.errors import QuorateError, StillUnderWay

    said: list[Drive] = []

    async def ask(store: Store) -> tuple[Drive, Any]:
        found = await _found(store, asked.name)
        await _check(store, found, asked)
        if found.status.operational_status is not OperationalStatus.REMOVED:
            found = await store.patch(type(found), found.name, patch={"metadata": {"annotations": dict(asked.said)}})
        said.append(found)
        if asked.wait:
            found = await _follow(store, found, asked, for_people=output == "text")
        return found, await _moving(store, found) if output != "text" else ()

    try:
        found, things = where.ask(ask)
    except KeyboardInterrupt:
        if not said:
            raise
        click.echo(f"\n{_goes_on(said[0], asked)}", err=True)
        raise SystemExit(130) from None
    if output != "text":
        _print_whole(found, things, output)
    phase = found.status.operational_status
    serial = found.spec.serial_number
    if not asked.wait:
        return
    if phase is OperationalStatus.FAILED:
        raise QuorateError(f"drive {serial}: {found.status.message}")
    if not is_over(found, asked.goal):
        raise StillUnderWay(
            f"drive {serial} is {phase} after {asked.timeout:g} s: {found.status.message.rstrip('.')}."
            f" {_goes_on(found, asked)}"
        )
    if output != "text":
        return
    if phase is OperationalStatus.RELEASED:
        left = f"holds nothing of Quorate's, but {also}" if (also := _foreign(found)) else "is empty"
        click.echo(f"Drive {serial} {left}. When the new one is at hand: quorate drive ready {asked.name}")
    elif phase is OperationalStatus.REMOVED:
        click.echo(f"Drive {serial} can be pulled: {found.status.message}")
    elif phase is OperationalStatus.OPERATIVE:
        click.echo(f"Drive {serial} is in service.")


def _goes_on(found: Drive, asked: _Asked) -> str:
    """What becomes of it when nobody follows it any more."""
    from quorate.drives.steps import Wish

    serial, name = found.spec.serial_number, asked.name
    if asked.wish is Wish.RESTART:
        return f"Drive {serial} comes back into service by itself. To look: quorate drive show {name}"
    return (
        f"The replacement of drive {serial} goes on without this command."
        f" To follow it: quorate drive show {name}. To stop it: quorate drive restart {name} --good"
    )


async def _check(store: Store, found: Drive, asked: _Asked) -> None:
    """Refuse what would be waited for in vain, before anything is said."""
    from datetime import UTC, datetime

    from quorate.api import core, struct
    from quorate.api.cluster_config import ClusterConfigSpec
    from quorate.drives.health import Surroundings, judge
    from quorate.drives.steps import refusal
    from quorate.errors import NotFound, QuorateError

    try:
        node = await store.get(core.Node, found.spec.node_id)
    except NotFound:
        node = None
    kept = {key: value for key, value in found.metadata.annotations.items() if key not in asked.said}
    then = {**kept, **{key: value for key, value in asked.said.items() if value is not None}}
    drive = struct.replace(found, metadata=struct.replace(found.metadata, annotations=then))
    around = Surroundings(node, node_up=True, grace=ClusterConfigSpec().grace_periods.drive_missing.seconds)
    why = refusal(found, asked.wish, judge(drive, around, datetime.now(UTC)), asked.name)
    if why:
        raise QuorateError(why)


async def _follow(store: Store, found: Drive, asked: _Asked, *, for_people: bool) -> Drive:
    """Show each step, what it waits for, and a progress bar, until it is over."""
    import asyncio
    import time

    from quorate.api.baremetal import Drive
    from quorate.drives.steps import is_over, steps_of

    began, shown = time.monotonic(), _Shown(for_people)
    # What was just said takes a moment to be heard.
    patience = began + 3 * INTERVAL
    try:
        while True:
            found = await store.get(Drive, found.name)
            shown.show(steps_of(found), found.status.progress)
            now = time.monotonic()
            if is_over(found, asked.goal) and now > patience:
                return found
            if asked.timeout and now - began > asked.timeout:
                return found
            await asyncio.sleep(INTERVAL)
    finally:
        shown.end()


class _Shown:
    """On a terminal a line that changes, with a bar; otherwise a line for each change.

    Beside an answer for programs, on standard error.
    """

    def __init__(self, for_people: bool) -> None:
        from rich.console import Console

        self._console = Console(stderr=not for_people)
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


def _print_whole(found: Drive, things: Any, output: str) -> None:
    """Everything that there is to say of a drive, for programs."""
    import msgspec

    from quorate.api.codec import to_builtins
    from quorate.drives.steps import steps_of

    told = {"steps": msgspec.to_builtins(steps_of(found)), "volumes": msgspec.to_builtins(things)}
    print_documents([{"drive": to_builtins(found), **told}], output)


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
