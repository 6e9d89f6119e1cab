"""``/livez``, ``/readyz`` and ``/healthz``: is the process well, and does it want work."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

#: A named check: empty text when it passes, else what is wrong.
Checks = Mapping[str, Callable[[], str]]


def report(checks: Checks, *, verbose: bool) -> web.Response:
    """200 ``ok``, or 500 with a line per check, in the shape that Kubernetes' own endpoints have."""
    results = {name: check() for name, check in checks.items()}
    failed = any(results.values())
    if not failed and not verbose:
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in results.items()]
    lines.append("check failed" if failed else "check passed")
    return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n")
