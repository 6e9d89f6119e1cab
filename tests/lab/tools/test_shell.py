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
        ("timeout -k 1 1m true; echo rc=$?", "rc=0\n"),
        ("timeout soon true; echo rc=$?", "timeout: invalid number 'soon'\nrc=125\n"),
        ("echo hi >&9; echo rc=$?", "sh: 9: Bad file descriptor\nrc=1\n"),
        ("exit x; echo never", "sh: exit: Illegal number: x\n"),
        ("echo a b | tail -n x; echo rc=$?", "tail: invalid number 'x'\nrc=1\n"),
        ("echo $(hostname) `hostname`", "n1 n1\n"),
        ('x=$(echo a  b); echo $x; echo "$x"', "a b\na b\n"),
        ('x="a  b"; echo $x; echo "$x"', "a b\na  b\n"),
        ("x=$(exit 3); echo rc=$?", "rc=3\n"),
        ("echo $((2 + 3 * 4)) $((-7 / 2)) $((1 < 2 && 0))", "14 -3 0\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && continue; echo $i; done", "1\n3\n"),
        ("until false; do echo once; break; done", "once\n"),
        ("for f in a 'b c' $(echo d e); do echo $f; done | wc -l", "4\n"),
        ("for i in 1 2; do echo $i; done > /tmp/f; cat /tmp/f", "1\n2\n"),
        ("if false; then echo a; elif true; then echo b; else echo c; fi", "b\n"),
        ("if false; then echo a; fi; echo rc=$?", "rc=0\n"),
        ("x=1\ncat <<END\nx is $x\nEND\necho after", "x is 1\nafter\n"),
        ("cat <<'END' | grep -c x\n$x\nEND", "1\n"),
        ("test -e /etc/hostname && [ ! -e /nothing ] && echo both", "both\n"),
        ("[ 1 -eq one ]; echo rc=$?", "sh: [: one: bad number\nrc=2\n"),
        ("echo a:b:c | cut -d: -f2-; echo abcdef | cut -c1-3", "b:c\nabc\n"),
        ("echo -n x | md5sum", "9dd4e461268c8034f5c8564e155c67a6  -\n"),
        ("(sleep 1; exit 4) & wait $!; echo rc=$?", "rc=4\n"),
        ("sleep 100 & kill $!; wait $!; echo rc=$?", "rc=143\n"),
        ("kill 99999; echo rc=$?", "kill: can't kill pid 99999: No such process\nrc=1\n"),
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


def test_a_loop_that_never_ends_and_never_waits_is_ended(node: Node) -> None:
    assert "a loop went round" in node.run("while true; do :; done", expect=None).output


def test_what_waits_for_the_background_takes_its_time(node: Node) -> None:
    node.run("sleep 10 & sleep 20 & wait")
    assert node.world.now == 20
