"""Where a volume's secret is kept: in a Secret that its members' agents may read, or in status; and in between."""

from __future__ import annotations

import base64
import re

import pytest

from quorate.api import names
from quorate.api.cluster_config import ClusterConfig
from quorate.api.codec import encode
from quorate.api.core import Role, RoleBinding, SecretObject
from quorate.api.finalizers import CONTROLLER
from quorate.api.meta import ObjectMeta, VolumeName
from quorate.api.secret import Secret
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.struct import replace
from quorate.engine import Patch
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from tests.volumes.laboratory import VolumeLab, volume_lab

NAME = names.shared_secret(VolumeName("v"))
_IN_A_FILE = re.compile(rb'shared-secret "([^"]+)"')


async def keep_in(lab: VolumeLab, mode: str) -> None:
    await lab.store.patch(ClusterConfig, names.CLUSTER, patch={"spec": {"drbd": {"sharedSecrets": mode}}})


async def formed(lab: VolumeLab, replication: Replication = Replication.CONSISTENCY) -> None:
    await lab.create("v", await lab.provide(replication))
    await lab.until_ready()


def in_files(lab: VolumeLab) -> dict[str, str]:
    """By node: what the volume's file gives as its secret."""
    found = {}
    for name, node in lab.cluster.nodes.items():
        for path, content in node.host.files.items():
            if path.endswith("/v.res") and (match := _IN_A_FILE.search(content)):
                found[name] = match[1].decode()
    return found


async def told(lab: VolumeLab) -> set[str]:
    """What the volume and its replicas say in their field."""
    given = [(await lab.volume()).status.drbd.config.shared_secret]
    given += [each.status.drbd.config.shared_secret for each in await lab.replicas()]
    return {secret.reveal() for secret in given if secret is not None}


async def kept(lab: VolumeLab) -> list[str]:
    """What there is of Secrets, roles and bindings."""
    return [each.KIND.name for cls in (SecretObject, Role, RoleBinding) for each in (await lab.store.list(cls)).items]


async def secret_is(lab: VolumeLab) -> str:
    found = names.secret_value((await lab.store.get(SecretObject, NAME, names.NAMESPACE)).data)
    assert found is not None
    return found.reveal()


async def users(lab: VolumeLab) -> set[str]:
    binding = await lab.store.get(RoleBinding, NAME, names.NAMESPACE)
    return {subject.name for subject in binding.subjects if subject.kind == "User"}


async def nodes_of_members(lab: VolumeLab) -> set[str]:
    return {names.agent_user(member.node_name) for member in (await lab.volume()).status.datamesh.members}


def test_a_secret_is_kept_apart_and_only_its_name_is_told_unless_the_cluster_says_otherwise() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab)
            value = await secret_is(lab)
            assert await told(lab) == {NAME}
            assert len(in_files(lab)) == 2
            assert set(in_files(lab).values()) == {value}
            assert await users(lab) == await nodes_of_members(lab)
            role = await lab.store.get(Role, NAME, names.NAMESPACE)
            assert [(rule.resource_names, rule.verbs) for rule in role.rules] == [((NAME,), ("get",))]
            for obj in (await lab.volume(), *await lab.replicas()):
                assert value.encode() not in encode(obj)
                assert value not in repr(obj)
            assert value not in repr(await lab.store.get(SecretObject, NAME, names.NAMESPACE))

            await lab.store.delete(type(await lab.volume()), "v")
            await lab.until_gone()
            await lab.sleep(10)
            assert await kept(lab) == []

    run(main, seed=1)


@pytest.mark.parametrize("first", ["Secret", "Status"])
def test_a_volume_is_carried_over_either_way_and_no_member_notices(first: str) -> None:
    second = "Status" if first == "Secret" else "Secret"

    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await lab.until("the settings are there", lambda: _exists(lab))
            await keep_in(lab, first)
            await formed(lab)
            before = in_files(lab)
            for mode in (second, first, second):
                losses = _losses(lab)
                await keep_in(lab, mode)
                await lab.sleep(30)
                value = next(iter(set(before.values())))
                assert await told(lab) == ({NAME} if mode == "Secret" else {value})
                assert await kept(lab) == (["Secret", "Role", "RoleBinding"] if mode == "Secret" else [])
                assert in_files(lab) == before, "the value is the same"
                assert _losses(lab) == losses, "no link went"
                await lab.until_ready()

    run(main, seed=2)


