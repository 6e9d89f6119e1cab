"""What a machine lacks: each judgement as a table, and the looks that they rest on."""

from __future__ import annotations

import errno
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from quorate.agent.check import ClusterFacts, Facts, Item, State, gather, gather_cluster, judge, passed
from quorate.agent.check.facts import parse_module_option
from quorate.agent.crypto import parse_crypto
from quorate.agent.lvm.filtering import lvm
from quorate.agent.machine import CommandHung, CommandNotFound, Completed
from quorate.agent.settings import Settings
from quorate.api import all_kinds, names
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec, DrbdSettings
from quorate.api.core import Lease, Node
from quorate.api.core.lease import LeaseSpec
from quorate.api.core.node import NodeAddress, NodeStatus
from quorate.api.meta import NodeName, ObjectMeta, Resource
from quorate.api.storage import ReplicatedVolumeReplica
from quorate.engine.simulation import Simulation, run
from quorate.errors import Forbidden, NotFound, ServerTimeout, StoreUnreachable, Unauthorized
from tests.support.widgets import open_store

UTILS = "DRBDADM_BUILDTAG=GIT-hash:\\ 4\nDRBDADM_API_VERSION=2\nDRBD_KERNEL_VERSION=9.2.9\nDRBDADM_VERSION={}"

#: A machine that lacks nothing.
WELL = Facts(
    node_name="n1",
    user_id=0,
    kernel_release="6.1.0-30-amd64",
    commands={
        "drbdadm": UTILS.format("9.22.0"),
        "drbdsetup": "drbdsetup - Configure the DRBD kernel module.",
        "drbdmeta": "USAGE: drbdmeta",
        "lvm": "  LVM version:     2.03.16(2) (2022-05-18)",
        "dmsetup": "Library version:   1.02.185 (2022-05-18)",
        "blkdiscard": "blkdiscard from util-linux 2.38.1",
        "lsblk": "lsblk from util-linux 2.38.1",
        "smartctl": "smartctl 7.3 2022-02-28 r5338",
        "ledctl": "Intel(R) Enclosure LED Control Application 0.95",
    },
    module_loaded="9.2.9",
    module_on_disk="9.2.9",
    transport_loaded=True,
    usermode_helper="disabled",
    usermode_helper_at_load="disabled",
    drbd_service="disabled, inactive",
    hashes=frozenset({"sha256", "sha1"}),
    lvm_filter='global_filter=["a|/dev/sd.*|","r|^/dev/drbd.*|"]',
    volume_groups=("vg0",),
    config_directory="/var/lib/quorate/drbd.d",
    state_directory="/var/lib/drbd",
    state_filesystem="ext2/ext3",
    addresses=("10.0.0.1",),
    own_addresses=("10.0.0.1",),
    ports=range(7000, 8000),
    free_ports=990,
    local_ports=range(32768, 61000),
)
WELL_KNOWN = ClusterFacts(node_known=True, internal_addresses=("10.0.0.1",))


def test_a_machine_that_lacks_nothing_passes_every_item() -> None:
    items = judge(WELL, WELL_KNOWN)
    assert [item.name for item in items if item.state is not State.OK] == []
    assert passed(items)
    assert all(item.purpose and item.found for item in items)
    assert len({item.name for item in items}) == len(items)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("9.2.9", "is known to acknowledge a write without one of its copies"),
        ("9.2.18", "may acknowledge a write without one of its copies"),
        ("9.2.19", "its history says that it reconciles stale copies, which we have not tried"),
        ("9.3.0", "which we have not tried"),
        ("9.x", "9.x, loaded"),
    ],
)
def test_what_a_module_is_known_for_is_said(version: str, told: str) -> None:
    (item,) = [each for each in judge(replace(WELL, module_loaded=version)) if each.name == "DRBD module"]
    assert item.state is State.OK
    assert told in item.found


