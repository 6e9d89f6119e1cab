"""``quorate maintenance`` as a person types it, against a real broker over a described cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorate.cli.maintenance import asking, wire
from quorate.engine.clock import SystemClock
from quorate.errors import StoreUnreachable
from quorate.server.broker.listening import Address, Security
from quorate.server.broker.process import Served, serving

PATIENCE = 60.0
NOWHERE = Address("127.0.0.1", 0)


def described(nodes: int) -> dict[str, Any]:
    """Blocks of eight hosts, each with a group of block-4-2."""
    unlimited = {"disabledNodesLimit": 0, "disabledNodesRatioLimit": 0}
    return {
        "nodes": [{"id": node, "host": f"h{node}", "rack": f"k{node % 8}"} for node in range(1, nodes + 1)],
        "drives": [{"node": node, "id": 1, "path": "/dev/sdb"} for node in range(1, nodes + 1)],
        "groups": [
            {
                "id": group,
                "erasure": "block-4-2",
                "vdisks": [
                    {"realm": 0, "domain": domain, "vdisk": 0, "node": 8 * group + domain + 1, "drive": 1}
                    for domain in range(8)
                ],
            }
            for group in range(nodes // 8)
        ],
        "config": {"clusterLimits": unlimited, "tenantLimits": unlimited},
    }


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Served]:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(described(16)))
    async with serving(file, None, NOWHERE, NOWHERE, Security(), clock=SystemClock()) as served:
        yield served


async def started(broker: Served, *words: str, cwd: Path | None = None) -> asyncio.subprocess.Process:
    environment = {**os.environ, "QUORATE_BROKER": str(broker.http), "PYTHONUNBUFFERED": "1"}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "quorate", "maintenance", *words, stdout=PIPE, stderr=PIPE, env=environment, cwd=cwd
    )


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    async with asyncio.timeout(PATIENCE):
        out, complaints = await process.communicate()
    assert "Traceback" not in complaints.decode(), complaints.decode()
    return process.returncode, out.decode(), complaints.decode()


async def said(broker: Served, *words: str, user: str = "alice") -> tuple[int | None, str, str]:
    return await ended(await started(broker, *words, "--user", user))


async def told(broker: Served, *words: str, user: str = "alice") -> Any:
    code, out, complaints = await said(broker, *words, "-o", "json", user=user)
    assert code == 0, complaints
    return json.loads(out)


async def test_what_is_granted_can_be_listed_extended_and_done(broker: Served) -> None:
    granted = await told(broker, "request", "h1", "--for", "90s", "--reason", "new kernel")
    assert granted["Permissions"][0]["Id"] == "alice-p-1"
    listed = await told(broker, "permissions")
    assert listed["Permissions"][0]["Action"] == {"Type": "SHUTDOWN_HOST", "Host": "h1", "Duration": 90_000_000}
    longer = await told(broker, "extend", "alice-p-1", "--for", "10m")
    assert longer["Permissions"][0]["Deadline"] > granted["Permissions"][0]["Deadline"]
    assert (await said(broker, "done", "alice-p-1"))[0] == 0
    assert (await said(broker, "permissions"))[1] == "no permission is in force\n"
    code, _, complaints = await said(broker, "done", "alice-p-1")
    assert code == 1
    assert complaints.startswith("WRONG_REQUEST: ")


async def test_an_extension_that_is_refused_names_who_is_in_the_way(broker: Served) -> None:
    await told(broker, "request", "h1", "--for", "90s")
    await told(broker, "request", "h2", "--for", "90s", "--mode", "keep", user="bob")
    code, out, complaints = await said(broker, "extend", "alice-p-1", "--for", "10m")
    assert code == 1
    assert "blocked by h2 permission bob-p-2 of bob until " in out
    assert complaints.startswith("DISALLOW: alice-p-1 cannot be extended")


async def test_a_refusal_names_who_is_in_the_way_and_until_when(broker: Served) -> None:
    await told(broker, "request", "h1", "--for", "90s", user="bob")
    code, out, complaints = await said(broker, "request", "h2")
    assert code == 1
    assert "blocked by h1 permission bob-p-1 of bob until " in out
    assert complaints.startswith("DISALLOW_TEMP: ")


async def test_a_stored_request_keeps_its_place_and_can_be_withdrawn(broker: Served) -> None:
    await told(broker, "request", "h1", user="bob")
    code, out, _ = await said(broker, "request", "h2", "h3", "--partial", "--schedule", "--priority", "5")
    assert code == 1
    assert "stored as alice-r-1" in out
    assert (await told(broker, "requests"))["Requests"][0]["Position"] == 1
    assert "blocked by h1 permission bob-p-1 of bob" in (await said(broker, "requests", "alice-r-1"))[1]
    assert (await said(broker, "check", "alice-r-1", "--dry-run"))[0] == 1
    assert (await said(broker, "withdraw", "alice-r-1"))[0] == 0
    assert (await said(broker, "requests"))[1] == "no request is stored\n"


async def test_waiting_ends_when_what_was_in_the_way_is_done(broker: Served) -> None:
    await told(broker, "request", "h1", user="bob")
    waiting = await started(broker, "request", "h2", "--wait", "--user", "alice")
    assert waiting.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert b"alice-r-1: 1 left" in await waiting.stderr.readline()
    await told(broker, "done", "bob-p-1", user="bob")
    code, out, _ = await ended(waiting)
    assert code == 0
    assert "alice-p-2" in out


async def interrupted(broker: Served, process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    """Ctrl-C, once it waits for what others have."""
    async with asyncio.timeout(PATIENCE):
        while not broker.broker.ledger.requests:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    process.send_signal(signal.SIGINT)
    return await ended(process)


async def test_whoever_stops_waiting_leaves_nothing_in_others_way(broker: Served) -> None:
    await told(broker, "request", "h1", user="bob")
    code, _, complaints = await interrupted(broker, await started(broker, "request", "h2", "--wait", "--user", "alice"))
    assert code == 130
    assert complaints.splitlines()[-1] == "alice-r-1 is withdrawn: nothing of it waits any more"
    assert broker.broker.ledger.requests == ()


async def test_and_is_told_what_is_held(broker: Served) -> None:
    await told(broker, "request", "h1", user="bob")
    words = ("request", "h9", "h2", "--partial", "--wait", "--user", "alice")
    code, out, complaints = await interrupted(broker, await started(broker, *words))
    assert code == 130
    assert "alice-p-2" in out
    assert complaints.splitlines()[-1] == (
        "what was granted is still held: `quorate maintenance done alice-p-2` ends it"
    )
    assert broker.broker.ledger.requests == ()
    await told(broker, "done", "alice-p-2")
    code, out, _ = await interrupted(broker, await started(broker, *words, "-o", "json"))
    assert (code, json.loads(out)["Withdrawn"]) == (130, "alice-r-2")


async def test_a_request_that_was_there_before_stays_and_that_is_said(broker: Served) -> None:
    await told(broker, "request", "h1", user="bob")
    await said(broker, "request", "h2", "--schedule")
    waiting = await started(broker, "check", "alice-r-1", "--wait", "--user", "alice")
    assert waiting.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert b"alice-r-1: 1 left" in await waiting.stderr.readline()
    code, _, complaints = await interrupted(broker, waiting)
    assert code == 130
    assert "alice-r-1 stays stored, and others wait behind it: `quorate maintenance withdraw alice-r-1`" in complaints
    assert [entry.id for entry in broker.broker.ledger.requests] == ["alice-r-1"]


async def test_a_refusal_is_told_once(broker: Served) -> None:
    await told(broker, "request", "h1", "--for", "90s", user="bob")
    _, out, complaints = await said(broker, "request", "h2")
    reason = complaints.strip().removeprefix("DISALLOW_TEMP: ")
    assert (out + complaints).count(reason) == 1
    assert out.splitlines()[0] == "h2:"
    await told(broker, "request", "h9", "--for", "90s")
    _, out, complaints = await said(broker, "request", "h2", "h10", "--partial")
    assert "h10: group 1" in out
    assert (out + complaints).count("group 0 (block-4-2)") == 1


async def test_announced_work_counts_and_can_be_taken_back(broker: Served) -> None:
    assert (await said(broker, "notify", "h1", "--for", "1h", "--reason", "movers"))[1] == "alice-n-1\n"
    assert "blocked by h1 notification alice-n-1" in (await said(broker, "request", "h2", user="bob"))[1]
    assert (await told(broker, "notifications"))["Notifications"][0]["Reason"] == "movers"
    assert (await said(broker, "cancel", "alice-n-1"))[0] == 0
    assert (await said(broker, "request", "h2", user="bob"))[0] == 0


async def test_markers_show_and_the_log_remembers(broker: Served) -> None:
    assert (await said(broker, "mark", "faulty", "pdisk-1-1"))[0] == 0
    (host,) = (await told(broker, "state", "h1"))["State"]["Hosts"]
    assert {"Name": "pdisk-1-1", "State": "UP", "Markers": ["MARKER_DISK_FAULTY"]} in host["Devices"]
    assert (await said(broker, "unmark", "faulty", "pdisk-1-1"))[0] == 0
    records = (await told(broker, "log", "--type", "MARKERS_MODIFICATION"))["LogRecords"]
    assert len(records) == 2
    code, _, complaints = await said(broker, "mark", "broken", "pdisk-99-1")
    assert code == 1
    assert "NO_SUCH_DEVICE" in complaints


async def test_a_plan_says_how_few_rounds_there_can_be(broker: Served) -> None:
    code, out, _ = await said(broker, "plan", "--all")
    assert code == 0
    assert "8 rounds; as few as there can be: a group has parts on 8 of these hosts, which go one by one" in out
    told_plan = await told(broker, "plan", "h1", "h2", "h9", "--for", "1m")
    assert [sorted(each["Hosts"]) for each in told_plan["Rounds"]] == [["h1", "h9"], ["h2"]]
    assert (await told(broker, "ok-to-stop"))["UpperBound"] == 2
    assert (await told(broker, "ok-to-stop", "--all")) == (await told(broker, "ok-to-stop"))


async def test_settings_are_shown_and_replaced(broker: Served, tmp_path: Path) -> None:
    shown = await told(broker, "config")
    assert shown["ClusterLimits"] == {"DisabledNodesLimit": 0, "DisabledNodesRatioLimit": 0}
    file = tmp_path / "settings.yaml"
    file.write_text("ClusterLimits: {DisabledNodesLimit: 1}\nDefaultRetryTime: 60000000\n")
    assert (await said(broker, "configure", str(file)))[0] == 0
    shown = await told(broker, "config")
    assert shown["ClusterLimits"] == {"DisabledNodesLimit": 1, "DisabledNodesRatioLimit": 13}
    assert shown["DefaultRetryTime"] == "60000000"
    file.write_text("Nonsense: 1\n")
    code, _, complaints = await said(broker, "configure", str(file))
    assert code == 1
    assert "Nonsense" in complaints


async def test_a_watcher_is_told_of_every_change(broker: Served) -> None:
    watching = await started(broker, "watch", "--user", "alice")
    assert watching.stdout is not None
    assert watching.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert await watching.stderr.readline() == b"listening\n"
        await told(broker, "request", "h1")
        change = json.loads(await watching.stdout.readline())
    assert (change["Kind"], change["Verb"], change["Id"]) == ("PERMISSION", "ADDED", "alice-p-1")
    watching.kill()
    await watching.wait()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("request",), "name a host, or a device with --device"),
        (("request", "h1", "--for", "soon"), "'soon' is not a span of time such as 90s, 15m or 2h30m"),
        (("plan",), "name hosts, or --all"),
        (("ok-to-stop", "h1", "--all"), "name hosts, or --all"),
        (("rolling-restart", "h1", "--run", "true", "--take-over", "x"), "--take-over goes on with the hosts"),
        (("rolling-restart", "--all"), "Say it with --run"),
        (("request", "h1", "h2", "--device", "/dev/sdb"), "devices are of one host"),
    ],
)
async def test_a_wrong_command_line_is_told_what_is_wrong(
    broker: Served, words: tuple[str, ...], complaint: str
) -> None:
    code, _, complaints = await said(broker, *words)
    assert code == 2
    assert complaint in complaints


async def test_without_a_broker_it_says_where_it_looked(tmp_path: Path) -> None:
    nowhere = Served(Address("127.0.0.1", 1), NOWHERE, None)  # type: ignore[arg-type]
    code, _, complaints = await said(nowhere, "requests")
    assert code == 8
    assert "no broker answers at http://127.0.0.1:1" in complaints
    code, _, complaints = await ended(await started(nowhere, "requests", "--data", str(tmp_path)))
    assert code == 3
    assert str(tmp_path) in complaints


async def test_a_rolling_restart_serves_every_host_once(broker: Served, tmp_path: Path) -> None:
    file = tmp_path / "done"
    command = f"echo {{host}} >> {file}"
    code, out, _ = await ended(
        await started(broker, "rolling-restart", "--all", "--run", command, "--user", "alice", cwd=tmp_path)
    )
    assert code == 0
    assert "all 16 hosts are done" in out
    assert sorted(file.read_text().split()) == sorted(f"h{number}" for number in range(1, 17))
    assert broker.broker.ledger.permissions == ()
    assert broker.broker.ledger.requests == ()


async def test_a_failed_host_stops_a_rolling_restart_and_it_goes_on_where_it_was(
    broker: Served, tmp_path: Path
) -> None:
    file, journal = tmp_path / "done", tmp_path / "journal"
    command = f"test {{host}} != h11 -o -e {tmp_path}/mended && echo {{host}} >> {file}"
    words = ("rolling-restart", "--all", "--run", command, "--journal", str(journal), "--user", "alice")
    code, _, complaints = await ended(await started(broker, *words))
    assert code == 1
    assert "h11 failed and keeps its permission, because it may be down" in complaints
    assert f"--resume {journal}" in complaints
    assert [entry.action.host for entry in broker.broker.ledger.permissions] == ["h11"]
    (tmp_path / "mended").touch()
    code, _, _ = await ended(await started(broker, "rolling-restart", "--resume", str(journal)))
    assert code == 0
    assert sorted(file.read_text().split()) == sorted(f"h{number}" for number in range(1, 17))


async def test_a_rolling_restart_tells_programs_in_lines_of_json(broker: Served, tmp_path: Path) -> None:
    words = ("rolling-restart", "h1", "h2", "--run", "echo from {host}", "-o", "json", "--user", "alice")
    code, out, complaints = await ended(await started(broker, *words, cwd=tmp_path))
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    events = [line["event"] for line in lines if line["event"] != "waiting"]
    assert events == ["began", "succeeded", "began", "succeeded", "over"]
    assert (lines[-1]["finished"], lines[-1]["left"]) == (2, 0)
    assert complaints == "from h1\nfrom h2\n"
    failing = ("rolling-restart", "h1", "--run", "false", "-o", "json", "--user", "alice")
    code, out, complaints = await ended(await started(broker, *failing, cwd=tmp_path))
    over = json.loads(out.splitlines()[-1])
    assert (code, over["failed"], list(over["held"]), complaints) == (1, ["h1"], ["h1"], "")


async def test_two_runs_of_one_user_have_no_host_in_common_and_the_second_names_the_first(
    broker: Served, tmp_path: Path
) -> None:
    """They were one user's, and each took the other's permissions for its own: two hosts of a group went at once."""
    go = tmp_path / "go"
    command = f"until test -e {go}; do sleep 0.05; done"
    first = await started(broker, "rolling-restart", "h1", "h2", "--run", command, "--user", "alice", cwd=tmp_path)
    async with asyncio.timeout(PATIENCE):
        while not broker.broker.ledger.permissions:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    run = broker.broker.ledger.permissions[0].run
    for user in ("alice", "bob"):
        words = ("rolling-restart", "h2", "h3", "--run", "true", "--user", user)
        code, _, complaints = await ended(await started(broker, *words, cwd=tmp_path))
        assert code == 1
        assert f"the broker refuses: WRONG_REQUEST run {run} of alice is restarting h2 (alice-r-1)" in complaints
        assert f"--take-over {run}" in complaints
    code, _, _ = await said(broker, "rolling-restart", "h9", "--run", "true", "--journal", str(tmp_path / "third"))
    assert code == 0, "a run of other hosts goes beside it"
    assert [entry.action.host for entry in broker.broker.ledger.permissions] == ["h1"]
    go.touch()
    assert (await ended(first))[0] == 0
    assert broker.broker.ledger.permissions == ()


async def test_a_technicians_lock_is_not_the_runs_to_use(broker: Served, tmp_path: Path) -> None:
    await told(broker, "request", "h1", "--for", "1h")
    file = tmp_path / "done"
    run = await started(
        broker, "rolling-restart", "h1", "--run", f"echo {{host}} >> {file}", "--user", "alice", cwd=tmp_path
    )
    code, _, complaints = await interrupted(broker, run)
    assert code == 1
    assert "alice-r-1, the request for what is left, is withdrawn: it blocks nobody" in complaints
    assert not file.exists()
    assert [entry.id for entry in broker.broker.ledger.permissions] == ["alice-p-1"]
    assert broker.broker.ledger.requests == ()


@pytest.mark.crash
async def test_a_run_that_died_with_its_journal_can_be_taken_over(broker: Served, tmp_path: Path) -> None:
    file = tmp_path / "done"
    words = ("rolling-restart", "h1", "h2", "h3", "--user", "alice", "--run")
    process = await started(broker, *words, "sleep 100", cwd=tmp_path)
    async with asyncio.timeout(PATIENCE):
        while not broker.broker.ledger.permissions:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    run = broker.broker.ledger.permissions[0].run
    process.send_signal(signal.SIGKILL)
    await process.wait()
    command = f"echo {{host}} >> {file}"
    again = ("rolling-restart", "--take-over", run, "--run", command, "--journal", str(tmp_path / "new"))
    assert "nothing of a run" in (await said(broker, *again, user="bob"))[2]
    code, out, _ = await said(broker, *again)
    assert (code, out) == (0, "all 3 hosts are done\n")
    assert sorted(file.read_text().split()) == ["h1", "h2", "h3"]
    assert (broker.broker.ledger.permissions, broker.broker.ledger.requests) == ((), ())


@pytest.mark.crash
async def test_a_rolling_restart_that_is_killed_goes_on_where_it_was(broker: Served, tmp_path: Path) -> None:
    file, journal = tmp_path / "done", tmp_path / "journal"
    command = f"echo {{host}} >> {file}; sleep 0.05"
    words = ("rolling-restart", "--all", "--run", command, "--journal", str(journal), "--user", "alice")
    process = await started(broker, *words)
    async with asyncio.timeout(PATIENCE):
        while not file.exists() or len(file.read_text().split()) < 5:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    code, _, complaints = await ended(await started(broker, "rolling-restart", "--resume", str(journal)))
    assert code == 0, complaints
    served = file.read_text().split()
    assert set(served) == {f"h{number}" for number in range(1, 17)}
    assert len(served) <= 18  # two ran when it was killed
    assert broker.broker.ledger.permissions == ()


def test_what_comes_with_a_permission_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A described cluster has no volumes, and only of them there is something to tell."""
    granted = wire.Permission(id="alice-p-1", action=wire.Action(type="SHUTDOWN_HOST", host="h1"), deadline=0)
    status = wire.Status(code="ALLOW", reason="in use, and writable nowhere else: volume v on h1")
    answer = wire.PermissionResponse(status=status, permissions=(granted,))
    asking._show(asking.Awaited(answer), "text")
    printed = capsys.readouterr()
    assert "alice-p-1" in printed.out
    assert printed.err == "note: in use, and writable nowhere else: volume v on h1\n"


