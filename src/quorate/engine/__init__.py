"""How a controller runs, and where its objects live.

A controller (``controller``) is two pure functions: observe gathers what matters for one key from the caches, decide
turns it into a ``plan``. The rest of this package carries keys to it and plans away from it:

    store → reflector → cache (index) → queue → worker → plan → apply → writer → store

``store`` is the interface of two engines, ``embedded`` and ``kubernetes``. A ``reflector`` keeps a ``cache`` like the
store; changes wake keys in the ``queue``; a ``worker`` runs the passes and knows what each failure means; the
``writer`` asks the ``leader`` before each write and puts the answer into the cache at once. The ``manager`` wires it
all up and keeps an eye on it; ``metrics``, ``logs`` and the ``recorder`` of events tell people. Time, chance and the
order of events are inputs (``clock``), so ``simulation`` can run all of it in virtual time, on one seed.

What decision packages need is exported here; processes import ``engine.manager`` and a store besides.
"""

from quorate.engine.cache import Selection
from quorate.engine.controller import Controller, Watch, no_keys, own_key
from quorate.engine.freshness import look_again
from quorate.engine.index import Index
from quorate.engine.keys import Key, key_of
from quorate.engine.plan import (
    NOTHING,
    AddFinalizer,
    Create,
    Delete,
    NoneLeft,
    Patch,
    PatchStatus,
    Plan,
    PlanEvent,
    ReleaseFinalizer,
    Write,
)
from quorate.engine.reader import Reader
from quorate.engine.signal import Signal

__all__ = [
    "NOTHING",
    "AddFinalizer",
    "Controller",
    "Create",
    "Delete",
    "Index",
    "Key",
    "NoneLeft",
    "Patch",
    "PatchStatus",
    "Plan",
    "PlanEvent",
    "Reader",
    "ReleaseFinalizer",
    "Selection",
    "Signal",
    "Watch",
    "Write",
    "key_of",
    "look_again",
    "no_keys",
    "own_key",
]