def test_a_bare_machine_is_told_how_to_mend_everything() -> None:
    items = judge(Facts(node_name="n1", config_problem="No such file or directory", drbd_service="enabled"))
    assert not passed(items)
    assert all(item.fix for item in items if item.state is not State.OK)
    assert [item.name for item in items if item.state is State.OK] == ["commands", "agent here"]


def test_without_an_api_server_nothing_is_said_of_it() -> None:
    assert not {"API server", "permissions"} & {item.name for item in judge(WELL)}


@pytest.mark.parametrize(
    ("changes", "item", "state", "required"),
    [
        ({"command_problem": "nsenter: no such process"}, "commands", State.WRONG, True),
        ({"user_id": 1000}, "root", State.WRONG, True),
        ({"user_id": None}, "root", State.WRONG, True),
        ({"drbdadm": None}, "drbdadm", State.MISSING, True),
        ({"drbdadm": UTILS.format("9.19.1")}, "drbdadm", State.WRONG, True),
        ({"drbdadm": UTILS.format("8.9.10")}, "drbdadm", State.WRONG, True),
        ({"drbdadm": UTILS.format("9.20.0")}, "drbdadm", State.OK, True),
        ({"drbdadm": UTILS.format("10.1.0")}, "drbdadm", State.OK, True),
        ({"drbdadm": "segmentation fault"}, "drbdadm", State.WRONG, True),
        ({"drbdsetup": None}, "drbdsetup", State.MISSING, True),
        ({"drbdmeta": None}, "drbdmeta", State.MISSING, True),
        ({"lvm": None}, "lvm", State.MISSING, True),
        ({"dmsetup": None}, "dmsetup", State.MISSING, True),
        ({"blkdiscard": None}, "blkdiscard", State.MISSING, True),
        ({"lvm_filter": None}, "LVM filter", State.MISSING, True),
        ({"lvm_filter": None, "lvm_has_list": True}, "LVM filter", State.OK, True),
        ({"lvm_filter": 'global_filter=["r/^\\/dev\\/drbd/","r|/dev/rbd|"]'}, "LVM filter", State.OK, True),
        ({"lvm_filter": 'global_filter="r|/dev/drbd.*|"'}, "LVM filter", State.OK, True),
        ({"lvm_filter": 'global_filter=["r|/dev/rbd|","a|/dev/drbd.*|"]'}, "LVM filter", State.WRONG, True),
        ({"lsblk": None}, "lsblk", State.MISSING, True),
        ({"smartctl": None}, "smartctl", State.MISSING, True),
        ({"ledctl": None}, "ledctl", State.MISSING, False),
        ({"module_loaded": "8.4.11"}, "DRBD module", State.WRONG, True),
        ({"transport_loaded": False, "transport_on_disk": True}, "DRBD links", State.OK, True),
        ({"transport_loaded": False}, "DRBD links", State.MISSING, True),
        ({"local_ports": range(1024, 61000)}, "local ports", State.WRONG, False),
        ({"local_ports": range(7999, 61000)}, "local ports", State.WRONG, False),
        ({"local_ports": range(8000, 61000)}, "local ports", State.OK, False),
        (
            {"local_ports": range(1024, 61000), "reserved_ports": frozenset(range(7000, 8000))},
            "local ports",
            State.OK,
            False,
        ),
        ({"local_ports": None}, "local ports", State.WRONG, False),
        ({"module_loaded": None}, "DRBD module", State.OK, True),
        ({"module_loaded": None, "module_on_disk": "8.4.11"}, "DRBD module", State.WRONG, True),
        ({"module_loaded": None, "module_on_disk": None}, "DRBD module", State.MISSING, True),
        ({"usermode_helper": "/sbin/drbdadm"}, "usermode_helper", State.WRONG, True),
        ({"usermode_helper_at_load": None}, "usermode_helper", State.OK, True),
        ({"module_loaded": None, "usermode_helper": None}, "usermode_helper", State.OK, True),
        ({"module_loaded": None, "usermode_helper_at_load": None}, "usermode_helper", State.MISSING, True),
        ({"module_loaded": None, "usermode_helper_at_load": "/x"}, "usermode_helper", State.WRONG, True),
        ({"drbd_service": "enabled, active"}, "drbd.service", State.WRONG, True),
        ({"drbd_service": "enabled, inactive"}, "drbd.service", State.WRONG, True),
        ({"drbd_service": "disabled, active"}, "drbd.service", State.WRONG, True),
        ({"drbd_service": "masked, inactive"}, "drbd.service", State.OK, True),
        ({"drbd_service": "not there"}, "drbd.service", State.OK, True),
        ({"drbd_service": None}, "drbd.service", State.OK, True),
        ({"hashes": frozenset({"sha1"})}, "hash algorithms", State.OK, True),
        ({"hashes": frozenset({"md5"})}, "hash algorithms", State.MISSING, True),
        (
            {"hashes": frozenset(), "loadable_hashes": frozenset({"sha256"})},
            "hash algorithms",
            State.OK,
            True,
        ),
        ({"volume_groups": ()}, "volume groups", State.MISSING, False),
        ({"volume_groups": None}, "volume groups", State.MISSING, False),
        ({"state_filesystem": "tmpfs"}, "/var/lib/drbd", State.WRONG, True),
        ({"state_filesystem": "overlayfs"}, "/var/lib/drbd", State.WRONG, True),
        ({"state_filesystem": "xfs"}, "/var/lib/drbd", State.OK, True),
        ({"state_filesystem": None}, "/var/lib/drbd", State.MISSING, True),
        ({"config_problem": "Read-only file system"}, "/var/lib/quorate/drbd.d", State.WRONG, True),
        ({"config_problem": "No such file or directory"}, "/var/lib/quorate/drbd.d", State.OK, True),
        (
            {"config_problem": "No such file or directory", "user_id": 1},
            "/var/lib/quorate/drbd.d",
            State.WRONG,
            True,
        ),
        ({"own_addresses": ()}, "address", State.WRONG, True),
        ({"own_addresses": ("127.0.0.1",)}, "address", State.WRONG, True),
        ({"own_addresses": ("127.0.0.1", "10.0.0.1")}, "address", State.OK, True),
        ({"addresses": (), "own_addresses": ()}, "address", State.MISSING, True),
        ({"free_ports": 0}, "ports", State.WRONG, True),
        ({"free_ports": 1}, "ports", State.OK, True),
        ({"own_addresses": ()}, "ports", State.WRONG, True),
        ({"lock_holder": "17"}, "agent here", State.OK, False),
    ],
)
def test_what_a_fact_comes_to(changes: Mapping[str, Any], item: str, state: State, required: bool) -> None:
    commands = {**WELL.commands, **{name: changes[name] for name in changes if name in WELL.commands}}
    facts = replace(WELL, commands=commands, **{name: changes[name] for name in changes if name not in commands})
    found = {one.name: one for one in judge(facts, WELL_KNOWN)}[item]
    assert (found.state, found.required) == (state, required)
    assert bool(found.fix) == (state is not State.OK)


