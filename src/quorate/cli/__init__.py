"""The ``quorate`` command."""
