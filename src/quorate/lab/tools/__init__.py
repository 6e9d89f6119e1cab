"""The user space of a simulated node: real command lines in, real output formats and exit codes out.

    registry   which program a name is
    process    programs that wait, in virtual time; open files
    shell      ``sh -c``
    conf       the drbd.conf language
    drbd       drbdadm, drbdsetup, drbdmeta
    lvm        lvcreate, lvs and the rest
    others     dd, lsblk, smartctl, and small ones on files, text and the system

A tool is a function of its process and its words. It returns its exit code, or a generator that does after waiting.
"""
