"""The verbs on objects: from an HTTP request to the store and back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

from quorate.engine.clock import Clock
from quorate.engine.embedded import Admit, EmbeddedStore, Page, Record, Written, parse_version
from quorate.errors import (
    BadRequest,
    Cause,
    Conflict,
    Expired,
    MethodNotAllowed,
    NotFound,
    ServerTimeout,
    UnsupportedMediaType,
)
from quorate.server.kubernetes import patches, status
from quorate.server.kubernetes.admission import admission_of, authorize
from quorate.server.kubernetes.bodies import Parsed
from quorate.server.kubernetes.negotiation import Format, negotiate
from quorate.server.kubernetes.options import (
    ListOptions,
    WriteOptions,
    delete_options,
    list_options,
    write_options,
)
from quorate.server.kubernetes.paths import Target
from quorate.server.kubernetes.rendering import Renderer
from quorate.server.kubernetes.requests import (
    CALLER,
    PROTOBUF,
    duplicates,
    media_type,
    read_optional_tree,
    read_patch,
    read_tree,
    warning_headers,
)
from quorate.server.kubernetes.tables import parse_include
from quorate.server.kubernetes.watching import Watches

#: What a method means on a collection and on an object.
_COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",  # under the name in its body, as a real server has it
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_STATUS_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch"}

#: Deletions that wait for the disk together.
_TOGETHER = 100
#: A list of more objects is sent as it is made: at once, making it would keep everybody else waiting.
_AT_ONCE = 100
#: Bytes that are sent together, and seconds that they may take to be made.
_CHUNK, _TURN = 256 * 1024, 0.005


class Resources:
    """Handles every request about objects."""

    def __init__(self, store: EmbeddedStore, clock: Clock, watches: Watches) -> None:
        self._store = store
        self._clock = clock
        self._watches = watches
        self._handlers: dict[str, Callable[[web.Request, Target], Awaitable[web.StreamResponse]]] = {
            "list": self._list,
            "get": self._get,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    async def handle(self, request: web.Request, target: Target) -> web.StreamResponse:
        """Answer a request about ``target``."""
        verb = _verb(request.method, target)
        authorize(request[CALLER], verb, target, self._store)
        return await self._handlers[verb](request, target)

    async def _list(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = list_options(request.query)
        if options.watch:
            # A line of JSON per event: there is no such thing for YAML.
            renderer = self._renderer(request, target, formats=(Format.JSON,))
            return await self._watches.stream(request, target, options, renderer)
        renderer = self._list_renderer(request, target)
        page = await self._page(target, options)
        _check_version(options, page.resource_version)
        return await _listed(request, page, renderer)

    async def _get(self, request: web.Request, target: Target) -> web.StreamResponse:
        renderer = self._renderer(request, target)
        record = self._store.read(target.kind, target.name, target.namespace)
        if version := request.query.get("resourceVersion"):
            _check_reached(parse_version(version), self._store.resource_version)
        return _answer(await _one(record, renderer), renderer)

    async def _create(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = write_options(request.query, "CreateOptions")
        renderer = self._renderer(request, target)
        parsed = await read_tree(request)
        written = await self._store.create_raw(
            target.kind,
            parsed.value,
            namespace=target.namespace,
            dry_run=options.dry_run,
            field_validation=options.field_validation,
            problems=duplicates(parsed),
            admit=admission_of(request[CALLER]),
        )
        return await _written(written, renderer, code=201)

    async def _update(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = write_options(request.query, "UpdateOptions")
        renderer = self._renderer(request, target)
        if media_type(request) == PROTOBUF:
            # We read only the fields that our types know: the object would lose all its others.
            raise UnsupportedMediaType(
                "an object cannot be replaced by protobuf - accepted media types include: "
                "application/json, application/yaml"
            )
        parsed = await read_tree(request)
        admit = admission_of(request[CALLER])
        written = await self._change(target, lambda _: parsed.value, options, parsed, admit, patch=False)
        return await _written(written, renderer)

    async def _patch(self, request: web.Request, target: Target) -> web.StreamResponse:
        form = media_type(request)
        patches.check_media_type(target.kind, form)
        options = write_options(request.query, "PatchOptions")
        renderer = self._renderer(request, target)
        parsed = await read_patch(request)
        change = patches.change_of(target.kind, form, parsed.value)
        written = await self._change(target, change, options, parsed, admission_of(request[CALLER]), patch=True)
        return await _written(written, renderer)

    async def _change(
        self,
        target: Target,
        change: patches.Change,
        options: WriteOptions,
        parsed: Parsed,
        admit: Admit,
        *,
        patch: bool,
    ) -> Written:
        return await self._store.update_raw(
            target.kind,
            target.name,
            change,
            namespace=target.namespace,
            subresource=target.subresource,
            dry_run=options.dry_run,
            field_validation=options.field_validation,
            patch=patch,
            problems=duplicates(parsed),
            admit=admit,
        )

    async def _delete(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = delete_options(request.query, await read_optional_tree(request))
        renderer = self._renderer(request, target)
        done = await self._store.delete_raw(
            target.kind,
            target.name,
            namespace=target.namespace,
            uid=options.uid,
            resource_version=options.resource_version,
            dry_run=options.dry_run,
            admit=admission_of(request[CALLER]),
        )
        if not done.gone:
            return _answer(await _one(done.record, renderer), renderer)
        body = status.encode(status.deleted(target.kind, target.name, done.record.typed.metadata.uid))
        return web.Response(body=body, content_type="application/json")

    async def _delete_collection(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = list_options(request.query)
        how = delete_options(request.query, await read_optional_tree(request))
        renderer = self._list_renderer(request, target)
        page = await self._page(target, options)
        admit = admission_of(request[CALLER])
        for begin in range(0, len(page.records), _TOGETHER):
            some = page.records[begin : begin + _TOGETHER]
            await asyncio.gather(*(self._delete_if_same(record, admit, dry_run=how.dry_run) for record in some))
        return await _listed(request, page, renderer)

    async def _delete_if_same(self, record: Record, admit: Admit, *, dry_run: bool) -> None:
        uid = record.typed.metadata.uid
        # Somebody else may have deleted it, and made a new one: that was not in the list.
        with suppress(NotFound, Conflict):
            await self._store.delete_raw(
                record.kind, record.name, namespace=record.namespace, uid=uid, dry_run=dry_run, admit=admit
            )

    async def _page(self, target: Target, options: ListOptions) -> Page:
        return await self._store.read_page_in_turns(
            target.kind,
            namespace=target.namespace,
            labels=options.labels,
            fields=options.fields,
            limit=options.limit,
            continue_token=options.continue_token,
        )

    def _list_renderer(self, request: web.Request, target: Target) -> Renderer:
        # A list may be large, and YAML is slow: writing it would hold up everybody else.
        return self._renderer(request, target, many=True, formats=(Format.JSON,))

    def _renderer(
        self, request: web.Request, target: Target, *, many: bool = False, formats: tuple[Format, ...] = tuple(Format)
    ) -> Renderer:
        representation = negotiate(request.headers.get("Accept", ""), many=many, formats=formats)
        include = parse_include(request.query.get("includeObject", ""))
        return Renderer(target.kind, representation, include, self._clock)


def _verb(method: str, target: Target) -> str:
    kind = target.kind
    if not target.name:
        if method in ("PUT", "PATCH"):
            raise BadRequest("name must be provided")
        verbs = _COLLECTION_VERBS
    elif not target.subresource:
        verbs = _OBJECT_VERBS
    elif target.subresource == "status" and kind.status_subresource:
        verbs = _STATUS_VERBS
    else:
        raise NotFound(
            f'{kind.qualified_resource} "{target.name}" has no {target.subresource}',
            group=kind.group,
            kind=kind.plural,
            name=target.name,
        )
    if method not in verbs:
        raise MethodNotAllowed(
            f'{method} is not supported on resources of kind "{kind.qualified_resource}"',
            group=kind.group,
            kind=kind.plural,
        )
    return verbs[method]


def _check_version(options: ListOptions, current: int) -> None:
    """What was listed is the newest there is: new enough, unless another version was asked for by number."""
    wanted = options.resource_version or 0
    _check_reached(wanted, current)
    if options.exact and wanted != current and not options.continue_token:
        raise Expired(f"The provided resource version is too old: {wanted} (only {current} can be listed)")


def _check_reached(wanted: int, current: int) -> None:
    if wanted > current:
        raise ServerTimeout(
            f"Timeout: Too large resource version: {wanted}, current: {current}",
            causes=(Cause("ResourceVersionTooLarge", "Too large resource version"),),
            retry_after=1,
        )


async def _one(record: Record, renderer: Renderer) -> bytes:
    """A large object takes long to write as YAML: nobody else should wait for it."""
    if renderer.representation.format is Format.YAML:
        return await asyncio.to_thread(renderer.one, record)
    return renderer.one(record)


async def _listed(request: web.Request, page: Page, renderer: Renderer) -> web.StreamResponse:
    """A list, however long it is."""
    if len(page.records) <= _AT_ONCE and sum(len(record.raw) for record in page.records) <= _CHUNK:
        return _answer(b"".join(renderer.many(page)), renderer)
    response = web.StreamResponse(headers={"Content-Type": renderer.content_type})
    if request.method == "HEAD":
        return response
    await response.prepare(request)
    loop = asyncio.get_running_loop()
    chunk: list[bytes] = []
    size, end_of_turn = 0, loop.time() + _TURN
    for piece in renderer.many(page):
        chunk.append(piece)
        size += len(piece)
        if size > _CHUNK or loop.time() > end_of_turn:
            await response.write(b"".join(chunk))
            await asyncio.sleep(0)
            chunk, size, end_of_turn = [], 0, loop.time() + _TURN
    await response.write(b"".join(chunk))
    await response.write_eof()
    return response


def _answer(body: bytes, renderer: Renderer, code: int = 200) -> web.Response:
    return web.Response(status=code, body=body, headers={"Content-Type": renderer.content_type})


async def _written(written: Written, renderer: Renderer, code: int = 200) -> web.Response:
    answer = _answer(await _one(written.record, renderer), renderer, code)
    answer.headers.extend(warning_headers(written.warnings))
    return answer
