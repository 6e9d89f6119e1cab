"""Log lines: constant messages, one line of JSON each, and no secrets."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import pytest

from quorate.api.secret import Secret
from quorate.api.struct import Struct
from quorate.engine import logs
from quorate.engine.simulation import Simulation, run


class Keeper(Struct):
    """A wire type with a secret in a field whose name does not say so."""

    value: Secret


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = logs.configuration()
    yield
    logs.use(before)


def logged(**values: object) -> dict[str, object]:
    stream = io.StringIO()
    logs.configure(json=True, stream=stream)
    logs.get_logger("a.module").warning("something happened", **values)
    (line,) = stream.getvalue().splitlines()
    parsed: dict[str, object] = json.loads(line)
    return parsed


def test_a_line_is_one_json_object_with_its_message_and_values() -> None:
    line = logged(controller="volumes", name="w", reconcile_id="volumes-7", count=3)
    assert line.pop("time")
    assert line == {
        "event": "something happened",
        "level": "warning",
        "module": "a.module",
        "controller": "volumes",
        "name": "w",
        "reconcile_id": "volumes-7",
        "count": 3,
    }


@pytest.mark.parametrize(
    "values",
    [
        {"value": Secret("hunter2")},
        {"shared_secret": "hunter2"},
        {"sharedSecret": "hunter2"},
        {"headers": {"Authorization": "Bearer hunter2"}},
        {"deep": [{"ok": [{"password": "hunter2"}]}]},
        {"config": {"private_key": "hunter2"}},
        {"nested": ({"value": Secret("hunter2")},)},
        {"object": Keeper(value=Secret("hunter2"))},
    ],
)
def test_a_secret_never_reaches_the_log(values: dict[str, object]) -> None:
    line = json.dumps(logged(**values))
    assert "hunter2" not in line
    assert logs.MASK in line


def test_a_secret_never_reaches_the_log_for_people_either() -> None:
    stream = io.StringIO()
    logs.configure(json=False, stream=stream)
    logs.get_logger("m").error("failed", token="hunter2", given=Secret("hunter2"), name="w")
    assert "hunter2" not in stream.getvalue()
    assert "name" in stream.getvalue()


def test_what_json_cannot_hold_is_shown_by_its_repr() -> None:
    assert logged(key=object())["key"].__class__ is str


def test_an_exception_is_logged_with_its_traceback() -> None:
    stream = io.StringIO()
    logs.configure(json=True, stream=stream)
    try:
        raise KeyError("lost")
    except KeyError:
        logs.get_logger("m").exception("exception in our own code")
    line = json.loads(stream.getvalue())
    assert "KeyError: 'lost'" in line["exception"]
    assert "test_logs.py" in line["exception"]


@pytest.mark.parametrize("json", [True, False])
def test_a_traceback_does_not_show_what_local_variables_hold(json: bool) -> None:
    stream = io.StringIO()
    logs.configure(json=json, stream=stream)

    def decide(given: str) -> None:
        made = {"sharedSecret": given}
        raise KeyError(len(made))

    try:
        decide("hunter" + str(2))
    except KeyError:
        logs.get_logger("m").exception("exception in our own code")
    assert "KeyError" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    logs.configure(json=True, level="warning", stream=stream)
    logs.get_logger("m").info("too quiet")
    assert stream.getvalue() == ""


def test_the_time_of_a_line_is_that_of_the_injected_clock() -> None:
    async def main(sim: Simulation) -> None:
        stream = io.StringIO()
        logs.configure(json=True, stream=stream, clock=sim.clock)
        await sim.clock.sleep(90)
        logs.get_logger("m").info("now")
        assert json.loads(stream.getvalue())["time"] == "2030-01-01T00:01:30.000+00:00"

    run(main, seed=1)


def test_what_is_bound_is_in_the_lines_of_a_task_and_of_those_it_starts_and_in_no_others() -> None:
    async def inner() -> dict[str, object]:
        return logged(name="w")

    async def outer() -> dict[str, object]:
        logs.bind(node="n1")
        return await asyncio.create_task(inner())

    async def main() -> tuple[dict[str, object], dict[str, object]]:
        return await asyncio.create_task(outer()), logged(name="w")

    bound, free = asyncio.run(main())
    assert bound["node"] == "n1"
    assert "node" not in free


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("as_json", [True, False])
def test_what_cannot_be_shown_costs_its_line_the_values_and_nobody_an_error(as_json: bool) -> None:
    endless: list[object] = []
    endless.append(endless)
    for value in (Unspeakable(), endless):
        stream = io.StringIO()
        logs.configure(json=as_json, stream=stream)
        logs.get_logger("a.module").warning("something happened", value=value)
        (line,) = stream.getvalue().splitlines()
        assert "something happened" in line
        assert "not_shown" in line


def test_a_path_that_is_no_utf_8_is_shown_as_far_as_it_is() -> None:
    assert logged(paths=[b"/srv/caf\xe9".decode(errors="surrogateescape")])["paths"] == [r"/srv/caf\udce9"]
    assert logged(name="caf\u00e9")["name"] == "caf\u00e9"


def test_nobodys_words_paint_a_persons_terminal() -> None:
    stream = io.StringIO()
    logs.configure(json=False, stream=stream)
    logs.get_logger("a.module").warning("something happened", name="\x1b[2Jgone", other="\x9b2J")
    assert not {"\x1b", "\x9b"} & set(stream.getvalue())


@pytest.mark.parametrize("end", ["full", "broken", "closed", "none"])
def test_nobody_fails_because_nobody_reads_what_they_log(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream: TextIO | None = None
    if end == "full":
        stream = open("/dev/full", "w")  # noqa: SIM115
    elif end == "broken":
        read, write = os.pipe()
        os.close(read)
        stream = os.fdopen(write, "w")
    elif end == "closed":
        stream = io.StringIO()
        stream.close()
    else:
        monkeypatch.setattr(sys, "stderr", None)
    logs.configure(json=False, stream=stream)
    for _ in range(3):
        logs.get_logger("a.module").warning("something happened")
    if stream is not None:
        with suppress(OSError):
            stream.close()
