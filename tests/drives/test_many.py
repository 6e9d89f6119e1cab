"""One drive in ten fails at the same moment. ``bench/drives.py`` does the same with a hundred of a thousand."""

from __future__ import annotations

from quorate.engine.simulation import Simulation, run

from .many import LIMITS, Scale, many_drives_fail


def test_nothing_is_lost_no_limit_is_exceeded_and_nothing_is_moved_twice() -> None:
    async def main(sim: Simulation) -> None:
        found = await many_drives_fail(sim, Scale(nodes=9, drives=2, volumes=14, failing=3, nodes_in_rack=3))
        assert not found.troubles
        assert found.to_move > 3
        assert found.made == found.to_move
        assert 0 < found.most_at_once <= LIMITS.max_moves
        assert found.most_to_a_node <= LIMITS.max_moves_per_node
        assert found.most_to_a_rack <= LIMITS.max_moves_per_rack
        assert found.seconds < found.least_seconds + 120

    run(main, seed=51)
