"""The disk monitor: drives that are away too long, or will be, are marked so that their data moves elsewhere.

Every interval it looks at every drive of the model. Absences are remembered (``absences``, kept as Downtime objects by
``memory``), those to come are read from permissions and notifications (``samples``). From both it forms an opinion of
each drive (``opinions``); guards hold it back where many would be marked at once (``guards``). What passes becomes a
marker in the ledger, set by ``quorate-monitor`` (``watching``); a marker that a person set wins over it.

It only watches unless ``enableAutoUpdates`` is set: then it also marks.
"""
