"""Whether a process should be restarted (not live) or not be asked (not ready), and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """Empty lists are good news. Each entry says what is wrong, for the person who reads the probe's answer."""

    not_live: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Whether the process works at all."""
        return not self.not_live

    @property
    def ready(self) -> bool:
        """Whether it knows enough to be asked."""
        return not self.not_ready


def report(problems: Sequence[str], *, verbose: bool) -> tuple[int, str]:
    """What ``/livez``, ``/readyz`` and ``/healthz`` answer, as Kubernetes' own do: the HTTP status, and its text."""
    if not problems and not verbose:
        return 200, "ok"
    lines = [f"[-]{problem}" for problem in problems] or ["[+]everything"]
    lines.append("check failed" if problems else "check passed")
    return 500 if problems else 200, "\n".join(lines) + "\n"
