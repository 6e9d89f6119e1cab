from __future__ import annotations

import subprocess
import sys


def imported_by(module: str) -> set[str]:
    """What one import brings with it, in a fresh interpreter."""
    code = f"import sys, {module}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_the_nouns_import_nothing_of_ours_but_errors() -> None:
    ours = {
        name for name in imported_by("quorate.api, quorate.api.cel, quorate.api.generate") if name.startswith("quorate")
    }
    foreign = {name for name in ours if not name.startswith("quorate.api.")}
    assert foreign == {"quorate", "quorate.api", "quorate.errors"}


def test_declaring_kinds_needs_neither_yaml_nor_the_rule_engine() -> None:
    assert not {"yaml", "cel"} & imported_by("quorate.api")
