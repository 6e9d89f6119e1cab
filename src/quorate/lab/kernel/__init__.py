"""A model of the DRBD 9.2 kernel module, held to recordings of a real cluster.

`World` is the stage: virtual time, nodes, links, power. Each node has one `Kernel`, whose methods are the netlink calls
that drbdsetup makes, one each; a call returns a `Reply` with the kernel's own numbers. What takes time in reality (a
lost ping, a reconnect, a resync) happens in `World.advance`.

Every change of a resource's state goes through one door (`change`): the wanted values are put beside the present ones,
`sanitize` derives what follows (among it quorum), `rules` may refuse, and only then it is committed and told to
`events` subscribers. A change that concerns several nodes is a two-phase commit (`twopc`). Much that looks like an
accident of timing in the recordings follows from that alone: see `change` about links that hang in NetworkFailure.

    states, options, reply     the vocabulary
    block, extents, metadata   backing devices and what DRBD keeps at their end
    resource                   resource, device, connection, peer device
    change, sanitize, rules    one state change; quorum
    twopc, roles, connecting   changes that several nodes agree on
    handshake, uuids, resync   who has the newer data, and copying it; `recovery` from being outdated
    io, resize, verify         what users of the device see
    status, events, show       what drbdsetup prints
"""

from quorate.lab.kernel.block import BlockDevice
from quorate.lab.kernel.io import Io
from quorate.lab.kernel.kernel import Kernel
from quorate.lab.kernel.reply import Reply
from quorate.lab.kernel.world import World

__all__ = ["BlockDevice", "Io", "Kernel", "Reply", "World"]
