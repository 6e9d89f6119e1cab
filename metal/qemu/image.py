"""The system that the machines boot: Debian from its packages, made once and kept by what it is made of.

Two things are made and kept apart: the root file system with its kernel, and the directory that all machines see
read-only: the product with its pinned wheels, what of this suite runs inside, and the given modules.
"""

from __future__ import annotations

import compileall
import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from metal.errors import CannotRun

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"
#: Python of that suite: wheels are chosen for it, whatever runs here.
PYTHON = "3.11"
#: Packages of the root file system, the kernel apart.
PACKAGES = (
    "dbus,dmsetup,drbd-utils,e2fsprogs,initramfs-tools,iproute2,kmod,lvm2,nvme-cli,python3,smartmontools,"
    "systemd-sysv,thin-provisioning-tools,udev,util-linux"
)
_SIZE = "3G"
_VERMAGIC = re.compile(rb"\0?vermagic=([^ \0]+)")

_MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer", "e2scrub_all.timer", "e2scrub_reap.service"),
    *("dpkg-db-backup.timer", "smartmontools.service", "getty@tty1.service", "serial-getty@ttyS0.service"),
    *("systemd-update-utmp.service", "systemd-random-seed.service", "systemd-pcrphase.service"),
)

_UNIT = """[Unit]
Description=What make metal talks to
DefaultDependencies=no
After=systemd-udevd.service systemd-remount-fs.service
Before=shutdown.target
[Service]
ExecStartPre=/bin/mkdir -p /opt/quorate
ExecStartPre=/bin/sh -c 'mountpoint -q /opt/quorate || \\
  mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose quorate /opt/quorate'
ExecStart=/usr/bin/python3 /opt/quorate/guest/door.py
Restart=always
StandardOutput=journal+console
[Install]
WantedBy=sysinit.target
"""


@dataclass(frozen=True, slots=True)
class System:
    """What a machine is booted with."""

    kernel: Path
    initrd: Path
    root: Path
    #: What all machines see under /opt/quorate.
    shared: Path
    kernel_version: str

    def forget(self) -> None:
        """Remove what was laid out for this run only."""
        shutil.rmtree(self.shared, ignore_errors=True)


