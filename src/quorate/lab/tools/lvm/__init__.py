"""The commands of LVM 2.03, on the node's ``VolumeManager``.

``change`` has those that change something, ``report`` has vgs, lvs and pvs. Exit codes are LVM's: 5 for what could not
be done, 3 for a command line it does not take.
"""
