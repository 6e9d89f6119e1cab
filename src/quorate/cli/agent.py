"""``quorate agent``: the process that every node runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from quorate.cli.output import output_option, print_documents, print_table
from quorate.cli.process_log import begin_log, log_options

#: Columns of what is not written to a terminal.
_WIDTH = 100


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--node-name", envvar="NODE_NAME", help="The node: the name of its core Node object.  [NODE_NAME]")
@click.option("--kubeconfig", help="Default: KUBECONFIG, the pod, ~/.kube/config.")
@click.option("--state-dir", help="The directory for the agent's lock, on a disk of the machine.")
@click.option("--host-prefix", help='Put before every command: "nsenter -t 1 -m -u -n -i --" in a container.')
@click.option("--host-root", help="Where the node's files are found, if not where the node has them.")
@click.option("--drbd-config-dir", help="Where the node keeps the .res files of its resources.")
@click.option("--drbd-state-dir", help="Where DRBD keeps what it knows of grown disks.")
@click.option("--image-dir", help="Where the node has the files that images are filled from.")
@click.option("--sys", help="Where the node's /sys is found.")
@click.option("--dev", help="Where the node's /dev is found.")
@click.option("--proc", help="Where the node's /proc is found.")
@click.option("--register-node", is_flag=True, default=None, help="Keep the core Node object: there is no kubelet.")
@click.option("--zone", help="The zone of a node that is registered so.")
@click.option("--address", help="The address of a node that is registered so; default: what its name stands for.")
@click.option("--metrics-listen", help="The address for health and metrics.")
@click.option("--metrics-port", type=int, help="The port for health and metrics; 0 lets the system choose.")
@log_options
@click.option("--check", is_flag=True, help="Say what this machine lacks, and do nothing else.")
@output_option("table", "json")
def agent(file: Path | None, check: bool, output: str, **flags: Any) -> None:
    """Drive DRBD, LVM and the drives of this machine, as the objects of its node say, and report.

    It works on the API server of a kubeconfig, of the pod that it runs in, or of "quorate up". SIGTERM and SIGINT stop
    it gracefully. A second agent for the same node is refused. Settings come from the configuration file, QUORATE_*
    variables and these flags: see "quorate config show" for the defaults.

    With --check it exits with 0 only if everything that a node needs is there.
    """
    import asyncio

    from quorate.config import load
    from quorate.server.agent import examine, run

    config = load(file, os.environ, flags).config
    os.umask(0o077)  # .res files hold secrets
    begin_log("error" if check else config.log_level, config.log_format)
    if not check:
        asyncio.run(run(config, environ=os.environ, announce=click.echo))
        return
    from quorate.agent.check import passed

    items = asyncio.run(examine(config, environ=os.environ))
    _show(items, output)
    if not passed(items):
        sys.exit(1)


def _show(items: tuple[Any, ...], output: str) -> None:
    if output == "json":
        from dataclasses import asdict

        print_documents([[asdict(item) for item in items]], "json")
        return
    if not sys.stdout.isatty():
        click.echo("\n".join(_in_lines(items)))
        return
    rows = [
        [item.name, f"{item.state}{'' if item.required else ' (optional)'}", item.found, item.purpose, item.fix]
        for item in items
    ]
    print_table(["ITEM", "STATE", "FOUND", "WHAT IT IS FOR", "HOW TO MEND IT"], rows)


def _in_lines(items: tuple[Any, ...]) -> Iterator[str]:
    """For a file or a pipe: one item after the other, no line wider than a mail."""
    for item in items:
        state = f"{item.state}{'' if item.required else ' (optional)'}"
        yield from _wrapped(f"{item.name}: {state}: ", item.found)
        if item.fix:
            yield from _wrapped("  what it is for: ", item.purpose)
            yield from _wrapped("  how to mend it: ", item.fix)


def _wrapped(beginning: str, text: str) -> list[str]:
    from textwrap import wrap

    # No word is broken: it may be a command, or a path.
    return wrap(f"{beginning}{text}", _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
