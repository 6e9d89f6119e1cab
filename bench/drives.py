"""Drives: a hundred of a thousand fail at the same moment, in virtual time, with everything else real.

``python -m bench.drives``: all controllers, agents and the kernel model; the broker's part is played. Says what was
moved, how long it took, and how that compares with the least that must be moved and the fastest that the limits allow.
QUORATE_BENCH_DRIVES_NODES, _DRIVES, _VOLUMES and _FAILING make it smaller.
"""

from __future__ import annotations

import os
import time

from quorate.engine import logs
from quorate.engine.simulation import Simulation, run
from tests.drives.many import LIMITS, Outcome, Scale, many_drives_fail


def _number(name: str, default: int) -> int:
    return int(os.environ.get(f"QUORATE_BENCH_DRIVES_{name}", default))


def main() -> int:
    """Run it, and print."""
    logs.configure(json=False, level="error")
    scale = Scale(
        nodes=_number("NODES", 100),
        drives=_number("DRIVES", 10),
        volumes=_number("VOLUMES", 400),
        failing=_number("FAILING", 100),
    )
    found: list[Outcome] = []

    async def play(sim: Simulation) -> None:
        found.append(await many_drives_fail(sim, scale))

    began = time.monotonic()
    run(play, seed=1)
    (outcome,) = found
    print(f"{scale.failing} of {scale.nodes * scale.drives} drives fail at once; {scale.volumes} volumes of 3 copies")
    print(f"replicas to move  {outcome.to_move}")
    print(f"replicas made     {outcome.made} ({outcome.made / max(outcome.to_move, 1):.2f} of the least)")
    print(f"virtual time      {outcome.seconds:.0f} s, of which copying needs {outcome.least_seconds:.0f} s")
    print(f"at once           {outcome.most_at_once} of {LIMITS.max_moves}")
    print(f"to a node         {outcome.most_to_a_node} of {LIMITS.max_moves_per_node}")
    print(f"to a rack         {outcome.most_to_a_rack} of {LIMITS.max_moves_per_rack}")
    print(f"troubles          {outcome.troubles or 'none'}")
    print(f"real time         {time.monotonic() - began:.0f} s")
    return 1 if outcome.troubles else 0


if __name__ == "__main__":
    raise SystemExit(main())