@pytest.mark.parametrize("reachable", [True, False])
async def test_whoever_stops_waiting_while_nobody_leads_withdraws_all_the_same(
    monkeypatch: pytest.MonkeyPatch, reachable: bool
) -> None:
    """Who does not lead answers ERROR_TEMP, without an id; who cannot be reached answers nothing."""
    stop = asyncio.Event()
    said: list[wire.Message] = []
    granted = wire.Permission(id="alice-p-2", action=wire.Action(type="SHUTDOWN_HOST", host="h9"), deadline=0)

    class Leaderless:
        async def ask(self, path: str, question: wire.Message, answer: type[Any]) -> Any:
            said.append(question)
            if path == "managerequestrequest":
                return answer(status=wire.Status(code="OK"))
            stop.set()
            if not reachable:
                raise StoreUnreachable("no broker answers")
            return answer(status=wire.Status(code="ERROR_TEMP", reason="somebody else leads"))

    async def at_once(*_: Any) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(asking, "next_time", at_once)
    client: Any = Leaderless()
    first = wire.PermissionResponse(
        status=wire.Status(code="ALLOW_PARTIAL"), request_id="alice-r-1", permissions=(granted,)
    )
    found = await asking._until_all(client, "alice", first, "text", stop)
    assert (found.answer.request_id, found.answer.permissions) == ("alice-r-1", (granted,))
    ended_ = await asking._withdrawn(client, "alice", found)
    assert (ended_.withdrawn, ended_.stays) == ("alice-r-1", False)
    assert said[-1] == wire.Command(user="alice", command="REJECT", request_id="alice-r-1")
