"""How drbdsetup tells what the kernel replied, and which exit code follows."""

from __future__ import annotations

from quorate.lab.kernel.reply import Code, Reply
from quorate.lab.tools.process import Process

_REFUSED = 11
_FAILED = 10
_EXIT_CODES: dict[int, int] = {
    Code.NO_UP_TO_DATE_DATA: 17,
    Code.LOWER_THAN_OUTDATED: 5,
    Code.NO_LOCAL_DISK: 16,
}


def tell(process: Process, subject: str, reply: Reply) -> int:
    """Print a reply as drbdsetup does; the exit code."""
    if reply.ok:
        return 0
    head = "State change failed" if reply.code < 0 else "Failure"
    process.err(f"{subject}: {head}: ({reply.code}) {reply.message}\n")
    if reply.text:
        process.err(f"additional info from kernel:\n{reply.text}\n")
    return _EXIT_CODES.get(reply.code, _REFUSED if reply.code < 0 else _FAILED)