@pytest.mark.parametrize(
    ("cluster", "item", "state"),
    [
        (ClusterFacts(problem="no route"), "API server", State.WRONG),
        (ClusterFacts(problem="no route"), "permissions", State.WRONG),
        (ClusterFacts(not_served=("drives.csi-baremetal.dell.com",)), "API server", State.WRONG),
        (ClusterFacts(forbidden=("list drives",)), "permissions", State.WRONG),
        (ClusterFacts(), "Node object", State.MISSING),
        (ClusterFacts(lease_holder="there.1_2"), "agent elsewhere", State.WRONG),
        (ClusterFacts(lease_holder="here.1_2"), "agent elsewhere", State.OK),
        (ClusterFacts(), "agent elsewhere", State.OK),
    ],
)
def test_what_the_api_server_says_comes_to(cluster: ClusterFacts, item: str, state: State) -> None:
    found = {one.name: one for one in judge(WELL, cluster, place="here.1")}[item]
    assert found.state is state


def test_only_what_is_required_decides() -> None:
    lacking = Item("x", State.MISSING, "f", "p", "mend", required=False)
    assert passed([lacking])
    assert not passed([lacking, replace(lacking, required=True)])


def test_hashes_are_found_alone_and_inside_a_hmac() -> None:
    text = "name         : hmac(sha256)\ndriver       : x\n\nname         : sha1\ndriver : sha1-ni\n"
    assert parse_crypto(text) == {"hmac(sha256)", "sha256", "sha1"}
    assert parse_crypto("") == frozenset()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("options drbd usermode_helper=disabled", "disabled"),
        ("# options drbd usermode_helper=disabled", None),
        ("options drbd minor_count=9 usermode_helper=/x  # why\noptions drbd usermode_helper=disabled", "disabled"),
        ("options drbd_transport_tcp usermode_helper=no", None),
        ("install drbd /bin/true\n\noptions", None),
    ],
)
def test_the_last_option_of_a_module_wins(text: str, value: str | None) -> None:
    assert parse_module_option(text, "drbd", "usermode_helper") == value


