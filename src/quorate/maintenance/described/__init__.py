"""A cluster described in a file.

The whole broker works over it: for what-if questions, for clusters that are not ours, for tests. ``document`` reads the
file, strictly (``text`` parses it, ``reading`` says what is wrong where, ``layouts`` how a group's parts must lie);
``cluster`` makes a model of it and changes it on request; ``clock`` is its time, which can be moved forward.
"""

from quorate.maintenance.described.clock import DescribedClock
from quorate.maintenance.described.cluster import DescribedCluster
from quorate.maintenance.described.document import Description, describe, load, parse, settings, state

__all__ = ["DescribedClock", "DescribedCluster", "Description", "describe", "load", "parse", "settings", "state"]
