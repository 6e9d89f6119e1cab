"""How far a rolling restart is: a bar for people, lines of JSON for programs."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

import click


class Bar:
    """A bar with the time it will take; without a terminal, a line for each host."""

    def __init__(self, total: int, finished: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich

        console = Console(stderr=True)
        self._quiet = not console.is_terminal
        self._rich = Rich(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=self._quiet,
        )
        self._task = self._rich.add_task("hosts", total=total, completed=finished)
        self._running: dict[str, None] = {}
        self._why = ""

    def __enter__(self) -> Self:
        self._rich.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rich.stop()

    def began(self, host: str) -> None:
        """It runs."""
        self._running[host] = None
        self._say(f"{host}: begun")

    def ended(self, host: str, exit_code: int) -> None:
        """It is over."""
        self._running.pop(host, None)
        if exit_code == 0:
            self._rich.advance(self._task)
        self._say(f"{host}: done" if exit_code == 0 else f"{host}: failed with exit code {exit_code}")

    def waiting(self, why: str) -> None:
        """Nothing can be begun."""
        if why != self._why:
            self._why = why
            self._say(f"waiting: {why}")

    def _say(self, line: str) -> None:
        names = list(self._running)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        self._rich.update(self._task, description=shown or "waiting")
        if self._quiet:
            click.echo(line, err=True)
        else:
            self._rich.console.print(line, highlight=False)


class JsonLines:
    """A line for each event, and one for the end."""

    def began(self, host: str) -> None:
        """It runs."""
        self._line(event="began", host=host)

    def ended(self, host: str, exit_code: int) -> None:
        """It is over."""
        self._line(event="succeeded" if exit_code == 0 else "failed", host=host, exitCode=exit_code)

    def waiting(self, why: str) -> None:
        """Nothing can be begun."""
        self._line(event="waiting", reason=why)

    def over(self, **fields: Any) -> None:
        """The whole of it is over: the last line."""
        self._line(event="over", **fields)

    @staticmethod
    def _line(**fields: Any) -> None:
        click.echo(json.dumps(fields))
