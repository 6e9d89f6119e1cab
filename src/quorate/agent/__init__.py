"""The node side: one process per node that makes DRBD, LVM and the drives what the objects say, and reports.

An agent watches only objects that carry its node's label, and writes the fields that ``01-contract`` gives it: no
conditions. Its decisions are pure like any controller's; what they want done to the machine they return as data
(``steps``), and the ``hands`` carry it out beside the passes, one piece of work per resource at a time:

    store → cache ─┐
    events2 ───────┼→ observe → decide → status writes, and steps → hands → machine → memory → wake the key again
    memory ────────┘

``memory`` is what was last seen of the machine and what became of the last steps. It is only a cache: a restarted
agent looks again. ``machine`` is the interface to the hardware, ``linux`` the real one; the lab has another.
"""
