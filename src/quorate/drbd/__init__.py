"""DRBD as text and as a rule, without a machine: what a node's agent writes, reads and concludes. All of it is pure.

    resource_file   DrbdConfig -> the ``.res`` file, and what a config still lacks
    status          ``drbdsetup status --json`` -> DrbdStatus
    events          ``drbdsetup events2`` -> who is to be looked at again
    metadata        how much of a disk DRBD keeps for itself, and what ``dump-md`` found
    outcomes        what a command's exit code and output mean
    masking         output without colours and secrets, cut to what an error has room for
    quorum          the kernel's quorum rule, as a function of what one member sees; ``views`` tells what it sees

Whatever the tools print, the parsers here answer with a value or with ``UnreadableOutput``, never with another
exception. The quorum rule shares no code with the lab's kernel: each is held to the recordings of a real cluster.
"""

from __future__ import annotations
