"""What ``quorate up`` is made of."""

from __future__ import annotations

from random import Random, SystemRandom
from typing import NoReturn

import pytest

from quorate.config import Config
from quorate.server import standalone


class Enough(Exception):
    pass


async def test_secrets_are_made_from_chance_that_nobody_can_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Random] = []

    def note(*_: object, chance: Random, **__: object) -> NoReturn:
        given.append(chance)
        raise Enough

    monkeypatch.setattr(standalone, "standalone", note)
    with pytest.raises(Enough):
        await standalone.run(Config(), announce=print)
    assert [type(chance) for chance in given] == [SystemRandom]
