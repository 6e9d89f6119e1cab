"""The broker of a live cluster: its model follows the watch, and Kubernetes objects are one more way to ask it.

``source`` keeps the model like the caches: ``notes`` what has changed, ``picture`` and ``volumes`` what a volume is to
the broker, ``places`` what a node and a drive are. ``numbers`` are what it knows them by, ``allocation`` gives them.
``locks`` tells the lock table, which the volumes look into before each step, what permissions hold.

``requests`` submits PermissionRequests that people apply, ``notices`` their Notifications; ``projections`` shows what
the ledger holds as objects (``shown``), and puts right what somebody changed there; ``markers`` writes markers onto
drives, nodes and replicas; ``config`` takes over the BrokerConfig. ``broker`` begins and ends all of it with each term
of leadership: a model is believed only when every cache has caught up.
"""

from quorate.maintenance.live.broker import LiveBroker

__all__ = ["LiveBroker"]
