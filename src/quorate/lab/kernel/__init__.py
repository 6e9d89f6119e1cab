"""A model of the DRBD 9.2 kernel module, held to recordings of a real cluster.

`World` is the stage: virtual time, nodes, links, power. Each node has one `Kernel`, whose methods are the netlink calls
that drbdsetup makes, one each; a call returns a `Reply` with the kernel's own numbers. What takes time in reality (a
lost ping, a reconnect, a resync) happens in `World.advance`.

Every change of a resource's state goes through one door (`change`): the wanted values are put beside the present ones,
`sanitize` derives what follows (among it quorum), `rules` may refuse, and only then it is committed and told to
`events` subscribers. A change that concerns several nodes is a two-phase commit (`twopc`). Much that looks like an
accident of timing in the recordings follows from that alone: see `change` about links that hang in NetworkFailure.

    states, options, reply          the vocabulary
    block, extents, metadata        backing devices and what DRBD keeps at their end
    resource, configure             a resource, its devices and connections; making and removing them
    change, sanitize, quorum, rules one state change: what follows from it, who is quorate, what is refused
    after, telling                  what a committed change sets in motion, here and at the peers
    links, connecting, handshake    losing a peer, cleaning up, meeting again
    twopc, roles, recovery          what several nodes agree on
    uuids, resync, verify           who has the newer data, and copying it
    disks, resize, io_engine        what is done to a replica, and what users of the device see
    status, events, show            what drbdsetup prints
    module, kernel, …_calls         a node's module, and the calls
"""

from quorate.lab.kernel.block import BlockDevice
from quorate.lab.kernel.io import Io
from quorate.lab.kernel.kernel import Kernel
from quorate.lab.kernel.reply import Reply
from quorate.lab.kernel.world import World

__all__ = ["BlockDevice", "Io", "Kernel", "Reply", "World"]
