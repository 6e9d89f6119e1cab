"""Who may write what, on the facade, and on a real API server with the policies of ``deploy/admission``."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from quorate.api import all_kinds, labels
from quorate.api.cluster_config import SharedSecrets
from quorate.api.codec import encode
from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.datamesh import Datamesh, Member
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import ReplicatedVolumeSpec, ReplicatedVolumeStatus
from quorate.engine import Create
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.server.kubernetes import Access, AgentTokens, Facade, listen
from quorate.server.kubernetes.admission import AGENT_VERBS
from quorate.volumes.volume.shared_secrets import Keeping, decide
from tests.conformance.admission_cases import (
    AGENT_CASES,
    CAN_I,
    INVENTORIES,
    KUBELET_CASES,
    LABEL_CASES,
    LEASES,
    MINE,
    NAMESPACES,
    NOBODYS,
    NODES,
    OF_A_NODE,
    READ_CASES,
    THEIRS,
    Case,
    Json,
    inventory,
    lease,
    namespace,
    node,
)
from tests.conformance.wire import MERGE, Answer, Wire
from tests.support import policies
from tests.support.apiserver import ApiServer


@dataclass(frozen=True)
class Engine:
    """One engine, as the administrator, the agent of n1 and that of n2 see it."""

    admin: Wire
    agent: Wire
    other: Wire
    #: Whether its agents have but the verbs of their role.
    by_role: bool = True
    #: Whether what refuses is admission, which has words of ours.
    has_words: bool = True

    async def prepare(self) -> None:
        objects = [(NAMESPACES, namespace("quorate-system"))]
        objects += [(LEASES, lease(f"quorate-agent-{name}")) for name in (MINE, THEIRS)]
        objects += [(NODES, node(MINE, registered=True)), (NODES, node(THEIRS))]
        objects += [(INVENTORIES, inventory(name)) for name in (MINE, THEIRS)]
        for collection, made in OF_A_NODE.items():
            objects += [(collection, made("mine-0", MINE)), (collection, made("theirs-0", THEIRS))]
            objects += [(collection, made("nobodys-0", NOBODYS)), (collection, made("lent-0", MINE, THEIRS))]
        for path, body in objects:
            answer = await self.admin.request("POST", path, body)
            assert answer.code in (201, 409), answer.body


async def _facade(stack: AsyncExitStack, directory: Path) -> Engine:
    clock = SystemClock()
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=Random(1))
    stack.push_async_callback(store.close)
    tokens = AgentTokens(directory / "agents")
    served = Facade(
        store,
        kinds=all_kinds(),
        clock=clock,
        chance=Random(1),
        access=Access("the administrator's", tokens.node_of),
        registry=CollectorRegistry(),
    )
    listener = await listen(served, host="127.0.0.1", port=0)
    stack.push_async_callback(listener.close)
    admin = Wire(listener.url, token="the administrator's")
    one, two = (Wire(listener.url, token=tokens.token(name)) for name in ("n1", "n2"))
    return Engine(admin, one, two)


async def _real(apiserver: ApiServer, way: str) -> Engine:
    """``role``: agents have what deploy/ gives them. Otherwise everything, so that admission is what refuses."""
    apiserver.install_crds(kind for kind in all_kinds() if kind.crd)
    policies.apply(apiserver)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "test-agents"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:quorate:agents"},
            {"kind": "ServiceAccount", "name": "quorate-agent", "namespace": "quorate-system"},
        ],
    }
    if way != "role":
        apiserver.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    ca_file = str(apiserver.ca_file)

    def agent(name: str) -> Wire:
        if way == "account":
            return Wire(apiserver.url, ca_file=ca_file, token=_account_token(apiserver, name))
        certificate = apiserver.authority.client(f"system:quorate:agent:{name}", "system:quorate:agents")
        return Wire(apiserver.url, ca_file=ca_file, certificate=certificate)

    admin = Wire(apiserver.url, token=apiserver.token, ca_file=ca_file)
    return Engine(admin, agent("n1"), agent("n2"), by_role=way == "role", has_words=way != "role")


def _account_token(apiserver: ApiServer, node: str) -> str:
    """A token such as the kubelet gives to a pod that runs on a node."""
    inside = f"{NAMESPACES}/quorate-system"
    pod = {
        "metadata": {"name": f"agent-{node}"},
        "spec": {"nodeName": node, "serviceAccountName": "quorate-agent", "containers": [{"name": "a", "image": "a"}]},
    }
    apiserver.request("POST", NAMESPACES, namespace("quorate-system"))
    apiserver.request("POST", f"{inside}/serviceaccounts", {"metadata": {"name": "quorate-agent"}})
    apiserver.request("POST", f"{inside}/pods", pod)
    uid = apiserver.request("GET", f"{inside}/pods/agent-{node}").json()["metadata"]["uid"]
    bound = {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": f"agent-{node}", "uid": uid}}}
    answer = apiserver.request("POST", f"{inside}/serviceaccounts/quorate-agent/token", bound)
    assert answer.code == 201, answer.body
    token: str = answer.json()["status"]["token"]
    return token


def _without_policies(apiserver: ApiServer) -> None:
    """Other tests share the server."""
    policies.remove(apiserver)
    apiserver.request("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/test-agents")
    apiserver.clear(*(kind for kind in all_kinds() if labels.NODE in kind.immutable_labels))
    for name in (MINE, THEIRS):
        apiserver.request("DELETE", f"{NAMESPACES}/quorate-system/pods/agent-{name}?gracePeriodSeconds=0")
        apiserver.request("DELETE", f"{NODES}/{name}")
        apiserver.request("DELETE", f"{INVENTORIES}/{name}")


ON_A_REAL_SERVER = [pytest.param(by, marks=pytest.mark.apiserver) for by in ("certificate", "account", "role")]


@pytest.fixture(params=["facade", *ON_A_REAL_SERVER])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    async with AsyncExitStack() as stack:
        if request.param == "facade":
            made = await _facade(stack, tmp_path)
        else:
            apiserver = request.getfixturevalue("apiserver")
            stack.callback(_without_policies, apiserver)
            made = await _real(apiserver, request.param)
        stack.push_async_callback(made.admin.close)
        stack.push_async_callback(made.agent.close)
        stack.push_async_callback(made.other.close)
        await made.prepare()
        await _in_force(made)
        yield made


async def _in_force(engine: Engine) -> None:
    """A real server takes up policies a moment after they are written."""
    async with asyncio.timeout(30):
        for who, case in ((engine.admin, LABEL_CASES[0]), (engine.agent, AGENT_CASES[0])):
            while (await _try(who, case)).code < 400:  # noqa: ASYNC110 - a server cannot be waited for otherwise
                await asyncio.sleep(0.1)


async def _try(who: Wire, case: Case) -> Answer:
    path, _, query = case.path.partition("?")
    parameters = dict(part.split("=") for part in query.split("&")) if query else {}
    parameters = {name: value.replace("%3D", "=") for name, value in parameters.items()}
    if case.method != "GET":
        parameters["dryRun"] = "All"
    content_type = case.content_type if case.method == "PATCH" else None
    return await who.request(case.method, path, case.body, content_type=content_type, query=parameters)


async def _wrong(who: Wire, cases: list[Case], *, words: bool = True) -> list[str]:
    wrong = []
    for case in cases:
        answer = await _try(who, case)
        reason = answer.body.get("reason", "") if answer.code >= 400 else ""
        if reason != case.refused:
            wrong.append(f"{case.about}: {case.method} {case.path}: {answer.code} {answer.body.get('message', '')}")
        elif case.refused and words and not _words_of(answer).endswith(case.says):
            wrong.append(f"{case.about}: refused in other words: {answer.body['message']}")
    return wrong


def _words_of(answer: Answer) -> str:
    causes = answer.body["details"].get("causes")
    return str(causes[0]["message"]) if causes else str(answer.body["message"])


async def test_the_label_of_a_node_stays_whoever_writes(engine: Engine) -> None:
    assert await _wrong(engine.admin, LABEL_CASES) == []


async def test_an_agent_writes_what_is_its_nodes_and_nothing_else(engine: Engine) -> None:
    assert await _wrong(engine.agent, AGENT_CASES, words=engine.has_words) == []
    assert await _wrong(engine.other, KUBELET_CASES, words=engine.has_words) == []


async def test_the_status_of_a_node_is_no_way_to_its_metadata(engine: Engine) -> None:
    """A real server stores metadata that is sent there; the facade reads none of it."""
    before = (await engine.admin.request("GET", f"{NODES}/{MINE}")).body["metadata"]
    for part, value in (
        ("labels", {"node-role.kubernetes.io/x": ""}),
        ("labels", {"a": "b"}),
        ("annotations", {"maintenance.quorate.io/id": "7"}),
        ("finalizers", ["a.b/c"]),
        ("ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "n9", "uid": "u"}]),
    ):
        changes = {"metadata": {part: value}, "status": {"nodeInfo": {"bootID": "b"}}}
        answer = await engine.agent.request("PATCH", f"{NODES}/{MINE}/status", changes, content_type=MERGE)
        assert answer.code in (200, 403), answer.body
        after = (await engine.admin.request("GET", f"{NODES}/{MINE}")).body["metadata"]
        assert after.get(part) == before.get(part), f"{part} of a Node were set through its status"


async def test_an_agent_reads_what_its_role_says(engine: Engine) -> None:
    if engine.by_role:
        assert await _wrong(engine.agent, READ_CASES) == []


async def test_the_administrator_is_refused_nothing_of_it(engine: Engine) -> None:
    assert await _wrong(engine.admin, [replace(case, refused="") for case in (*AGENT_CASES, *READ_CASES)]) == []


async def test_only_the_agents_that_a_secret_names_read_it(engine: Engine) -> None:
    """As a volume's controller makes them: for the agent of n1, and in Kubernetes for an account that agents share."""
    if not engine.by_role:
        return  # where agents may do everything, nothing is refused
    inside = "/namespaces/quorate-system"
    secrets, rbac = f"/api/v1{inside}/secrets", f"/apis/rbac.authorization.k8s.io/v1{inside}"
    keeping = Keeping(VolumeName("v"), _volume_on("n1"), (), None, None, None, SharedSecrets.SECRET)
    for write in decide(keeping, datetime.now(tz=UTC), Random(1)).writes:
        assert isinstance(write, Create)
        kind = write.obj.KIND
        collection = secrets if kind.name == "Secret" else f"{rbac}/{kind.plural}"
        body = {"apiVersion": kind.api_version, "kind": kind.name, **json.loads(encode(write.obj))}
        made = await engine.admin.request("POST", collection, body)
        assert made.code == 201, made.body
    path = f"{secrets}/quorate-drbd-v"
    try:
        async with asyncio.timeout(30):  # a real server takes up roles a moment after they are written
            while (found := await engine.agent.request("GET", path)).code == 403:  # noqa: ASYNC110 - as below
                await asyncio.sleep(0.1)
        assert found.code == 200, found.body
        assert len(base64.b64decode(found.body["data"]["shared-secret"])) == 32
        assert (await engine.other.request("GET", path)).code == 403
        made = await engine.admin.request("POST", f"{rbac}/rolebindings", _binding_to_another_role("another", "n1"))
        assert made.code == 201, made.body
        assert (await engine.agent.request("GET", f"{secrets}/another")).code == 403
        assert (await engine.agent.request("GET", secrets)).code == 403
        assert (await engine.agent.request("GET", secrets, query={"watch": "1", "timeoutSeconds": "1"})).code == 403
        assert (await engine.agent.request("DELETE", path)).code == 403
        assert (await engine.agent.request("PATCH", path, {"data": None}, content_type=MERGE)).code == 403
        assert (await engine.agent.request("GET", f"{rbac}/rolebindings/quorate-drbd-v")).code == 403
    finally:
        await engine.admin.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
        for each in (
            path,
            f"{rbac}/roles/quorate-drbd-v",
            f"{rbac}/rolebindings/quorate-drbd-v",
            f"{rbac}/rolebindings/another",
        ):
            await engine.admin.request("DELETE", each)


