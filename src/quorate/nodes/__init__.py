"""Core Nodes that agents have registered: whether they are Ready.

On Kubernetes a kubelet and the node lifecycle controller say so. On the embedded engine nobody else would:
``readiness`` sets Ready=Unknown while the Lease of a node's agent is not renewed, and True again when it is. The times
that the Lease holds are by the agent's clock and mean nothing here; what counts is when we saw it change.
"""

from typing import Any

from quorate.engine import Controller
from quorate.nodes.readiness import READINESS

CONTROLLERS: tuple[Controller[Any], ...] = (READINESS,)

__all__ = ["CONTROLLERS"]
