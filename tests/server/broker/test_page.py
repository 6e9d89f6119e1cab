"""The web page with the log: it needs nothing but itself, and asks only what is served."""

from __future__ import annotations

import base64
import hashlib
import re

from quorate.server.broker import Access
from tests.server.broker.conftest import Client, serving
from tests.server.broker.fake import FakeBroker
from tests.server.broker.test_access import access, file

__all__ = ["access", "file"]


async def page(client: Client) -> tuple[str, str]:
    async with client.session.get("/cms") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/html"
        return await answer.text(), answer.headers["Content-Security-Policy"]


async def test_its_own_script_and_style_are_all_that_runs(client: Client) -> None:
    text, policy = await page(client)
    for element in ("script", "style"):
        [inside] = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert re.findall(r"(?:src|href)=|https?://|innerHTML", text) == []


async def test_what_it_asks_for_is_served(client: Client, broker: FakeBroker) -> None:
    text, _ = await page(client)
    paths = re.findall(r'answer\("(/[^"?]+)', text)
    assert paths
    for path in paths:
        async with client.session.post(path) as answer:
            assert answer.status == 405  # it is there, and is asked with GET


async def test_it_can_be_had_without_a_token_and_has_nothing_secret(broker: FakeBroker, access: Access) -> None:
    async with serving(broker, access) as client:
        text, _ = await page(client)
    assert "password" in text
    assert broker.asked == []
