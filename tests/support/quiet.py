"""Log lines of the engine are shown when asked for: ``QUORATE_TEST_LOG=debug`` beside the seed that is replayed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from quorate.engine import logs


@pytest.fixture(autouse=True, scope="package")
def quiet() -> Iterator[None]:
    before = logs.configuration()
    logs.configure(json=False, level=os.environ.get("QUORATE_TEST_LOG", "critical"))
    yield
    logs.use(before)
