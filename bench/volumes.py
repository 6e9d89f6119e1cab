"""Volumes: what it costs to form them, to keep them, and to look at all of them when a node is lost.

``python -m bench.volumes`` runs everything in one process: the embedded engine with its file, all controllers, and
simulated nodes with the agents that really run. Volumes at rest are not formed but written (``bench.settled``).
QUORATE_BENCH_VOLUMES, QUORATE_BENCH_SETTLED and QUORATE_BENCH_REPLICAS make it smaller, or bigger.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping

from bench.beds import bed
from bench.harness import Report
from bench.settled import settled
from bench.shares import AGENTS, CONTROLLERS, DECIDING, HARDWARE, ONLOOKER, OWNER, Shares, booked
from quorate.api import conditions
from quorate.api.conditions.rv import Resilient
from quorate.api.meta import NodeName
from quorate.api.storage import ReplicatedVolume
from quorate.engine import logs
from quorate.lab import faults
from quorate.lab.layout import Layout

#: Formed at once; at rest; and on the node that is lost.
VOLUMES = int(os.environ.get("QUORATE_BENCH_VOLUMES", "1000"))
SETTLED = int(os.environ.get("QUORATE_BENCH_SETTLED", "10000"))
REPLICAS = int(os.environ.get("QUORATE_BENCH_REPLICAS", "2000"))
#: Volumes for each simulated node, while they are formed and at rest.
PER_NODE = 10
PER_NODE_AT_REST = 100
#: How long nothing is done, to see what it costs.
QUIET = 60.0
#: Until new nodes, or new volumes, have said all that they have to say: agents look at their drives every minute.
SETTLING = 75.0
#: Until a silent agent has been noticed by everybody.
SILENCE = 50.0
#: Volumes whose agents are watched while they lose a node.
WITH_AGENTS = 30


def run() -> Report:
    """All figures."""
    logs.configure(json=True, level="error")
    nodes = max(6, VOLUMES // PER_NODE)
    report = Report(f"Volumes ({VOLUMES:,} volumes of 3 copies on {nodes} simulated nodes, in one process)")
    with booked() as shares:
        asyncio.run(_form(report, nodes, shares))
        asyncio.run(_rest(report, shares))
        asyncio.run(_lose(report, shares))
        asyncio.run(_lose_with_agents(report, shares))
    return report


async def _form(report: Report, nodes: int, shares: Shares) -> None:
    OWNER.set(ONLOOKER)
    async with bed(Layout(nodes=nodes, zones=3), shares) as measured:
        await asyncio.sleep(SETTLING)
        measured.writes()
        await measured.form(1, "first-")
        _report_writes(report, measured.writes())
        shares.taken()
        await measured.form(VOLUMES, "v-")
        _report_forming(report, shares.taken())


async def _rest(report: Report, shares: Shares) -> None:
    """Volumes of which nothing is to be done, for a minute."""
    OWNER.set(ONLOOKER)
    # Three zones, so that copies of a volume are on three nodes.
    layout = Layout(nodes=3 * max(1, SETTLED // PER_NODE_AT_REST // 3), zones=3)
    async with settled(layout, SETTLED, shares) as measured:
        await asyncio.sleep(SILENCE)
        measured.written.clear()
        shares.taken()
        await asyncio.sleep(QUIET)
        share = _of_controllers(shares.taken()) / QUIET
        written = {key: number for key, number in measured.written.items() if key[2] != "Lease"}
    report.add(
        f"steady state with {SETTLED:,} volumes: writes in {QUIET:.0f} s, Leases apart",
        str(sum(written.values())),
        "none",
        not written,
        ", ".join(f"{number} {' '.join(key)}" for key, number in written.items()),
    )
    report.add(
        f"steady state with {SETTLED:,} volumes: controllers", f"{share:.2%} of a core", "under 1 %", share < 0.01
    )


def _report_writes(report: Report, written: Counter[tuple[str, str, str]]) -> None:
    for (writer, verb, kind), number in sorted(written.items()):
        report.add(f"writes of one 3D volume: {writer}, {verb} {kind}", str(number), "")
    total = sum(written.values())
    report.add("writes from the volume's creation to Ready", str(total), "at most 48", total <= 48)


def _report_forming(report: Report, used: dict[str, float]) -> None:
    each = {owner: cpu / VOLUMES * 1000 for owner, cpu in used.items() if owner != ONLOOKER}
    total = sum(each.values())
    report.add(
        "CPU of a volume from apply to Ready, everything included", f"{total:.1f} ms", "at most 100 ms", total <= 100
    )
    for owner, cpu in sorted(each.items(), key=lambda item: -item[1]):
        report.add(f"of which {owner}", f"{cpu:.1f} ms", "")


async def _lose(report: Report, shares: Shares) -> None:
    """One of three nodes, with a replica of every volume."""
    OWNER.set(ONLOOKER)
    # A ledger has at most a thousand entries, so a node needs disks enough.
    async with settled(Layout(nodes=3, zones=3, drives=2 + REPLICAS // 900), REPLICAS, shares) as measured:
        shares.taken()
        measured.written.clear()
        await measured.lose(NodeName("node-1"))
        await measured.until_rest()
        first = shares.taken()
        await asyncio.sleep(SILENCE)
        await measured.until_rest()
        second = shares.taken()
        written = sum(number for key, number in measured.written.items() if key[2] != "Lease")
    links, silence = _of_controllers(first), _of_controllers(second)
    deciding = sum(cpu for used in (first, second) for owner, cpu in used.items() if owner.endswith(DECIDING))
    report.add(
        f"one node lost with {REPLICAS:,} replicas: all volumes looked at again, and what came of it written",
        f"{links + silence:.2f} s of the controllers' CPU",
        "under 5 s",
        links + silence < 5,
        f"({links:.2f} s when links are lost, {silence:.2f} s when its agent is silent; "
        f"{deciding:.2f} s of it looking and deciding, the rest {written:,} writes)",
    )


async def _lose_with_agents(report: Report, shares: Shares) -> None:
    """What agents do meanwhile: of fewer volumes, because each has to be formed."""
    OWNER.set(ONLOOKER)
    async with bed(Layout(nodes=3, zones=3), shares) as measured:
        await measured.form(WITH_AGENTS, "v-")
        await asyncio.sleep(SETTLING)
        measured.cluster.inject(faults.NodeDown("node-1"))
        shares.taken()
        await measured.until(_is_reduced)
        used = shares.taken()
    each = {owner: cpu / WITH_AGENTS * 1000 for owner, cpu in used.items()}
    report.add(
        "one node lost: the agents of its peers, by volume",
        f"{each[AGENTS]:.1f} ms",
        "",
        note=f"(simulation {each[HARDWARE]:.1f} ms, controllers {_of_controllers(each):.1f} ms)",
    )


def _of_controllers(used: Mapping[str, float]) -> float:
    return sum(cpu for owner, cpu in used.items() if owner.startswith(CONTROLLERS))


def _is_reduced(volume: ReplicatedVolume) -> bool:
    found = conditions.find(volume.status.conditions, Resilient)
    return found is not None and not conditions.is_true(volume.status.conditions, Resilient)


if __name__ == "__main__":
    run()
