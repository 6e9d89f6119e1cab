"""The broker's memory, in one object: what it holds, how it is written, and what time it is.

``encoding`` turns a Ledger into the contents of a BrokerLedger and back, within its cap. ``keeper`` writes it: one
compare-and-swap, after which the outcome is known, because a write without an answer is settled by reading again.
``broker_time`` is the time that everything in it is measured by: it never goes back, not over a restart either, and a
wall clock that jumps is not believed.
"""
