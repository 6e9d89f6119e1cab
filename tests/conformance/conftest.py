"""Which engine a test of this directory runs on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from quorate.engine.store import Store
from tests.conformance.targets import Target, real

REAL = pytest.param("apiserver", marks=pytest.mark.apiserver)


async def _enter(name: str, request: pytest.FixtureRequest, stack: AsyncExitStack) -> Target:
    return await stack.enter_async_context(real(request.getfixturevalue("apiserver")))


@pytest.fixture(params=[REAL])
async def target(request: pytest.FixtureRequest) -> AsyncIterator[Target]:
    """Every engine in turn."""
    async with AsyncExitStack() as stack:
        yield await _enter(request.param, request, stack)


@pytest.fixture
def store(target: Target) -> Store:
    return target.store


@pytest.fixture(params=[REAL])
async def wired(request: pytest.FixtureRequest) -> AsyncIterator[Target]:
    """Every engine that speaks HTTP."""
    async with AsyncExitStack() as stack:
        yield await _enter(request.param, request, stack)
