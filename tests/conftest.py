"""Fixtures that the whole suite shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.apiserver import ApiServer, MissingBinaries, running_apiserver
from tests.support.optional import loud_skip, report_loud_skips


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    report_loud_skips(terminalreporter)


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real kube-apiserver with its etcd, for the whole run."""
    try:
        with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
            yield server
    except MissingBinaries as missing:
        loud_skip(f"kube-apiserver: {missing}")
