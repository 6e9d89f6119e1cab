"""``python -m quorate``: the ``quorate`` command."""

from quorate.cli import main

main()
