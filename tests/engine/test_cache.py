"""The cache, against a server whose whole history is known.

The machine below plays the server, other writers, our own writes with answers that arrive late and out of order, a
watch that lags and breaks, and lists that are overtaken. After every step each cached object must be a state that the
server had at some version, at or after the one at which we last saw it: never older after newer, never resurrected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quorate.api.meta import ObjectMeta
from quorate.api.struct import replace
from quorate.engine.cache import Cache, Selection
from quorate.engine.index import Index
from quorate.engine.keys import Key, key_of
from quorate.engine.reader import Reader
from quorate.engine.selectors import equals
from quorate.engine.simulation import Simulation, for_each_seed
from quorate.engine.store import EventType, ObjectList, WatchEvent
from tests.support.kinds import Gadget, Widget, WidgetSpec

# Few, so that what happens happens to the same object.
NAMES = ["a", "b"]
COLOURS = ["red", "green"]


def by_colour(widget: Widget) -> Iterable[str]:
    return widget.metadata.labels.get("colours", "").split()


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.version = 100
        self.objects: dict[Key, Widget] = {}
        self.history: dict[Key, list[tuple[int, Widget | None]]] = {Key("", name): [(0, None)] for name in NAMES}
        self.events: list[WatchEvent[Widget]] = []
        self.uids = 0
        #: Answers to our own writes that are still under way.
        self.answers: list[Callable[[], None]] = []
        self.refreshes: list[ObjectList[Widget]] = []
        #: Where the watch is, or the list that is under way instead of it.
        self.position = 0
        self.relist: ObjectList[Widget] | None = None
        self.cache = Cache(Widget, indexes=[Index(Widget, "colour", by_colour)])
        self.told: dict[Key, Widget] = {}
        self.cache.subscribe(self.heard)
        self.oldest = dict.fromkeys(self.history, 0)

    # The server

    def happen(self, type_: EventType, obj: Widget) -> Widget:
        self.version += 1
        obj = replace(obj, metadata=replace(obj.metadata, resource_version=str(self.version)))
        key = key_of(obj)
        gone = type_ is EventType.DELETED
        if gone:
            del self.objects[key]
        else:
            self.objects[key] = obj
        self.history[key].append((self.version, None if gone else obj))
        self.events.append(WatchEvent(type_, str(self.version), obj))
        return obj

    def server_list(self) -> ObjectList[Widget]:
        return ObjectList(tuple(self.objects[key] for key in sorted(self.objects)), str(self.version))

    def write(self, name: str, colours: list[str]) -> Widget:
        labels = {"colours": " ".join(colours)}
        current = self.objects.get(Key("", name))
        if current is not None:
            return self.happen(EventType.MODIFIED, replace(current, metadata=replace(current.metadata, labels=labels)))
        self.uids += 1
        metadata = ObjectMeta(name=name, uid=f"u{self.uids}", labels=labels)
        return self.happen(EventType.ADDED, Widget(metadata=metadata, spec=WidgetSpec(owner="me")))

    # What happens

    @initialize(names=st.sets(st.sampled_from(NAMES)))
    def begin(self, names: set[str]) -> None:
        for name in sorted(names):
            self.write(name, ["red"])
        self.cache.replace(self.server_list())
        self.position = self.version

    @rule(name=st.sampled_from(NAMES), colours=st.sampled_from([[], ["red"], ["red", "green"]]))
    def somebody_writes(self, name: str, colours: list[str]) -> None:
        self.write(name, colours)

    @rule(name=st.sampled_from(NAMES))
    def somebody_deletes(self, name: str) -> None:
        if (current := self.objects.get(Key("", name))) is not None:
            self.happen(EventType.DELETED, current)

    @rule(name=st.sampled_from(NAMES), colours=st.sampled_from([[], ["red"], ["red", "green"]]))
    def we_write(self, name: str, colours: list[str]) -> None:
        written = self.write(name, colours)

        def answered() -> None:
            self.cache.wrote(written)
            self.knows(key_of(written), int(written.metadata.resource_version))

        self.answers.append(answered)

    @rule(name=st.sampled_from(NAMES))
    def we_delete_what_we_know(self, name: str) -> None:
        key = Key("", name)
        known, current = self.cache.get(key), self.objects.get(key)
        if known is None or current is None or known.metadata.uid != current.metadata.uid:
            return
        self.happen(EventType.DELETED, current)
        version = self.version

        def answered() -> None:
            self.cache.deleted(key, current.metadata.uid)
            self.knows(key, version)

        self.answers.append(answered)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def an_answer_arrives(self, data: st.DataObject) -> None:
        self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))()

    @precondition(lambda self: self.relist is None)
    @rule()
    def the_watch_delivers_one_event(self) -> None:
        for event in self.events:
            if int(event.resource_version) > self.position:
                self.position = int(event.resource_version)
                self.cache.observe(event)
                return
        self.position = self.version
        self.cache.observe(WatchEvent(EventType.BOOKMARK, str(self.version)))

    @rule()
    def the_watch_breaks_and_resumes(self) -> None:
        self.position = int(self.cache.version)

    @precondition(lambda self: self.relist is None)
    @rule()
    def history_expires_and_a_list_is_made(self) -> None:
        self.relist = self.server_list()

    @precondition(lambda self: self.relist is not None)
    @rule()
    def the_list_arrives(self) -> None:
        assert self.relist is not None
        self.cache.replace(self.relist)
        self.relist = None
        self.position = int(self.cache.version)

    @precondition(lambda self: not self.refreshes)
    @rule()
    def a_refresh_begins(self) -> None:
        self.refreshes.append(self.server_list())

    @precondition(lambda self: self.refreshes)
    @rule()
    def a_refresh_ends(self) -> None:
        listing = self.refreshes.pop()
        self.cache.replace(listing)
        for key in self.history:
            self.knows(key, int(listing.resource_version))

    def teardown(self) -> None:
        """With everything delivered, the cache is the server."""
        for answer in self.answers:
            answer()
        if self.relist is not None:
            self.the_list_arrives()
        for event in self.events:
            self.cache.observe(event)
        assert {key_of(obj): obj for obj in self.cache.list()} == self.objects
        assert not self.cache._graves, "every deletion of ours was seen, so nothing needs to be remembered"

    # What must hold

    def knows(self, key: Key, version: int) -> None:
        """From here on the cache must not show anything of before this version."""
        self.oldest[key] = max(self.oldest[key], version)

    @invariant()
    def every_object_is_at_or_after_the_state_in_which_we_last_saw_it(self) -> None:
        for key, states in self.history.items():
            shown = self.cache.get(key)
            ends = [version - 1 for version, _ in states[1:]] + [self.version]
            possible = [
                max(start, self.oldest[key])
                for (start, state), end in zip(states, ends, strict=True)
                if state == shown and end >= self.oldest[key]
            ]
            assert possible, f"{key} went back in time to {shown}"
            self.oldest[key] = min(possible)

    @invariant()
    def readers_get_the_same_objects_whichever_way_they_ask(self) -> None:
        listed = self.cache.list()
        assert [key_of(obj) for obj in listed] == sorted(key_of(obj) for obj in listed)
        for colour in COLOURS:
            assert self.cache.find("colour", colour) == tuple(obj for obj in listed if colour in by_colour(obj))
        assert self.told == {key_of(obj): obj for obj in listed}

    def heard(self, key: Key, old: Widget | None, new: Widget | None) -> None:
        changed = new if new is not None else old
        assert changed is not None
        assert key == key_of(changed)
        assert self.told.get(key) == old
        if new is None:
            del self.told[key]
        else:
            self.told[key] = new


TestCacheAgainstServer = CacheMachine.TestCase
TestCacheAgainstServer.settings = settings(max_examples=250, stateful_step_count=30, deadline=None)


def widget(name: str, version: int, uid: str = "", **labels: str) -> Widget:
    metadata = ObjectMeta(name=name, uid=uid or f"uid-{name}", resource_version=str(version), labels=labels)
    return Widget(metadata=metadata, spec=WidgetSpec(owner="me"))


def test_a_late_event_does_not_bring_back_what_we_deleted() -> None:
    cache = Cache(Widget)
    cache.replace(ObjectList((widget("a", 5),), "5"))
    cache.deleted(Key("", "a"), "uid-a")
    cache.observe(WatchEvent(EventType.MODIFIED, "6", widget("a", 6)))
    assert cache.list() == ()
    cache.observe(WatchEvent(EventType.DELETED, "7", widget("a", 7)))
    cache.observe(WatchEvent(EventType.ADDED, "8", widget("a", 8, uid="another")))
    assert cache.list() == (widget("a", 8, uid="another"),)


def test_a_list_made_before_our_deletion_neither_brings_the_object_back_nor_makes_us_forget_the_deletion() -> None:
    cache = Cache(Widget)
    cache.replace(ObjectList((widget("a", 5),), "5"))
    cache.deleted(Key("", "a"), "uid-a")
    cache.replace(ObjectList((widget("a", 6),), "6"))
    assert cache.list() == ()
    cache.observe(WatchEvent(EventType.MODIFIED, "7", widget("a", 7)))
    assert cache.list() == ()


def test_a_list_made_before_the_first_of_two_lives_does_not_bring_it_back_after_we_ended_the_second() -> None:
    cache = Cache(Widget)
    cache.replace(ObjectList((widget("a", 5, uid="first"),), "6"))
    # The first is deleted by somebody (7); we create the second (8) and delete it (9). A list of before arrives late.
    cache.wrote(widget("a", 8, uid="second"))
    cache.deleted(Key("", "a"), "second")
    cache.replace(ObjectList((widget("a", 5, uid="first"),), "6"))
    assert cache.list() == ()
    cache.observe(WatchEvent(EventType.DELETED, "7", widget("a", 7, uid="first")))
    cache.observe(WatchEvent(EventType.ADDED, "8", widget("a", 8, uid="second")))
    assert cache.list() == ()
    cache.observe(WatchEvent(EventType.DELETED, "9", widget("a", 9, uid="second")))
    cache.observe(WatchEvent(EventType.ADDED, "10", widget("a", 10, uid="third")))
    assert cache.list() == (widget("a", 10, uid="third"),)


def test_an_object_that_cannot_be_decoded_keeps_its_last_known_state() -> None:
    cache = Cache(Widget)
    cache.replace(ObjectList((widget("a", 1), widget("b", 2)), "5"))
    cache.replace(ObjectList((widget("b", 2),), "9", undecodable=(("", "a"),)))
    assert cache.list() == (widget("a", 1), widget("b", 2))
    assert list(cache.undecodable) == [Key("", "a")]
    cache.observe(WatchEvent(EventType.MODIFIED, "10", widget("a", 10)))
    assert list(cache.undecodable) == []
    assert cache.get(Key("", "a")) == widget("a", 10)


def test_an_object_that_a_watch_could_not_decode_is_known_at_once_and_only_once() -> None:
    cache = Cache(Widget)
    cache.replace(ObjectList((widget("a", 1),), "5"))
    for version in ("6", "7"):
        cache.observe(WatchEvent(EventType.BOOKMARK, version, undecodable=("", "a")))
    assert list(cache.undecodable) == [Key("", "a")]
    assert (cache.version, cache.list()) == ("7", (widget("a", 1),))
    cache.observe(WatchEvent(EventType.MODIFIED, "8", widget("a", 8)))
    cache.observe(WatchEvent(EventType.BOOKMARK, "7", undecodable=("", "a")))
    assert list(cache.undecodable) == [], "what is older than the cache says nothing"


def test_a_history_that_was_set_back_replaces_everything_we_believed() -> None:
    cache = Cache(Widget)
    cache.replace(ObjectList((widget("a", 900), widget("b", 901)), "1000"))
    cache.deleted(Key("", "b"), "uid-b")
    cache.start_over(ObjectList((widget("a", 7), widget("b", 8)), "10"))
    assert cache.list() == (widget("a", 7), widget("b", 8))
    cache.observe(WatchEvent(EventType.MODIFIED, "11", widget("a", 11)))
    assert cache.get(Key("", "a")) == widget("a", 11)


def test_resource_versions_compare_as_numbers() -> None:
    cache = Cache(Widget)
    cache.replace(ObjectList((widget("a", 9),), "9"))
    cache.observe(WatchEvent(EventType.MODIFIED, "10", widget("a", 10)))
    assert cache.get(Key("", "a")) == widget("a", 10)


def test_an_own_write_outside_the_selection_does_not_enter_the_cache() -> None:
    cache = Cache(Widget, selection=Selection(labels=equals(node="n1")))
    cache.replace(ObjectList((), "1"))
    cache.wrote(widget("a", 2, node="n1"))
    cache.wrote(widget("b", 3, node="n2"))
    assert [obj.name for obj in cache.list()] == ["a"]


def test_an_own_write_that_takes_an_object_out_of_the_selection_takes_it_out_of_the_cache_for_good() -> None:
    cache = Cache(Widget, selection=Selection(labels=equals(node="n1")))
    cache.replace(ObjectList((widget("a", 5, node="n1"),), "5"))
    cache.wrote(widget("a", 7, node="n2"))
    assert cache.list() == ()
    cache.observe(WatchEvent(EventType.MODIFIED, "6", widget("a", 6, node="n1")))
    assert cache.list() == ()
    cache.observe(WatchEvent(EventType.DELETED, "7", widget("a", 7, node="n1")))
    cache.observe(WatchEvent(EventType.ADDED, "8", widget("a", 8, node="n1")))
    assert cache.list() == (widget("a", 8, node="n1"),)


def test_an_object_that_we_took_out_of_the_selection_may_come_back_before_the_watch_tells_of_either() -> None:
    cache = Cache(Widget, selection=Selection(labels=equals(node="n1")))
    cache.replace(ObjectList((widget("a", 5, node="n1"),), "5"))
    cache.wrote(widget("a", 7, node="n2"))
    cache.replace(ObjectList((widget("a", 6, node="n1"),), "6"))
    assert cache.list() == ()
    cache.wrote(widget("a", 8, node="n1"))
    cache.observe(WatchEvent(EventType.DELETED, "7", widget("a", 7, node="n1")))
    assert cache.list() == (widget("a", 8, node="n1"),)


def test_an_object_at_which_an_index_fails_is_found_under_nothing_and_everything_else_goes_on() -> None:
    def picky(obj: Widget) -> Iterable[str]:
        yield obj.metadata.labels["node"]

    panics: list[None] = []
    cache = Cache(Widget, indexes=[Index(Widget, "node", picky)], panicked=lambda: panics.append(None))
    cache.replace(ObjectList((widget("bad", 1), widget("good", 2, node="n1")), "2"))
    assert [obj.name for obj in cache.list()] == ["bad", "good"]
    assert [obj.name for obj in cache.find("node", "n1")] == ["good"]
    cache.observe(WatchEvent(EventType.MODIFIED, "3", widget("bad", 3, node="n1")))
    assert [obj.name for obj in cache.find("node", "n1")] == ["bad", "good"]
    cache.observe(WatchEvent(EventType.MODIFIED, "4", widget("bad", 4)))
    assert [obj.name for obj in cache.find("node", "n1")] == ["good"]
    cache.observe(WatchEvent(EventType.DELETED, "5", widget("bad", 5)))
    assert [obj.name for obj in cache.list()] == ["good"]
    assert len(panics) == 2


def test_a_list_of_one_namespace_is_sorted_and_has_nothing_of_its_neighbours() -> None:
    cache = Cache(Gadget)
    names = [("b", "2"), ("b", "1"), ("a", "9"), ("b-c", "1"), ("c", "1")]
    items = tuple(
        Gadget(metadata=ObjectMeta(namespace=ns, name=name, resource_version="1"), spec=WidgetSpec(owner="me"))
        for ns, name in sorted(names)
    )
    cache.replace(ObjectList(items, "1"))
    assert [(obj.namespace, obj.name) for obj in cache.list("b")] == [("b", "1"), ("b", "2")]
    assert [(obj.namespace, obj.name) for obj in cache.list()] == sorted(names)


def test_asking_for_what_is_not_there_says_what_is() -> None:
    cache = Cache(Widget, indexes=[Index(Widget, "colour", by_colour)])
    reader = Reader([cache])
    assert reader.get(Widget, "nobody") is None
    with pytest.raises(LookupError, match="has no index 'shape'; it has: colour"):
        reader.find(Widget, "shape", "round")
    with pytest.raises(LookupError, match="Gadget is not cached here"):
        reader.list(Gadget)


def test_a_subscription_ends_when_asked_to() -> None:
    cache, heard = Cache(Widget), list[str]()
    end = cache.subscribe(lambda _key, _old, new: heard.append(new.name if new else "gone"))
    cache.replace(ObjectList((widget("a", 1),), "1"))
    end()
    cache.wrote(widget("b", 2))
    assert heard == ["a"]


def test_who_follows_is_told_together_of_what_changed_together_and_of_every_change_after_it_was_made() -> None:
    async def main(sim: Simulation) -> None:
        cache = Cache(Widget)
        told: list[list[str]] = []
        #: The version of each object at which the follower was last told of it.
        known: dict[Key, str] = {}

        def follower(keys: Collection[Key]) -> None:
            told.append([key.name for key in keys])
            for key in keys:
                found = cache.get(key)
                known[key] = found.metadata.resource_version if found is not None else ""

        end = cache.follow(follower)
        cache.replace(ObjectList((widget("a", 1), widget("b", 2)), "2"))
        cache.observe(WatchEvent(EventType.MODIFIED, "3", widget("a", 3)))
        assert not told
        await sim.clock.sleep(1)
        assert told == [["a", "b"]]
        cache.wrote(widget("b", 4))
        await asyncio.sleep(0)
        cache.deleted(Key("", "b"), "uid-b")
        await sim.clock.sleep(1)
        assert known == {Key("", "a"): "3", Key("", "b"): ""}
        end()
        cache.observe(WatchEvent(EventType.MODIFIED, "5", widget("a", 5)))
        await sim.clock.sleep(1)
        assert known[Key("", "a")] == "3"

    for_each_seed(main)
