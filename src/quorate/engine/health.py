"""Whether a process should be restarted (not live) or not be asked (not ready), and why."""

from __future__ import annotations

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
