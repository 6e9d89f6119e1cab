"""No request costs more than its table says, nor makes the server fail; and it serves others afterwards."""

from __future__ import annotations

import pytest

from tests.attacks import bodies, broker, objects, patches, questions
from tests.attacks.harness import Case, Served

CASES = [*bodies.CASES, *objects.CASES, *patches.CASES, *questions.CASES, *broker.CASES]


def test_there_are_many_and_each_has_a_name_of_its_own() -> None:
    assert len(CASES) >= 200
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_costs_no_more_than_it_may(server: Served, slow: float, case: Case) -> None:
    server.ask("reset")
    code, size = server.send(case)
    spent = server.ask("report")
    assert code in case.codes, f"answered with {code}"
    assert spent["stall"] <= case.cost.stall * slow, f"held the event loop for {spent['stall']:.3f} s"
    assert spent["cpu"] <= case.cost.cpu * slow, f"took {spent['cpu']:.3f} s"
    assert spent["memory"] <= case.cost.memory, f"took {spent['memory']} bytes"
    assert size <= case.cost.answer, f"answered with {size} bytes"


def test_the_server_is_ready_after_all_of_them(server: Served) -> None:
    assert server.send(Case("ready", "GET", "/readyz"))[0] == 200
    assert server.send(Case("list", "GET", "/api/v1/namespaces"))[0] == 200