async def _exists(lab: VolumeLab) -> bool:
    return bool((await lab.store.list(ClusterConfig)).items)


def _losses(lab: VolumeLab) -> dict[str, int]:
    return {
        name: node.agent.node.memory.link_losses.get("v", 0)
        for name, node in lab.cluster.nodes.items()
        if node.agent is not None
    }


def test_whoever_joins_or_leaves_is_named_or_not() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab)
            leaving = (await lab.replicas())[0]
            before = await users(lab)
            await lab.store.delete(ReplicatedVolumeReplica, leaving.name)
            await lab.sleep(300)
            await lab.until_ready()
            assert await users(lab) == await nodes_of_members(lab)
            assert await users(lab) != before
            assert set(in_files(lab).values()) == {await secret_is(lab)}

    run(main, seed=3)


def test_without_its_secret_a_member_that_runs_goes_on_and_says_what_it_lacks() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab)
            secret = await lab.store.get(SecretObject, NAME, names.NAMESPACE)
            assert secret.metadata.finalizers == (CONTROLLER,)
            await lab.store.delete(SecretObject, NAME, names.NAMESPACE)
            await lab.sleep(10)
            assert await secret_is(lab), "it is held as long as there is the volume"

            await lab.store.patch(SecretObject, NAME, names.NAMESPACE, patch={"metadata": {"finalizers": None}})
            node = (await lab.replicas())[0].spec.node_name
            assert node is not None
            lab.cluster.inject(faults.AgentKill(node))
            await lab.sleep(120)
            one = next(each for each in await lab.replicas() if each.spec.node_name == node)
            error = one.status.drbd.errors.last_config_error
            assert error is not None
            assert error.reason == "SecretUnreadable"
            assert NAME in error.output
            assert one.status.drbd.status is not None
            assert {link.connection_state for link in one.status.drbd.status.connections} == {"Connected"}
            assert await kept(lab) == ["Role", "RoleBinding"], "no other value is made up for members that have one"

            again = SecretObject(metadata=_fresh(secret), data=secret.data)
            await lab.store.create(again)
            await lab.sleep(60)
            one = next(each for each in await lab.replicas() if each.spec.node_name == node)
            assert one.status.drbd.errors.last_config_error is None
            await lab.until_ready()

    run(main, seed=4)


@pytest.mark.parametrize("data", [None, {"shared-secret": None, "another": "eA=="}, {"shared-secret": "%%%"}])
def test_a_secret_that_cannot_be_read_is_not_given_another_value(data: dict[str, str | None] | None) -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab)
            before = in_files(lab)
            await lab.store.patch(SecretObject, NAME, names.NAMESPACE, patch={"data": data})
            spoiled = await lab.store.get(SecretObject, NAME, names.NAMESPACE)
            await lab.sleep(60)
            assert (await lab.store.get(SecretObject, NAME, names.NAMESPACE)).data == spoiled.data
            assert in_files(lab) == before
            value = base64.b64encode(next(iter(before.values())).encode()).decode()
            await lab.store.patch(SecretObject, NAME, names.NAMESPACE, patch={"data": {"shared-secret": value}})
            await lab.sleep(60)
            assert in_files(lab) == before
            await lab.until_ready()

    run(main, seed=5)


def test_who_may_read_a_secret_is_kept_in_step_also_while_it_is_lost() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim) as lab:
            await formed(lab)
            await lab.store.delete(SecretObject, NAME, names.NAMESPACE)
            await lab.store.patch(SecretObject, NAME, names.NAMESPACE, patch={"metadata": {"finalizers": None}})
            await lab.store.patch(RoleBinding, NAME, names.NAMESPACE, patch={"subjects": []})
            await lab.sleep(10)
            assert await kept(lab) == ["Role", "RoleBinding"]
            assert await users(lab) == await nodes_of_members(lab)

    run(main, seed=6)


def _fresh(secret: SecretObject) -> ObjectMeta:
    return ObjectMeta(name=secret.name, namespace=secret.namespace, labels=secret.metadata.labels)


def test_a_write_that_is_shown_does_not_show_the_secret_in_it() -> None:
    observed = SecretObject(metadata=ObjectMeta(name=NAME, namespace=names.NAMESPACE))
    write = Patch(observed, replace(observed, data={names.SECRET_KEY: Secret("cGxhaW4=")}))
    assert write.patch == {"data": {names.SECRET_KEY: "cGxhaW4="}}
    assert "cGxhaW4=" not in repr(write)
