"""Several hosts on this one machine: each with its own network, name, processes, home, /tmp and a real sshd.

    with Hosts(folder, 2) as hosts:
        subprocess.run(["ssh", "-F", hosts.ssh_config, hosts[0].name, "hostname"])
        hosts[0].cut()      # its cable is pulled
        hosts[0].mend()
        hosts[0].kill()     # its power fails
        hosts[0].boot()

A host is a set of namespaces that live as long as one process of ours, and that process dies with us: whatever happens
to the tests, nothing stays behind. It needs root, `ip`, `unshare`, `nsenter`, `setpriv` and `sshd`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.packages import ensure
from tests.left_out import require_root

SSHD = "/usr/sbin/sshd"
PACKAGE = "openssh-server"
PASSWORD = "correct horse"
"""Of root, on every host."""
SHARED = "/tmp/shared"
"""A folder that all hosts see; from here it is `Hosts.shared`."""
REPOSITORY = Path(__file__).resolve().parents[2]
# Where sshd looks, whatever the variable says here.
HOME = pwd.getpwuid(os.getuid()).pw_dir

# Runs as the first process of a host. A mount covers its folder, so it is had under another name first.
_INIT = """
set -e
mount --make-rprivate /
hostname {name}
mkdir -p /run/sshd
mount -t tmpfs -o mode=755 tmpfs /run/sshd
all=/run/sshd/all
here=$all/{name}
mkdir $all
mount --bind {folder} $all
mount --bind $here/hosts /etc/hosts
mount --bind $here/etc /etc/ssh
mount --bind $here/shadow /etc/shadow
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount --bind $here/home {home}
mount --bind $here/tmp /tmp
mount --bind $all/shared {shared}
if [ -d {repository} ]; then mount -t tmpfs -o mode=755 tmpfs {repository}; fi
umount $all
rmdir $all
cd /
ip link set lo up
{sshd} -D -E /etc/ssh/log &
sleep infinity &
while :; do wait -n || true; done
"""

_SSHD_CONFIG = """
Port 22
ListenAddress 0.0.0.0
HostKey /etc/ssh/key
PidFile none
UsePAM no
PasswordAuthentication yes
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
UseDNS no
"""

_SSH_CONFIG = """
Host *
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""


class CannotHaveHosts(Exception):
    """This machine cannot pretend to be several."""


class Hosts:
    """`count` hosts that reach each other and are reached from here. A context: all is gone at its end."""

    def __init__(self, folder: Path, count: int, prefix: str = "host") -> None:
        self.folder = folder
        self._prefix = prefix
        self._count = count
        self._hosts: list[Host] = []
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Hosts:
        require_tools()
        with contextlib.ExitStack() as ends:
            self._up(ends)
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    def __getitem__(self, number: int) -> Host:
        return self._hosts[number]

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def ssh_config(self) -> str:
        """For `ssh -F`: the key, the known host keys, and the names of the hosts."""
        return str(self.folder / "ssh_config")

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def user_key(self) -> str:
        return str(self.folder / "user_key")

    def _up(self, ends: contextlib.ExitStack) -> None:
        self.shared.mkdir(parents=True, exist_ok=True)
        network = ends.enter_context(own_network())
        switch = ends.enter_context(holder(["unshare", "--net", "--", "sleep", "infinity"]))
        until(lambda: namespace(switch.pid, "net") != namespace(os.getpid(), "net"), "the switch")
        in_network(switch.pid, ["ip", "link", "add", "br0", "type", "bridge"])
        in_network(switch.pid, ["ip", "link", "set", "br0", "up"])
        ends.enter_context(joined_from_here(switch.pid, network))
        _make_key(self.folder / "user_key")
        names = [f"{self._prefix}{number + 1}" for number in range(self._count)]
        addresses = [f"{network}.{11 + number}" for number in range(self._count)]
        known = "".join(f"{address} {name}\n" for address, name in zip(addresses, names, strict=True))
        for number, (name, address) in enumerate(zip(names, addresses, strict=True)):
            place = self.folder / name
            _furnish(place, f"127.0.0.1 localhost\n{known}", self.folder / "user_key.pub")
            self._hosts.append(Host(name, address, place, switch.pid, f"v{number + 1}"))
        self._write_client_files()
        for host in self._hosts:
            ends.callback(host.kill)
            host.boot(wait=False)
        for host in self._hosts:
            host.wait_for_sshd()

    def _write_client_files(self) -> None:
        keys = [(host, (host.folder / "etc" / "key.pub").read_text().rsplit(" ", 1)[0]) for host in self._hosts]
        self.known_hosts.write_text("".join(f"{host.name},{host.address} {key}\n" for host, key in keys))
        names = "".join(f"Host {host.name}\n  HostName {host.address}\n" for host in self._hosts)
        Path(self.ssh_config).write_text(names + _SSH_CONFIG.format(folder=self.folder))


