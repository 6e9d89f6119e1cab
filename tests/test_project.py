"""The project's own files agree with each other."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(text: str) -> list[str]:
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("-")]


def test_the_package_and_the_requirements_name_the_same_dependencies() -> None:
    assert PROJECT["dependencies"] == names((ROOT / "requirements" / "product.in").read_text())


@pytest.mark.parametrize("file", ["product", "dev", "bench"])
def test_everything_required_is_pinned_with_hashes_and_no_host_is_named(file: str) -> None:
    wanted = names((ROOT / "requirements" / f"{file}.in").read_text())
    text = (ROOT / "requirements" / f"{file}.txt").read_text()
    pinned = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+) \\\n    --hash=sha256:", text, re.MULTILINE))
    assert {_normal(re.split("[<>=]", name)[0]) for name in wanted} <= {_normal(name) for name in pinned}
    assert len(re.findall(r"^[A-Za-z].*==", text, re.MULTILINE)) == len(pinned)
    assert "://" not in text
    assert "--find-links" not in text


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    for file in ("product", "dev", "bench"):
        for name in names((ROOT / "requirements" / f"{file}.in").read_text()):
            assert f"| {re.split('[<>=]', name)[0]} |" in page, f"docs/dependencies.md does not say why {name}"


def test_ci_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "exec make test" in script.read_text()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
