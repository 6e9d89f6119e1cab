"""Write the files that are generated from the declarations: ``python -m quorate.api.generate [DIRECTORY]``.

A test fails when they are stale.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
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


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m quorate.api.generate", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument(
        "directory", nargs="?", default=".", type=_repository, help="the repository; by default the current directory"
    )
    write(parser.parse_args(argv).directory)


def _repository(text: str) -> Path:
    path = Path(text)
    if not (path / CRD_DIRECTORY).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not the repository: it has no {CRD_DIRECTORY}")
    return path


if __name__ == "__main__":
    main()