@dataclass
class Host:
    """One of the hosts."""

    name: str
    address: str
    folder: Path
    switch: int
    port: str
    """Of the switch: where its cable ends."""
    _holder: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """Its home folder, as seen from here."""
        return self.folder / "home"

    def boot(self, wait: bool = True) -> None:
        """Switches it on."""
        text = _INIT.format(
            folder=shlex.quote(str(self.folder.parent)),
            shared=SHARED,
            name=self.name,
            home=shlex.quote(HOME),
            repository=shlex.quote(str(REPOSITORY)),
            sshd=SSHD,
        )
        words = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
        self._holder = start_holder([*words, "bash", "-c", text], self.folder / "init.log")
        pid = self._holder.pid
        until(lambda: namespace(pid, "net") != namespace(os.getpid(), "net"), f"{self.name}'s network")
        # The same card after every boot: others remember it for half a minute.
        card = "02:00:" + ":".join(f"{int(part):02x}" for part in self.address.split("."))
        end = ["name", "eth0", "address", card, "netns", str(pid)]
        in_network(self.switch, ["ip", "link", "add", self.port, "type", "veth", "peer", *end])
        in_network(self.switch, ["ip", "link", "set", self.port, "master", "br0", "up"])
        in_network(pid, ["ip", "addr", "add", f"{self.address}/24", "dev", "eth0"])
        in_network(pid, ["ip", "link", "set", "eth0", "up"])
        if wait:
            self.wait_for_sshd()

    def kill(self) -> None:
        """Its power fails: every process is gone, nothing is said to anybody."""
        if self._holder is None:
            return
        first = self.first_process
        # Dying processes must not get a last word out.
        self.cut()
        _end(self._holder)
        self._holder = None
        until(lambda: first is None or not Path(f"/proc/{first}").exists(), f"the end of {self.name}")
        # Its cable goes with its network, but not at once.
        in_network(self.switch, ["ip", "link", "del", self.port], check=False)

    def cut(self) -> None:
        """Pulls its cable: connections stall, nobody is told."""
        in_network(self.switch, ["ip", "link", "set", self.port, "down"])

    def mend(self) -> None:
        """Plugs the cable in again."""
        in_network(self.switch, ["ip", "link", "set", self.port, "up"])

    def run(self, argv: Sequence[str]) -> str:
        """What a program prints that is run there."""
        words = ["nsenter", "-t", str(self.first_process), "-n", "-u", "-m", "-p", "--", *argv]
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd="/").stdout

    @property
    def first_process(self) -> int | None:
        """The first process of the host, by its number here."""
        assert self._holder is not None, f"{self.name} is off"
        pid = self._holder.pid
        with contextlib.suppress(OSError, ValueError):
            return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        return None

    def processes(self, containing: str = "") -> list[str]:
        """The command lines of its processes that have `containing` in their command line or their environment."""
        first = self.first_process
        if first is None:
            return []
        own = namespace(first, "pid")
        found = []
        for each in Path("/proc").iterdir():
            if not each.name.isdecimal():
                continue
            with contextlib.suppress(OSError):
                if namespace(int(each.name), "pid") == own and not _is_dead(each):
                    command = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if containing in command or containing.encode() in (each / "environ").read_bytes():
                        found.append(command)
        return found

    def wait_for_sshd(self) -> None:
        """Returns when it can be logged in to."""
        until(self._answers, f"sshd on {self.name}", self._said)

    def _answers(self) -> bool:
        assert self._holder is not None
        assert self._holder.poll() is None, f"{self.name} did not start: {self._said()}"
        with contextlib.suppress(OSError), socket.create_connection((self.address, 22), timeout=1) as line:
            return line.recv(4) == b"SSH-"
        return False

    def _said(self) -> str:
        return (self.folder / "init.log").read_text()


