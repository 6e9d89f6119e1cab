"""The shell at work on a simulated node."""

from __future__ import annotations

import pytest

from tests.lab.tools.conftest import Node


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("echo a; echo b", "a\nb\n"),
        ("true && echo yes || echo no", "yes\n"),
        ("false && echo yes || echo no", "no\n"),
        ("! false && echo negated", "negated\n"),
        ("false; echo rc=$?", "rc=1\n"),
        ("nosuch; echo rc=$?", "sh: nosuch: not found\nrc=127\n"),
        ("(exit 3); echo rc=$?", "rc=3\n"),
        ("x=5; (x=6; echo $x); echo ${x}", "6\n5\n"),
        ("echo one two | grep two | tail -1", "one two\n"),
        ("echo hidden > /tmp/f; cat /tmp/f; echo more >> /tmp/f; cat < /tmp/f", "hidden\nhidden\nmore\n"),
        ("{ echo out; nosuch; } 2>/dev/null", "out\n"),
        ("nosuch 2>&1 | grep -c found", "1\n"),
        ("touch /d/a /d/b /d/c/x; echo /d/*", "/d/a /d/b\n"),
        ("echo '$?' \"$?\" \\$x", "$? 0 $x\n"),
        ("cat < /nothing; echo rc=$?", "sh: can't open /nothing: No such file or directory\nrc=1\n"),
        ("timeout 3 echo in time; echo rc=$?", "in time\nrc=0\n"),
        ("timeout 3 sleep 10; echo rc=$?", "rc=124\n"),
        ("timeout 3 sleep 1; echo rc=$?", "rc=0\n"),
    ],
)
def test_a_line_says_what_a_shell_would_say(node: Node, line: str, output: str) -> None:
    assert node.run(line, expect=None).output == output


def test_sleep_takes_virtual_time_only(node: Node) -> None:
    node.run("sleep 100; sleep 20")
    assert node.world.now == 120


def test_what_runs_in_the_background_is_not_waited_for(node: Node) -> None:
    result = node.run("{ sleep 10; echo late > /tmp/w; } & echo early; cat /tmp/w 2>/dev/null || echo nothing yet")
    assert (result.output, node.world.now) == ("early\nnothing yet\n", 0)
    node.world.advance(11)
    assert node.host.files["/tmp/w"] == b"late\n"


def test_power_takes_everything_that_runs(node: Node) -> None:
    running = node.host.start(["sh", "-c", "sleep 10; echo written > /etc/after"])
    node.host.power_off()
    node.world.advance(20)
    assert running.result is not None
    assert running.result.exit_code == 137
    assert "/etc/after" not in node.host.files


def test_a_boot_keeps_etc_and_forgets_tmp(node: Node) -> None:
    boot = node.host.files["/proc/sys/kernel/random/boot_id"]
    node.run("echo kept > /etc/kept; echo lost > /tmp/lost")
    node.host.power_off()
    node.host.power_on()
    assert "/etc/kept" in node.host.files
    assert "/tmp/lost" not in node.host.files
    assert node.host.files["/proc/sys/kernel/random/boot_id"] != boot
