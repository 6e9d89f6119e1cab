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
