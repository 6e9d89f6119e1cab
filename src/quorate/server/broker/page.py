"""The web page with the log: ``/cms``.

It holds no data, so anybody may have it; what it asks for is guarded like everything else. It runs no script but its
own, and loads nothing from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import Final

from aiohttp import web

PAGE: Final = "/cms"


def routes() -> list[web.RouteDef]:
    """The page."""
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    headers = {
        "Content-Security-Policy": "; ".join(
            [
                "default-src 'none'",
                "connect-src 'self'",
                f"script-src {_digest(text, 'script')}",
                f"style-src {_digest(text, 'style')}",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            ]
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html", headers=headers)

    return [web.get(PAGE, show)]


def _digest(text: str, element: str) -> str:
    """What a browser compares an inline element with."""
    found = re.search(f"<{element}>(.*)</{element}>", text, re.DOTALL)
    assert found is not None
    return f"'sha256-{base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}'"
