"""The guide shows the code that runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_excerpt_of_the_guide_is_in_the_example_or_its_tests() -> None:
    guide = (ROOT / "docs/writing-a-controller.md").read_text()
    sources = [(ROOT / path).read_text() for path in ("src/quorate/cluster/ground.py", "tests/cluster/test_ground.py")]
    excerpts = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(excerpts) >= 5
    for excerpt in excerpts:
        assert any(excerpt in source for source in sources), f"not in the code any more:\n{excerpt}"
