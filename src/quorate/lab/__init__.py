"""Simulated hardware: what the agents run on when there is none, in virtual time.

The lab stands behind the agent's hardware interface and answers as real machines do, so that the whole system runs
unchanged on a laptop, in the tests and in `quorate up`.

    kernel      a model of the DRBD 9.2 kernel module: roles, quorum, resync, suspension, power loss; a discrete-event
                simulation without threads or wall-clock time
    tools       drbdadm, drbdsetup, drbdmeta, LVM and the rest: real command lines in, real output and exit codes out
    recordings  replays what a real cluster was seen to do and compares

The kernel model shares no code with `quorate.drbd`: two implementations of the same rules, each held to the recordings.
"""
