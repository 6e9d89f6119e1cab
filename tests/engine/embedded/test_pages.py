"""Lists, page by page."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.engine.embedded import EmbeddedStore, HistoryLimits
from quorate.engine.selectors import parse_labels
from quorate.errors import BadRequest, Expired
from tests.engine.embedded.support import GADGET, WIDGET, gadget, open_store, widget
from tests.support.kinds import Widget


async def filled(names: str, limits: HistoryLimits | None = None) -> EmbeddedStore:
    store = await open_store(limits=limits)
    for name in names:
        await store.create_raw(WIDGET, widget(name, metadata={"labels": {"name": name}}))
    return store


async def test_pages_follow_each_other_at_the_version_of_the_first() -> None:
    store = await filled("abcde")
    first = store.read_page(WIDGET, limit=2)
    assert ([record.name for record in first.records], first.remaining) == (["a", "b"], 3)
    await store.create_raw(WIDGET, widget("aa"))
    await store.create_raw(WIDGET, widget("cc"))
    await store.patch(Widget, "c", patch={"spec": {"low": 9}})
    await store.patch(Widget, "c", patch={"spec": {"low": 10}})
    await store.delete(Widget, "d")
    second = store.read_page(WIDGET, limit=2, continue_token=first.continue_token)
    assert [(record.name, record.typed.spec.low) for record in second.records if isinstance(record.typed, Widget)] == [
        ("c", None),
        ("d", None),
    ]
    assert (second.resource_version, second.remaining) == (first.resource_version, 1)
    third = store.read_page(WIDGET, limit=2, continue_token=second.continue_token)
    assert ([record.name for record in third.records], third.continue_token, third.remaining) == (["e"], "", None)


async def test_a_page_that_ends_the_list_has_no_token() -> None:
    store = await filled("ab")
    assert store.read_page(WIDGET, limit=2).continue_token == ""
    assert store.read_page(WIDGET).continue_token == ""


async def test_with_a_selector_nobody_counts_the_rest() -> None:
    store = await filled("abc")
    page = store.read_page(WIDGET, limit=1, labels=parse_labels("name in (b,c)"))
    assert ([record.name for record in page.records], page.remaining) == (["b"], None)
    assert page.continue_token


async def test_a_token_expires_with_the_history() -> None:
    store = await filled("abc", HistoryLimits(events=3))
    token = store.read_page(WIDGET, limit=1).continue_token
    for low in range(4):
        await store.patch(Widget, "a", patch={"spec": {"low": low}})
    with pytest.raises(Expired):
        store.read_page(WIDGET, limit=1, continue_token=token)


@pytest.mark.parametrize("token", ["x", "!!", base64.urlsafe_b64encode(b"[1]").decode(), "é"])
async def test_a_made_up_token_is_a_bad_request(token: str) -> None:
    store = await filled("a")
    with pytest.raises(BadRequest, match="invalid continue token"):
        store.read_page(WIDGET, continue_token=token)


async def test_a_namespace_is_a_part_of_the_list() -> None:
    store = await open_store()
    for space in ("default", "kube-public", "kube-system"):
        for name in "ab":
            await store.create_raw(GADGET, gadget(name), namespace=space)
    first = store.read_page(GADGET, namespace="kube-public", limit=1)
    assert (first.records[0].namespace, first.remaining) == ("kube-public", 1)
    rest = store.read_page(GADGET, namespace="kube-public", continue_token=first.continue_token)
    assert [(record.namespace, record.name) for record in rest.records] == [("kube-public", "b")]
    assert len(store.read_page(GADGET).records) == 6


@settings(deadline=None)
@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=12))
async def test_paging_gives_what_one_list_gave_whatever_happens_between(
    limit: int, actions: list[tuple[str, int]]
) -> None:
    store = await filled("bcdf")
    whole = store.read_page(WIDGET)
    page = store.read_page(WIDGET, limit=limit)
    found = list(page.records)
    while page.continue_token:
        for name, low in actions:
            present = any(record.name == name for record in store.read_page(WIDGET).records)
            if not present:
                await store.create_raw(WIDGET, widget(name))
            elif low:
                await store.patch(Widget, name, patch={"spec": {"low": low}})
            else:
                await store.delete(Widget, name)
        page = store.read_page(WIDGET, limit=limit, continue_token=page.continue_token)
        found += page.records
    assert found == list(whole.records)
