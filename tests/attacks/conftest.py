"""One server for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.harness import Served, served, slowness


@pytest.fixture(scope="session")
def slow() -> float:
    return slowness()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("attacked")) as found:
        yield found
