"""The embedded engine: a store in this process, on one SQLite file, that means what Kubernetes means.

A write travels through these, top to bottom:

    store, raw     the verbs, on typed objects and on JSON
    semantics      what a write does to an object, and why it is refused: pure functions over JSON trees
    admission      what is refused although it is well-formed
    schema         the kind's schema: shape, verdict, explanation, CEL rules
    writing        decided but not yet durable: the head, where writes to one object queue up
    committer      group commit, in a thread or inline
    database       the log in the file; ``lock`` keeps other processes out, ``loading`` reads it at the start
    state          what is committed, and an index of the past
    subscriptions  who is told; ``selection`` and ``pages`` are for those who watch and list

Readers see a write, watchers hear of it and its writer is answered only when it is on the disk.
"""

from quorate.engine.embedded.admission import Admit, Attempt, everybody, forbidden
from quorate.engine.embedded.database import Database
from quorate.engine.embedded.names import label_value
from quorate.engine.embedded.record import Change, Deleted, FieldValidation, Page, Record, Written
from quorate.engine.embedded.state import HistoryLimits
from quorate.engine.embedded.store import EmbeddedStore, parse_version
from quorate.engine.embedded.subscriptions import Subscription

__all__ = [
    "Admit",
    "Attempt",
    "Change",
    "Database",
    "Deleted",
    "EmbeddedStore",
    "FieldValidation",
    "HistoryLimits",
    "Page",
    "Record",
    "Subscription",
    "Written",
    "everybody",
    "forbidden",
    "label_value",
    "parse_version",
]
