"""Every recording of the real cluster, replayed on the lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.lab.recordings.report import verdict

DATA = Path(__file__).parent / "data"
BY_HAND = Path(__file__).parent / "more"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json")), ids=lambda path: path.stem)
def test_the_lab_does_what_the_real_cluster_did(path: Path) -> None:
    found = verdict(path)
    assert found.complete, "\n".join(found.misses)


@pytest.mark.parametrize("path", sorted(BY_HAND.glob("*.json")), ids=lambda path: path.stem)
def test_the_lab_does_what_is_known_of_the_real_thing(path: Path) -> None:
    found = verdict(path)
    assert found.complete, "\n".join(found.misses)


#: Recordings of several resources on slow, emulated machines, and how many of their steps are not matched, because ...
RACES = {
    "e1_at_once_1": 3,  # a copy of 288 KiB takes the lab no time, and one status was taken a moment earlier
    "e2_cures_3": 19,  # a full copy took 20 s there; bytes of earlier runs; marks that stayed by milliseconds
    "e3_resync_after_down": 5,  # cut -c1-0 is an error of coreutils
}


@pytest.mark.parametrize("name", RACES)
def test_every_write_and_every_block_of_a_recorded_race_is_as_it_was(name: str) -> None:
    found = verdict(Path(__file__).parent / "races" / f"{name}.json")
    assert len(found.misses) <= RACES[name], "\n".join(found.misses)
    assert not [miss for miss in found.misses if " writes of " in miss or " blocks of " in miss]
    assert "kernel" in found.others, "what is not compared is counted"
