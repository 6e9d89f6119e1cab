"""The server's routes, and what is around every request: access, errors as Status, metrics."""

from __future__ import annotations

import platform
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from quorate import __version__
from quorate.api.kind import Kind
from quorate.engine.clock import Clock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.health import Health
from quorate.errors import ApiError
from quorate.server.kubernetes import discovery, openapi, status
from quorate.server.kubernetes.auth import Access
from quorate.server.kubernetes.health import report
from quorate.server.kubernetes.metrics import RequestMetrics
from quorate.server.kubernetes.negotiation import clauses
from quorate.server.kubernetes.paths import Kinds, Target
from quorate.server.kubernetes.requests import CALLER, MAX_BODY, read_tree
from quorate.server.kubernetes.resources import Resources
from quorate.server.kubernetes.reviews import Reviews
from quorate.server.kubernetes.watching import Watches

Json = dict[str, Any]

#: The Kubernetes version whose behaviour is followed; kubectl compares it with its own.
KUBERNETES = ("1", "36")

_TARGET = web.RequestKey("target", Target)


class Facade:
    """Everything that is served over one embedded store. ``health`` answers the probes; ``routes`` come besides."""

    def __init__(
        self,
        store: EmbeddedStore,
        *,
        kinds: tuple[Kind, ...],
        clock: Clock,
        chance: random.Random,
        access: Access,
        registry: CollectorRegistry,
        health: Callable[[], Health] = Health,
        routes: Iterable[web.RouteDef] = (),
    ) -> None:
        self._kinds = Kinds(kinds)
        self._clock = clock
        self._access = access
        self._registry = registry
        self._health = health
        self._routes = tuple(routes)
        self._metrics = RequestMetrics(registry)
        self._watches = Watches(store, chance, access)
        self._resources = Resources(store, clock, self._watches)
        self._reviews = Reviews(self._kinds, store)
        self._documents = openapi.documents(self._kinds)

    def application(self) -> web.Application:
        """The routes, for aiohttp."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._measured, self._explained, self._guarded])
        app.on_shutdown.append(self._stop)
        get = app.router.add_get
        get("/version", self._version)
        get("/livez", self._live)
        get("/readyz", self._readiness)
        get("/healthz", self._readiness)
        get("/metrics", self._show_metrics)
        get("/api", self._core)
        get("/apis", self._groups)
        get("/apis/{group}", self._group)
        get("/openapi/v2", self._openapi_v2)
        get("/openapi/v3", self._openapi_index)
        get("/openapi/v3/{path:.+}", self._openapi)
        get("/api/v1/pods", self._no_pods)
        app.router.add_route("*", "/api/{version}", self._resource_list)
        app.router.add_route("*", "/apis/{group}/{version}", self._resource_list)
        app.router.add_route("*", "/api/{version}/{rest:.+}", self._object)
        app.router.add_route("*", "/apis/{group}/{version}/{rest:.+}", self._object)
        app.router.add_routes(self._routes)
        return app

    async def _stop(self, _: web.Application) -> None:
        self._watches.stop()

    # Around every request, outermost first.

    @web.middleware
    async def _measured(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started = self._clock.monotonic()
        response = await handler(request)
        target = request.get(_TARGET)
        if target is not None:
            watch = request.query.get("watch") not in (None, "0", "false")
            self._metrics.answered(
                "WATCH" if watch else request.method,
                target.kind.group,
                target.kind.plural,
                response.status,
                None if watch else self._clock.monotonic() - started,
            )
        return response

    @web.middleware
    async def _explained(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return _nothing_there()
        except web.HTTPException as error:
            return web.Response(status=error.status, text=error.reason, headers=_allowed(error))
        except Exception as error:
            return _failure(status.explained(error))

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        request[CALLER] = self._access.identify(request.path, request.headers)
        return await handler(request)

    # The server itself.

    async def _version(self, _: web.Request) -> web.Response:
        major, minor = KUBERNETES
        return _json(
            {
                "major": major,
                "minor": minor,
                "gitVersion": f"v{major}.{minor}.0+quorate-{__version__}",
                "gitCommit": "",
                "gitTreeState": "",
                "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": "",
                "compiler": f"Python {platform.python_version()}",
                "platform": f"{platform.system().lower()}/{platform.machine()}",
            }
        )

    async def _live(self, request: web.Request) -> web.Response:
        return report(self._health().not_live, verbose="verbose" in request.query)

    async def _readiness(self, request: web.Request) -> web.Response:
        found = self._health()
        return report(found.not_live + found.not_ready, verbose="verbose" in request.query)

    async def _show_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    # What is served.

    async def _core(self, request: web.Request) -> web.Response:
        return _discovered(
            request, lambda: discovery.aggregated(self._kinds, core=True), lambda: discovery.core_versions(request.host)
        )

    async def _groups(self, request: web.Request) -> web.Response:
        return _discovered(
            request, lambda: discovery.aggregated(self._kinds, core=False), lambda: discovery.groups(self._kinds)
        )

    async def _group(self, request: web.Request) -> web.Response:
        found = discovery.group(self._kinds, request.match_info["group"])
        return _json(found) if found is not None else _nothing_there()

    async def _resource_list(self, request: web.Request) -> web.Response:
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        found = discovery.resources(self._kinds, group, version)
        return _json(found) if found is not None and request.method in ("GET", "HEAD") else _nothing_there()

    async def _openapi_v2(self, _: web.Request) -> web.Response:
        return web.Response(body=openapi.V2_DOCUMENT, content_type=openapi.V2_MEDIA_TYPE)

    async def _openapi_index(self, _: web.Request) -> web.Response:
        return _json(openapi.index(self._documents))

    async def _openapi(self, request: web.Request) -> web.Response:
        document = self._documents.get(request.match_info["path"])
        if document is None:
            return _nothing_there()
        headers = {"Content-Type": "application/json", "ETag": f'"{document.hash}"', "Vary": "Accept"}
        if request.query.get("hash") == document.hash:
            headers["Cache-Control"] = "public, immutable, max-age=31536000"
        return web.Response(body=document.body, headers=headers)

    async def _no_pods(self, _: web.Request) -> web.Response:
        """``kubectl describe node`` and ``kubectl drain`` ask which pods a node has, and give up without an answer."""
        return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})

    # Objects.

    async def _object(self, request: web.Request) -> web.StreamResponse:
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        rest = request.match_info["rest"]
        target = self._kinds.resolve(group, version, rest)
        if target is None:
            if request.method == "POST" and self._reviews.has(group, version, rest):
                caller = request[CALLER]
                body = (await read_tree(request)).value if caller.agent_of else None
                return _json(self._reviews.answer(group, version, rest, caller, body), code=201)
            return _nothing_there()
        if target.kind.namespaced and not target.namespace and request.method not in ("GET", "HEAD"):
            return _nothing_there()
        request[_TARGET] = target
        return await self._resources.handle(request, target)


def _discovered(request: web.Request, aggregated: Callable[[], Json], plain: Callable[[], Json]) -> web.Response:
    """The document in the form that the client likes better."""
    wanted = clauses(request.headers.get("Accept", ""))
    for clause in wanted:
        if clause.parameters == {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}:
            headers = {"Content-Type": discovery.AGGREGATED, "Vary": "Accept"}
            return web.Response(body=msgspec.json.encode(aggregated()), headers=headers)
        if not clause.parameters:
            break
    return _json(plain())


def _json(tree: Json, code: int = 200) -> web.Response:
    return web.Response(status=code, body=msgspec.json.encode(tree), content_type="application/json")


def _failure(error: ApiError) -> web.Response:
    headers = {"Retry-After": str(round(error.retry_after))} if error.retry_after else None
    body = status.encode(status.failure(error))
    return web.Response(status=error.code, body=body, content_type="application/json", headers=headers)


def _nothing_there() -> web.Response:
    """A path that nobody serves, as the real server says it; clients tell it from an object that is not there."""
    return web.Response(status=404, text="404 page not found\n")


def _allowed(error: web.HTTPException) -> dict[str, str] | None:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
