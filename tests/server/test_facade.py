"""The verbs over HTTP: what goes in, what comes out, and the Status of everything that is refused.

That the answers are a real API server's is proven by the conformance suite; here is what it does not record.
"""

from __future__ import annotations

import asyncio
import io
import json
import threading
from pathlib import Path

import aiohttp
import pytest
import yaml

from quorate.api.core import Node
from quorate.api.meta import ObjectMeta
from quorate.engine.embedded import EmbeddedStore, Subscription
from quorate.errors import StorageFull
from quorate.server.kubernetes import Access, AgentTokens, Listener, bodies
from quorate.server.kubernetes.callers import TokenFile
from quorate.server.kubernetes.rendering import Renderer
from tests.server.conftest import GADGETS, WIDGETS, Client, facade, widget
from tests.support.kinds import Widget

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"


async def test_an_object_goes_out_as_the_bytes_that_are_stored(http: Client, store: EmbeddedStore) -> None:
    created = await http("POST", WIDGETS, widget("a"))
    assert created.code == 201
    stored = store.read(Widget.KIND, "a").raw
    assert created.raw == stored
    assert (await http("GET", f"{WIDGETS}/a")).raw == stored
    listed = await http("GET", WIDGETS)
    assert stored in listed.raw
    assert [item["metadata"]["name"] for item in listed.json["items"]] == ["a"]


async def test_yaml_goes_in_and_comes_out(http: Client) -> None:
    body = yaml.safe_dump(widget("a", colour="Green")).encode()
    created = await http("POST", WIDGETS, body, kind="application/yaml", Accept="application/yaml")
    assert created.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(created.raw)["spec"] == {"owner": "me", "colour": "Green"}


