"""Drives: from a bad sector to a new disk in the slot.

``health`` says how a drive is, ``asked`` what people and the broker say of it; ``phases`` is the state machine.
"""
