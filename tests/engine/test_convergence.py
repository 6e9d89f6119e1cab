"""The whole engine in virtual time: whatever the network does, everything ends as intended and then stays still."""

from __future__ import annotations

import os
import subprocess
import sys

from quorate.engine.simulation import Simulation, for_each_seed
from tests.support.world import digest_of, troubled_life


def test_one_manager_that_is_killed_at_any_moment_converges_on_a_bad_network() -> None:
    async def main(sim: Simulation) -> None:
        await troubled_life(sim)

    for_each_seed(main, range(25))


def test_three_managers_that_are_killed_at_any_moment_converge_and_never_undermine_one_another() -> None:
    async def main(sim: Simulation) -> None:
        await troubled_life(sim, managers=3)

    for_each_seed(main, range(25))


def test_the_same_seed_gives_the_same_history_under_any_hash_seed() -> None:
    digests = [
        subprocess.run(
            [sys.executable, "-m", "tests.support.world", "7"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for hash_seed in ("0", "1", "4242")
    ]
    assert digests == [digest_of(7)] * 3


def test_different_seeds_give_different_histories() -> None:
    assert len({digest_of(seed) for seed in range(5)}) == 5
