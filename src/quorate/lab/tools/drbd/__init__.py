"""The DRBD tools of a node: drbdadm reads files and calls drbdsetup and drbdmeta, which talk to kernel and disk.

adm, adjust           drbdadm: the command line, and what to do so that the kernel is as the file says
setup                 drbdsetup: one kernel call per command; ``answer`` prints what the kernel replied
status_text, events,  what drbdsetup prints
show
meta, dump,           drbdmeta: metadata on the disk, and the file with a device's last known size
last_known
"""
