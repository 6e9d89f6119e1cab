"""Whatever is sent: no 5xx, no broken answer, and nothing changes by what is refused."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
import schemathesis
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

from quorate.maintenance.moments import from_datetime
from quorate.server.broker import json_trees, proto_trees
from quorate.server.broker.http import ASKED_BY_MESSAGE, PREFIX
from quorate.server.broker.json_trees import Malformed
from quorate.server.broker.proto import cms_pb2
from quorate.server.broker.questions import QUESTIONS, Question
from quorate.server.broker.walle import TASKS
from tests.server.broker.real import NODES, NOW, PATIENCE, Running, as_a_process_would, over_a_small_cluster, running
from tests.server.broker.test_process import description, write
from tests.server.broker.test_trees import fitting, trees

#: Codes after which something may be decided: anything else must leave the ledger as it was.
DECIDED = {"OK", "ALLOW", "ALLOW_PARTIAL", "DISALLOW_TEMP", "ERROR_TEMP"}
BOUNDED = settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    with running(over_a_small_cluster()) as found:
        yield found


def sent(served: Running, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
    request = urllib.request.Request(served.url + path, data=body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


# Values with a chance to mean something, so that not everything ends at the door.
HOSTS = st.sampled_from([f"h{node}" for node in range(1, NODES + 1)]) | st.sampled_from(["3", "0", "h9", ""])
DEVICES = st.sampled_from(["pdisk-1-1", "pdisk-2-1", "vdisk-0-1-0-0-0"]) | st.sampled_from(
    ["pdisk-9-1", "vdisk-0-2-0-0-0", "/dev/sdb", "pdisk-1-01", ""]
)
SPANS = st.sampled_from([60_000_000, 600_000_000]) | st.sampled_from([0, 1, 2**63, 2**64 - 1])
MOMENTS = st.sampled_from([from_datetime(NOW) + span for span in (0, 60_000_000)]) | SPANS
IDS = st.sampled_from(["u-r-1", "u-p-1", "u-p-2", "u-n-1", "v-r-2", "nonsense", ""])
ACTIONS = st.one_of(
    st.fixed_dictionaries({"Type": st.just("SHUTDOWN_HOST"), "Host": HOSTS}, optional={"Duration": SPANS}),
    st.fixed_dictionaries({"Type": st.just("SHUTDOWN_HOST"), "Tenant": st.sampled_from(["t", "nobody"])}),
    st.fixed_dictionaries(
        {"Type": st.just("RESTART_SERVICES"), "Host": HOSTS, "Services": st.just(["storage"]) | st.just(["x"])},
        optional={"Duration": SPANS},
    ),
    st.fixed_dictionaries(
        {"Type": st.just("REPLACE_DEVICES"), "Devices": st.lists(DEVICES, min_size=1, max_size=2)},
        optional={"Host": HOSTS, "Duration": SPANS},
    ),
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "User": st.just("u") | st.sampled_from(["v", "", "x" * 200]),
    "Actions": st.lists(ACTIONS, min_size=1, max_size=4),
    "RequestId": IDS,
    "Permissions": st.lists(IDS, max_size=3),
    "NotificationId": IDS,
    "Deadline": MOMENTS,
    "Time": MOMENTS,
    "Duration": SPANS,
    "Hosts": st.lists(HOSTS, max_size=3),
    "Priority": st.sampled_from([0, -100, 100, 101]),
    "TaskId": st.sampled_from(["t-1", "t-2", "t-3", ""]),
    "Action": st.sampled_from(["reboot", "change-disk", "prepare", "explode"]),
    "Devices": st.lists(DEVICES, max_size=2),
    "Items": st.fixed_dictionaries({}, optional={"Nodes": st.lists(st.integers(1, 9), max_size=2)}),
    "UserToken": st.just(""),
}
#: A question without these is never more than a wrong request.
NEEDED = {"User", "Actions", "Command", "Marker", "TaskId", "Action", "Items"}


def messages(question: Question) -> st.SearchStrategy[dict[str, Any]]:
    """Requests of one kind: everything that fits the proto file, and what a client might really send."""
    fields = {field.name: LIKELY.get(field.name, fitting(field)) for field in question.request.fields}
    needed = {name: strategy for name, strategy in fields.items() if name in NEEDED}
    optional = {name: strategy for name, strategy in fields.items() if name not in NEEDED}
    likely = st.fixed_dictionaries(needed, optional=optional)
    return st.one_of(likely, likely, trees(question.request))


def as_json(tree: dict[str, Any], question: Question) -> bytes:
    return json_trees.dump(tree, question.request)


@pytest.mark.parametrize("question", ASKED_BY_MESSAGE, ids=lambda question: question.path)
def test_json_that_fits_is_answered_and_refusals_change_nothing(served: Running, question: Question) -> None:
    @BOUNDED
    @given(messages(question))
    def ask(tree: dict[str, Any]) -> None:
        before = served.decided()
        code, body = sent(served, "POST", f"{PREFIX}/{question.path}", as_json(tree, question))
        answer = json.loads(body)
        assert code in (200, 400), answer
        if code == 200:
            json_trees.parse(body, question.response)
        if code != 200 or answer["Status"]["Code"] not in DECIDED or tree.get("DryRun"):
            assert served.decided() == before

    ask()


@BOUNDED
@given(
    st.sampled_from(ASKED_BY_MESSAGE),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["User", "Actions", "Type", "Status", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
)
def test_json_that_does_not_fit_is_refused_and_changes_nothing(served: Running, question: Question, value: Any) -> None:
    body = json.dumps(value).encode()
    try:
        json_trees.parse(body, question.request)
    except Malformed:
        before = served.decided()
        code, answer = sent(served, "POST", f"{PREFIX}/{question.path}", body)
        assert code == 400, answer
        assert served.decided() == before


@BOUNDED
@given(st.sampled_from(ASKED_BY_MESSAGE), st.binary(max_size=40))
def test_bytes_are_answered_in_json(served: Running, question: Question, body: bytes) -> None:
    code, answer = sent(served, "POST", f"{PREFIX}/{question.path}", body)
    assert code in (200, 400)
    assert "Status" in json.loads(answer)


def test_schemathesis_finds_nothing_against_the_document(tmp_path: Path) -> None:
    file = write(tmp_path / "cluster.json", description())
    with running(as_a_process_would(file)) as served:
        schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
        operations: list[Any] = [result.ok() for result in cast("Any", schema.get_all_operations())]
        assert len(operations) > 30
        for operation in operations:
            bounded: Any = settings(BOUNDED, max_examples=10)
            drawn: Any = given(cast("st.SearchStrategy[Any]", operation.as_strategy()))
            bounded(drawn(_validated))()


def _validated(case: Any) -> None:
    # A host that nobody has is well-formed and wrong all the same, and Wall-E wants a 400 for it; time has an end.
    but = [positive_data_acceptance] if case.operation.path in (TASKS, "/cluster/clock", "/cluster/config") else []
    case.validate_response(case.call(timeout=PATIENCE), excluded_checks=but)


WALLE_TASKS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["t-1", "t-2", "/", "ü"]),
        "action": st.sampled_from(["reboot", "power-off", "change-disk", "prepare", "deactivate", "dance"]),
        "hosts": st.lists(HOSTS, max_size=3),
    },
    optional={
        "type": st.text(max_size=3),
        "issuer": st.text(max_size=3),
        "devices": st.lists(DEVICES, max_size=2),
        "comment": st.none(),
    },
)


@BOUNDED
@given(st.lists(st.tuples(st.sampled_from(["POST", "DRY", "GET", "DELETE", "LIST"]), WALLE_TASKS), max_size=5))
def test_wall_e_never_meets_an_error_of_ours(served: Running, calls: list[tuple[str, dict[str, Any]]]) -> None:
    for verb, task in calls:
        one = f"{TASKS}/{urllib.parse.quote(task['id'], safe='')}"
        before = served.decided()
        if verb in ("POST", "DRY"):
            query = "?dry_run=true" if verb == "DRY" else ""
            code, body = sent(served, "POST", TASKS + query, json.dumps(task).encode())
            assert code in (200, 400), body
        else:
            method, path = ("GET", TASKS) if verb == "LIST" else (verb, one)
            code, body = sent(served, method, path, None)
            assert code in (200, 204, 404), body
        assert (body == b"") == (code == 204)
        if code >= 400 or verb in ("DRY", "LIST"):
            assert served.decided() == before


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A message, and then some of its bytes changed, dropped, doubled or added."""
    question = draw(st.sampled_from(QUESTIONS))
    tree = {question.field: draw(messages(question))}
    body = bytearray(proto_trees.write(tree, cms_pb2.TCmsRequest()).SerializeToString())
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(body)))
        what = draw(st.sampled_from(["change", "drop", "double", "add"]))
        if what == "add":
            body[place:place] = draw(st.binary(min_size=1, max_size=3))
        elif place < len(body):
            changed = {"change": bytes([draw(st.integers(0, 255))]), "drop": b"", "double": body[place : place + 1] * 2}
            body[place : place + 1] = changed[what]
    return bytes(body)


@settings(BOUNDED, max_examples=200)
@given(mutated())
def test_mutated_protobuf_is_answered_or_refused_and_refusals_change_nothing(served: Running, body: bytes) -> None:
    before = served.decided()
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc_port}") as channel:
        method: Any = channel.unary_unary(
            "/quorate.cms.Cms/Call", response_deserializer=cms_pb2.TCmsResponse.FromString
        )
        answer, call = method.with_call(body, timeout=PATIENCE) if _parses(body) else (None, method.future(body))
        if answer is None:
            assert call.exception(PATIENCE).code() is grpc.StatusCode.INVALID_ARGUMENT
            assert served.decided() == before
            return
    assert "an error of the server" not in answer.Status.Reason
    if cms_pb2.TStatus.ECode.Name(answer.Status.Code) not in DECIDED:
        assert served.decided() == before


def _parses(body: bytes) -> bool:
    try:
        cms_pb2.TCmsRequest.FromString(body)
    except DecodeError:
        return False
    return True
