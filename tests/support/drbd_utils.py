"""A real drbdadm, for as far as it goes without a kernel module: reading files, and saying what it would run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.optional import loud_skip

FETCH = Path(__file__).parents[2] / "tools" / "drbd-utils" / "fetch"


@dataclass(frozen=True)
class Said:
    """What it printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str


class Drbdadm:
    """Runs the one program, on files of the test's own."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def check(self, file: Path) -> Said:
        """What an agent does before it uses a file."""
        return self._run("-c", "/dev/null", "--config-to-test", str(file), "sh-nop")

    def would_run(
        self, command: str, file: Path, node: str, resource: str, *, shown: Path | None = None
    ) -> list[list[str]]:
        """The commands of ``drbdadm up`` or ``adjust`` on that node, each without the path of its program.

        ``shown``: what ``drbdsetup show`` would say; otherwise the kernel has nothing.
        """
        said = self._run("-c", str(file), "--dry-run", command, resource, node=node, shown=shown)
        assert said.exit_code == 0, said
        commands = [_words(line) for line in said.stdout.splitlines()]
        return [[Path(words[0]).name, *words[1:]] for words in commands]

    def _run(self, *arguments: str, node: str = "", shown: Path | None = None) -> Said:
        environ = {"PATH": os.environ["PATH"], "LC_ALL": "C", **({"__DRBD_NODE__": node} if node else {})}
        environ |= {"FAKE_DRBDSETUP_SHOW": str(shown)} if shown is not None else {}
        done = subprocess.run(
            [self._program, *arguments], capture_output=True, text=True, env=environ, timeout=30, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)


@cache
def drbdadm() -> Drbdadm:
    """The one that ``tools/drbd-utils/fetch`` finds; never downloads it."""
    found = subprocess.run([FETCH, "--no-download"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        loud_skip(f"no drbdadm: {found.stderr.strip()}")
    return Drbdadm(Path(found.stdout.strip()))


def _words(line: str) -> list[str]:
    """drbdadm puts a backslash before what a shell would take amiss."""
    words, escaped = [""], False
    for character in line:
        if escaped or character not in " \\":
            words[-1] += character
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            words.append("")
    return words
