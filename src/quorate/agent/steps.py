"""What a decision wants done to the machine, as data. ``hands`` carry it out.

A decision returns a few steps that belong together, in order; the first that fails ends them. Looking is a step like
any other: a pass never reads the machine itself, it asks for a look and is woken when ``memory`` has the answer.

``purpose`` says what a step is for. The outcome of the last step of each purpose is remembered per piece of work
(``memory.outcomes``), so that the next pass can report it, and wait before it tries again. ``about`` says which state
of affairs was tried, such as a digest of the file: another state of affairs is worth trying at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.agent.machine import FileBeneath

#: What can be looked at. Whoever knows how to look registers with ``Hands.lookers`` under this name.
KERNEL = "kernel"  # DRBD; subject: a resource, or "" for all of them at once
LVM = "lvm"  # logical volumes; subject: "" for all of them at once
FILE = "file"  # subject: a path
SECRET = "secret"  # noqa: S105 - of a volume, in the API; subject: the name of the Secret
PORT = "port"  # subject: address:port
DRIVES = "drives"  # all of them at once


def lvm_of(place: str) -> str:
    """One logical volume, "group/name", and what is free of its group, as something that a command changes.

    A command that changes what else there is (a group, a device, a pool) changes ``LVM``.
    """
    return f"{LVM}/{place}"


def kernel_of(resource: str) -> str:
    """One DRBD resource, as something that a command changes."""
    return f"{KERNEL}/{resource}"


@dataclass(frozen=True, slots=True)
class Run:
    """A command. Never put a secret in its arguments: they are shown in errors."""

    argv: tuple[str, ...]
    purpose: str
    about: str = ""
    #: Seconds without a byte of output after which it counts as hung; None: as the node is set up.
    silence: float | None = None
    #: Exit codes that are no failure.
    accept: tuple[int, ...] = (0,)
    #: What it changes (``LVM``, ``lvm_of(…)``, ``kernel_of(…)``): what was seen of that holds no more once it begins.
    changes: tuple[str, ...] = ()
    #: What it reads from its input.
    stdin: FileBeneath | None = None
    #: It may part members although bits stand between their good copies (``drbd.marks``): somebody has weighed that.
    despite_marks: bool = False


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a file durably. What is in it is nobody's business: it may hold a secret."""

    path: str
    content: str = field(repr=False)
    purpose: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class MoveFile:
    """Put a file in another's place, at once and durably."""

    source: str
    destination: str
    purpose: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Remove a file durably; one that is not there is fine."""

    path: str
    purpose: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """Look at a part of the machine; what is seen goes to memory."""

    at: str
    subject: str = ""
    purpose: str = "look"
    about: str = ""
    #: Seconds to wait first: what happens meanwhile is seen as well, and needs no look of its own.
    after: float = 0.0


Step = Run | WriteFile | MoveFile | RemoveFile | Look


def words(step: Step) -> str:
    """The step as a person would say it, for errors and logs."""
    match step:
        case Run():
            return " ".join(step.argv) + (f" < {step.stdin}" if step.stdin is not None else "")
        case WriteFile():
            return f"write {step.path}"
        case MoveFile():
            return f"move {step.source} to {step.destination}"
        case RemoveFile():
            return f"remove {step.path}"
        case Look():
            return f"look at {step.at} {step.subject}".rstrip()
