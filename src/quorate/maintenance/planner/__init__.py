"""In how many rounds a set of hosts can be served, and which hosts may all stop now.

``plan`` asks the rules about every host alone, turns the model into a ``problem`` of numbers (groups, limits, rings),
and the ``colouring`` of that back into rounds, beside which stands a lower bound that no plan can beat. ``together``
finds the largest set that may stop at once. Every round, and the set, is asked of the rules again as one request before
anybody sees it: the planner proposes, the broker's own rules have the last word. A plan reserves nothing.
"""