def _binding_to_another_role(name: str, node: str) -> Json:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "of-something-else"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": f"system:quorate:agent:{node}"}],
    }


def _volume_on(node: str) -> ReplicatedVolume:
    member = Member(name=ReplicaName("v-0"), node_name=NodeName(node), node_id=0, type=ReplicaType.DISKFUL)
    status = ReplicatedVolumeStatus(datamesh=Datamesh(members=(member,)))
    spec = ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="c")
    return ReplicatedVolume(metadata=ObjectMeta(name="v"), spec=spec, status=status)


def test_both_engines_give_agents_the_same_verbs() -> None:
    role = next(each for each in policies.policies() if each["kind"] == "ClusterRole")
    found: dict[str, set[str]] = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault(f"{group}/{resource}", set()).update(rule["verbs"])
    ours: dict[str, set[str]] = {}
    for kind, (of_object, of_status) in AGENT_VERBS.items():
        ours |= {f"{kind.group}/{kind.plural}": set(of_object)} if of_object else {}
        ours |= {f"{kind.group}/{kind.plural}/status": set(of_status)} if of_status else {}
    assert found == ours


async def test_an_agent_is_told_what_it_may_do(engine: Engine) -> None:
    if not engine.by_role:
        return  # where agents may do everything, that is what they are told

    async def may(who: Wire, attributes: Json) -> bool:
        part = "nonResourceAttributes" if "path" in attributes else "resourceAttributes"
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {part: attributes},
        }
        answer = await who.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        assert answer.code == 201, answer.body
        allowed: bool = answer.body["status"]["allowed"]
        return allowed

    assert [asked for asked, told in CAN_I if await may(engine.agent, asked) is not told] == []
    assert all([await may(engine.admin, asked) for asked, _ in CAN_I])


