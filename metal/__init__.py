"""``make metal``: scenarios on machines with Debian's kernel, LVM and udev, and DRBD where its modules are given.

The same scenarios are played on the lab (``rack.lab``), in virtual time: that is what is predicted, and what
``make test`` runs. ``docs/metal.md`` is the operator's page.
"""
