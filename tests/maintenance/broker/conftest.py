"""A desk for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.maintenance.broker.desk import Desk


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """Eight nodes, one block-4-2 group over all of them."""
    opened = await Desk.open()
    yield opened
    await opened.broker.close()
    await opened.store.close()
