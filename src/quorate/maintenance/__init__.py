"""Who may take what down, now, and why not.

The broker answers from a model of the cluster (``model``) that is kept up to date by events, never collected for a
question. Its source is either live objects (``live``) or a description in a file (``described``): same model, same
rules (``rules``). What was decided is in the one BrokerLedger (``ledger``): a decision is one compare-and-swap write of
it, before the answer leaves, so that a permission is never forgotten and never granted twice. ``broker`` is the one
service layer; gRPC, HTTP, Wall-E and Kubernetes objects are adapters of it. ``monitor`` watches drives for long
absences, ``log`` remembers what happened, ``planner`` tells in how many rounds a whole cluster can be served.

Inside, time is whole microseconds (``moments``), as on the wire.
"""
