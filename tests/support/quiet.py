"""Log lines of the engine are shown when asked for: ``QUORATE_TEST_LOG=debug`` beside the seed that is replayed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import structlog

from quorate.engine import logs


@pytest.fixture(autouse=True, scope="package")
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    logs.configure(json=False, level=os.environ.get("QUORATE_TEST_LOG", "critical"))
    yield
    structlog.configure(**before)
