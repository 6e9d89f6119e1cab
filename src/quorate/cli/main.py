"""The command and its subcommands."""

from __future__ import annotations

import click

from quorate.cli import (
    agent,
    broker,
    completion,
    config,
    controller,
    crds,
    drive,
    explain,
    failures,
    fault,
    kubeconfig,
    lab,
    maintenance,
    orphan,
    up,
    version,
    volume,
)


@click.group(epilog=failures.EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def quorate() -> None:
    """The control plane of a bare-metal storage cluster."""


for command in (
    up.up,
    controller.controller,
    agent.agent,
    broker.broker,
    explain.explain,
    drive.drive,
    volume.volume,
    orphan.orphan,
    maintenance.maintenance,
    fault.fault,
    lab.lab,
    crds.crds,
    config.config,
    kubeconfig.kubeconfig,
    version.version,
    completion.completion,
):
    quorate.add_command(command)


def main() -> None:
    """The entry point: errors become one line on standard error and an exit code."""
    with failures.reported():
        quorate()