def require_tools() -> None:
    """sshd and the tools for namespaces, installed if need be. Without root, the tests that use hosts are left out."""
    require_root("for hosts in network namespaces")
    if fault := ensure(_missing):
        raise CannotHaveHosts(fault)


def _missing() -> list[str]:
    tools = [tool for tool in ("ip", "unshare", "nsenter", "setpriv", "ssh", "openssl") if not shutil.which(tool)]
    return ([] if os.path.exists(SSHD) else [PACKAGE]) + [_PACKAGES[tool] for tool in tools]


_PACKAGES = {
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "openssl": "openssl",
}


@contextlib.contextmanager
def own_network() -> Iterator[str]:
    """The first three numbers of a network that no other test run has, from the range that is set aside for tests."""
    for number in range(512):
        network = f"198.{18 + number // 256}.{number % 256}"
        # A name without a file: it is free again when its holder is gone, however that went.
        with socket.socket(socket.AF_UNIX) as mine:
            try:
                mine.bind(f"\0trainmaster-test-network-{network}")
            except OSError:
                continue
            yield network
            return
    raise CannotHaveHosts("all networks for tests are taken")


@contextlib.contextmanager
def joined_from_here(switch: int, network: str) -> Iterator[None]:
    """A cable from this machine to the switch."""
    here = f"tm{network.replace('.', '')[3:]}"
    in_network(switch, ["ip", "link", "add", "v0", "type", "veth", "peer", "name", here, "netns", str(os.getpid())])
    try:
        in_network(switch, ["ip", "link", "set", "v0", "master", "br0", "up"])
        subprocess.run(["ip", "addr", "add", f"{network}.1/24", "dev", here], check=True)
        subprocess.run(["ip", "link", "set", here, "up"], check=True)
        yield
    finally:
        # It vanishes with the switch, but not at once.
        subprocess.run(["ip", "link", "del", here], check=True)


def _furnish(place: Path, names: str, authorized: Path) -> None:
    """What a host has on its disk."""
    for folder in ("etc", "home/.ssh", "tmp/shared"):
        (place / folder).mkdir(parents=True)
    (place / "tmp").chmod(0o1777)
    for folder in ("home", "home/.ssh"):
        (place / folder).chmod(0o700)
    (place / "hosts").write_text(names)
    (place / "shadow").write_text(f"root:{_hashed(PASSWORD)}:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n")
    (place / "shadow").chmod(0o600)
    _make_key(place / "etc" / "key")
    (place / "etc" / "sshd_config").write_text(_SSHD_CONFIG)
    keys = place / "home" / ".ssh" / "authorized_keys"
    keys.write_text(authorized.read_text())
    keys.chmod(0o600)


def _hashed(password: str) -> str:
    words = ["openssl", "passwd", "-6", password]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


@contextlib.contextmanager
def holder(argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds namespaces, for as long as the context lasts."""
    process = start_holder(argv, Path(os.devnull))
    try:
        yield process
    finally:
        _end(process)


def start_holder(argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """A process that dies with ours, in a session of its own: no signal of a terminal reaches it."""
    with open(log, "ab") as output:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def in_network(pid: int, argv: Sequence[str], check: bool = True) -> None:
    """Runs a command in the network of process `pid`."""
    words = ["nsenter", "-t", str(pid), "-n", "--", *argv]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise CannotHaveHosts(f"'{' '.join(argv)}' failed: {done.stderr}")


def namespace(pid: int, kind: str) -> str:
    """What identifies a namespace of process `pid`."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    return os.readlink(f"/proc/self/ns/{kind}")


def _is_dead(process: Path) -> bool:
    return (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"


def until(condition, what: str, why=lambda: "", seconds: float = 120.0) -> None:
    """Waits for what nothing tells of."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise CannotHaveHosts(f"{what} did not come within {seconds} s. {why()}")
        time.sleep(0.01)


if __name__ == "__main__":
    # To look around by hand: python -m tests.cluster.hosts 2
    with tempfile.TemporaryDirectory() as scratch, Hosts(Path(scratch) / "hosts", int(sys.argv[1])) as made:
        print(f"ssh -F {made.ssh_config} {made[0].name}", flush=True)
        signal.pause()
