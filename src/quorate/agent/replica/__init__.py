"""One replica on its node: the ``.res`` file, DRBD's metadata, the kernel resource, its role, its size, its end.

``observe`` makes a frozen ``view``: the replica's object, what memory has of the kernel, the disk and the file, and
what became of the last steps. ``decide`` walks through rules in the order in which a replica comes to life; the first
that wants something done ends the pass, and the next pass sees what came of it:

    looking → (deletion) → algorithm → down → file → metadata → adjust → forget → recount, meet → role → growth
    → activity log

So an agent can be killed between any two commands: a new one looks, and goes on where the machine is. Whatever was
tried and failed is shown in ``status.drbd.errors`` and tried again with back-off (``verdict``). ``report`` says what
the kernel shows. Two tasks of their own must act even when the API is away: the ``guard`` of a second primary, which
goes by a ``duty`` that is noted on the node, and the watch for a ``quorum_loss`` under a user. A replica's key is its
volume's name, which is also the name of the kernel resource.
"""

from quorate.agent.replica.controller import controllers, tasks

__all__ = ["controllers", "tasks"]
