"""``quorate lab``: the simulated hardware as a tool of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from quorate.cli import lab_nodes, lab_status


@click.group()
def lab() -> None:
    """Simulated hardware: nodes, drives, LVM and DRBD, in virtual time."""


@lab.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="Show what did not match: what was expected and what was seen.")
def recordings(directory: Path, verbose: bool) -> None:
    """Replay recordings of a real DRBD cluster on the lab and compare.

    Prints how many steps of each recording match, and how many recordings match whole. Exits with 1 if one does not.
    """
    from quorate.lab.recordings.report import replay_all

    if not replay_all(directory, click.echo, verbose=verbose):
        sys.exit(1)


lab.add_command(lab_nodes.nodes)
lab.add_command(lab_status.status)