class Scripted:
    """A machine whose commands and files are given."""

    def __init__(self, commands: Mapping[tuple[str, ...], str | Completed], files: Mapping[str, str]) -> None:
        self._commands = commands
        self.files = dict(files)

    async def run(self, *argv: str, silence: float, stdin: object = None) -> Completed:
        found = self._commands.get(argv)
        if argv[0] == "vgs" and found is None:
            raise CommandHung("vgs hangs", still_there=lambda: True)
        if found is None:
            raise CommandNotFound(argv[0])
        return found if isinstance(found, Completed) else Completed(0, found)

    async def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        if argv:
            raise CommandNotFound(argv[0])
        yield ""

    async def read_file(self, path: str) -> bytes:
        try:
            return self.files[path].encode()
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path) from None

    async def write_file(self, path: str, content: bytes) -> None:
        if "/var/lib/quorate/drbd.d" not in self.files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        self.files[path] = content.decode()

    async def move_file(self, source: str, destination: str) -> None:
        raise AssertionError("a check moves nothing")

    async def remove_file(self, path: str) -> None:
        del self.files[path]

    async def list_directory(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(name.rpartition("/")[2] for name in self.files if name.rpartition("/")[0] == path))

    async def port_is_free(self, address: str, port: int) -> bool:
        return address == "10.0.0.1" and port not in (7000, 7003)


