"""Who asks for a volume where: attachments and publishOn, first come, first served."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.api.struct import replace
from quorate.volumes.attach.queue import requests
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import THREE, at, of
from tests.volumes.replica.making import NOW, attachment, node_name, with_rv

RVA, PUBLISHED = AttachSource.ATTACHMENT, AttachSource.PUBLISH_ON


def publishing(view: VolumeView, *numbers: int) -> VolumeView:
    assert view.rv is not None
    nodes = tuple(node_name(number) for number in numbers)
    return changed(view, rv=replace(view.rv, spec=replace(view.rv.spec, publish_on=nodes)))


def queue(view: VolumeView) -> list[tuple[str, AttachSource]]:
    return [(each.node_name, each.source) for each in requests(view, NOW)]


def test_attachments_and_publish_on_make_one_queue() -> None:
    view = publishing(of(THREE, attachments=(attachment(2), attachment(1))), 0)
    view = with_rv(view, attach_requests=())
    assert queue(view) == [(node_name(1), RVA), (node_name(2), RVA), (node_name(0), PUBLISHED)]


def test_who_came_first_stays_first_whoever_comes_later() -> None:
    view = publishing(of(THREE, 2, attachments=(attachment(2),)), 0, 1)
    assert [node for node, _ in queue(view)] == [node_name(2), node_name(0), node_name(1)]


def test_a_place_is_kept_while_anybody_asks_for_the_node() -> None:
    both = publishing(of(THREE, 0, 1, attachments=(attachment(1),)), 0)
    assert [node for node, _ in queue(both)] == [node_name(0), node_name(1)]
    withdrawn = publishing(of(THREE, 0, 1, attachments=(attachment(1), attachment(0))))
    assert queue(withdrawn) == [(node_name(0), RVA), (node_name(1), RVA)]


def test_a_deleting_attachment_asks_for_nothing() -> None:
    view = of(THREE, 0, attachments=(attachment(0, deletion_timestamp=NOW),))
    assert requests(view, NOW) == ()


def test_a_deleting_volume_reads_publish_on_as_empty_and_lets_nobody_new_in() -> None:
    view = publishing(of(THREE, 0, 1, attachments=(attachment(1), attachment(2))), 0)
    assert queue(with_rv(view, deleting=True)) == [(node_name(1), RVA)]


def test_nothing_is_written_twice() -> None:
    view = of(THREE, attachments=(attachment(0), attachment(1)))
    first = requests(view, NOW)
    assert requests(with_rv(view, attach_requests=first), at(100)) == first


@settings(deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sets(st.integers(0, 4), max_size=5), st.lists(st.integers(0, 4), max_size=2, unique=True)),
        max_size=6,
    )
)
def test_however_wishes_come_and_go_nobody_overtakes_and_since_grows(
    steps: list[tuple[set[int], list[int]]],
) -> None:
    view = of(THREE)
    before: tuple[AttachRequest, ...] = ()
    for place, (wishes, published) in enumerate(steps):
        made = changed(view, attachments=tuple(attachment(number) for number in sorted(wishes)))
        found = requests(publishing(with_rv(made, attach_requests=before), *published), NOW + timedelta(seconds=place))
        nodes = [each.node_name for each in found]
        assert set(nodes) == {node_name(number) for number in (*wishes, *published)}
        stayed = [each.node_name for each in before if each.node_name in nodes]
        assert nodes[: len(stayed)] == stayed
        assert all(one.since < other.since for one, other in pairwise(found))
        before = found
