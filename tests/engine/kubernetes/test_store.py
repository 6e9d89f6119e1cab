"""What only a real API server can prove of the Kubernetes engine; the verbs themselves are in tests/conformance."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from enum import StrEnum
from random import Random
from typing import Any, cast

import pytest

from quorate.api.meta import ObjectMeta, Resource
from quorate.api.struct import Struct
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, Limits, load_connection
from quorate.engine.store import EventType, Store, WatchEvent
from quorate.errors import BadRequest, Expired, OutcomeUnknown, StoreUnreachable, UndecodableObject
from tests.support.apiserver import ApiServer
from tests.support.kinds import Colour, Gadget, Widget, WidgetSpec

pytestmark = pytest.mark.apiserver

WIDGETS = "/apis/test.quorate.io/v1/widgets"


def widget(name: str, **spec: Any) -> Widget:
    return Widget(metadata=ObjectMeta(name=name), spec=WidgetSpec(owner="me", **spec))


async def create_many(store: Store, count: int) -> None:
    await asyncio.gather(*(store.create(widget(f"w{number:04}")) for number in range(count)))


def events(store: KubernetesStore, version: str) -> Any:
    return aclosing(cast("Any", store.watch(Widget, resource_version=version)))


async def next_change(watch: Any) -> WatchEvent[Any]:
    while True:
        event: WatchEvent[Any] = await anext(watch)
        if event.type is not EventType.BOOKMARK:
            return event


def store_with(apiserver: ApiServer, **settings: Any) -> KubernetesStore:
    clock = SystemClock()
    connection = load_connection(environ={}, clock=clock, kubeconfig=apiserver.kubeconfig)
    return KubernetesStore(connection, clock=clock, random=Random(1), **settings)


class TestLists:
    async def test_a_list_of_many_pages_is_whole_and_as_of_its_first_page(
        self, apiserver: ApiServer, store: KubernetesStore
    ) -> None:
        await create_many(store, 620)
        pages: list[str] = []

        def between_pages(_method: str, _host: str, _code: str, _seconds: float) -> None:
            pages.append("page")
            if len(pages) == 1:
                late = {"apiVersion": "test.quorate.io/v1", "kind": "Widget", "metadata": {"name": "zz-late"}}
                assert apiserver.request("POST", WIDGETS, {**late, "spec": {"owner": "me"}}).code == 201
                assert apiserver.request("DELETE", f"{WIDGETS}/w0619").code == 200

        watched = store_with(apiserver, observe=between_pages)
        try:
            found = await watched.list(Widget)
        finally:
            await watched.close()
        assert len(pages) == 2
        assert [each.name for each in found.items] == [f"w{number:04}" for number in range(620)]
        async with events(store, found.resource_version) as watch:
            assert [(await next_change(watch)).type for _ in range(2)] == [EventType.ADDED, EventType.DELETED]

    async def test_a_list_whose_history_goes_away_between_pages_begins_again(
        self, apiserver: ApiServer, store: KubernetesStore
    ) -> None:
        await create_many(store, 510)
        answers: list[str] = []

        def between_pages(_method: str, _host: str, code: str, _seconds: float) -> None:
            answers.append(code)
            if len(answers) == 1:
                apiserver.request("DELETE", f"{WIDGETS}/w0000")
                apiserver.compact()
                # The new process knows nothing older than now.
                apiserver.restart()

        watched = store_with(apiserver, observe=between_pages)
        try:
            found = await watched.list(Widget)
        finally:
            await watched.close()
        assert "410" in answers
        assert [each.name for each in found.items] == [f"w{number:04}" for number in range(1, 510)]

    async def test_objects_of_all_namespaces_are_sorted_by_namespace_and_then_name(
        self, apiserver: ApiServer, store: KubernetesStore
    ) -> None:
        for namespace in ("a", "a-b"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            assert apiserver.request("POST", "/api/v1/namespaces", body).code in (201, 409)
            for name in ("y", "x"):
                metadata = ObjectMeta(name=name, namespace=namespace)
                await store.create(Gadget(metadata=metadata, spec=WidgetSpec(owner="me")))
        found = await store.list(Gadget)
        keys = [(each.namespace, each.name) for each in found.items]
        assert keys == [("a", "x"), ("a", "y"), ("a-b", "x"), ("a-b", "y")]


class TestWatches:
    async def test_a_watch_resumes_where_another_ended(self, store: KubernetesStore) -> None:
        start = (await store.list(Widget)).resource_version
        first = await store.create(widget("one"))
        second = await store.create(widget("two"))
        async with events(store, start) as watch:
            event = await next_change(watch)
        assert (event.type, event.object) == (EventType.ADDED, first)
        async with events(store, event.resource_version) as watch:
            assert (await next_change(watch)).object == second

    async def test_history_that_is_gone_is_expired(self, apiserver: ApiServer, store: KubernetesStore) -> None:
        start = (await store.list(Widget)).resource_version
        await store.create(widget("one"))
        apiserver.compact()
        apiserver.restart()
        with pytest.raises(Expired):
            async with events(store, start) as watch:
                await next_change(watch)

    async def test_a_server_that_dies_ends_the_watch_with_an_error(
        self, apiserver: ApiServer, store: KubernetesStore
    ) -> None:
        start = (await store.list(Widget)).resource_version
        async with events(store, start) as watch:
            await store.create(widget("one"))
            await next_change(watch)
            apiserver.kill()
            with pytest.raises(StoreUnreachable):
                await next_change(watch)
        with pytest.raises(StoreUnreachable):
            await store.get(Widget, "one")
        apiserver.restart()
        assert (await store.get(Widget, "one")).name == "one"

    async def test_a_server_that_hangs_is_noticed_and_the_watch_can_be_resumed(
        self, apiserver: ApiServer, store: KubernetesStore
    ) -> None:
        start = (await store.list(Widget)).resource_version
        impatient = store_with(apiserver, limits=Limits(watch_silence=0.5))
        async with events(impatient, start) as watch:
            await store.create(widget("one"))
            seen = await next_change(watch)
            apiserver.pause()
            try:
                with pytest.raises(StoreUnreachable, match="nothing came"):
                    await next_change(watch)
            finally:
                apiserver.resume()
        second = await store.create(widget("two"))
        async with events(impatient, seen.resource_version) as watch:
            assert (await next_change(watch)).object == second
        await impatient.close()


class TestWrites:
    async def test_a_write_to_a_hanging_server_has_an_unknown_outcome_which_reading_again_settles(
        self, apiserver: ApiServer, store: KubernetesStore
    ) -> None:
        impatient = store_with(apiserver, limits=Limits(write_timeout=0.5))
        await impatient.list(Widget)
        apiserver.pause()
        try:
            with pytest.raises(OutcomeUnknown):
                await impatient.create(widget("ghost"))
        finally:
            apiserver.resume()
        assert [each.name for each in (await impatient.list(Widget)).items] in ([], ["ghost"])
        await impatient.close()

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
    async def test_a_name_that_could_lead_to_another_path_is_never_sent(
        self, store: KubernetesStore, name: str
    ) -> None:
        with pytest.raises(BadRequest):
            await store.get(Widget, name)

    async def test_a_namespaced_object_needs_its_namespace(self, store: KubernetesStore) -> None:
        with pytest.raises(BadRequest, match="namespace"):
            await store.get(Gadget, "g")
        with pytest.raises(BadRequest, match="namespace"):
            await store.delete(Gadget, "g")


class OldColour(StrEnum):
    RED = "Red"


class OldSpec(Struct):
    colour: OldColour = OldColour.RED


class OldWidget(Resource):
    """A Widget as a version that knew only red ones had it."""

    KIND = Widget.KIND
    spec: OldSpec


class TestObjectsOfANewerVersion:
    @pytest.fixture
    async def versions(self, apiserver: ApiServer, store: KubernetesStore) -> Any:
        await store.create(widget("old"))
        await store.create(widget("new", colour=Colour.GREEN))
        skipped: list[UndecodableObject] = []
        older = store_with(apiserver, on_undecodable=skipped.append)
        yield older, skipped
        await older.close()

    async def test_a_list_names_them_beside_the_others(self, versions: Any) -> None:
        older, skipped = versions
        found = await older.list(OldWidget)
        assert [each.name for each in found.items] == ["old"]
        assert found.undecodable == (("", "new"),)
        assert [each.name for each in skipped] == ["new"]

    async def test_reading_one_says_what_does_not_fit(self, versions: Any) -> None:
        older, _ = versions
        with pytest.raises(UndecodableObject, match=r"Widget new .*Green.*spec\.colour"):
            await older.get(OldWidget, "new")

    async def test_a_watch_passes_over_them_and_goes_on(self, store: KubernetesStore, versions: Any) -> None:
        older, skipped = versions
        start = (await older.list(OldWidget)).resource_version
        async with aclosing(older.watch(OldWidget, resource_version=start)) as watch:
            await store.patch_status(Widget, "new", patch={"phase": "a"})
            changed = await store.patch_status(Widget, "old", patch={"phase": "b"})
            event = await next_change(watch)
            assert event.object is not None
            assert (event.resource_version, event.object.name) == (changed.metadata.resource_version, "old")
            assert [each.name for each in skipped] == ["new", "new"]
            await store.delete(Widget, "new")
            with pytest.raises(Expired):
                await next_change(watch)
