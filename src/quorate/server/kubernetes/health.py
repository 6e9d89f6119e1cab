"""``/livez``, ``/readyz`` and ``/healthz``: should the process be restarted, should it be asked."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web


def report(problems: Sequence[str], *, verbose: bool) -> web.Response:
    """200 ``ok``, or 500 with a line per problem, in the shape that Kubernetes' own endpoints have."""
    if not problems and not verbose:
        return web.Response(text="ok")
    lines = [f"[-]{problem}" for problem in problems] or ["[+]everything"]
    lines.append("check failed" if problems else "check passed")
    return web.Response(status=500 if problems else 200, text="\n".join(lines) + "\n")
