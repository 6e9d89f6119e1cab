"""The one service layer: every question of the seed, whoever asks it and over whatever interface.

``Broker`` has a method per question. A question that changes nothing (a dry run, LIST, GET, the cluster's state) is
answered at once from the model and from what is written. One that may change something waits its turn (``turns``):
decide on the model, one compare-and-swap of the ledger, and only then the answer leaves. Decisions that wait together
share a write. What is granted is locked in the model before the write, what ends is unlocked after it, so that nobody
ever sees less locked than is true.

A stored request is granted only when its owner asks (or, for a Kubernetes object, its controller): nobody gets what
they are not there to use. ``changes`` tells watchers when asking would now be answered otherwise.
"""

from quorate.maintenance.broker.broker import Broker
from quorate.maintenance.broker.memory_log import MemoryLog
from quorate.maintenance.broker.ports import Identities, Locks, Log, Metrics, Settings

__all__ = ["Broker", "Identities", "Locks", "Log", "MemoryLog", "Metrics", "Settings"]