def cache() -> Path:
    """Where what was made is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "quorate" / "metal"


def modules_directory() -> Path | None:
    """The DRBD modules that were given, if any."""
    given = os.environ.get("QUORATE_DRBD_MODULES", "")
    return Path(given).expanduser() if given else None


def made(say: Say) -> System:
    """The system, made if it is not there yet. Raises CannotRun."""
    for program in ("debootstrap", "mkfs.ext4", "qemu-system-x86_64", "qemu-img", "apt-get", "dpkg-deb"):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise CannotRun(
                f"{program} is missing: apt-get install qemu-system-x86 qemu-utils debootstrap e2fsprogs (Debian)"
            )
    modules = modules_directory()
    wanted = _kernel_of(modules) if modules is not None else _newest_kernel()
    recipe = (SUITE, PACKAGES, wanted, _UNIT, *_MASKED, inspect.getsource(_configure), os.environ.get(_DEB, ""))
    directory = cache() / f"root-{_digest(recipe)}"
    if not (directory / "made").exists():
        _make_root(directory, wanted, say)
    shared = _share(modules, say)
    return System(
        kernel=directory / "vmlinuz",
        initrd=directory / "initrd",
        root=directory / "root.img",
        shared=shared,
        kernel_version=wanted,
    )


# --- the kernel ---

_DEB = "QUORATE_METAL_KERNEL_DEB"


def _kernel_of(modules: Path) -> str:
    """The kernel that modules were made for, by their own word."""
    found: dict[str, str] = {}
    for name in ("drbd.ko", "drbd_transport_tcp.ko"):
        path = modules / name
        try:
            match = _VERMAGIC.search(path.read_bytes())
        except OSError as error:
            raise CannotRun(f"QUORATE_DRBD_MODULES: {path} cannot be read: {error.strerror}") from None
        if match is None:
            raise CannotRun(f"{path} is no kernel module (compressed ones must be unpacked): it names no vermagic")
        found[name] = match[1].decode()
    if len(set(found.values())) != 1:
        raise CannotRun(f"the modules in {modules} are for different kernels: {found}")
    return found["drbd.ko"]


def _newest_kernel() -> str:
    said = _told(["apt-cache", "depends", "linux-image-amd64"])
    match = re.search(r"Depends: linux-image-(\S+)", said)
    if match is None:
        raise CannotRun("apt-cache knows no linux-image-amd64: apt-get update; this must be run on Debian")
    return match[1]


def _unpack_kernel(version: str, root: Path, say: Say) -> None:
    given = os.environ.get(_DEB, "")
    with tempfile.TemporaryDirectory(dir=root.parent) as place:
        if given:
            package = Path(given).expanduser()
        else:
            say(f"fetching linux-image-{version}")
            _run(["apt-get", "download", f"linux-image-{version}"], directory=Path(place), why=_no_kernel(version))
            package = next(Path(place).glob("*.deb"))
        # Not right into the root: the package's /lib would take the place of the link that is there.
        inside = Path(place) / "inside"
        _run(["dpkg-deb", "-x", str(package), str(inside)])
        kernel, modules = inside / "boot" / f"vmlinuz-{version}", inside / "lib" / "modules" / version
        if not kernel.exists() or not modules.exists():
            raise CannotRun(f"{package.name} has no kernel {version}")
        shutil.copy(kernel, root / "boot")
        shutil.copy(inside / "boot" / f"config-{version}", root / "boot")
        shutil.copytree(modules, root / "usr" / "lib" / "modules" / version, symlinks=True)


def _no_kernel(version: str) -> str:
    return (
        f"Debian's mirror has no linux-image-{version} (any more). Build the modules for a kernel that it has, or give"
        f" that kernel's package: {_DEB}=FILE.deb"
    )


# --- the root file system ---


def _make_root(directory: Path, version: str, say: Say) -> None:
    if os.geteuid() != 0:
        raise CannotRun(
            "the first run makes the machines' system and must be root's (debootstrap); later ones need not"
        )
    shutil.rmtree(directory, ignore_errors=True)
    tree = directory / "tree"
    tree.mkdir(parents=True)
    say(f"making Debian {SUITE} with kernel {version} (some two minutes, once)")
    mirror = os.environ.get("QUORATE_METAL_MIRROR", "")
    _run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(tree), *([mirror] if mirror else [])])
    _unpack_kernel(version, tree, say)
    _configure(tree)
    _run(["chroot", str(tree), "depmod", version])
    _run(["chroot", str(tree), "update-initramfs", "-c", "-k", version])
    shutil.copy(tree / "boot" / f"vmlinuz-{version}", directory / "vmlinuz")
    shutil.copy(tree / "boot" / f"initrd.img-{version}", directory / "initrd")
    image = directory / "root.img"
    shutil.rmtree(tree / "var/cache/apt", ignore_errors=True)
    _run(["truncate", "-s", _SIZE, str(image)])
    _run(["mkfs.ext4", "-q", "-F", "-L", "root", "-d", str(tree), str(image)])
    shutil.rmtree(tree)
    (directory / "made").touch()


def _configure(tree: Path) -> None:
    """As a person would who makes a storage node of a plain Debian; what ``agent --check`` asks for is done later."""
    (tree / "etc/systemd/system/metal-door.service").write_text(_UNIT)
    wants = tree / "etc/systemd/system/sysinit.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "metal-door.service").symlink_to("/etc/systemd/system/metal-door.service")
    (tree / "etc/fstab").write_text("/dev/vda / ext4 defaults,noatime 0 1\n")
    (tree / "etc/machine-id").write_text("")
    (tree / "etc/modules-load.d/metal.conf").write_text("9pnet_virtio\n9p\nvirtio_console\n")
    # Only what finds the root: an emulated machine takes half a minute to unpack everything.
    (tree / "etc/initramfs-tools/conf.d/metal").write_text("MODULES=list\nCOMPRESS=gzip\n")
    (tree / "etc/initramfs-tools/modules").write_text("virtio_pci\nvirtio_blk\next4\ncrc32c_generic\n")
    # What takes an emulated machine's time and has nothing to do with storage.
    for unit in _MASKED:
        (tree / "etc/systemd/system" / unit).symlink_to("/dev/null")


# --- what machines see ---


def _share(modules: Path | None, say: Say) -> Path:
    """Put together what machines see; wheels are kept by the pinned requirements, the rest is laid anew."""
    requirements = ROOT / "requirements" / "product.txt"
    wheels = cache() / f"wheels-{_digest((requirements.read_text(), PYTHON))}"
    if not (wheels / "made").exists():
        say("fetching the pinned wheels for the machines' Python")
        shutil.rmtree(wheels, ignore_errors=True)
        _run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(requirements)),
                *("--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp"),
                *(f"--platform=manylinux{kind}_x86_64" for kind in ("2014", "_2_17", "_2_28")),
                *("--target", str(wheels / "site")),
            ]
        )
        (wheels / "made").touch()
    # Hard links, not copies: some 60 MB.
    shared = Path(tempfile.mkdtemp(prefix="shared-", dir=cache()))
    shutil.copytree(wheels / "site", shared / "site", copy_function=os.link)
    ours = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "quorate", shared / "site" / "quorate", ignore=ours)
    shutil.copytree(ROOT / "metal" / "guest", shared / "guest", ignore=ours)
    if (ROOT / "deploy").exists():
        shutil.copytree(ROOT / "deploy", shared / "deploy", ignore=ours)
    _compile(shared / "site" / "quorate")
    (shared / "modules").mkdir()
    for path in sorted(modules.glob("*.ko")) if modules is not None else ():
        shutil.copy(path, shared / "modules")
    return shared


def _compile(directory: Path) -> None:
    """Leave bytecode there if ours is theirs: an emulated machine takes half a minute to compile everything."""
    if sys.version_info[:2] == tuple(map(int, PYTHON.split("."))):
        compileall.compile_dir(str(directory), quiet=2)


# --- running things ---


class Say:
    """Tells whoever started the suite what takes so long."""

    def __call__(self, text: str) -> None:
        print(f"metal: {text}", flush=True)


def _run(argv: Sequence[str], *, directory: Path | None = None, why: str = "") -> None:
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "LC_ALL": "C"}
    environment["DEBIAN_FRONTEND"] = "noninteractive"
    done = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-2000:]
        raise CannotRun(f"{' '.join(argv)}: exit {done.returncode}\n{said}{f'{chr(10)}{why}' if why else ''}")


def _told(argv: Sequence[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
