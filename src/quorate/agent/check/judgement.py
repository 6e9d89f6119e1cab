"""Whether what was found is enough: one function per item, in the order in which a person would mend things."""

from __future__ import annotations

import re
from ipaddress import ip_address

from quorate.agent.check.cluster import ClusterFacts
from quorate.agent.check.facts import TRANSPORT, Facts
from quorate.agent.check.report import Item, State
from quorate.agent.lvm.filtering import WITHOUT_DRBD

#: The oldest drbd-utils whose output and options we know.
OLDEST_UTILS = (9, 20)
#: A module that was seen to leave a copy without an acknowledged write; and one whose history says that it does not.
FORGETS, RECONCILES = (9, 2, 9), (9, 2, 19)
#: File systems whose contents a reboot, or a new container, does not bring back.
VOLATILE = frozenset({"tmpfs", "ramfs", "overlayfs", "rootfs", "squashfs"})

#: A pattern of LVM that refuses, whatever character it is put in.
_LEAVES_DRBD_OUT = re.compile(r'"r(.)[^"]*drbd[^"]*\1"')
_MODULE_VERSION = re.compile(r"^([0-9]+)\.([0-9]+)\.([0-9]+)")
_UTILS_VERSION = re.compile(r"^DRBDADM_VERSION=([0-9]+)\.([0-9]+)", re.MULTILINE)


def judge(facts: Facts, cluster: ClusterFacts | None = None, *, place: str = "") -> tuple[Item, ...]:
    """Every item. ``cluster`` is None when no API server was named; ``place`` is the start of our own identity."""
    items = [
        commands(facts),
        root(facts),
        *(tool(facts, name) for name in ("drbdadm", "drbdsetup", "drbdmeta")),
        module(facts),
        transport(facts),
        usermode_helper(facts),
        drbd_service(facts),
        hashes(facts),
        *(tool(facts, name) for name in ("lvm", "dmsetup", "blkdiscard")),
        lvm_filter(facts),
        volume_groups(facts),
        tool(facts, "lsblk"),
        tool(facts, "smartctl"),
        tool(facts, "ledctl"),
        state_directory(facts),
        config_directory(facts),
        address(facts),
        ports(facts),
        local_ports(facts),
        other_agent_here(facts),
    ]
    if cluster is not None:
        items += [api_server(cluster), permissions(cluster), node_object(cluster, facts), other_agent(cluster, place)]
    return tuple(items)


def commands(facts: Facts) -> Item:
    """Whether the prefix leads anywhere; if not, nothing that commands would tell is known."""
    purpose = "everything is done by commands of the host"
    if not facts.command_problem:
        return Item("commands", State.OK, "can be run", purpose)
    fix = "correct --host-prefix; in a container, privileged and with the host's process ids"
    return Item("commands", State.WRONG, facts.command_problem, purpose, fix)


def root(facts: Facts) -> Item:
    """DRBD and LVM obey only root."""
    purpose = "DRBD, LVM and SMART obey only root"
    if facts.user_id == 0:
        return Item("root", State.OK, "user id 0", purpose)
    found = "unknown user" if facts.user_id is None else f"user id {facts.user_id}"
    return Item("root", State.WRONG, found, purpose, "run it as root; in a container, privileged")


#: Package of Debian, purpose, and whether it is required.
_TOOLS = {
    "drbdadm": ("drbd-utils", "brings DRBD resources up, adjusts them and takes them down", True),
    "drbdsetup": ("drbd-utils", "tells the state of DRBD resources and their events", True),
    "drbdmeta": ("drbd-utils", "creates and reads DRBD metadata", True),
    "lvm": ("lvm2", "makes, grows and removes the volumes under replicas", True),
    "dmsetup": ("dmsetup", "shows where DRBD metadata are on a disk that grew before a power loss", True),
    "blkdiscard": ("util-linux", "zeroes what a volume grows by", True),
    "lsblk": ("util-linux", "finds the drives of the node", True),
    "smartctl": ("smartmontools", "tells the health of drives", True),
    "ledctl": ("ledmon", "lights the LED of a drive that is to be pulled", False),
}


