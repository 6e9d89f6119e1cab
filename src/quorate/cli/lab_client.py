"""How commands reach the lab of a running ``quorate up``: by the kubeconfig that it wrote, or that KUBECONFIG names."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.lab.faults import Fault
    from quorate.lab.truth import Truth

FAULTS = "/lab/v1/faults"
TRUTH = "/lab/v1/truth"


def inject(fault: Fault, *, data: str | None, kubeconfig: Path | None) -> str:
    """Do something to the simulated hardware; returns what was done."""
    import msgspec

    answer = _call("POST", FAULTS, msgspec.json.encode(fault), data, kubeconfig)
    done: str = msgspec.json.decode(answer)["message"]
    return done


def truth(*, data: str | None, kubeconfig: Path | None) -> Truth:
    """How the simulated hardware is."""
    import msgspec

    from quorate.lab.truth import Truth

    return msgspec.json.decode(_call("GET", TRUTH, None, data, kubeconfig), type=Truth)


def _call(method: str, path: str, body: bytes | None, data: str | None, kubeconfig: Path | None) -> bytes:
    from quorate.errors import StoreUnreachable

    *first, last = [kubeconfig] if kubeconfig is not None else _kubeconfigs(data)
    for found in first:
        with suppress(StoreUnreachable):  # left behind by one that has ended
            return asyncio.run(_send(method, path, body, found))
    return asyncio.run(_send(method, path, body, last))


def _kubeconfigs(data: str | None) -> list[Path | None]:
    """Where to look: the data directory; and if nobody named one, what KUBECONFIG says (None) after it."""
    from quorate.config import load
    from quorate.errors import ConfigError

    loaded = load(None, os.environ, {"data": data})
    directory = Path(loaded.config.data).expanduser()
    found: list[Path | None] = [directory / "kubeconfig"] if (directory / "kubeconfig").exists() else []
    if loaded.origins["data"] == "default" and os.environ.get("KUBECONFIG"):
        found.append(None)
    if not found:
        raise ConfigError(
            f"{directory} is not the data directory of a running `quorate up`: it has no kubeconfig. "
            "Name the right one with --data, or its kubeconfig with --kubeconfig or KUBECONFIG"
        )
    return found


async def _send(method: str, path: str, body: bytes | None, kubeconfig: Path | None) -> bytes:
    from quorate.engine.clock import SystemClock
    from quorate.engine.kubernetes.config import load_connection
    from quorate.engine.kubernetes.transport import Transport
    from quorate.errors import NotFound, QuorateError

    clock = SystemClock()
    connection = load_connection(environ=os.environ, clock=clock, kubeconfig=kubeconfig)
    transport = Transport(connection, clock=clock)
    try:
        return await (transport.read(path) if body is None else transport.write(method, path, body))
    except NotFound:
        raise QuorateError(
            f"{connection.server} ({connection.origin}) has no simulated hardware: it is not a `quorate up`"
        ) from None
    finally:
        await transport.close()
