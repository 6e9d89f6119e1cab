"""``quorate up`` with the cluster's own controller and no other: what kubectl is shown is then what it wrote itself.

Run it as ``python -m tests.kubectl.bare_up up …``.
"""

from __future__ import annotations

from typing import Any

from quorate import cluster
from quorate.cli import main
from quorate.engine import Controller
from quorate.server import leading


def _only_the_cluster(_: object) -> tuple[Controller[Any], ...]:
    return cluster.CONTROLLERS


def _nothing(*_: object) -> None:
    """Nobody keeps the volumes and drives that would be counted."""


if __name__ == "__main__":
    setattr(leading, "cluster_wide", _only_the_cluster)  # noqa: B010 - it is not exported
    setattr(leading, "_count", _nothing)  # noqa: B010
    main()
