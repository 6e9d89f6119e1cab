"""What can be done to a simulated cluster: one small vocabulary for the command line, the tests and the campaigns.

A fault is data, and travels as JSON: ``{"fault": "cut", "node": "node-1", "peer": "node-2"}``. What it does is the
business of ``cluster``. Drives are named as a person sees them: ``sdb``, ``/dev/sdb``, a slot or a serial number.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from quorate.lab.kernel.states import Slip

NodeName = Annotated[str, Meta(min_length=1, max_length=253, description="A node.")]
PeerName = Annotated[str, Meta(min_length=1, max_length=253, description="The node at the other end.")]
DriveName = Annotated[
    str, Meta(min_length=1, max_length=128, description="A drive: sdb, /dev/sdb, a slot or a serial number.")
]
Command = Annotated[
    str, Meta(min_length=1, description="How the command begins: drbdadm, or more of it: 'drbdsetup status'.")
]


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class _Fault(msgspec.Struct, frozen=True, tag_field="fault", tag=_kebab, rename="camel", forbid_unknown_fields=True):
    pass


class NodeDown(_Fault, frozen=True):
    """Take the power away: everything in memory is lost, the agent with it."""

    node: NodeName


class NodeUp(_Fault, frozen=True):
    """Give the power back; the node boots and its agent starts."""

    node: NodeName


class Reboot(_Fault, frozen=True):
    """Take the power away and give it back at once."""

    node: NodeName


class Shutdown(_Fault, frozen=True):
    """Let a node power off in order: programs and the agent end, devices are taken down, caches are written.

    A device that is suspended and has dirty pages keeps it from ending for ever, unless it was failed before that.
    """

    node: NodeName
    reboot: Annotated[bool, Meta(description="It boots again.")] = False
    bare: Annotated[bool, Meta(description="Without the unit that takes devices down: as reboot -f does.")] = False


class AgentKill(_Fault, frozen=True):
    """Kill the agent (SIGKILL); it is started again at once. The kernel goes on."""

    node: NodeName


class Cut(_Fault, frozen=True):
    """Cut the storage link between two nodes."""

    node: NodeName
    peer: PeerName
    one_way: Annotated[bool, Meta(description="Only what the first node sends is lost.")] = False


class CutApi(_Fault, frozen=True):
    """Cut a node's agent off from the API; its storage links stay."""

    node: NodeName


class Isolate(_Fault, frozen=True):
    """Cut a node off from all others and from the API."""

    node: NodeName


class Heal(_Fault, frozen=True):
    """Mend links: between two nodes, all of one node with the API, or, of no node, everything."""

    node: Annotated[str, Meta(max_length=253, description="A node; none: all of them.")] = ""
    peer: Annotated[str, Meta(max_length=253, description="The node at the other end; none: all of them.")] = ""


class DriveFail(_Fault, frozen=True):
    """Let every read and write of a drive fail."""

    node: NodeName
    drive: DriveName


class DriveMend(_Fault, frozen=True):
    """Let a failing drive work again."""

    node: NodeName
    drive: DriveName


class DrivePull(_Fault, frozen=True):
    """Pull a drive out of a running node."""

    node: NodeName
    drive: DriveName


class DriveInsert(_Fault, frozen=True):
    """Put a pulled drive back; what was on it is still there."""

    node: NodeName
    drive: Annotated[str, Meta(max_length=128, description="Its serial number; none: the one pulled last.")] = ""


class DriveSwap(_Fault, frozen=True):
    """Put a new, empty drive of the same size into a drive's slot."""

    node: NodeName
    drive: DriveName


class Smart(_Fault, frozen=True):
    """Let a drive say of itself that it is well, wearing out, or failing."""

    node: NodeName
    drive: DriveName
    says: Annotated[Literal["good", "wearing", "failing"], Meta(description="What SMART says.")] = "failing"


class Hang(_Fault, frozen=True):
    """Let commands hang in the kernel, where no signal reaches them."""

    node: NodeName
    command: Command


class Slow(_Fault, frozen=True):
    """Let commands take longer."""

    node: NodeName
    command: Command
    seconds: Annotated[float, Meta(gt=0, le=3600, description="By how much.")] = 5.0


class Mishap(_Fault, frozen=True):
    """Let the node's DRBD do, at its next opportunity, what the real one was seen to do by chance."""

    node: NodeName
    what: Annotated[Slip, Meta(description="What it does.")]
    resource: Annotated[str, Meta(max_length=128, description="With which resource; none: the next one.")] = ""


class Stranger(_Fault, frozen=True):
    """Let another program listen on a port of a node, from the moment that nobody else does; port 0 ends it."""

    node: NodeName
    port: Annotated[int, Meta(ge=0, le=65535, description="The port; 0: all strangers leave.")]


class Release(_Fault, frozen=True):
    """End hanging and slowness, on one node or on all. What hung goes on."""

    node: Annotated[str, Meta(max_length=253, description="A node; none: all of them.")] = ""


class KernelRace(_Fault, frozen=True):
    """Let the kernel lose a race that the real one seldom loses, on all nodes; chance 0 ends it."""

    race: Annotated[Literal["late-generation", "refused-state"], Meta(description="Which one: see docs/lab.md.")]
    chance: Annotated[float, Meta(ge=0, le=1, description="How often, 0 to 1.")] = 1.0


class QuorumNews(_Fault, frozen=True):
    """Say who is first when a disk goes under a primary without one: those who lose their quorum by it, or the disk.

    Hearing of them first the primary refuses the rest, hangs up and stands still; hearing of them last it goes on.
    """

    comes: Annotated[Literal["first", "last", "by-chance"], Meta(description="When the news comes.")] = "by-chance"


Fault = (
    NodeDown
    | NodeUp
    | Reboot
    | Shutdown
    | AgentKill
    | Cut
    | CutApi
    | Isolate
    | Heal
    | DriveFail
    | DriveMend
    | DrivePull
    | DriveInsert
    | DriveSwap
    | Smart
    | Hang
    | Slow
    | Mishap
    | Stranger
    | Release
    | KernelRace
    | QuorumNews
)

#: The vocabulary, by the word on the wire and on the command line.
FAULTS: dict[str, type[_Fault]] = {_kebab(fault.__name__): fault for fault in get_args(Fault)}


def word(fault: Fault) -> str:
    """The word for a kind of fault."""
    return _kebab(type(fault).__name__)
