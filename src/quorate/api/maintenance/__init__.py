"""``maintenance.quorate.io``: who may take what down, when, and why not.

People ask with a PermissionRequest and get Permissions; work that is not asked for but told is a Notification; a
WalleTask is how one robot asks. What the broker has decided lives in the one BrokerLedger, and every other object here
but a person's wish is a projection of it. BrokerConfig says what it must keep; Downtime and LogRecord are its memory.
"""

from __future__ import annotations

from quorate.api.maintenance.broker_config import BrokerConfig
from quorate.api.maintenance.broker_ledger import BrokerLedger
from quorate.api.maintenance.downtime import Downtime
from quorate.api.maintenance.log_record import LogRecord
from quorate.api.maintenance.notification import Notification
from quorate.api.maintenance.permission import Permission
from quorate.api.maintenance.permission_request import PermissionRequest
from quorate.api.maintenance.walle_task import WalleTask

__all__ = [
    "BrokerConfig",
    "BrokerLedger",
    "Downtime",
    "LogRecord",
    "Notification",
    "Permission",
    "PermissionRequest",
    "WalleTask",
]
