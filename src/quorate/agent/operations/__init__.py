"""DRBDResourceOperation: one command, or a few, on one replica, run once.

| type            | what it does                                                                       | module       |
|-----------------|------------------------------------------------------------------------------------|--------------|
| `CreateNewUUID` | gives a new volume its first data (M3, M22)                                        | `first_data` |
| `Verify`        | compares this copy with every other, and copies to them what differs               | `comparison` |
| `Rejoin`        | gives up what was written here since a peer was lost, and connects to it           | `rejoining`  |
| `ZeroRange`     | overwrites a part of a volume that nobody uses, as its Primary for that moment     | `zeroing`    |

``Running`` is written before anything is run: an agent that finds it so goes on, or begins again where that does no
harm, or gives up where it would (``ZeroRange``). Final phases stay as they are. A type that is not in the table fails
and says so.
"""

from quorate.agent.operations.case import Case, Ruling
from quorate.agent.operations.controller import controllers, tasks
from quorate.agent.operations.rule import rule

__all__ = ["Case", "Ruling", "controllers", "rule", "tasks"]
