"""``quorate controller``: the process that decides for the whole cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from quorate.cli.process_log import begin_log, log_options


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--kubeconfig", help="Default: KUBECONFIG, the pod, ~/.kube/config.")
@click.option("--metrics-listen", help="The address for health and metrics.")
@click.option("--metrics-port", type=int, help="The port for health and metrics; 0 lets the system choose.")
@click.option("--broker-http", help="HOST:PORT for the broker's HTTP and Wall-E interfaces; not served without it.")
@click.option("--broker-grpc", help="HOST:PORT for the broker's gRPC interface; not served without it.")
@click.option("--broker-users", help="A file of who may ask the broker: mandatory beyond loopback, with TLS.")
@click.option("--broker-client-authority", help="Or a PEM file: callers show a certificate of this authority.")
@click.option("--tls-certificate", help="A PEM file with the broker's certificate chain.")
@click.option("--tls-key", help="A PEM file with its private key.")
@log_options
def controller(file: Path | None, **flags: Any) -> None:
    """Decide for the cluster: nodes, placement, disks, drives, volumes and maintenance, on a kubeconfig's API server.

    Run as many as you like: one leads, by the Lease quorate-controller in quorate-system, the others stand by with warm
    caches. SIGTERM and SIGINT stop it gracefully and hand leadership over. Settings come from the configuration file,
    QUORATE_* variables and these flags: see "quorate config show" for the defaults.
    """
    import asyncio

    from quorate.config import load
    from quorate.server.controller import run

    config = load(file, os.environ, flags).config
    begin_log(config.log_level, config.log_format)
    asyncio.run(run(config, environ=os.environ, announce=click.echo))
