"""The ``quorate`` command.

One file per command. Each imports what it needs only when it runs, so that ``quorate --help`` and shell completion
answer at once. ``failures`` says which exit code an error has; ``output`` prints for people or for programs.
"""

from quorate.cli.main import main

__all__ = ["main"]
