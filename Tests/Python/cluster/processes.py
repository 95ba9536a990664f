# SPDX-License-Identifier: Apache-2.0
"""Members of etcd and gates that can be killed and started again, with a network between them that can be ordered."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster.namespaces import Namespaces
from cluster.proxies import HOST

NODES = 3
QUOTA = 64 << 20
RECOVERY_TIMEOUT = 60.0
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
ETCD = ["--heartbeat-interval", "50", "--election-timeout", "500", "--auto-compaction-mode", "revision"]
ETCD += ["--auto-compaction-retention", "100", "--quota-backend-bytes", str(QUOTA), "--logger", "zap"]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, below those that the system gives to clients."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.SystemRandom().randrange(12_000, 30_000)
        with socket.socket() as trial:
            if port not in ports and trial.connect_ex((HOST, port)):
                ports.append(port)
    return ports


class Node:
    """A process of the cluster, which can be killed and started again."""

    def __init__(self, name: str, arguments: list[str], log: Path, environment: dict[str, str]) -> None:
        self.name, self.arguments, self.log, self.environment = name, arguments, log, environment
        self.is_meant_to_run = False
        self.start()

    def start(self) -> None:
        """Starts it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.arguments, stdout=log, stderr=log, env=self.environment)
        self.is_meant_to_run = True

    def kill(self) -> None:
        """Ends it without any warning."""
        self.is_meant_to_run = False
        self.process.kill()
        self.process.wait()
        for name in ("faketime_shm_", "sem.faketime_sem_"):
            Path(f"/dev/shm/{name}{self.process.pid}").unlink(missing_ok=True)

    def memory(self) -> int:
        """MiB of its memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

    def processor_seconds(self) -> float:
        """What it has computed."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Proxies:
    """A network of proxies, in a process of its own."""

    kinds = ("cut", "cut there", "cut back", "slow", "refusing")
    """How links can be impaired."""

    def __init__(self) -> None:
        arguments = [sys.executable, str(Path(__file__).with_name("proxies.py"))]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def host(self, name: str) -> str:
        """The address of a process."""
        return HOST

    def command(self, name: str) -> list[str]:
        """What starts the command of a process where it belongs."""
        return []

    def order(self, **order: Any) -> None:
        """Tells the proxies something, and waits until it is done."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()

    def close(self) -> None:
        """Ends them."""
        self._process.kill()


class Cluster:
    """Members, gates and the network between them."""

    def __init__(
        self, program: Path, others: dict[int, Path], directory: Path, staleness: int, has_namespaces: bool = False
    ) -> None:
        """`others`: the programs of gates that run another one."""
        ports = iter(free_ports(NODES * (4 + NODES)))
        self.directory = directory
        self.clients, peers, gate_ports, proxies = ([next(ports) for _ in range(NODES)] for _ in range(4))
        links = [[next(ports) for _ in range(NODES)] for _ in range(NODES)]
        names = [f"{kind}-{number}" for kind in ("member", "gate") for number in range(NODES)]
        self._order = threading.Lock()
        self.network = Namespaces(names) if has_namespaces else Proxies()
        self.member_hosts = [self.network.host(f"member-{number}") for number in range(NODES)]
        self.gates_at = [(HOST, port) for port in gate_ports]
        if has_namespaces:
            # There each reaches the others as they are. Clients are at home by a local socket.
            proxies, links = peers, [self.clients] * NODES
            self.gates_at = [(f"unix:{directory}/gate-{number}.socket", 0) for number in range(NODES)]
        else:
            self._listen(peers, proxies, links)
        self.has_clocks = FAKETIME.exists()
        self.members = [self._member(number, peers[number], proxies) for number in range(NODES)]
        self._identify()
        make_secret = [str(program), "keys", "rotate-secret", "--secret-file", f"{directory}/secret"]
        subprocess.run(make_secret, check=True, capture_output=True)
        programs = [others.get(number, program) for number in range(NODES)]
        self.gates = [self._gate(each, number, links[number], staleness) for number, each in enumerate(programs)]
        self.nodes = {node.name: node for node in self.members + self.gates}

    def _listen(self, peers: list[int], proxies: list[int], links: list[list[int]]) -> None:
        """Begins the proxies."""
        for target in range(NODES):
            self.order(listen=(proxies[target], "", f"member-{target}", peers[target]))
            for gate in range(NODES):
                self.order(listen=(links[gate][target], f"gate-{gate}", f"member-{target}", self.clients[target]))

    def _member(self, number: int, peer: int, proxies: list[int]) -> Node:
        name, host = f"member-{number}", self.member_hosts[number]
        client = f"http://{host}:{self.clients[number]}"
        places = enumerate(zip(self.member_hosts, proxies))
        every = ",".join(f"member-{place}=http://{other}:{port}" for place, (other, port) in places)
        arguments = [*self.network.command(name), "etcd", *ETCD]
        arguments += ["--name", name, "--data-dir", f"{self.directory}/{name}"]
        arguments += ["--initial-cluster", every]
        arguments += ["--listen-client-urls", client, "--advertise-client-urls", client]
        arguments += ["--listen-peer-urls", f"http://{host}:{peer}"]
        arguments += ["--initial-advertise-peer-urls", f"http://{host}:{proxies[number]}"]
        return Node(name, arguments, self.directory / f"{name}.log", dict(os.environ))

    def _identify(self) -> None:
        """Waits for etcd, and tells the network which member has which number."""
        wait_until(lambda: self.etcdctl("endpoint", "health").returncode == 0, "etcd begins")
        if not isinstance(self.network, Proxies):
            return
        listed = json.loads(self.etcdctl("member", "list", "-w", "json").stdout)["members"]
        self.order(identities={f"{member['ID']:x}": member["name"] for member in listed})
        for number in range(NODES):
            self.order(link=("", f"member-{number}"), breaks=True)
        wait_until(lambda: self.etcdctl("endpoint", "health").returncode == 0, "etcd goes on")

    def _gate(self, program: Path, number: int, links: list[int], staleness: int) -> Node:
        turned = links[number:] + links[:number]
        hosts = self.member_hosts[number:] + self.member_hosts[:number]
        members = ",".join(f"{host}:{port}" for host, port in zip(hosts, turned))
        host, port = self.gates_at[number]
        arguments = [str(program), "serve", "--data", f"{self.directory}/gate-{number}"]
        arguments += ["--secret-file", f"{self.directory}/secret", "--listen", f"{host}:{port}" if port else host]
        # Nothing is encrypted, and in namespaces the addresses are no loopback ones.
        arguments += ["--allow-plain-text"]
        arguments += ["--cluster", f"etcd://{members}", "--cluster-name", "faults"]
        arguments += ["--staleness-milliseconds", str(staleness), "--storage-max", "512", "--log-retention", "8"]
        arguments += ["--link-base", "https://example.com/c"]
        environment = dict(os.environ)
        if self.has_clocks:
            self.step(number, 0)
            # The file of the clock is read at work, which the sandbox does not allow. And the library hides the
            # arguments from a Swift program in which it is loaded first.
            arguments = ["env", *arguments, "--sandbox", "off"]
            environment |= {"LD_PRELOAD": str(FAKETIME), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            environment |= {"FAKETIME_CACHE_DURATION": "1"}
            environment |= {"FAKETIME_TIMESTAMP_FILE": f"{self.directory}/clock-{number}"}
        name = f"gate-{number}"
        return Node(name, self.network.command(name) + arguments, self.directory / f"{name}.log", environment)

    def step(self, gate: int, seconds: int) -> None:
        """Sets a gate's clock, that much off."""
        new = self.directory / f"clock-{gate}.new"
        new.write_text(f"{seconds:+d}\n")
        new.rename(self.directory / f"clock-{gate}")

    def order(self, **order: Any) -> None:
        """Tells the network something, and waits until it is done."""
        with self._order:
            self.network.order(**order)

    def etcdctl(
        self, *arguments: str, value: bytes = b"", member: int | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Administers etcd, past the proxies."""
        places = range(NODES) if member is None else [member]
        endpoints = ",".join(f"http://{self.member_hosts[place]}:{self.clients[place]}" for place in places)
        command = ["etcdctl", "--endpoints", endpoints, "--command-timeout", "5s", *arguments]
        return subprocess.run(command, input=value, capture_output=True, env={**os.environ, "ETCDCTL_API": "3"})

    def close(self) -> None:
        """Ends everything."""
        for node in getattr(self, "nodes", {}).values():
            node.kill()
        self.network.close()


def wait_until(holds: Callable[[], bool], what: str, seconds: float = RECOVERY_TIMEOUT) -> float:
    """Waits, and returns for how long. Raises `TimeoutError`."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() > begun + seconds:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - begun
