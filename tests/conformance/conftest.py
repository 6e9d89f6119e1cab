"""Which engine a test of this directory runs on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from quorate.engine.store import Store
from tests.conformance.targets import Target, embedded, facade, real

REAL = pytest.param("apiserver", marks=pytest.mark.apiserver)


def _started(request: pytest.FixtureRequest, directory: Path) -> AbstractAsyncContextManager[Target]:
    match request.param:
        case "embedded":
            return embedded(directory)
        case "facade":
            return facade(directory)
        case _:
            return real(request.getfixturevalue("apiserver"))


@pytest.fixture(params=["embedded", "facade", REAL])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Target]:
    """Every engine in turn."""
    async with _started(request, tmp_path) as made:
        yield made


@pytest.fixture
def store(target: Target) -> Store:
    return target.store


@pytest.fixture(params=["facade", REAL])
async def wired(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Target]:
    """Every engine that speaks HTTP."""
    async with _started(request, tmp_path) as made:
        yield made