async def test_a_whole_machine_is_looked_at_and_left_as_it_was() -> None:
    machine = Scripted(
        {
            ("true",): "",
            ("id", "-u"): "0\n",
            ("uname", "-r"): "6.1.0\n",
            ("drbdadm", "--version"): UTILS.format("9.22.0"),
            ("drbdsetup", "help"): "drbdsetup - Configure",
            ("drbdmeta",): Completed(20, "", "USAGE: drbdmeta"),
            ("modinfo", "-F", "version", "drbd"): "9.2.9\n",
            ("systemctl", "show", "-p", "Version", "--value"): "252\n",
            ("systemctl", "is-enabled", "drbd.service"): Completed(1, "disabled\n"),
            ("systemctl", "is-active", "drbd.service"): Completed(3, "inactive\n"),
            ("modprobe", "-n", "-q", "crypto-sha1"): "",
            ("modprobe", "-n", "-q", "drbd_transport_tcp"): "",
            ("modprobe", "-n", "-q", "crypto-sha256"): Completed(1, ""),
            ("lvmconfig", "devices/global_filter"): 'global_filter=["r|^/dev/drbd.*|"]\n',
            ("lvmconfig", "devices/use_devicesfile"): "use_devicesfile=0\n",
            lvm("vgs", "--reportformat", "json", "-o", "vg_name"): '{"report": [{"vg": [{"vg_name": "vg0"}]}]}',
            ("stat", "-f", "-c", "%T", "/var/lib/drbd"): "xfs\n",
            ("getent", "ahostsv4", "n1"): "10.0.0.1  STREAM n1\n10.0.0.1  DGRAM\n192.0.2.1 STREAM\n",
        },
        {
            "/proc/drbd": "version: 9.2.9 (api:2/proto:86-122)\nGIT-hash: x\n",
            "/proc/crypto": "name : sha256\n",
            "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
            "/proc/sys/net/ipv4/ip_local_reserved_ports": "7000-7001,7005\n",
            "/etc/modprobe.d/drbd.conf": "options drbd usermode_helper=disabled\n",
            "/etc/modprobe.d/notes.txt": "options drbd usermode_helper=/bin/true\n",
            "/var/lib/quorate/drbd.d": "",
        },
    )
    before = dict(machine.files)
    ports = DrbdSettings(min_port=7000, max_port=7004)
    facts = await gather(machine, node_name="n1", settings=Settings(), drbd=ports)
    assert machine.files == before
    assert facts == Facts(
        node_name="n1",
        user_id=0,
        kernel_release="6.1.0",
        commands={
            "drbdadm": UTILS.format("9.22.0"),
            "drbdsetup": "drbdsetup - Configure",
            "drbdmeta": "USAGE: drbdmeta",
            "lvm": None,
            "dmsetup": None,
            "blkdiscard": None,
            "lsblk": None,
            "smartctl": None,
            "ledctl": None,
        },
        module_loaded="9.2.9",
        module_on_disk="9.2.9",
        transport_on_disk=True,
        usermode_helper=None,
        usermode_helper_at_load="disabled",
        drbd_service="disabled, inactive",
        hashes=frozenset({"sha256"}),
        loadable_hashes=frozenset({"sha1"}),
        lvm_filter='global_filter=["r|^/dev/drbd.*|"]',
        volume_groups=("vg0",),
        config_directory="/var/lib/quorate/drbd.d",
        state_directory="/var/lib/drbd",
        state_filesystem="xfs",
        addresses=("10.0.0.1", "192.0.2.1"),
        own_addresses=("10.0.0.1",),
        ports=range(7000, 7005),
        free_ports=3,
        local_ports=range(32768, 61000),
        reserved_ports=frozenset({7000, 7001, 7005}),
    )


async def test_where_the_prefix_fails_it_is_not_taken_for_the_commands() -> None:
    failed = Completed(1, "", "nsenter: cannot open /proc/1/ns/mnt: Permission denied")
    machine = Scripted({("true",): failed, ("drbdsetup", "help"): failed, ("drbdmeta",): failed}, {})
    facts = await gather(machine, node_name="n1", settings=Settings())
    assert "Permission denied" in facts.command_problem
    assert set(facts.commands.values()) == {None}


async def test_nothing_on_a_machine_is_an_answer_too() -> None:
    facts = await gather(Scripted({("true",): ""}, {}), node_name="n1", settings=Settings())
    assert facts.command_problem == ""
    assert set(facts.commands.values()) == {None}
    assert (facts.user_id, facts.module_loaded, facts.volume_groups, facts.addresses) == (None, None, None, ())
    assert facts.config_problem == "No such file or directory"


@pytest.mark.parametrize("said", ["", "{", "[]", '{"report": 1}', '{"report": [{"vg": [{}]}]}'])
async def test_volume_groups_that_cannot_be_read_are_not_known(said: str) -> None:
    machine = Scripted({("true",): "", lvm("vgs", "--reportformat", "json", "-o", "vg_name"): said}, {})
    assert (await gather(machine, node_name="n1", settings=Settings())).volume_groups is None


# The API server.


