"""The shell's grammar, and what the replay reads from it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.lab.recordings.clock import foreground_sleep
from quorate.lab.tools.shell.syntax import parse
from quorate.lab.tools.shell.tree import Group, ShellSyntaxError, Simple

RECORDED_WRITE = (
    "rm -f /tmp/w; { { dd if=/dev/zero of=/dev/drbd1000 bs=4k count=1 conv=fsync 2>/dev/null; "
    "echo write rc=$? > /tmp/w; } < /dev/null & }; sleep 4; "
    "cat /tmp/w 2>/dev/null || echo write still blocked after 4 s"
)


def test_the_recorded_write_is_four_commands_of_which_the_second_goes_to_the_background() -> None:
    tree = parse(RECORDED_WRITE)
    assert len(tree.parts) == 4
    group = tree.parts[1].first.commands[0]
    assert isinstance(group, Group)
    assert [part.background for part in group.body.parts] == [True]
    assert [operator for operator, _ in tree.parts[3].rest] == ["||"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (RECORDED_WRITE, 4.0),
        ("sleep 2; sleep 3", 5.0),
        ("sleep 9 & echo", 0.0),
        ("(sleep 1; sleep 2s)", 3.0),
        ("drbdadm up r", 0.0),
        ("sleep 1m", 60.0),
        ("for i in 1 2 3; do sleep 2; done", 6.0),
        ("if drbdadm role r; then sleep 1; else sleep 3; fi", 3.0),
        ("echo 'unclosed", 0.0),
    ],
)
def test_only_sleep_in_the_foreground_takes_time(text: str, seconds: float) -> None:
    assert foreground_sleep(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "(echo",
        "echo )",
        "{ echo",
        "echo 'x",
        "a | | b",
        "echo $(date",
        "for x; do :; done",
        "if true; fi",
        "while",
        "done",
        "echo ${x:-y}",
        "; ; &&",
        "> ",
    ],
)
def test_what_it_does_not_know_is_a_syntax_error(text: str) -> None:
    with pytest.raises(ShellSyntaxError):
        parse(text)


def test_quotes_keep_spaces_and_operators() -> None:
    command = parse("""grep -iE 'quorum|tie break' "a;b" c\\ d""").parts[0].first.commands[0]
    assert isinstance(command, Simple)
    texts = ["".join(piece.text for piece in word.pieces) for word in command.words]
    assert texts == ["grep", "-iE", "quorum|tie break", "a;b", "c d"]


@given(st.text(alphabet="ab '\"$?;&|(){}<>2/\\\n#", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ShellSyntaxError):
        parse(text)
