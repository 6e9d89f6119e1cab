"""Output made presentable: secrets never survive, and what is cut is the middle."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.secret import Secret
from quorate.drbd.masking import MAX_LENGTH, masked, plain, presentable, trimmed
from quorate.drbd.resource_file import render
from tests.drbd import recordings
from tests.drbd.layouts import DISKFUL, VOLUME, Member, config_of, node


def test_no_recorded_output_keeps_the_secret_though_nobody_names_it() -> None:
    leaking = [step["output"] for _, step in recordings.of_kind("command") if "s3cret" in step["output"]]
    assert leaking
    for output in leaking:
        assert "s3cret" not in presentable(output)
        assert "shared-secret" in masked(output)


def test_the_recorded_beginning_of_a_refused_secret_is_masked_too() -> None:
    [refusal] = [step["output"] for _, step in recordings.of_kind("command") if "for shared-secret" in step["output"]]
    assert masked(refusal) == refusal.replace("'xxxxxxxxxxxxxxxxxxxx...'", "***")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--shared-secret=ab --protocol=C", "--shared-secret=*** --protocol=C"),
        ("--shared-secret=a b\\ c --protocol=C", "--shared-secret=*** --protocol=C"),
        ("Command 'x --shared-secret=ab' terminated with", "Command 'x --shared-secret=***' terminated with"),
        ("--shared-secret ab", "--shared-secret ***"),
        ('    shared-secret "a\\"; b";\n  }', "    shared-secret ***;\n  }"),
        ("    shared-secret ab;\n  }", "    shared-secret ***;\n  }"),
        ('    shared-secret "cut o', "    shared-secret ***"),
        ('"shared-secret": "a\\"b", "x"', '"shared-secret": ***, "x"'),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_a_secret_is_masked_by_its_place(text: str, shown: str) -> None:
    assert masked(text) == shown


# Letters of the mask itself apart: a secret of asterisks would be found in any masked text.
secret_texts = st.text(string.ascii_letters + string.digits + " \"'\\-=;{}$", min_size=4, max_size=63).filter(
    lambda text: "***" not in text
)


@given(secret_texts, st.text(max_size=60), st.text(max_size=60))
def test_a_secret_that_is_known_never_survives(secret: str, before: str, after: str) -> None:
    text = f"{before}{secret}{after}"
    assert secret not in masked(text, [Secret(secret)])


@given(secret_texts)
def test_neither_does_one_in_our_own_file_or_in_a_command_line(secret: str) -> None:
    file = render(VOLUME, node(0), config_of((Member(DISKFUL),), 0, shared_secret=Secret(secret)))
    secret_line = next(line for line in file.splitlines() if "shared-secret" in line)
    assert masked(secret_line) == "    shared-secret ***;"
    for line in (f"--shared-secret={secret} --protocol=C", f"('{secret[:20]}...')\nfor shared-secret."):
        assert secret[:20] not in masked(line, [Secret(secret)])


def test_colours_and_controls_go_and_lines_stay() -> None:
    assert plain("\x1b[1;32mUpToDate\x1b[0m\r\n\tx\x00\x9b\ud800") == "UpToDate\n\tx"


@given(st.text(max_size=3000), st.integers(10, 2000))
def test_what_is_trimmed_fits_and_keeps_both_ends(text: str, limit: int) -> None:
    short = trimmed(text, limit)
    assert len(short) <= limit
    stripped = text.strip("\n")
    assert stripped.startswith(short.split("\n…\n")[0])
    assert stripped.endswith(short.split("\n…\n")[-1])


def test_the_first_and_the_last_lines_stay_whole() -> None:
    text = "\n".join(f"line {number}" for number in range(1000))
    short = trimmed(text)
    assert short.startswith("line 0\nline 1\n")
    assert short.endswith("\nline 998\nline 999")
    assert all(line in text.splitlines() or line == "…" for line in short.splitlines())
    assert MAX_LENGTH - 40 < len(short) <= MAX_LENGTH


def test_a_secret_is_masked_before_the_text_is_cut() -> None:
    text = "x" * (MAX_LENGTH // 2 - 5) + "topsecret" + "y" * MAX_LENGTH
    assert "top" not in presentable(text, [Secret("topsecret")])


@given(st.text(max_size=300))
def test_what_is_presentable_can_be_stored(text: str) -> None:
    presentable(text).encode()