def test_a_server_that_knows_the_node_is_asked_for_its_address_ports_and_agent() -> None:
    async def story(sim: Simulation) -> None:
        store = await open_store(sim, kinds=all_kinds())
        assert await gather_cluster(store, NodeName("n1")) == ClusterFacts()
        spec = ClusterConfigSpec(drbd=DrbdSettings(min_port=7100, max_port=7200))
        await store.create(ClusterConfig(metadata=ObjectMeta(name=names.CLUSTER), spec=spec))
        addresses = (NodeAddress(type="Hostname", address="n1"), NodeAddress(type="InternalIP", address="10.0.0.1"))
        await store.create(Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(addresses=addresses)))
        metadata = ObjectMeta(name=names.agent_lease(NodeName("n1")), namespace=names.NAMESPACE)
        await store.create(Lease(metadata=metadata, spec=LeaseSpec(holder_identity="here_1")))
        found = await gather_cluster(store, NodeName("n1"))
        assert (found.drbd.min_port, found.node_known, found.internal_addresses) == (7100, True, ("10.0.0.1",))
        assert (found.lease_holder, found.problem, found.forbidden) == ("here_1", "", ())

    run(story, seed=1)


class Refusing:
    """A server that refuses in its own way."""

    def __init__(self, error: Exception, *, kind: type[Resource] | None = None) -> None:
        self._error = error
        self._kind = kind

    async def _answer(self, cls: type[Resource], otherwise: Exception | None) -> None:
        if self._kind in (None, cls):
            raise self._error
        if otherwise is not None:
            raise otherwise

    async def get(self, cls: type[Resource], *_: Any) -> None:
        await self._answer(cls, NotFound("none"))

    async def list(self, cls: type[Resource], **_: Any) -> None:
        await self._answer(cls, None)

    async def patch(self, cls: type[Resource], *_: Any, **options: Any) -> None:
        assert options["dry_run"]
        await self._answer(cls, NotFound("none"))

    patch_status = patch


async def test_a_server_that_does_not_answer_is_a_problem() -> None:
    store: Any = Refusing(StoreUnreachable("no route to 10.0.0.9"))
    found = await gather_cluster(store, NodeName("n1"))
    assert (found.problem, found.forbidden) == ("no route to 10.0.0.9", ())


async def test_a_server_that_refuses_everything_is_not_ok_and_says_why_in_its_own_words() -> None:
    said = "this server answers only to a loopback address, not to '10.0.0.9': use 127.0.0.1 or a token"
    store: Any = Refusing(Forbidden(said))
    found = {item.name: item for item in judge(WELL, await gather_cluster(store, NodeName("n1")))}
    assert found["API server"].state is State.WRONG
    assert said in found["API server"].found
    assert found["API server"].fix.startswith("do what it says")
    assert "agent-role.yaml" not in found["permissions"].fix


async def test_a_token_that_the_server_does_not_know_is_said_as_that() -> None:
    store: Any = Refusing(Unauthorized("the token is not known"))
    found = {item.name: item for item in judge(WELL, await gather_cluster(store, NodeName("n1")))}
    assert "the token is not known" in found["API server"].found
    assert "quorate kubeconfig --agent" in found["API server"].fix
    assert "quorate node invite" in found["API server"].fix, "that other one refuses for a node that has joined"


async def test_a_list_that_timed_out_is_not_called_forbidden() -> None:
    store: Any = Refusing(ServerTimeout("the server gave up"), kind=ReplicatedVolumeReplica)
    found = await gather_cluster(store, NodeName("n1"))
    kind = "replicatedvolumereplicas.storage.deckhouse.io"
    assert (found.forbidden, found.problem) == ((), f"could not list {kind}: the server gave up")


async def test_what_may_not_be_done_is_named() -> None:
    store: Any = Refusing(Forbidden("agents are not to see it"), kind=ReplicatedVolumeReplica)
    kind = "replicatedvolumereplicas.storage.deckhouse.io"
    cluster = await gather_cluster(store, NodeName("n1"))
    assert cluster.forbidden == (f"list {kind}", f"patch the status of {kind}")
    found = {item.name: item for item in judge(WELL, cluster)}
    assert found["API server"].state is State.OK
    assert "agents are not to see it" in found["permissions"].found


async def test_a_kind_that_is_not_served_is_named() -> None:
    store: Any = Refusing(NotFound("404 page not found"), kind=ReplicatedVolumeReplica)
    found = await gather_cluster(store, NodeName("n1"))
    assert found.not_served == ("replicatedvolumereplicas.storage.deckhouse.io",)
    assert found.forbidden == ()
