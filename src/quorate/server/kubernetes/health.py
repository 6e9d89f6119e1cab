"""``/livez``, ``/readyz`` and ``/healthz``: should the process be restarted, should it be asked."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from quorate.engine import health


def report(problems: Sequence[str], *, verbose: bool) -> web.Response:
    """200 ``ok``, or 500 with a line per problem."""
    status, text = health.report(problems, verbose=verbose)
    return web.Response(status=status, text=text)
