"""What happened, told twice: a page for people, line by line as it happens, and a recording that can be replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any

#: Commands whose outcome a replay is held to. Looking is not recorded: statuses are.
_REPLAYED = ("drbdadm", "drbdsetup", "drbdmeta", "lvcreate", "lvextend", "lvremove", "lvchange", "dd", "rm")
_ONLY_LOOKS = ("drbdsetup status", "drbdsetup events2", "drbdsetup show", "drbdadm sh-", "drbdadm --version")


#: The label of a status that is only asked for in order to wait: when it comes about is chance, and not recorded.
POLLED = "waiting"


class Journal:
    """Of one scenario on one kind of machines."""

    def __init__(self, directory: Path, scenario: str, about: str, *, kernel: str = "", utils: str = "") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._scenario = scenario
        self._head = {"scenario": scenario, "about": about, "kernel": kernel, "utils": utils, "files_kept": True}
        #: In the order in which we heard of them, with our own times.
        self._steps: list[dict[str, Any]] = []
        self._written: dict[tuple[str, str], list[tuple[int, float, float, str]]] = {}
        self._page = (directory / "story.log").open("w", buffering=1)
        #: Nothing is recorded before this is set: machines have to be made ready first.
        self.recording = False

    def tell(self, at: float, node: str, text: str) -> None:
        """A line for people."""
        for line in text.splitlines() or [""]:
            self._page.write(f"{at:9.2f} {node or '-':4} {line}\n")

    def command(self, at: float, node: str, command: str, exit_code: int, output: str, *, by: str = "") -> None:
        """A command came to its end."""
        self.tell(at, node, f"exit {exit_code}{f' ({by})' if by else ''}: {command}")
        if output:
            self.tell(at, node, "\n".join(f"  | {line}" for line in output.rstrip("\n").splitlines()))
        if is_replayed(command):
            self._add(at, kind="command", node=node, command=command, exit=exit_code, output=output, note=by or None)

    def file(self, at: float, node: str, path: str, text: str) -> None:
        """A file was written."""
        self.tell(at, node, f"file {path}: {len(text)} bytes")
        self._add(at, kind="file", node=node, path=path, text=text)

    def status(self, at: float, node: str, label: str, status: list[dict[str, Any]]) -> None:
        """What DRBD said of itself."""
        for each in status:
            self.tell(at, node, f"status, {label}: {shown(each)}")
        if label == POLLED:
            return
        self._add(at, kind="status", node=node, label=label, status=status)

    def network(self, at: float, cut: Iterable[tuple[str, str]]) -> None:
        """From now on these ways are cut. A recording knows only whole links."""
        ways = list(cut)
        self.tell(at, "", f"cut: {', '.join(f'{one}->{other}' for one, other in ways) or 'nothing'}")
        pairs = sorted({(min(way), max(way)) for way in ways if way[::-1] in ways})
        self._add(at, kind="network", cut=[list(pair) for pair in pairs])

    def writer(self, at: float, node: str, resource: str, first: int, pause: float) -> None:
        """A writer begins. A replay is the writer itself, by what :meth:`writes` says in the end."""
        text = f"writer {resource} from block {first} every {pause:g} s"
        self.tell(at, node, text)
        self._add(at, kind="command", node=node, command=text, exit=0, output="")

    def writes(self, at: float, node: str, resource: str, found: Iterable[tuple[int, float, float, str]]) -> None:
        """What a writer did, at its end."""
        told = list(found)
        good = sum(result == "ok" for *_, result in told)
        self.tell(at, node, f"writer of {resource} ends: {len(told)} writes, {good} acknowledged")
        # As the recorders before us: all that was written there until then.
        known = self._written.setdefault((node, resource), [])
        known += told
        self._add(at, kind="writes", node=node, resource=resource, writes=list(known))

    def power(self, at: float, node: str, *, on: bool) -> None:
        """A node's power was switched."""
        self.tell(at, node, "power on" if on else "POWER LOST")
        self._add(at, kind="power", node=node, on=on)

    def events(self, at: float, node: str, text: str) -> None:
        """A node's event stream, at the end."""
        self._add(at, kind="events2", node=node, text=text)

    def close(self) -> Path:
        """Write the recording; where it is."""
        self._page.close()
        path = self.directory / f"{self._scenario}.json"
        began = min((step["at"] for step in self._steps), default=0.0)
        steps = [_since(began, step) for step in sorted(self._steps, key=itemgetter("at"))]
        path.write_text(json.dumps({**self._head, "steps": steps}, indent=1) + "\n")
        return path

    def _add(self, at: float, **step: Any) -> None:
        if self.recording:
            self._steps.append({**{key: value for key, value in step.items() if value is not None}, "at": at})


def _since(began: float, step: dict[str, Any]) -> dict[str, Any]:
    """A step with its times counted from the beginning."""
    counted = {**step, "at": round(step["at"] - began, 3)}
    if "writes" in step:
        counted["writes"] = [
            (block, round(one - began, 3), round(other - began, 3) if result else None, result or None)
            for block, one, other, result in step["writes"]
        ]
    return counted


def is_replayed(command: str) -> bool:
    """Whether a replay can be held to a command."""
    word = command.split(maxsplit=1)[0].rpartition("/")[2] if command.strip() else ""
    return word in _REPLAYED and not command.startswith(_ONLY_LOOKS)


def shown(status: dict[str, Any]) -> str:
    """A resource's state in a line."""
    devices = status.get("devices") or [{}]
    parts = [status["name"], status["role"], devices[0].get("disk-state", "no device")]
    parts += [] if devices[0].get("quorum", True) else ["no quorum"]
    parts += [
        word
        for word in ("suspended-user", "suspended-no-data", "suspended-fencing", "suspended-quorum")
        if status.get(word)
    ]
    parts += ["force-io-failures"] if status.get("force-io-failures") else []
    for link in status.get("connections", ()):
        peers = link.get("peer_devices") or [{}]
        text = f"{link['name']}:{link['connection-state']}"
        text += f"/{peers[0].get('replication-state')}/{peers[0].get('peer-disk-state')}"
        text += f"/oos={peers[0]['out-of-sync']}" if peers[0].get("out-of-sync") else ""
        parts.append(text)
    return " ".join(parts)