def tool(facts: Facts, name: str) -> Item:
    """A command, and the version of drbdadm."""
    package, purpose, required = _TOOLS[name]
    said = facts.commands.get(name)
    if said is None:
        return Item(name, State.MISSING, "no such command", purpose, f"apt install {package}", required)
    if name != "drbdadm":
        return Item(name, State.OK, _version(said), purpose, required=required)
    version = _UTILS_VERSION.search(said)
    oldest = ".".join(map(str, OLDEST_UTILS))
    fix = f"apt install {package}, {oldest} or newer"
    if version is None:
        return Item(name, State.WRONG, "it does not tell its version", purpose, fix)
    number = (int(version[1]), int(version[2]))
    state = State.OK if number >= OLDEST_UTILS else State.WRONG
    return Item(name, state, f"drbd-utils {version[1]}.{version[2]}", purpose, "" if state is State.OK else fix)


def module(facts: Facts) -> Item:
    """DRBD 9 in the kernel; the 8.4 that kernels come with knows one peer and no quorum."""
    purpose = "replicates; 9.x, because 8.4 has one peer and no quorum"
    headers = f"linux-headers-{facts.kernel_release or '$(uname -r)'}"
    fix = f"apt install drbd-dkms {headers} (from LINBIT's repository where Debian has no 9.x), then modprobe drbd"
    version, where = facts.module_loaded, "loaded"
    if version is None:
        version, where = facts.module_on_disk, "not loaded; it is loaded with the first resource"
    if version is None:
        return Item("DRBD module", State.MISSING, f"none for kernel {facts.kernel_release}".rstrip(), purpose, fix)
    if not version.startswith("9."):
        return Item("DRBD module", State.WRONG, f"{version}, {where}", purpose, fix)
    return Item("DRBD module", State.OK, f"{version}, {where}{_forgets(version)}", purpose)


def _forgets(version: str) -> str:
    """What a version is known for, or not known to have been rid of."""
    found = _MODULE_VERSION.match(version)
    if found is None or tuple(map(int, found.groups())) >= RECONCILES:
        return "" if found is None else "; its history says that it reconciles stale copies, which we have not tried"
    known = "is known to" if tuple(map(int, found.groups())) == FORGETS else "may"
    return f"; it {known} acknowledge a write without one of its copies after a loss of quorum: see docs/operating.md"


def transport(facts: Facts) -> Item:
    """The module of DRBD's links: it comes with DRBD's own."""
    name, purpose = (
        "DRBD links",
        f"{TRANSPORT} carries them; loading it must not fall into the first link's five seconds",
    )
    if facts.transport_loaded:
        return Item(name, State.OK, f"{TRANSPORT} is loaded", purpose)
    if facts.transport_on_disk:
        return Item(name, State.OK, f"{TRANSPORT} is not loaded; the agent loads it when it starts", purpose)
    fix = f"install the whole of the DRBD 9 module package (see DRBD module), then modprobe {TRANSPORT}"
    return Item(name, State.MISSING, f"no {TRANSPORT} for kernel {facts.kernel_release}".rstrip(), purpose, fix)


def usermode_helper(facts: Facts) -> Item:
    """The module calls no program of its own accord."""
    purpose = "the kernel must call no program when a replica is lost: in a container it would not be found, and hang"
    fix = "echo options drbd usermode_helper=disabled > /etc/modprobe.d/quorate-drbd.conf"
    if facts.module_loaded is not None:
        value, where = facts.usermode_helper, "of the loaded module"
        fix += "; and for the loaded one: echo disabled > /sys/module/drbd/parameters/usermode_helper"
    else:
        value, where = facts.usermode_helper_at_load, "in /etc/modprobe.d"
    if value == "disabled":
        return Item("usermode_helper", State.OK, f"disabled {where}", purpose)
    if value is None:
        return Item("usermode_helper", State.MISSING, f"not set {where}", purpose, fix)
    return Item("usermode_helper", State.WRONG, f"{value} {where}", purpose, fix)


def drbd_service(facts: Facts) -> Item:
    """Nobody but the agent brings resources up."""
    purpose = "after a boot only the agent brings resources up, once it knows what the cluster has decided meanwhile"
    found = facts.drbd_service
    if found is None:
        return Item("drbd.service", State.OK, "no systemd here", purpose)
    on = set(found.split(", ")) & {"enabled", "enabled-runtime", "active", "activating"}
    if on:
        return Item("drbd.service", State.WRONG, found, purpose, "systemctl disable --now drbd.service")
    return Item("drbd.service", State.OK, found, purpose)


