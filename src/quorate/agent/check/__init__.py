"""``quorate agent --check``: what a machine lacks before it can be a node.

``facts`` looks, through the same machine interface that the agent works with, and changes nothing; ``cluster`` asks the
API server. ``judgement`` is pure: facts in, a list of items out, each with what it is for and how to mend it.
"""

from quorate.agent.check.cluster import ClusterFacts, gather_cluster
from quorate.agent.check.facts import Facts, gather
from quorate.agent.check.judgement import judge
from quorate.agent.check.report import Item, State, passed

__all__ = ["ClusterFacts", "Facts", "Item", "State", "gather", "gather_cluster", "judge", "passed"]
