"""The DRBD tools of a node: drbdadm reads files and calls drbdsetup and drbdmeta, which talk to kernel and disk.

adm, adjust, dump_config     drbdadm: the command line, what to do so that the kernel is as the file says, and what the
                             file says
setup, answer                drbdsetup: one kernel call per command, and how it tells what the kernel replied
status_text, events, show    what drbdsetup prints
meta, dump, last_known       drbdmeta: metadata on the disk, and the file with a device's last known size
"""
