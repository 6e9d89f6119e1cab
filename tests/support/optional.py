"""Parts of the suite that need something which may be missing: never skipped quietly.

``loud_skip`` skips like pytest.skip, and the run ends with a heading that counts what was not proven for want of it.
"""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

import pytest

_MARK = "NOT PROVEN: "


def loud_skip(reason: str) -> NoReturn:
    """Skip the test (or every test of the fixture), and say so again at the end of the run."""
    pytest.skip(_MARK + reason)


def report_loud_skips(terminal: pytest.TerminalReporter) -> None:
    """Print the heading, if there was any."""
    reasons: Counter[str] = Counter()
    for report in terminal.stats.get("skipped", []):
        _path, _line, reason = report.longrepr
        _, marked, rest = reason.partition(_MARK)
        if marked:
            reasons[rest] += 1
    if reasons:
        terminal.section("NOT PROVEN IN THIS RUN", sep="!", red=True, bold=True)
        for reason, count in sorted(reasons.items()):
            terminal.line(f"{count} tests skipped: {reason}", red=True)
