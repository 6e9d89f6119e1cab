"""Write the files that are generated from the declarations: ``python -m quorate.api.generate [DIRECTORY]``.

A test fails when they are stale. DIRECTORY is the repository, by default the current one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from quorate.api.conditions import catalogue
from quorate.api.crd import all_definitions, manifest

CRD_DIRECTORY = Path("deploy/crds")
CONDITIONS_PAGE = Path("docs/conditions.md")


def generated_files() -> dict[Path, str]:
    """Every generated file, by its path in the repository."""
    files = {CRD_DIRECTORY / f"{crd['metadata']['name']}.yaml": manifest(crd) for crd in all_definitions()}
    files[CONDITIONS_PAGE] = catalogue.markdown()
    return files


def write(repository: Path) -> None:
    """Bring the files up to date, and remove those of kinds that are gone."""
    files = generated_files()
    for path, text in files.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text, encoding="utf-8")
    for found in (repository / CRD_DIRECTORY).glob("*.yaml"):
        if found.relative_to(repository) not in files:
            found.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
