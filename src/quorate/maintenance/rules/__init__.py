"""Who may take what down: the rules, as functions of the model, a request and the time.

``request`` weighs a request action by action, ``checks`` has the order in which a node, a drive or a replica is asked
about. Each rule is a file: ``groups`` (erasure groups by mode), ``volumes`` (ReplicatedVolumes by their live quorum),
``limits`` (nodes of the cluster and of tenants), ``rings`` (the state storage). ``obstacles`` says which locks count
and when they end; ``inquiry`` is who asks. ``extension`` is about permissions that exist.

A rule answers with an Objection or not at all: its code, which rule it is, what stands in the way, who holds it, and
the earliest moment at which that can change. Nothing here is stored, and no id is given.
"""

from quorate.maintenance.rules.extension import is_down, may_extend
from quorate.maintenance.rules.request import evaluate, evaluation_steps
from quorate.maintenance.rules.resolving import resolve

__all__ = ["evaluate", "evaluation_steps", "is_down", "may_extend", "resolve"]