def hashes(facts: Facts) -> Item:
    """At least one of the algorithms for the shared secret."""
    purpose = "authenticates replicas to each other; sha256, or else sha1"
    known = [name for name in ("sha256", "sha1") if name in facts.hashes | facts.loadable_hashes]
    if not known:
        fix = "a kernel with CONFIG_CRYPTO_SHA256 and CONFIG_CRYPTO_HMAC"
        return Item("hash algorithms", State.MISSING, "neither sha256 nor sha1", purpose, fix)
    return Item("hash algorithms", State.OK, ", ".join(known), purpose)


def lvm_filter(facts: Facts) -> Item:
    """Our own commands leave DRBD's devices out; udev's and other people's must too."""
    name, purpose = "LVM filter", "LVM must not open DRBD devices: it hangs on one without quorum, or keeps one in use"
    fix = f'in /etc/lvm/lvm.conf, devices {{ global_filter = ["{WITHOUT_DRBD}"] }}, beside what is there'
    if facts.lvm_has_list:
        return Item(name, State.OK, "a list of devices", purpose)
    if facts.lvm_filter is None:
        return Item(name, State.MISSING, "no global_filter", purpose, fix)
    state = State.OK if _LEAVES_DRBD_OUT.search(facts.lvm_filter) else State.WRONG
    return Item(name, state, facts.lvm_filter, purpose, "" if state is State.OK else fix)


def volume_groups(facts: Facts) -> Item:
    """A node without one can hold no data, and can be a tie-breaker all the same."""
    purpose = "hold replicas; without one the node can be a tie-breaker or give access"
    if facts.volume_groups:
        return Item("volume groups", State.OK, ", ".join(facts.volume_groups), purpose, required=False)
    fix = "vgcreate NAME DEVICE, or an LVMVolumeGroup with a deviceSelector"
    found = "none" if facts.volume_groups is not None else "cannot be listed"
    return Item("volume groups", State.MISSING, found, purpose, fix, required=False)


def state_directory(facts: Facts) -> Item:
    """What DRBD writes there moves metadata after a power loss (recording grow_power_loss)."""
    name, purpose = (
        facts.state_directory,
        "where DRBD notes grown disks: lost, a replica that had grown is lost with it",
    )
    filesystem = facts.state_filesystem
    if filesystem is None:
        return Item(name, State.MISSING, "no such directory", purpose, f"mkdir -p {name}, on a disk of the host")
    if filesystem in VOLATILE:
        fix = "put it on a disk of the host; in a container, mount it from there"
        return Item(name, State.WRONG, f"on {filesystem}, which does not last", purpose, fix)
    return Item(name, State.OK, f"on {filesystem}", purpose)


def config_directory(facts: Facts) -> Item:
    """The agent makes it, if it may."""
    name, purpose = facts.config_directory, "holds the configuration of the node's DRBD resources"
    if not facts.config_problem:
        return Item(name, State.OK, "can be written", purpose)
    if facts.config_problem == "No such file or directory" and facts.user_id == 0:
        return Item(name, State.OK, "not there yet; the agent makes it", purpose)
    return Item(name, State.WRONG, facts.config_problem, purpose, f"mkdir -p {name}, writable for root")


def address(facts: Facts) -> Item:
    """Peers connect to the node's address, and DRBD listens on it."""
    purpose = "peers connect to it: the node's InternalIP, or what its name stands for"
    reachable = [own for own in facts.own_addresses if not ip_address(own).is_loopback]
    if reachable:
        return Item("address", State.OK, ", ".join(reachable), purpose)
    fix = "give the Node an InternalIP of this machine, or the name an entry in DNS or /etc/hosts"
    if facts.own_addresses:
        found = f"{', '.join(facts.own_addresses)}: no other machine can reach it"
        return Item("address", State.WRONG, found, purpose, fix)
    if not facts.addresses:
        return Item("address", State.MISSING, f"{facts.node_name} stands for no address", purpose, fix)
    found = f"{', '.join(facts.addresses)}: not this machine's"
    return Item("address", State.WRONG, found, purpose, f"{fix}; in a container, use the host's network")