async def test_an_agent_is_told_the_verbs_of_its_role(engine: Engine) -> None:
    if not engine.by_role:
        return
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "quorate-system"},
    }
    answer = await engine.agent.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)
    assert answer.code == 201, answer.body
    told: dict[str, set[str]] = {}
    for rule in answer.body["status"]["resourceRules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                told.setdefault(f"{group}/{resource}", set()).update(rule["verbs"])
    for kind, (of_object, of_status) in AGENT_VERBS.items():
        assert told.get(f"{kind.group}/{kind.plural}") == set(of_object)
        assert told.get(f"{kind.group}/{kind.plural}/status", set()) == set(of_status)
    assert "*/*" not in told


async def test_an_agent_can_ask_who_it_is(engine: Engine) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await engine.agent.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert answer.code == 201
    user = answer.body["status"]["userInfo"]
    assert user["username"] in ("system:quorate:agent:n1", "system:serviceaccount:quorate-system:quorate-agent")


def test_the_policies_name_every_kind_that_belongs_to_a_node() -> None:
    label, writes = (
        next(one for one in policies.policies() if one["kind"].endswith("Policy") and one["metadata"]["name"] == name)
        for name in ("quorate-node-label", "quorate-agent-writes")
    )
    kinds = {kind.qualified_resource for kind in all_kinds() if labels.NODE in kind.immutable_labels}
    named = {
        f"{resource}.{group}"
        for rule in label["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert named == kinds
    expression = " ".join(each["expression"] for each in writes["spec"]["variables"])
    assert {kind for kind in kinds if f"'{kind}'" in expression} == kinds
