"""LVM on the node: volume groups reported, and made of clean drives where asked; logical volumes made, grown, removed.

``looker`` is the one pair of eyes; ``report`` reads what LVM prints, ``seen`` holds it. ``logical_volumes`` composes
the decisions ``creating``, ``growing`` and ``removing``, each a pure function of a ``piece``; ``groups`` decides about all
volume groups of the node at once. ``commands`` has every command line, ``strays`` tells of volumes without an owner.

What must survive a crash is in LVM's own tags, changed in single commands: ``quorate.new`` while the contents are not
yet as they must be, ``quorate.llv=<uid>`` for whom it was made, ``quorate.zero`` where every unwritten byte is zero.
So a killed agent, and a lost status, cost nothing but doing the last thing again.
"""
