"""BrokerLedger: everything the broker has decided, in one object, so that a decision is one compare-and-swap."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Column, kind
from quorate.api.meta import Resource
from quorate.api.names import BROKER
from quorate.api.scalars import Count
from quorate.api.struct import Rule, Struct

#: Of compressed contents; base64 makes it 4/3 of that, and etcd takes 1.5 MiB.
MAX_CONTENTS = 1024 * 1024


class LedgerCounters(Struct):
    """The last numbers given. They are never given again."""

    requests: Annotated[Count, Meta(description="The last number given to a request.")] = 0
    permissions: Annotated[Count, Meta(description="The last number given to a permission.")] = 0
    notifications: Annotated[Count, Meta(description="The last number given to a notification.")] = 0
    nodes: Annotated[Count, Meta(description="The last number given to a node.")] = 0
    drives: Annotated[Count, Meta(description="The last number given to a drive.")] = 0
    groups: Annotated[Count, Meta(description="The last number given to a group: a volume.")] = 0


class BrokerLedgerStatus(Struct):
    """The ledger."""

    RULES = (
        # A deposed leader's late write carries an older epoch: refused at the door.
        Rule(
            "!has(oldSelf.epoch) || (has(self.epoch) && self.epoch >= oldSelf.epoch)",
            "the epoch cannot go back: another leader has the ledger",
            field_path=".epoch",
        ),
    )

    epoch: Annotated[int, Meta(ge=0, description="Grows with every new leader.")] = 0
    holder: Annotated[str, Meta(max_length=253, description="The leader of that epoch.")] = ""
    time_high_water: Annotated[datetime, Meta(description="Broker time never goes behind this.")] | None = None
    counters: LedgerCounters = LedgerCounters()
    entries: Annotated[int, Meta(ge=0, description="Requests, permissions and notifications inside.")] = 0
    contents: Annotated[
        bytes,
        Meta(
            description="Locks, grants, stored requests and the Wall-E map: JSON, zlib-compressed.",
            extra_json_schema={"maxLength": -(-MAX_CONTENTS // 3) * 4},
        ),
    ] = b""


@kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    plural="brokerledgers",
    categories=("quorate", "maintenance"),
    columns=(
        Column("Epoch", ".status.epoch", "integer"),
        Column("Holder", ".status.holder"),
        Column("Entries", ".status.entries", "integer"),
    ),
)
class BrokerLedger(Resource):
    """The broker's memory. There is one, ``broker``; the other objects of this group are projections of it."""

    RULES = (Rule(f"self.metadata.name == '{BROKER}'", f"there is one ledger, named {BROKER}"),)

    status: BrokerLedgerStatus = BrokerLedgerStatus()
