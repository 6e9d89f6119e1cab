"""Quorate: the control plane of a bare-metal storage cluster.

Read the packages in this order: ``api`` (the nouns), ``engine`` (how a controller runs and where
objects live), then the decisions. ``docs/architecture.md`` is the map.
"""

__version__ = "0.1.0"
