"""Generated files are in the repository, so that they can be read and applied without us; they must not go stale."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from quorate.api.crd import MANAGED_BY_LABEL, all_definitions
from quorate.api.generate import CONDITIONS_PAGE, CRD_DIRECTORY, generated_files, main, write
from quorate.api.kind import all_kinds

REPOSITORY = Path(__file__).parents[2]
# Kinds that others declare, such as those made for tests, are not shipped from here.
FOREIGN = {kind.qualified_resource for kind in all_kinds() if not kind.type.__module__.startswith("quorate.api.")}
FILES = {path: text for path, text in generated_files().items() if path.stem not in FOREIGN}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_the_file_is_what_the_declarations_give(path: Path) -> None:
    assert (REPOSITORY / path).read_text(encoding="utf-8") == FILES[path], "run: python -m quorate.api.generate"


def test_no_file_is_left_of_a_kind_that_is_gone() -> None:
    assert {path.relative_to(REPOSITORY) for path in (REPOSITORY / CRD_DIRECTORY).iterdir()} == FILES.keys() - {
        CONDITIONS_PAGE
    }


def test_writing_twice_gives_the_same_and_removes_what_is_stale(tmp_path: Path) -> None:
    (tmp_path / CRD_DIRECTORY).mkdir(parents=True)
    stale = tmp_path / CRD_DIRECTORY / "gone.example.yaml"
    stale.write_text("old")
    write(tmp_path)
    first = {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()}
    write(tmp_path)
    assert not stale.exists()
    assert first == {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path) for path in first} == generated_files().keys()


@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), (["--nonsense"], 2), (["elsewhere"], 2), ([], 2)])
def test_nothing_is_written_but_into_a_repository(
    words: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == code
    assert not list(tmp_path.iterdir())


def test_a_manifest_reads_as_the_definition_it_was_made_from() -> None:
    files = generated_files()
    for definition in all_definitions():
        text = files[CRD_DIRECTORY / f"{definition['metadata']['name']}.yaml"]
        assert yaml.safe_load(text) == definition
        assert text.startswith("# Generated")


def test_every_kind_of_ours_and_no_kind_of_kubernetes_has_a_definition() -> None:
    defined = {definition["metadata"]["name"] for definition in all_definitions()}
    assert defined == {kind.qualified_resource for kind in all_kinds() if kind.group.count(".")} - {
        "leases.coordination.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
    }


def test_every_definition_carries_the_label_by_which_we_know_it() -> None:
    label, value = MANAGED_BY_LABEL
    assert all(definition["metadata"]["labels"][label] == value for definition in all_definitions())
