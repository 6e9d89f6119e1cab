from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from quorate.agent.linux import LinuxMachine


@pytest.fixture
async def machine() -> AsyncIterator[LinuxMachine]:
    made = LinuxMachine()
    yield made
    await made.close()
