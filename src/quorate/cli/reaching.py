"""How commands reach the cluster that they look at: by a kubeconfig, or at the `quorate up` of a data directory."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from quorate.engine.clock import Clock
    from quorate.engine.kubernetes import Connection
    from quorate.engine.store import Store

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Where:
    """What the command line says of the cluster."""

    data: str | None
    kubeconfig: Path | None
    context: str | None

    def ask(self, question: Callable[[Store], Awaitable[T]]) -> T:
        """Put a question to the cluster's store."""
        import asyncio

        return asyncio.run(self._asked(question))

    def send(self, method: str, path: str, body: bytes) -> bytes:
        """Write to what a `quorate up` serves besides the store."""
        import asyncio

        return asyncio.run(self._sent(method, path, body))

    async def _sent(self, method: str, path: str, body: bytes) -> bytes:
        from quorate.engine.clock import SystemClock
        from quorate.engine.kubernetes.transport import Transport
        from quorate.errors import NotFound, QuorateError

        clock = SystemClock()
        connection = self._connection(clock)
        transport = Transport(connection, clock=clock)
        try:
            return await transport.write(method, path, body)
        except NotFound as error:
            raise QuorateError(
                f"{connection.server} ({connection.origin}) is no `quorate up`, which has this: {error}"
            ) from None
        finally:
            await transport.close()

    async def _asked(self, question: Callable[[Store], Awaitable[T]]) -> T:
        import random

        from quorate.engine.clock import SystemClock
        from quorate.engine.kubernetes import KubernetesStore

        clock = SystemClock()
        store = KubernetesStore(self._connection(clock), clock=clock, random=random.SystemRandom())
        try:
            return await question(store)
        finally:
            await store.close()

    def _connection(self, clock: Clock) -> Connection:
        import sys

        from quorate.engine.kubernetes import load_connection

        kubeconfig = self.kubeconfig
        if kubeconfig is None and self.data is not None:
            from quorate.config import load

            kubeconfig = Path(load(None, os.environ, {"data": self.data}).config.data).expanduser() / "kubeconfig"
        return load_connection(
            environ=os.environ, clock=clock, kubeconfig=kubeconfig, context=self.context, terminal=sys.stdin.isatty()
        )


def reaching(command: F) -> F:
    """The options of every command that looks at a cluster; they arrive as ``where``."""

    @wraps(command)
    def with_where(*, data: str | None, kubeconfig: Path | None, context_name: str | None, **given: Any) -> Any:
        return command(where=Where(data, kubeconfig, context_name), **given)

    options = (
        click.option("--data", help="The data directory of a running `quorate up`."),
        click.option("--kubeconfig", type=click.Path(path_type=Path), help="Or the kubeconfig of its API server."),
        click.option("--context", "context_name", help="The kubeconfig's context to use."),
    )
    decorated: Any = with_where
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
