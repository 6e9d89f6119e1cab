"""The broker's log: what it decided and why, kept for two weeks and asked by time and sort.

``objects.ObjectLog`` keeps records as LogRecord objects, many in one (a chunk), because an object per record would be
too many. A record is taken at once and written within a second, together with what came meanwhile: nobody's answer
waits for the log. What a crash can lose is that last second of the log, never a decision; those are in the ledger.
"""

from quorate.maintenance.log.objects import ObjectLog

__all__ = ["ObjectLog"]
