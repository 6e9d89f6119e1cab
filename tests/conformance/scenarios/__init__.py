"""Scripts of requests, by topic. Every public coroutine function of a module here is one scenario."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from tests.conformance.scenarios import (
    bodies,
    changes,
    core,
    deletion,
    metadata,
    reading,
    replacing,
    status,
    tables,
    validation,
    watching,
)
from tests.conformance.transcript import Scene

Scenario = Callable[[Scene], Awaitable[None]]

_MODULES = (
    bodies,
    changes,
    core,
    deletion,
    metadata,
    reading,
    replacing,
    status,
    tables,
    validation,
    watching,
)


def _public(module: object) -> dict[str, Scenario]:
    name = module.__name__  # type: ignore[attr-defined]
    topic = name.rpartition(".")[2]
    return {
        f"{topic}.{each}": function
        for each, function in vars(module).items()
        if inspect.iscoroutinefunction(function) and function.__module__ == name and not each.startswith("_")
    }


SCENARIOS: dict[str, Scenario] = {name: found for module in _MODULES for name, found in _public(module).items()}
