"""Replays what a real DRBD cluster was recorded to do, on the lab, and compares. ``quorate lab recordings DIR``.

A recording is a list of steps with times (``at``, seconds since its start; a command's is when it ended). The replay
applies files, commands, cuts and power losses to a fresh lab of four nodes, lets virtual time follow ``at``, and holds
every step to what was recorded. Every step counts, and what is not modelled is a miss.

Compared
    command   the exit code; every error number; the text that was said, save pids, times, UUIDs and counters. Of
              ``dump-md`` the fields that say what lies where and in which state, not bitmaps and UUIDs. Of ``show``
              the whole document. Of the kernel log (``dmesg``) whether the tie-breaker is said to have kept quorum
              since the network last changed: the recorder emptied the log between, the rest is the kernel's prose.
              A recorded log that does not say so though the lab's does is no miss: the recorder kept only the end of
              it. One that is empty is.
    status    the set of resources, devices and peers; roles; disk, connection, replication and peer disk states;
              client, quorum, every suspended flag, force-io-failures, size, resync-suspended; out-of-sync unless a
              resync is under way, and after a grow save for the few blocks that were DRBD's own metadata before. The
              same of a ``drbdsetup status --json`` that was run as a command.
    events2   that the stream is in the recorded format, and that adding up its lines gives the state that ``status``
              shows. Not which states it passed through. After a power loss there is no stream.
    file, network, power
              applied.

A status in the middle of a change may be matched by the model a moment earlier or later (``window``): all of it must be
equal at one instant, within three seconds, with no other step's doing in between.

Taken from the recording, because it is not given otherwise
    what lay on the disks before the first step (``before``): the recorded machines had been used;
    that configuration files were removed without a step, when drbdadm says that none are there (``before``);
    when links found each other again after a heal: that is chance, and can take more than a minute (``timing``);
    after a loss with two diskful members and diskless ones, and only then, when each member noticed it, cleaned up
    and counted (``timing``): there milliseconds decide, and ``facts/drbd9.md`` shows both outcomes.
"""
