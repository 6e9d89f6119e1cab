"""``quorate lab status``: how the simulated hardware really is, whatever the objects say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.output import output_option, print_documents, print_table

if TYPE_CHECKING:
    from quorate.lab.truth import ReplicaTruth


@click.command()
@click.option("--data", help="The data directory of the running `quorate up`; default: as up's, else KUBECONFIG.")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Its kubeconfig, if it is not in its data directory."
)
@output_option("table", "json", "yaml")
def status(data: str | None, kubeconfig: Path | None, output: str) -> None:
    """Show the truth of the simulated nodes, drives, links and kernels."""
    import msgspec

    from quorate.cli import fault, lab_client

    truth = lab_client.truth(data=data, kubeconfig=kubeconfig)
    if output != "table":
        print_documents([msgspec.to_builtins(truth)], output)
        return
    print_table(
        ["NODE", "ZONE", "ADDRESS", "POWER", "BOOTS", "DRIVES", "REPLICAS"],
        [
            [
                node.name,
                node.zone,
                node.address,
                "on" if node.powered else "off",
                str(node.boots),
                ", ".join(f"{drive.device.removeprefix('/dev/') or '(out)'}:{drive.slot}" for drive in node.drives),
                ", ".join(map(_replica, node.replicas)),
            ]
            for node in truth.nodes
        ],
    )
    for line in fault.troubles(truth):
        click.echo(line)


def _replica(replica: ReplicaTruth) -> str:
    """A replica in a few words; what is as it should be is not mentioned."""
    words = [f"{replica.resource} {replica.role}/{replica.disk}"]
    words += [] if replica.quorum else ["no quorum"]
    words += [f"peer {trouble.replace(':', ' ')}" for trouble in replica.trouble]
    return " ".join([words[0], *([f"({', '.join(words[1:])})"] if words[1:] else [])])
