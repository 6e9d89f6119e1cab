"""create and PUT."""

from __future__ import annotations

from typing import Any

from tests.conformance.scenarios.objects import GADGETS, WIDGETS, gadget, widget
from tests.conformance.transcript import Scene

A = f"{WIDGETS}/a"


async def create(scene: Scene) -> None:
    await scene.post(WIDGETS, widget("a"))
    await scene.post(WIDGETS, widget("a"), about="the name is taken")
    await scene.post(WIDGETS, {**widget("b"), "status": {"phase": "x"}}, about="a status is dropped")
    await scene.post(WIDGETS, widget("c", {"resourceVersion": "1"}), about="a version cannot be given")
    await scene.post(WIDGETS, widget("d", {"uid": "mine", "generation": 7}), about="nor these")
    await scene.post(WIDGETS, widget("e", {"creationTimestamp": "2020-01-01T00:00:00Z"}), about="nor this")
    await scene.post(WIDGETS, widget("f", {"deletionTimestamp": "2020-01-01T00:00:00Z"}), about="nor this")
    await scene.post(WIDGETS, widget("h", {"selfLink": "/x", "deletionGracePeriodSeconds": 5}), about="nor these")
    generated = await scene.post(WIDGETS, widget("", {"generateName": "gen-"}), about="a generated name")
    assert isinstance(generated, dict)


async def replace(scene: Scene) -> None:
    made: Any = await scene.post(WIDGETS, widget("a", {"labels": {"x": "1"}}, low=1, high=2))
    body = {**made, "spec": {"owner": "me", "low": 2}}
    replaced = await scene.put(A, body, about="what is absent is gone")
    await scene.put(A, body, about="a stale version")
    await scene.put(A, replaced, about="nothing changes")
    bare = {**widget("a", low=3), "status": {"phase": "x"}}
    await scene.put(A, bare, about="without a version")
    without = {**replaced, "metadata": {"name": "a", "resourceVersion": replaced["metadata"]["resourceVersion"]}}
    last = await scene.put(A, without, about="labels, uid and creation time absent")
    await scene.put(A, {**last, "metadata": {**last["metadata"], "name": "b"}}, about="another name")
    await scene.put(A, {**last, "metadata": {**last["metadata"], "uid": "other"}}, about="another uid")
    await scene.put(A, {**last, "metadata": {**last["metadata"], "resourceVersion": ""}}, about="an empty version")
    await scene.put(A, {**last, "status": {"phase": "x"}}, about="the status is not written here")
    await scene.put(A, {**last, "kind": "Gadget"}, about="another kind")
    await scene.put(f"{WIDGETS}/missing", widget("missing"), about="PUT does not create")
    await scene.put(f"{WIDGETS}/missing", widget("missing", {"resourceVersion": "1"}), about="PUT does not create")
    await scene.get(A)


async def replace_in_a_namespace(scene: Scene) -> None:
    made: Any = await scene.post(GADGETS, gadget("g"))
    path = f"{GADGETS}/g"
    await scene.put(path, {**made, "metadata": {**made["metadata"], "namespace": "kube-system"}}, about="elsewhere")
    metadata = {key: value for key, value in made["metadata"].items() if key != "namespace"}
    await scene.put(path, {**made, "metadata": metadata, "spec": {"owner": "me", "low": 4}}, about="namespace absent")