async def test_yaml_is_read_and_written_beside_the_event_loop(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work: list[str] = []

    def noted(of: type, name: str) -> None:
        original = getattr(of, name)

        def note(*arguments: object) -> object:
            at_work.append("loop" if threading.current_thread() is threading.main_thread() else "beside")
            return original(*arguments)

        monkeypatch.setattr(of, name, note)

    noted(bodies._JsonLikeLoader, "get_single_data")
    noted(Renderer, "one")
    body = yaml.safe_dump(widget("a")).encode()
    await http("POST", WIDGETS, body, kind="application/yaml", Accept="application/yaml")
    await http("GET", f"{WIDGETS}/a", Accept="application/yaml")
    assert at_work == ["beside"] * 3


async def test_a_body_beyond_the_limit_is_not_read(http: Client) -> None:
    body = io.BytesIO(b'{"x": "' + b"x" * (3 * 1024 * 1024) + b'"}')
    async with http.session.post(WIDGETS, data=body, headers={"Content-Type": "application/json"}) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (413, "RequestEntityTooLarge")


async def test_warnings_are_headers_that_kubectl_prints(http: Client) -> None:
    body = json.dumps(widget("a", strange=1)).replace('"owner": "me"', '"owner": "me", "owner": "you"')
    async with http.session.post(WIDGETS, data=body, headers={"Content-Type": "application/json"}) as answer:
        assert answer.status == 201
        assert answer.headers.getall("Warning") == [
            '299 - "duplicate field \\"spec.owner\\""',
            '299 - "unknown field \\"spec.strange\\""',
        ]
        assert (await answer.json())["spec"]["owner"] == "you"


async def test_a_deleted_collection_is_what_the_selector_chose(http: Client) -> None:
    for name, tier in (("a", "gold"), ("b", "gold"), ("c", "iron")):
        body = widget(name)
        body["metadata"]["labels"] = {"tier": tier}
        await http("POST", WIDGETS, body)
    gone = await http("DELETE", f"{WIDGETS}?labelSelector=tier=gold&dryRun=All")
    assert [item["metadata"]["name"] for item in gone.json["items"]] == ["a", "b"]
    assert len((await http("GET", WIDGETS)).json["items"]) == 3
    await http("DELETE", f"{WIDGETS}?labelSelector=tier=gold")
    assert [item["metadata"]["name"] for item in (await http("GET", WIDGETS)).json["items"]] == ["c"]


async def test_a_collection_larger_than_a_batch_is_deleted_whole(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.server.kubernetes.resources._TOGETHER", 2)
    for number in range(5):
        await http("POST", WIDGETS, widget(f"w{number}"))
    gone = await http("DELETE", WIDGETS)
    assert [item["metadata"]["name"] for item in gone.json["items"]] == ["w0", "w1", "w2", "w3", "w4"]
    assert (await http("GET", WIDGETS)).json["items"] == []


async def test_pages_add_up_to_the_list(http: Client) -> None:
    for number in range(5):
        await http("POST", WIDGETS, widget(f"w{number}"))
    names: list[str] = []
    remaining = []
    token = ""
    while True:
        page = (await http("GET", f"{WIDGETS}?limit=2&continue={token}")).json
        names += [item["metadata"]["name"] for item in page["items"]]
        remaining.append(page["metadata"].get("remainingItemCount"))
        token = page["metadata"]["continue"]
        if not token:
            break
    assert names == ["w0", "w1", "w2", "w3", "w4"]
    assert remaining == [3, 1, None]


async def test_a_table_of_a_page_can_be_continued(http: Client) -> None:
    for number in range(3):
        await http("POST", WIDGETS, widget(f"w{number}"))
    page = (await http("GET", f"{WIDGETS}?limit=2", Accept=TABLE)).json
    assert [row["cells"][0] for row in page["rows"]] == ["w0", "w1"]
    rest = (await http("GET", f"{WIDGETS}?limit=2&continue={page['metadata']['continue']}", Accept=TABLE)).json
    assert [row["cells"][0] for row in rest["rows"]] == ["w2"]


async def test_a_watch_ends_properly_when_its_time_is_over(http: Client) -> None:
    await http("POST", WIDGETS, widget("a"))
    async with http.session.get(f"{WIDGETS}?watch=1&timeoutSeconds=1") as response:
        lines = (await response.read()).splitlines()
    assert len(lines) == 1


async def test_a_watch_of_a_client_that_went_away_is_let_go(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = asyncio.Event()
    close = Subscription.aclose

    async def aclose(subscription: Subscription) -> None:
        await close(subscription)
        let_go.set()

    monkeypatch.setattr(Subscription, "aclose", aclose)
    await http("POST", WIDGETS, widget("a"))
    await http.watch(f"{WIDGETS}?watch=1", 1)
    async with asyncio.timeout(5):
        await let_go.wait()


async def test_a_stopping_server_ends_its_watches_properly(store: EmbeddedStore) -> None:
    async with facade(store) as listener, aiohttp.ClientSession(listener.url) as session:
        await Client(session)("POST", WIDGETS, widget("a"))
        async with session.get(f"{WIDGETS}?watch=1") as response:
            assert await response.content.readline()
            async with asyncio.timeout(5):
                await listener.close()
                assert await response.content.read() == b""


async def test_an_idle_watch_sends_bookmarks_so_that_it_is_not_taken_for_dead(
    http: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.server.kubernetes.watching._BOOKMARK_PERIOD", 0.05)
    version = (await http("POST", WIDGETS, widget("a"))).json["metadata"]["resourceVersion"]
    events = await http.watch(f"{WIDGETS}?watch=1&resourceVersion={version}&allowWatchBookmarks=true", 2)
    assert [(event["type"], event["object"]["metadata"]["resourceVersion"]) for event in events] == [
        ("BOOKMARK", version)
    ] * 2


@pytest.mark.parametrize("whose", ["agent", "person"])
async def test_a_watch_ends_when_its_token_is_taken_back(store: EmbeddedStore, tmp_path: Path, whose: str) -> None:
    agents, people = AgentTokens(tmp_path / "agents"), tmp_path / "token"
    people.write_text("a" * 32)
    file = TokenFile(people)
    token = agents.replace("n1") if whose == "agent" else file.read()
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        facade(store, Access(file.read(), agents.node_of, file.now)) as listener,
        aiohttp.ClientSession(listener.url) as session,
        session.get("/api/v1/nodes?watch=1", headers=headers) as response,
    ):
        await store.create(Node(metadata=ObjectMeta(name="seen")))
        assert json.loads(await response.content.readline())["object"]["metadata"]["name"] == "seen"
        agents.revoke("n1")
        people.write_text("b" * 32)
        await asyncio.sleep(1.1)
        await store.create(Node(metadata=ObjectMeta(name="hidden")))
        last = json.loads(await asyncio.wait_for(response.content.readline(), 5))
        assert (last["type"], last["object"]["code"]) == ("ERROR", 401)
        assert await response.content.read() == b""


async def test_there_is_no_watch_in_yaml(http: Client) -> None:
    refused = await http("GET", f"{WIDGETS}?watch=1", Accept="application/yaml")
    assert (refused.code, refused.json["reason"]) == (406, "NotAcceptable")


async def test_there_is_no_list_in_yaml_which_would_hold_up_everybody(http: Client) -> None:
    refused = await http("GET", WIDGETS, Accept="application/yaml")
    assert (refused.code, refused.json["reason"]) == (406, "NotAcceptable")
    assert "application/json" in refused.json["message"]


@pytest.mark.parametrize(
    ("error", "message"),
    [(StorageFull("the disk is full"), "the disk is full"), (RuntimeError("inside"), "its log has the details")],
)
async def test_a_watch_that_breaks_ends_with_an_error_line(
    http: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def broken(*_: object, **__: object) -> bytes:
        raise error

    await http("POST", WIDGETS, widget("a"))
    monkeypatch.setattr(Renderer, "event", broken)
    async with http.session.get(f"{WIDGETS}?watch=1") as response:
        lines = (await response.read()).splitlines()
    assert response.status == 200
    [event] = map(json.loads, lines)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
    assert message in event["object"]["message"]


async def test_a_watch_from_now_on_begins_at_the_version_of_the_store(http: Client) -> None:
    await http("POST", WIDGETS, widget("before"))
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    async with http.session.get(f"{WIDGETS}?{query}") as response:
        await http("POST", WIDGETS, widget("after"))
        event = json.loads(await response.content.readline())
    assert event["object"]["metadata"]["name"] == "after"


async def test_changes_arrive_while_one_watches(http: Client) -> None:
    async with http.session.get(f"{GADGETS}?watch=1&allowWatchBookmarks=false") as response:
        gadget = {**widget("g"), "kind": "Gadget"}
        await http("POST", GADGETS, gadget)
        await http("PATCH", f"{GADGETS}/g", {"metadata": {"labels": {"x": "y"}}}, kind=MERGE)
        await http("DELETE", f"{GADGETS}/g")
        lines = [await response.content.readline() for _ in range(3)]
    assert [line[: line.index(b",")] for line in lines] == [
        b'{"type":"ADDED"',
        b'{"type":"MODIFIED"',
        b'{"type":"DELETED"',
    ]


@pytest.mark.parametrize("path", ["/", "/nothing", "/api/v2", "/apis/other.io", "/openapi/v1", "/apis/other.io/v1/x"])
async def test_what_nobody_serves_is_not_found_in_the_real_servers_words(http: Client, path: str) -> None:
    answer = await http("GET", path)
    assert (answer.code, answer.raw) == (404, b"404 page not found\n")


async def test_a_method_that_a_path_does_not_know_is_said_so(http: Client) -> None:
    assert (await http("POST", "/version")).code == 405
    assert (await http("POST", "/api/v1", {})).code == 404


async def test_an_error_of_ours_is_a_status_without_its_insides(
    http: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("something inside")

    monkeypatch.setattr(EmbeddedStore, "read_page_in_turns", broken)
    answer = await http("GET", WIDGETS)
    assert (answer.code, answer.json["reason"]) == (500, "InternalError")
    assert b"something inside" not in answer.raw
    assert "something inside" in capsys.readouterr().err


async def test_health_and_metrics(http: Client) -> None:
    for path in ("/livez", "/readyz", "/healthz"):
        assert (await http("GET", path)).raw == b"ok"
    assert b"check passed" in (await http("GET", "/readyz?verbose")).raw
    await http("GET", WIDGETS)
    metrics = (await http("GET", "/metrics")).raw.decode()
    labels = 'code="200",group="test.quorate.io",resource="widgets",verb="GET"'
    assert f"apiserver_request_total{{{labels}}} 1.0" in metrics


async def test_only_the_token_opens_a_guarded_server(store: EmbeddedStore) -> None:
    async with facade(store, Access("0123456789abcdef")) as listener, aiohttp.ClientSession(listener.url) as session:
        client = Client(session)
        refused = await client("GET", WIDGETS)
        assert (refused.code, refused.json["reason"]) == (401, "Unauthorized")
        assert (await client("GET", WIDGETS, Authorization="Bearer 0123456789abcdef")).code == 200
        assert (await client("GET", "/healthz")).code == 200


async def test_a_page_in_a_browser_cannot_write_to_an_open_server(http: Client, server: Listener) -> None:
    refused = await http("POST", WIDGETS, widget("a"), Origin="http://evil.example")
    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    rebound = await http("GET", WIDGETS, Host="evil.example")
    assert rebound.code == 403
