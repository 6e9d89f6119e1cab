"""How commands reach the lab of a running ``quorate up``: by the kubeconfig that it wrote."""

from __future__ import annotations

import asyncio
import os
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
    return asyncio.run(_send(method, path, body, kubeconfig or _kubeconfig(data)))


def _kubeconfig(data: str | None) -> Path:
    from quorate.config import load
    from quorate.errors import ConfigError

    directory = Path(load(None, os.environ, {"data": data}).config.data).expanduser()
    if not (directory / "kubeconfig").exists():
        raise ConfigError(
            f"{directory} is not the data directory of a running `quorate up`: it has no kubeconfig. "
            "Name the right one with --data"
        )
    return directory / "kubeconfig"


async def _send(method: str, path: str, body: bytes | None, kubeconfig: Path) -> bytes:
    from quorate.engine.clock import SystemClock
    from quorate.engine.kubernetes.config import load_connection
    from quorate.engine.kubernetes.transport import Transport
    from quorate.errors import NotFound, QuorateError

    clock = SystemClock()
    transport = Transport(load_connection(environ=os.environ, clock=clock, kubeconfig=kubeconfig), clock=clock)
    try:
        return await (transport.read(path) if body is None else transport.write(method, path, body))
    except NotFound:
        raise QuorateError(f"the server of {kubeconfig} has no simulated hardware: it is not a `quorate up`") from None
    finally:
        await transport.close()
