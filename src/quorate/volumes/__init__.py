"""Volumes: replicated block devices, from the first wish to the last byte.

**Purpose.** A ReplicatedVolume (rv) is kept on several nodes by its replicas (rvr); what makes them one volume is the
datamesh in ``rv.status``: who takes part, in which role, at which revision. Everything here follows from that.

**One decision per kind**, each made of small pure modules, each writing an object once per pass:

| package        | object | decides                                                                                  |
|----------------|--------|------------------------------------------------------------------------------------------|
| ``volume``     | rv     | configuration, identity, places, formation, life, deletion; creates and deletes replicas |
| ``replica``    | rvr    | its logical volume, its DRBD config, its conditions, its finalizers                      |
| ``attachment`` | rva    | where an attachment stands, and when it may go                                           |

The first two are one reconciler (``joint``): they look at the same picture, and what changes for one changes for the
other. The third has the same key, the volume's name: one pass sees, and may write, all attachments of a volume.

**What they share.** ``view`` is the frozen picture of one volume that all of them decide on; ``datamesh`` renders a
member's config from one revision and is the only place that does; ``transitions`` are the walks from one revision to
another, ``attach`` the queue of who may use the volume where, ``effective`` what it could survive from here;
``life`` says how these three are asked. ``waits`` gives every wait its reason, words and blocking objects; ``watches``
says which objects wake which volume.

A decision reads live reports of fresh agents and what the datamesh says; never a condition, never a phase (M23).
"""
