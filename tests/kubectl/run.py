"""Runs scenes with a real kubectl against a server that a kubeconfig leads to."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.kubectl.step import Scene, Step, contains, matches

PATIENCE = 30.0


@dataclass(frozen=True)
class Kubectl:
    """Where kubectl is, and whom it talks to; its caches and files are kept in ``directory``."""

    program: Path
    kubeconfig: Path
    directory: Path
    real: bool = False

    async def play(self, scene: Scene) -> None:
        """Run all steps of a scene, stopping at the first that does not go as written."""
        for name, content in scene.files.items():
            (self.directory / name).write_text(content)
        kept = {"dir": str(self.directory)}
        for step in scene.steps:
            if not self.real or step.real:
                out = await self._run(_filled(step, kept))
                if step.keeps:
                    kept[step.keeps] = out.strip()

    async def _run(self, step: Step) -> str:
        process = await self._start(step)
        try:
            async with asyncio.timeout(PATIENCE):
                out, err, code = await self._follow(process, step)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        _check(step, code, out, err)
        return out

    async def _start(self, step: Step) -> Process:
        environment = dict.fromkeys(("HOME", "TMPDIR"), str(self.directory))
        return await asyncio.create_subprocess_exec(
            self.program,
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.directory / 'cache'}",
            *shlex.split(step.command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**environment, "PATH": os.environ["PATH"], "KUBE_EDITOR": step.editor},
        )

    async def _follow(self, process: Process, step: Step) -> tuple[str, str, int]:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        out = _Output(process.stdout)
        reading = asyncio.gather(out.read(), process.stderr.read())
        process.stdin.write(step.stdin.encode())
        process.stdin.close()
        if step.meanwhile:
            await out.until(lambda text: text.count("\n") >= step.first)
            for other in step.meanwhile:
                await self._run(other)
        if step.endless:
            await out.until(lambda text: matches(step.prints or "", text))
            process.send_signal(signal.SIGINT)
        _, err = await reading
        return out.text, err.decode(), await process.wait()


class _Output:
    """What a command has printed so far."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self._changed = asyncio.Condition()
        self._ended = False
        self.text = ""

    async def read(self) -> None:
        while line := await self._stream.readline():
            await self._add(line.decode())
        await self._add("", ended=True)

    async def until(self, ready: Callable[[str], bool]) -> None:
        """Until it satisfies, or ends; then the check says what is missing."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended or ready(self.text))

    async def _add(self, line: str, *, ended: bool = False) -> None:
        async with self._changed:
            self.text += line
            self._ended = ended
            self._changed.notify_all()


def _filled(step: Step, kept: dict[str, str]) -> Step:
    command, stdin = step.command, step.stdin
    for name, value in kept.items():
        command, stdin = command.replace(f"{{{name}}}", value), stdin.replace(f"{{{name}}}", value)
    return replace(step, command=command, stdin=stdin)


def _check(step: Step, code: int, out: str, err: str) -> None:
    said = f"\n$ kubectl {step.command}\n{out}{err}[exit {code}]"
    if not step.endless:
        assert code == step.code, f"exit code {step.code} was expected{said}"
    if step.among:
        assert contains(step.among, out), f"expected among the lines:\n{step.among}{said}"
    elif step.prints is not None:
        assert matches(step.prints, out), f"expected:\n{step.prints}{said}"
    assert contains(step.complains, err), f"expected on standard error:\n{step.complains}{said}"
    if not step.complains:
        assert not err.strip(), f"nothing was expected on standard error{said}"
