"""A store on the real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import pytest

from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection
from tests.support.apiserver import ApiServer
from tests.support.kinds import Gadget, Widget


@pytest.fixture
async def store(apiserver: ApiServer) -> AsyncIterator[KubernetesStore]:
    """As administrator; what the test leaves behind is removed."""
    apiserver.install_crds([Widget.KIND, Gadget.KIND])
    connection = load_connection(environ={}, clock=SystemClock(), kubeconfig=apiserver.kubeconfig)
    made = KubernetesStore(connection, clock=SystemClock(), random=Random(1))
    yield made
    await made.close()
    apiserver.clear(Widget.KIND, Gadget.KIND)
