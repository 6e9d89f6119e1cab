"""What becomes of a ReplicatedVolume.

**Purpose.** From the wish for a volume to its replicas, through its birth and its life, to its end; and what people
see of it meanwhile. It writes all of ``rv.status``, creates and deletes replicas, gives them their places, and makes
the one operation that gives a new volume its data.

**Algorithm.** One pass (``controller.decide``), top to bottom:

    no volume            -> deletion.let_orphans_go
    deleting, not in use -> deletion.take_apart                 members, replicas, pieces, space, finalizer
    no finalizer         -> it and the labels first             no child before the finalizer is seen
    status lost          -> says so and touches nothing
    configuration        -> configured                          copied from the class once
    pending transitions  -> with_pending                        what the replicas ask for
    forming              -> formation.form                      three phases, or starting again
    formed               -> living.live                         transitions, new and old replicas, places, leftovers
    always               -> report.composed                     conditions, phase, layout, in the same write

A pass that begins or ends a step writes the status alone, with the resourceVersion; any other writes children first and
the status last. Nothing is remembered between passes.

**Modules.** ``configuration``, ``minors``, ``secrets``: what a volume is born with. ``formation``: its birth.
``living``: its life. ``replicas``, ``leftovers``, ``remains``, ``deletion``: making and taking away. ``layout``,
``verdicts``, ``report``: what is said.
"""
