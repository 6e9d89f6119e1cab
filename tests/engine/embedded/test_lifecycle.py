"""Opening and closing: what was begun is finished, and a failure leaves nothing behind."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from quorate.api.core import Namespace
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.embedded.record import Written
from quorate.errors import StorageFailure
from tests.engine.embedded.support import GADGET, NAMESPACE, WIDGET, gadget, open_store, widget

FIRST = ["default", "kube-node-lease", "kube-public", "kube-system", "quorate-system"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "quorate.db"


def names(store: EmbeddedStore) -> list[str]:
    return [record.name for record in store.read_page(NAMESPACE).records]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "quorate-commit"]


def copy_as_after_a_crash(path: Path, copy: Path) -> Path:
    """What a process killed now would leave."""
    for suffix in ("", "-wal", ".mark"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    return copy


class TestFirstNamespaces:
    @pytest.mark.parametrize("failure", [StorageFailure("no"), asyncio.CancelledError()])
    async def test_a_first_start_that_fails_lets_go_and_the_next_completes_it(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
    ) -> None:
        create = EmbeddedStore.create_raw
        created: list[object] = []

        async def create_two(self: EmbeddedStore, *args: Any, **options: Any) -> Written:
            if len(created) == 2:
                raise failure
            created.append(args)
            return await create(self, *args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(EmbeddedStore, "create_raw", create_two)
            with pytest.raises(type(failure)):
                await open_store(path, inline=False)
        assert threads() == []
        store = await open_store(path)
        assert names(store) == FIRST
        await store.close()

    async def test_one_that_was_deleted_comes_back_with_the_next_start(self, path: Path) -> None:
        store = await open_store(path)
        await store.delete(Namespace, "kube-node-lease")
        assert "kube-node-lease" not in names(store)
        await store.close()
        store = await open_store(path)
        assert names(store) == FIRST
        version = store.resource_version
        await store.close()
        store = await open_store(path)
        assert store.resource_version == version
        await store.close()


class TestNamespaceDeletion:
    async def test_goes_on_after_a_crash(self, path: Path) -> None:
        store = await open_store(path, inline=False)
        await store.create_raw(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "big"}})
        bodies = [gadget(f"g{number}", "big") for number in range(600)]
        await asyncio.gather(*(store.create_raw(GADGET, body, namespace="big") for body in bodies))
        await store.delete_raw(NAMESPACE, "big")
        copy = copy_as_after_a_crash(path, path.with_name("copy.db"))
        await store.close()
        store = await open_store(copy)
        assert names(store) == FIRST
        assert store.read_page(GADGET, namespace="big").records == ()
        await store.close()

    async def test_that_fails_does_not_keep_the_namespace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = await open_store()
        await store.create_raw(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        await store.create_raw(GADGET, gadget("g", "n"), namespace="n")
        delete = store._delete

        def fail_on_content(record: Any) -> Any:
            if record.kind is GADGET:
                raise RuntimeError("a bug")
            return delete(record)

        with monkeypatch.context() as patched:
            patched.setattr(store, "_delete", fail_on_content)
            with pytest.raises(RuntimeError):
                await store.delete_raw(NAMESPACE, "n")
        assert "n" in names(store)
        # When what is in it goes, so does the namespace: nobody believes that it is still being emptied.
        await store.delete_raw(GADGET, "g", namespace="n")
        assert names(store) == FIRST
        await store.close()


class TestClosing:
    async def test_goes_on_when_who_asked_for_it_is_cancelled(self, path: Path) -> None:
        store = await open_store(path, inline=False)
        write = asyncio.create_task(store.create_raw(WIDGET, widget()))
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await write
        await asyncio.gather(store.close(), store.close())
        assert threads() == []
        store = await open_store(path)
        assert store.read(WIDGET, "w").name == "w"
        await store.close()


async def test_who_waits_for_the_disk_is_told_even_when_telling_of_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_store(inline=False)
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def fail(_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(store._queue, "_on_commit", fail)
    write = asyncio.create_task(store.create_raw(WIDGET, widget()))
    await asyncio.wait_for(write, 10)
    await asyncio.wait_for(store.close(), 10)
    assert [str(context["exception"]) for context in complaints] == ["a bug"]