def ports(facts: Facts) -> Item:
    """Each replica takes one."""
    name, purpose = "ports", "one for each replica, from ClusterConfig spec.drbd.minPort to maxPort"
    if not facts.own_addresses:
        return Item(name, State.WRONG, "not looked at: there is no address to listen on", purpose, "see address")
    found = f"{facts.free_ports} of {len(facts.ports)} free from {facts.ports.start} to {facts.ports.stop - 1}"
    if facts.free_ports:
        return Item(name, State.OK, found, purpose)
    return Item(
        name, State.WRONG, found, purpose, "stop what listens there, or choose another range in the ClusterConfig"
    )


def local_ports(facts: Facts) -> Item:
    """Whoever connects to somewhere is given a port by the kernel, and may so sit on a replica's for a while."""
    name, purpose = "local ports", "the kernel must not give a replica's port to another program that connects"
    ours, given = facts.ports, facts.local_ports
    if given is None:
        fix = "see that sysctl net.ipv4.ip_local_port_range can be read here"
        return Item(name, State.WRONG, "net.ipv4.ip_local_port_range could not be read", purpose, fix, required=False)
    shared = [port for port in ours if port in given and port not in facts.reserved_ports]
    if not shared:
        return Item(name, State.OK, f"{given.start} to {given.stop - 1}: none of ours", purpose, required=False)
    fix = (
        f"sysctl -w net.ipv4.ip_local_reserved_ports={ours.start}-{ours.stop - 1} (add what it says already), and the"
        " same in /etc/sysctl.d/quorate.conf for after a reboot; or choose another range in the ClusterConfig"
    )
    found = f"{given.start} to {given.stop - 1}: {len(shared)} of our {len(ours)} are among them"
    return Item(name, State.WRONG, found, purpose, fix, required=False)


def other_agent_here(facts: Facts) -> Item:
    """No fault: a node whose agent runs is checked too."""
    purpose = "there is one agent per node; a second one is refused"
    found = f"process {facts.lock_holder}" if facts.lock_holder else "none runs"
    return Item("agent here", State.OK, found, purpose, required=False)


def api_server(cluster: ClusterFacts) -> Item:
    """It answers, and serves our kinds."""
    purpose = "says what is intended, and is told what is"
    if cluster.problem:
        fix = cluster.remedy or "see --kubeconfig, and whether it runs"
        return Item("API server", State.WRONG, cluster.problem, purpose, fix)
    if cluster.not_served:
        found = f"does not serve {', '.join(cluster.not_served)}"
        return Item("API server", State.WRONG, found, purpose, "quorate crds apply")
    return Item("API server", State.OK, "answers and serves our kinds", purpose)


def permissions(cluster: ClusterFacts) -> Item:
    """What the agent does in its normal work."""
    purpose = "read and report its node's objects, and renew its Lease"
    if cluster.problem:
        return Item(
            "permissions", State.WRONG, "not looked at: the API server cannot be used", purpose, "see API server"
        )
    if cluster.forbidden:
        said = f"; the server says: {cluster.refusal}" if cluster.refusal else ""
        found = f"may not {', '.join(cluster.forbidden)}{said}"
        return Item("permissions", State.WRONG, found, purpose, "kubectl apply -f deploy/admission/agent-role.yaml")
    return Item("permissions", State.OK, "all that an agent needs", purpose)


def node_object(cluster: ClusterFacts, facts: Facts) -> Item:
    """Placement looks at Node objects."""
    purpose = "volumes are placed by it: zone, address, readiness"
    if cluster.node_known:
        return Item("Node object", State.OK, facts.node_name, purpose)
    fix = "correct --node-name; without a kubelet, start the agent with --register-node"
    return Item("Node object", State.MISSING, f"there is no Node {facts.node_name}", purpose, fix, required=False)


def other_agent(cluster: ClusterFacts, place: str) -> Item:
    """Whether the Lease is another place's."""
    purpose = "one agent per node in the cluster; a second one is refused"
    holder = cluster.lease_holder
    if not holder or (place and holder.rpartition("_")[0] == place):
        return Item("agent elsewhere", State.OK, "none", purpose, required=False)
    found = f"{holder} holds the node's Lease, last renewed {cluster.lease_renewed}"
    fix = "if it lives, stop it or correct its --node-name; if not, the Lease runs out by itself"
    return Item("agent elsewhere", State.WRONG, found, purpose, fix, required=False)


def _version(said: str) -> str:
    """The line that has a version in it, if there is one."""
    lines = [line.strip() for line in said.splitlines()]
    return next((line for line in lines if re.search(r"[0-9]+\.[0-9]+", line)), "there")[:60]
