# SPDX-License-Identifier: Apache-2.0
"""Breaks a cluster of Rootgate services in many ways while it is used, and checks all that was answered.

    python3 cluster_faults.py PROGRAM [--faults 300] [--minutes 30] [--seed N] [--staleness 2500] [--keep]
    python3 cluster_faults.py --self-test

PROGRAM is the path of the program `rootgate`. Three members of etcd and three services, here called gates, run on
127.0.0.1. Each gate reaches each member, and each member its peers, by a proxy of its own. Clients change and use
collaborations at all gates. Faults come in bursts of one to four: SIGKILL and SIGSTOP of gates and members, links that
are cut, cut in one direction, slow or broken, a full etcd, a compaction while a gate is stopped, and steps of a gate's
clock. What a cut link holds back arrives later, as in TCP, or is lost with its connection. After each burst everything
is healed, and it is measured how long each gate takes to acknowledge a change and to grant a proof, behind the first
linearizable read of etcd. Finally:

- the change logs of all gates are equal and have no gaps. Each acknowledged mutation is there once, whole, at the
  sequence of its receipt; one without an answer at most once; a refused one not at all;
- no proof or grant of somebody who was removed was accepted that was sent later than the removal's answer and the bound
  of staleness, or than the answer to a confirm-everywhere; nobody who was added was refused behind that sequence;
- no challenge was granted twice;
- collaborations, root hashes and participants are what the log, replayed in a plain model, leads to, at all gates.

The faults come from the seed; what happens in them is a matter of timing. Bytes and requests are not doubled: TCP does
not do that. Clocks are stepped by libfaketime, in gates only, when Debian's package is there: etcd is written in Go and
asks the kernel without the C library. Needs `etcd`, `etcdctl` and the packages `cryptography` and `rootgate`
(PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rootgate.changes import decode_edit, logged_identifier, logged_mutation
from rootgate.connection import Connection, Pending
from rootgate.protocol import Operation, Policy, ProtocolError, RootgateError, error_name
from rootgate.protocol import grant_status_name, verdict_name
from rootgate.simulator import Device, Person
from rootgate.values import Change, Proof, device_key, sha256

HOST = "127.0.0.1"
NODES = 3
WORKERS = 12
PEOPLE_EACH = 4
"""People that one worker alone adds and removes."""
DECKS = [f"deck-{number}" for number in range(3)]
PASSING = [f"passing-{number}" for number in range(4)]
"""Collaborations that come and go."""
PROBED = "probed"
"""The collaboration by which recovery is measured."""
FILLING = [sha256(number.to_bytes(4, "big")) for number in range(2_000)]
QUOTA = 64 << 20
PAUSE = 0.02
REQUEST_TIMEOUT = 12.0
RECOVERY_TIMEOUT = 60.0
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
ETCD = ["--heartbeat-interval", "50", "--election-timeout", "500", "--auto-compaction-mode", "revision"]
ETCD += ["--auto-compaction-retention", "100", "--quota-backend-bytes", str(QUOTA), "--logger", "zap"]
UNCERTAIN = ("unknown", "storage-failed", "internal-fault")
"""Outcomes after which a mutation may be in the log. Every other one but `acknowledged` says that it is not."""


# The history.


@dataclass
class Attempt:
    """A mutation was sent, for the first time or again. Times are those of the monotonic clock."""

    sent: float
    answered: float
    outcome: str
    sequence: int = 0
    changed: int = 0


@dataclass
class Mutation:
    """A change that was sent, and what is known of it."""

    operation: Operation
    collaboration: str
    added: list[bytes] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)
    identifier: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def fields(self) -> dict[str, Any]:
        """Of a request of the layer."""
        added = [{"identity": digest.hex()} for digest in self.added]
        removed = [digest.hex() for digest in self.removed]
        return {"collaboration": self.collaboration, "added": added, "removed": removed}

    @property
    def logged(self) -> bytes:
        """Its identifier in the change log."""
        if self.operation == Operation.COLLABORATE:
            return logged_mutation(self.identifier, self.fields)
        return logged_identifier(self.identifier)

    @property
    def receipts(self) -> list[Attempt]:
        """The attempts that were acknowledged."""
        return [attempt for attempt in self.attempts if attempt.outcome == "acknowledged"]

    @property
    def is_refused(self) -> bool:
        """Whether no attempt can have had an effect."""
        return not any(attempt.outcome in ("acknowledged", *UNCERTAIN) for attempt in self.attempts)

    def send(self, client: Connection) -> Pending[Any]:
        """Sends it, for the first time or again."""
        if self.operation == Operation.COLLABORATE:
            return client.collaborate("updateParticipants", self.fields, self.identifier)
        if self.operation == Operation.CREATE_COLLABORATION:
            return client.create_collaboration(self.collaboration, mutation=self.identifier)
        if self.operation == Operation.DROP_COLLABORATION:
            return client.drop_collaboration(self.collaboration, self.identifier)
        if self.operation == Operation.ADD_ROOTS:
            return client.add_roots(self.collaboration, self.added, self.identifier)
        return client.remove_roots(self.collaboration, self.removed, self.identifier)

    def matches(self, change: Change) -> bool:
        """Whether an entry of the log has what was sent."""
        if change.collaboration != self.collaboration:
            return False
        if self.operation == Operation.COLLABORATE:
            edit = decode_edit(change.edit)
            return set(edit.added) <= set(self.added) and set(edit.removed) <= set(self.removed)
        return change.operation == self.operation and sorted(change.digests) == sorted(self.added + self.removed)


@dataclass
class Use:
    """A proof or a grant was shown."""

    gate: int
    sent: float
    answered: float
    collaboration: str
    root: bytes
    outcome: str
    at_least: int = 0
    challenge: bytes = b""
    """Empty for a grant."""
    granted: float = 0.0
    """Of a grant: when it was received."""

    @property
    def is_accepted(self) -> bool:
        """Whether the person was let in."""
        return self.outcome in ("granted", "valid")


@dataclass
class History:
    """All that was sent and answered, and what the gates hold at the end."""

    bound: float
    mutations: list[Mutation] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    confirmed: dict[int, float] = field(default_factory=dict)
    """By sequence, when the first answer came that the change is everywhere."""
    logs: list[dict[int, Change]] = field(default_factory=list)
    contents: list[dict[str, list[bytes]]] = field(default_factory=list)
    """The root hashes of each collaboration, at each gate."""
    founded: int = 0
    """The sequence behind what was made before the load began."""


# The checker. Each check gives the violations that it finds.


class Checker:
    """Checks a history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.latest = 0.0
        """How long after the answer to a removal somebody was let in: the time until he tried."""
        self.log: dict[int, Change] = {}
        for log in history.logs:
            self.log.update(log)
        self.places: dict[bytes, list[int]] = defaultdict(list)
        for sequence in sorted(self.log):
            self.places[self.log[sequence].mutation].append(sequence)

    def violations(self) -> list[str]:
        """All that is wrong."""
        checks = (self.logs, self.mutations, self.late, self.refused, self.challenges, self.contents)
        return [violation for check in checks for violation in check()]

    def logs(self) -> Iterator[str]:
        """The logs are the same, and what is in them was sent."""
        last = max(self.log, default=0)
        missing = [sequence for sequence in range(1, last + 1) if sequence not in self.log]
        if missing:
            yield f"no log has the changes {missing[:5]} ({len(missing)} of {last})"
        for gate, log in enumerate(self.history.logs):
            differing = [sequence for sequence, change in log.items() if change != self.log[sequence]]
            if differing:
                yield f"the log of gate {gate} differs from another one at {differing[:5]} ({len(differing)} changes)"
            lacking = [sequence for sequence in range(min(log, default=1), last + 1) if sequence not in log]
            if lacking:
                yield f"the log of gate {gate} has gaps at {lacking[:5]} ({len(lacking)} changes)"
        sent = {mutation.logged for mutation in self.history.mutations}
        for sequence, change in self.log.items():
            if sequence > self.history.founded and change.mutation not in sent and not is_joining(change):
                yield f"change {sequence} was sent by nobody: {change}"

    def mutations(self) -> Iterator[str]:
        """Each mutation is in the log as often as its answers say, at its place, and whole."""
        for mutation in self.history.mutations:
            places = self.places.get(mutation.logged, [])
            if len(places) > 1:
                yield f"a mutation was applied {len(places)} times, at {places}: {mutation}"
            if mutation.is_refused and places:
                yield f"a mutation was refused, and applied at {places}: {mutation}"
            for receipt in mutation.receipts:
                if places != [receipt.sequence] * (receipt.sequence > 0):
                    yield f"an acknowledged mutation is not at its sequence, but at {places}: {mutation}"
            for place in places:
                change = self.log[place]
                counts = {receipt.changed for receipt in mutation.receipts} - {change.changed}
                # The layer counts participants, the log root hashes.
                if not mutation.matches(change) or counts and mutation.operation != Operation.COLLABORATE:
                    yield f"change {place} is not what was sent: {change}, {mutation}"

    def place(self, mutation: Mutation) -> int:
        """Where a mutation is in the log; 0: nowhere."""
        return self.places.get(mutation.logged, [0])[0]

    def by_person(self, is_removal: bool) -> dict[tuple[str, bytes], list[tuple[int, Mutation]]]:
        """What adds or removes somebody, by collaboration and root hash, with its place in the log."""
        found: dict[tuple[str, bytes], list[tuple[int, Mutation]]] = defaultdict(list)
        for mutation in self.history.mutations:
            place = self.place(mutation)
            for root in (mutation.removed if is_removal else mutation.added) if place else []:
                found[mutation.collaboration, root].append((place, mutation))
            if place and is_removal and mutation.operation == Operation.DROP_COLLABORATION:
                found[mutation.collaboration, b""].append((place, mutation))
        return found

    def late(self) -> Iterator[str]:
        """Nobody is let in after his removal."""
        added, removed = self.by_person(is_removal=False), self.by_person(is_removal=True)
        for use in self.history.uses:
            if not use.is_accepted:
                continue
            key = use.collaboration, use.root
            for place, removal in removed[key] + removed[use.collaboration, b""]:
                receipts = removal.receipts
                if not receipts:
                    continue
                answered = min(receipt.answered for receipt in receipts)
                effective = min(answered + self.history.bound, self.history.confirmed.get(place, float("inf")))
                if use.sent <= answered:
                    continue
                # A grant from before is revoked for good, whoever comes back.
                is_revoked = not use.challenge and use.granted < removal.attempts[0].sent
                again = any(at > place and add.attempts[0].sent < use.answered for at, add in added[key])
                if again and not is_revoked:
                    continue
                self.latest = max(self.latest, use.sent - answered)
                if use.sent > effective or use.at_least >= place:
                    yield f"accepted {use.sent - answered:.3f} s after the removal {place}: {use}, {removal}"

    def refused(self) -> Iterator[str]:
        """Nobody is refused who was added, when the gate had to know that."""
        added, removed = self.by_person(is_removal=False), self.by_person(is_removal=True)
        for use in self.history.uses:
            if use.outcome == "forged" or use.outcome.startswith("other-"):
                yield f"a grant of one gate is not known at another one: {use}"
            if use.outcome not in ("not-participant", "unknown-collaboration") or not use.at_least:
                continue
            key = use.collaboration, use.root
            last = max((place for place, _ in added[key] if place <= use.at_least), default=0)
            removals = removed[key] + removed[use.collaboration, b""]
            if last and not any(at > last and each.attempts[0].sent < use.answered for at, each in removals):
                yield f"refused, although the change {last} has added the person: {use}"

    def challenges(self) -> Iterator[str]:
        """No challenge is granted twice."""
        granted = Counter(use.challenge for use in self.history.uses if use.challenge and use.is_accepted)
        for challenge, count in granted.items():
            if count > 1:
                uses = [use for use in self.history.uses if use.challenge == challenge and use.is_accepted]
                yield f"a challenge was granted {count} times: {uses}"

    def contents(self) -> Iterator[str]:
        """All gates hold what the log leads to."""
        sets: dict[str, set[bytes]] = {}
        for sequence in sorted(self.log):
            change = self.log[sequence]
            if replay(change, sets) not in (None, change.changed):
                yield f"change {sequence} has not changed what it says: {change}"
        expected = {name: sorted(roots) for name, roots in sets.items()}
        for gate, contents in enumerate(self.history.contents):
            for name in sorted(expected.keys() | contents.keys()):
                if expected.get(name) != contents.get(name):
                    differing = set(expected.get(name, [])) ^ set(contents.get(name, []))
                    yield f"gate {gate} holds something else in {name}: {len(differing)} root hashes differ"


def is_joining(change: Change) -> bool:
    """Whether a change only notes that somebody has opened a document for the first time."""
    if change.operation != Operation.EDIT:
        return False
    edit = decode_edit(change.edit)
    return not (edit.added or edit.removed or edit.creates or edit.drops or any(edit.request))


def replay(change: Change, sets: dict[str, set[bytes]]) -> int | None:
    """Applies a change in the plain model. Returns how many collaborations or root hashes came or went, unless the
    change is an edit."""
    name = change.collaboration
    if change.operation == Operation.CREATE_COLLABORATION:
        is_new = name not in sets
        sets.setdefault(name, set())
        return int(is_new)
    if change.operation == Operation.DROP_COLLABORATION:
        return int(sets.pop(name, None) is not None)
    if change.operation == Operation.EDIT:
        edit = decode_edit(change.edit)
        if edit.creates or edit.added or edit.removed:
            roots = sets.setdefault(name, set())
            roots.difference_update(edit.removed)
            roots.update(edit.added)
        if edit.drops:
            sets.pop(name, None)
        return None
    roots = sets.setdefault(name, set())
    before = len(roots)
    if change.operation == Operation.ADD_ROOTS:
        roots.update(change.digests)
    else:
        roots.difference_update(change.digests)
    return abs(len(roots) - before)


# The network: a process of its own, which takes orders as lines of JSON.


class Link:
    """The connections from one process to another one."""

    def __init__(self) -> None:
        self.passes = (asyncio.Event(), asyncio.Event())
        self.delay = 0.0
        self.refuses = False
        self.writers: set[asyncio.StreamWriter] = set()
        for event in self.passes:
            event.set()

    def order(self, order: dict[str, Any]) -> None:
        """Changes how the link is. Connections that break lose what was held back."""
        self.delay, self.refuses = order.get("delay", 0.0), order.get("refuses", False)
        if order.get("breaks"):
            for writer in self.writers:
                writer.transport.abort()
        for event, passes in zip(self.passes, order.get("passes", (True, True))):
            (event.set if passes else event.clear)()


class Network:
    """The proxies."""

    def __init__(self) -> None:
        self.links: dict[tuple[str, str], Link] = defaultdict(Link)
        self.identities: dict[str, str] = {}

    async def run(self) -> None:
        """Obeys until the input ends."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            order = json.loads(line)
            if "listen" in order:
                await self.listen(*order["listen"])
            elif "identities" in order:
                self.identities = order["identities"]
            else:
                self.links[tuple(order["link"])].order(order)
            print("done", flush=True)

    async def listen(self, port: int, source: str, target: str, target_port: int) -> None:
        """Begins a proxy. Without a source, a member's first request tells which one has connected."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self.connect(reader, writer, source, target, target_port)
            except OSError:
                writer.transport.abort()

        await asyncio.start_server(accept, HOST, port)

    async def connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str, target: str, port: int
    ) -> None:
        """Carries bytes both ways until one side ends."""
        first = b"" if source else await reader.read(1 << 16)
        if match := re.search(rb"x-server-from: *([0-9a-f]+)", first, re.IGNORECASE):
            source = self.identities.get(match[1].decode(), "")
        link = self.links[source, target]
        if link.refuses:
            return writer.transport.abort()
        other_reader, other = await asyncio.open_connection(HOST, port)
        link.writers |= {writer, other}
        pumps = [self.pump(reader, other, link, 0, first), self.pump(other_reader, writer, link, 1, b"")]
        tasks = [asyncio.create_task(pump) for pump in pumps]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in (other, writer):
            each.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        link.writers -= {writer, other}

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, way: int, data: bytes
    ) -> None:
        """Carries bytes one way. An end is held back like bytes."""
        while data or (data := await reader.read(1 << 16)):
            await asyncio.sleep(link.delay)
            await link.passes[way].wait()
            writer.write(data)
            await writer.drain()
            data = b""
        await link.passes[way].wait()


# The cluster.


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


class Cluster:
    """Members, gates and the network between them."""

    def __init__(self, program: Path, directory: Path, staleness: int) -> None:
        ports = iter(free_ports(NODES * (4 + NODES)))
        self.directory = directory
        self.clients, peers, self.gate_ports, proxies = ([next(ports) for _ in range(NODES)] for _ in range(4))
        links = [[next(ports) for _ in range(NODES)] for _ in range(NODES)]
        arguments = [sys.executable, __file__, "--proxy"]
        self.network = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._order = threading.Lock()
        for target in range(NODES):
            self.order(listen=(proxies[target], "", f"member-{target}", peers[target]))
            for gate in range(NODES):
                self.order(listen=(links[gate][target], f"gate-{gate}", f"member-{target}", self.clients[target]))
        self.has_clocks = FAKETIME.exists()
        self.members = [self._member(number, peers[number], proxies) for number in range(NODES)]
        self._identify()
        make_secret = [str(program), "keys", "rotate-secret", "--secret-file", f"{directory}/secret"]
        subprocess.run(make_secret, check=True, capture_output=True)
        self.gates = [self._gate(program, number, links[number], staleness) for number in range(NODES)]
        self.nodes = {node.name: node for node in self.members + self.gates}

    def _member(self, number: int, peer: int, proxies: list[int]) -> Node:
        name, client = f"member-{number}", f"http://{HOST}:{self.clients[number]}"
        every = ",".join(f"member-{place}=http://{HOST}:{port}" for place, port in enumerate(proxies))
        arguments = ["etcd", "--name", name, "--data-dir", f"{self.directory}/{name}", *ETCD]
        arguments += ["--initial-cluster", every]
        arguments += ["--listen-client-urls", client, "--advertise-client-urls", client]
        arguments += ["--listen-peer-urls", f"http://{HOST}:{peer}"]
        arguments += ["--initial-advertise-peer-urls", f"http://{HOST}:{proxies[number]}"]
        return Node(name, arguments, self.directory / f"{name}.log", dict(os.environ))

    def _identify(self) -> None:
        """Waits for etcd, and tells the network which member has which number."""
        wait_until(lambda: self.etcdctl("endpoint", "health").returncode == 0, "etcd begins")
        listed = json.loads(self.etcdctl("member", "list", "-w", "json").stdout)["members"]
        self.order(identities={f"{member['ID']:x}": member["name"] for member in listed})
        for number in range(NODES):
            self.order(link=("", f"member-{number}"), breaks=True)
        wait_until(lambda: self.etcdctl("endpoint", "health").returncode == 0, "etcd goes on")

    def _gate(self, program: Path, number: int, links: list[int], staleness: int) -> Node:
        turned = links[number:] + links[:number]
        members = ",".join(f"{HOST}:{port}" for port in turned)
        arguments = [str(program), "serve", "--data", f"{self.directory}/gate-{number}"]
        arguments += ["--secret-file", f"{self.directory}/secret", "--listen", f"{HOST}:{self.gate_ports[number]}"]
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
        return Node(f"gate-{number}", arguments, self.directory / f"gate-{number}.log", environment)

    def step(self, gate: int, seconds: int) -> None:
        """Sets a gate's clock, that much off."""
        new = self.directory / f"clock-{gate}.new"
        new.write_text(f"{seconds:+d}\n")
        new.rename(self.directory / f"clock-{gate}")

    def order(self, **order: Any) -> None:
        """Tells the network something, and waits until it is done."""
        with self._order:
            assert self.network.stdin and self.network.stdout
            self.network.stdin.write(json.dumps(order) + "\n")
            self.network.stdin.flush()
            self.network.stdout.readline()

    def etcdctl(
        self, *arguments: str, value: bytes = b"", member: int | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Administers etcd, past the proxies."""
        places = range(NODES) if member is None else [member]
        endpoints = ",".join(f"http://{HOST}:{self.clients[place]}" for place in places)
        command = ["etcdctl", "--endpoints", endpoints, "--command-timeout", "5s", *arguments]
        return subprocess.run(command, input=value, capture_output=True, env={**os.environ, "ETCDCTL_API": "3"})

    def close(self) -> None:
        """Ends everything."""
        for node in getattr(self, "nodes", {}).values():
            node.kill()
        self.network.kill()


def wait_until(holds: Callable[[], bool], what: str, seconds: float = RECOVERY_TIMEOUT) -> float:
    """Waits, and returns for how long. Raises `TimeoutError`."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() > begun + seconds:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - begun


# The load.


@dataclass
class Answer:
    """What came of a request: `answered`, the name of the error, `unreachable`, or `unknown`."""

    outcome: str
    sent: float
    answered: float
    value: Any = None


class Client:
    """A connection to each gate, made when it is needed. One thread uses it."""

    def __init__(self, ports: list[int], timeout: float = REQUEST_TIMEOUT) -> None:
        self._ports, self._timeout = ports, timeout
        self._connections: dict[int, Connection] = {}

    def ask(self, gate: int, *sends: Callable[[Connection], Pending[Any]]) -> list[Answer]:
        """Sends requests together, and waits for their answers."""
        sent = time.monotonic()
        answers: list[Answer] = []
        try:
            connection = self._connections.get(gate)
            if not connection:
                connection = self._connections[gate] = Connection(HOST, self._ports[gate], self._timeout)
        except OSError:
            return [Answer("unreachable", sent, time.monotonic())] * len(sends)
        try:
            sent = time.monotonic()
            pending = [send(connection) for send in sends]
            for each in pending:
                try:
                    value, outcome = each.result(), "answered"
                except RootgateError as error:
                    value, outcome = None, error_name(error.code)
                    if error.code < 16:
                        self.forget(gate)
                answers.append(Answer(outcome, sent, time.monotonic(), value))
        except (OSError, ProtocolError, ValueError):
            self.forget(gate)
        return answers + [Answer("unknown", sent, time.monotonic())] * (len(sends) - len(answers))

    def forget(self, gate: int) -> None:
        """Closes a connection."""
        if connection := self._connections.pop(gate, None):
            connection.close()


def ping(connection: Connection) -> Pending[bytes]:
    """Asks whether a gate is fresh."""
    return connection.ping()


class Load:
    """Workers that use the cluster, probes that measure its recovery, and readers of the change logs."""

    def __init__(self, cluster: Cluster, history: History, generator: random.Random) -> None:
        self.cluster, self.history = cluster, history
        self.documents: list[str] = []
        self.grants: dict[tuple[str, bytes], tuple[bytes, bytes, float]] = {}
        """By collaboration and root hash: a grant, the device's key, and when it came."""
        self.people = [Person([Device()]) for _ in range(WORKERS * PEOPLE_EACH)]
        self.working: dict[tuple[int, str], float] = {}
        """By gate and by what it did, `grants`, `changes` or `answers`: when it did so last. By member, `reads`."""
        self.outcomes: Counter[str] = Counter()
        self.is_over = threading.Event()
        self.is_read = threading.Event()
        generators = [random.Random(generator.randbytes(8)) for _ in range(WORKERS)]
        bodies = [Worker(self, number, each).run for number, each in enumerate(generators)]
        self.threads = [threading.Thread(target=body, daemon=True) for body in bodies]
        for probe in (self.probe_grants, self.probe_changes, self.probe_member):
            self.threads += [threading.Thread(target=probe, args=(place,), daemon=True) for place in range(NODES)]
        history.logs = [{} for _ in range(NODES)]
        self.readers = [threading.Thread(target=self.read_log, args=(gate,), daemon=True) for gate in range(NODES)]

    def set_up(self) -> None:
        """Makes the collaborations that stay."""
        client = Client(self.cluster.gate_ports)
        wait_until(lambda: all(client.ask(gate, ping)[0].value == b"" for gate in range(NODES)), "gates begin")
        metadata: dict[str, Any] = {"title": "D", "initiatorHandle": "olga@example.com"}
        metadata |= {"initiatorNameComponents": {"givenName": "Olga"}, "defaultShareOptions": {"groups": []}}
        with Connection(HOST, self.cluster.gate_ports[0]) as connection:
            for name in [*DECKS, PROBED]:
                connection.create_collaboration(name).result()
            for number in range(3):
                metadata["localIdentifier"] = f"document-{number}"
                fields = {"owner": "olga", "metadata": metadata, "ownerName": "Olga"}
                made = connection.collaborate("prepare", fields).result()
                self.documents.append(made["collaborationIdentifier"])
            connection.add_roots(PROBED, [self.people[0].root]).result()
            self.history.founded = connection.statistics().result()["sequence"]
        for thread in self.threads + self.readers:
            thread.start()

    def finish(self) -> None:
        """Ends the load, and reads what all gates hold."""
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        client = Client(self.cluster.gate_ports)

        def is_settled() -> bool:
            pings = [client.ask(gate, ping)[0].outcome for gate in range(NODES)]
            figures = [client.ask(gate, lambda each: each.statistics())[0].value for gate in range(NODES)]
            return pings == ["answered"] * NODES and len({each and each["sequence"] for each in figures}) == 1

        wait_until(is_settled, "all gates are fresh and have the same sequence")
        self.is_read.set()
        for reader in self.readers:
            reader.join()
        self.history.contents = [read_contents(port, self.documents) for port in self.cluster.gate_ports]

    def read_log(self, gate: int) -> None:
        """Reads a gate's change log while it grows, before it is trimmed."""
        client, log, last = Client(self.cluster.gate_ports), self.history.logs[gate], 0
        while True:
            is_last = self.is_read.is_set()
            [answer] = client.ask(gate, lambda each: each.read_changes(last, 1_000))
            for change in answer.value[0] if answer.value else []:
                # Equal ones take the memory of one.
                known = self.history.logs[0].get(change.sequence)
                log[change.sequence] = known if known is not None and known == change else change
                last = change.sequence
            if answer.value and answer.value[1]:
                continue
            if is_last and answer.value:
                return
            time.sleep(0.3)

    def note_use(self, use: Use) -> None:
        """Adds to the history."""
        self.history.uses.append(use)
        if use.outcome not in ("unknown", "unreachable"):
            self.working[use.gate, "answers"] = use.answered
        self.outcomes[f"{'proof' if use.challenge else 'grant'} {use.outcome}"] += 1

    def mutate(self, client: Client, gate: int, mutation: Mutation) -> Attempt:
        """Sends a mutation."""
        if not mutation.attempts:
            self.history.mutations.append(mutation)
        [answer] = client.ask(gate, mutation.send)
        attempt = Attempt(answer.sent, answer.answered, answer.outcome)
        if answer.value is not None:
            attempt.outcome = "acknowledged"
            if isinstance(answer.value, dict):
                attempt.sequence, attempt.changed = answer.value.get("sequence", 0), answer.value["changed"]
            else:
                attempt.sequence, attempt.changed, _ = answer.value
        mutation.attempts.append(attempt)
        self.outcomes[f"mutation {attempt.outcome}"] += 1
        return attempt

    def show(
        self, client: Client, gate: int, name: str, proofs: list[tuple[Person, Proof]], at_least: int = 0
    ) -> list[Use]:
        """Shows proofs, each in a request of its own."""
        sends = [lambda each, proof=proof: each.open([(name, proof)], at_least) for _, proof in proofs]
        uses = []
        for (person, proof), answer in zip(proofs, client.ask(gate, *sends)):
            outcome = verdict_name(answer.value.verdicts[0]) if answer.value else answer.outcome
            uses.append(Use(gate, answer.sent, answer.answered, name, person.root, outcome, at_least, proof.data))
            self.note_use(uses[-1])
            if answer.value and answer.value.grants[0]:
                key = device_key(proof.public_key)
                self.grants[name, person.root] = answer.value.grants[0], key, answer.answered
        return uses

    def prove(self, client: Client, gate: int, person: Person) -> Proof | None:
        """A proof over a challenge of a gate."""
        [answer] = client.ask(gate, lambda each: each.issue_challenges(1))
        return person.proof(0, answer.value.challenges[0]) if answer.value else None

    def check(self, client: Client, gate: int, name: str, root: bytes, grant: tuple[bytes, bytes, float]) -> None:
        """Shows a grant."""
        data, key, granted = grant
        [answer] = client.ask(gate, lambda each: each.check_grants([(name, data, key)]))
        outcome = grant_status_name(answer.value[0].status) if answer.value else answer.outcome
        self.note_use(Use(gate, answer.sent, answer.answered, name, root, outcome, granted=granted))

    def probe_grants(self, gate: int) -> None:
        """Notes when a gate grants proofs."""
        client = Client(self.cluster.gate_ports, timeout=1.0)
        while not self.is_over.wait(PAUSE):
            if proof := self.prove(client, gate, self.people[0]):
                [use] = self.show(client, gate, PROBED, [(self.people[0], proof)])
                if use.is_accepted:
                    self.working[gate, "grants"] = use.answered

    def probe_changes(self, gate: int) -> None:
        """Notes when a gate acknowledges mutations."""
        client = Client(self.cluster.gate_ports, timeout=7.0)
        while not self.is_over.wait(PAUSE):
            attempt = self.mutate(client, gate, Mutation(Operation.ADD_ROOTS, PROBED, [secrets.choice(FILLING)]))
            if attempt.outcome == "acknowledged":
                self.working[gate, "changes"] = attempt.answered

    def probe_member(self, member: int) -> None:
        """Notes when a member of etcd answers a linearizable read."""
        while not self.is_over.wait(PAUSE):
            connection = http.client.HTTPConnection(HOST, self.cluster.clients[member], timeout=0.5)
            try:
                connection.request("POST", "/v3/kv/range", '{"key": "eA=="}', {"Grpc-Metadata-hasleader": "true"})
                if connection.getresponse().status == 200:
                    self.working[member, "reads"] = time.monotonic()
            except (OSError, http.client.HTTPException):
                pass
            connection.close()


def read_contents(port: int, documents: list[str]) -> dict[str, list[bytes]]:
    """All root hashes that a gate holds, and the participants of documents."""
    contents: dict[str, list[bytes]] = {}
    with Connection(HOST, port) as connection:
        for name, _ in connection.list_collaborations(1_024).result()[0]:
            roots, more = connection.list_roots(name, 4_096).result()
            contents[name] = roots
            if more:
                raise ValueError(f"{name} has more root hashes than a page")
        for name in documents:
            fields = {"collaboration": name, "limit": 256, "includesRemoved": False}
            listed = connection.collaborate("listParticipants", fields).result()["participants"]
            if sorted(bytes.fromhex(each["identity"]) for each in listed) != contents[name]:
                contents[f"{name}, participants"] = [bytes.fromhex(each["identity"]) for each in listed]
    return contents


class Worker:
    """A client that does something at random, and has people of its own."""

    def __init__(self, load: Load, number: int, generator: random.Random) -> None:
        self.load, self.random = load, generator
        self.people = load.people[number * PEOPLE_EACH : (number + 1) * PEOPLE_EACH][number == 0 :]
        self.client = Client(load.cluster.gate_ports)
        self.spent: deque[tuple[str, Person, Proof]] = deque(maxlen=50)

    def run(self) -> None:
        """Works until the load is over."""
        actions = [self.fill, self.pass_by, self.admit, self.dismiss, self.open, self.check, self.replay]
        while not self.load.is_over.is_set():
            [action] = self.random.choices(actions, weights=(8, 3, 12, 6, 30, 30, 6))
            action()
            time.sleep(self.random.uniform(0, 4 * PAUSE))

    def gate(self, what: str = "answers") -> int:
        """Any gate; but rarely one that does not do that now, because this worker would do nothing else then."""
        gates = list(range(NODES))
        recent = [gate for gate in gates if self.load.working.get((gate, what), 0) > time.monotonic() - 0.5]
        return self.random.choice(recent if recent and self.random.random() < 0.95 else gates)

    def mutate(self, mutation: Mutation) -> Attempt:
        """Sends a mutation; when its outcome is unknown, mostly again, to any gate."""
        attempt = self.load.mutate(self.client, self.gate("changes"), mutation)
        for _ in range(3):
            if attempt.outcome not in UNCERTAIN or self.random.random() < 0.3:
                break
            attempt = self.load.mutate(self.client, self.gate("changes"), mutation)
        return attempt

    def fill(self) -> None:
        """Adds or removes root hashes that nobody uses."""
        digests = self.random.sample(FILLING, int(200 ** self.random.random()))
        name = self.random.choice(DECKS + PASSING)
        if self.random.random() < 0.5:
            self.mutate(Mutation(Operation.ADD_ROOTS, name, digests))
        else:
            self.mutate(Mutation(Operation.REMOVE_ROOTS, name, removed=digests))

    def pass_by(self) -> None:
        """Creates or drops a collaboration."""
        operation = self.random.choice([Operation.CREATE_COLLABORATION, Operation.DROP_COLLABORATION])
        self.mutate(Mutation(operation, self.random.choice(PASSING)))

    def change(self, name: str, person: Person, adds: bool) -> tuple[Mutation, Attempt]:
        """Adds or removes a person."""
        added, removed = ([person.root], []) if adds else ([], [person.root])
        operation = Operation.ADD_ROOTS if adds else Operation.REMOVE_ROOTS
        if name in self.load.documents:
            operation = Operation.COLLABORATE
        mutation = Mutation(operation, name, added, removed)
        return mutation, self.mutate(mutation)

    def admit(self) -> None:
        """Adds a person, who is then known everywhere behind the receipt's sequence."""
        name, person = self.random.choice(DECKS + PASSING[:1] + self.load.documents), self.random.choice(self.people)
        _, attempt = self.change(name, person, adds=True)
        gate = self.gate()
        if attempt.sequence and (proof := self.load.prove(self.client, gate, person)):
            self.load.show(self.client, gate, name, [(person, proof)], attempt.sequence)
            self.spent.append((name, person, proof))

    def dismiss(self) -> None:
        """Removes a person, who then tries to get in everywhere for as long as it may take, and longer."""
        name, person = self.random.choice(DECKS + self.load.documents), self.random.choice(self.people)
        grant = self.load.grants.get((name, person.root))
        _, attempt = self.change(name, person, adds=False)
        if attempt.outcome != "acknowledged":
            return
        if attempt.sequence and self.random.random() < 0.4:
            [answer] = self.client.ask(self.gate("changes"), lambda each: each.confirm_everywhere(attempt.sequence))
            self.load.outcomes[f"confirm {answer.outcome}"] += 1
            if answer.value:
                known = self.load.history.confirmed.get(attempt.sequence, float("inf"))
                self.load.history.confirmed[attempt.sequence] = min(known, answer.answered)
        while time.monotonic() < attempt.answered + self.load.history.bound + 1 and not self.load.is_over.is_set():
            gate = self.gate()
            if grant and self.random.random() < 0.6:
                self.load.check(self.client, gate, name, person.root, grant)
            elif proof := self.load.prove(self.client, gate, person):
                self.load.show(self.client, gate, name, [(person, proof)])
            time.sleep(self.random.uniform(0, 6 * PAUSE))

    def open(self) -> None:
        """Shows a proof twice at once, and then elsewhere."""
        name = self.random.choice(DECKS + self.load.documents + [PROBED])
        person = self.load.people[0] if name == PROBED else self.random.choice(self.load.people)
        gate = self.gate()
        if proof := self.load.prove(self.client, gate, person):
            self.load.show(self.client, gate, name, [(person, proof)] * self.random.randint(1, 2))
            self.load.show(self.client, self.gate(), name, [(person, proof)])
            self.spent.append((name, person, proof))

    def check(self) -> None:
        """Shows somebody's last grant."""
        if known := list(self.load.grants.items()):
            (name, root), grant = self.random.choice(known)
            self.load.check(self.client, self.gate(), name, root, grant)

    def replay(self) -> None:
        """Shows an old proof once more: perhaps the gate was started again meanwhile."""
        if self.spent:
            name, person, proof = self.random.choice(self.spent)
            self.load.show(self.client, self.gate(), name, [(person, proof)])


# The faults. Each lasts for the time that it takes, and leaves everything healed.


class Faults:
    """Bursts of faults."""

    def __init__(self, cluster: Cluster, load: Load, generator: random.Random) -> None:
        self.cluster, self.load, self.random = cluster, load, generator
        self.counts: Counter[str] = Counter()
        self.alone: dict[str, list[int]] = defaultdict(list)
        """By the kind of a fault that was alone, how many proofs were stale."""
        self.recoveries: list[tuple[float, str]] = []
        """Seconds from the healing, or from the return of etcd if that was later, with what was measured."""
        self.kinds: dict[str, tuple[int, Callable[[str, float], None]]] = {
            "gate killed": (14, self.kill), "member killed": (12, self.kill),
            "gate stopped": (14, self.stop), "member stopped": (10, self.stop),
            "gate's link impaired": (26, self.impair_one), "gate's links impaired": (10, self.impair_all),
            "peers' links impaired": (12, self.impair_one), "member's links impaired": (6, self.impair_all),
            "etcd full": (4, self.fill), "compaction behind a gate's back": (4, self.compact),
            "gate's clock stepped": (6 * cluster.has_clocks, self.step),
        }

    def burst(self, number: int) -> int:
        """Lets up to so many faults happen at about the same time, heals them, and measures the recovery. Returns how
        many there were."""
        names = list(self.kinds)
        chosen = self.random.choices(names, [self.kinds[name][0] for name in names], k=number)
        texts, threads, taken = [], [], set()
        for kind in chosen:
            target = f"{'member' if kind.startswith(('member', 'peers')) else 'gate'}-{self.random.randrange(NODES)}"
            if target in taken:
                continue
            taken.add(target)
            # Some outlast the lease of a gate's key.
            seconds, wait = self.random.uniform(0.2, 5) * self.random.choice([1] * 9 + [3]), self.random.uniform(0, 2)
            threads.append(threading.Timer(wait, self.kinds[kind][1], (target, seconds)))
            texts.append(f"{kind} {target} {seconds:.1f} s")
            self.counts[kind] += 1
        before = self.load.outcomes["proof stale"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.await_recovery(time.monotonic(), ", ".join(texts))
        if len(texts) == 1:
            self.alone[chosen[0]].append(self.load.outcomes["proof stale"] - before)
        return len(texts)

    def await_recovery(self, healed: float, text: str) -> None:
        """Waits until each member reads, and each gate grants and acknowledges again."""
        wanted = [(place, what) for place in range(NODES) for what in ("reads", "grants", "changes")]
        working = self.load.working
        first: dict[tuple[int, str], float] = {}

        def is_recovered() -> bool:
            for key in wanted:
                if working.get(key, 0) > healed:
                    first.setdefault(key, working[key])
            return len(first) == len(wanted)

        try:
            wait_until(is_recovered, f"recovery from {text}")
        finally:
            etcd = min((at for (_, what), at in first.items() if what == "reads"), default=healed)
            lacking = sorted(set(wanted) - first.keys())
            slowest = max((at, key) for key, at in first.items() if key[1] != "reads" or lacking)
            seconds = slowest[0] - max(etcd, healed)
            line = f"{seconds:.2f} s until gate {slowest[1][0]} {slowest[1][1]}, etcd {etcd - healed:.2f} s: {text}"
            self.recoveries.append((seconds, line))
            print(f"{time.monotonic():.1f} {line}" + (f", and never: {lacking}" if lacking else ""), flush=True)

    def kill(self, target: str, seconds: float) -> None:
        """Kills a process, and starts it soon."""
        node = self.cluster.nodes[target]
        node.kill()
        time.sleep(seconds / 3)
        node.start()

    def stop(self, target: str, seconds: float) -> None:
        """Stops a process for a while."""
        node = self.cluster.nodes[target]
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        node.process.send_signal(signal.SIGCONT)

    def impair_one(self, target: str, seconds: float) -> None:
        """Impairs the links of a process with one other member."""
        others = [f"member-{number}" for number in range(NODES) if f"member-{number}" != target]
        self.impair(target, [self.random.choice(others)], seconds)

    def impair_all(self, target: str, seconds: float) -> None:
        """Impairs the links of a process with all members."""
        self.impair(target, [f"member-{number}" for number in range(NODES) if f"member-{number}" != target], seconds)

    def impair(self, target: str, others: list[str], seconds: float) -> None:
        """Cuts links, in both directions or one, or makes them slow, or breaks their connections again and again."""
        kind = self.random.choice(["cut", "cut there", "cut back", "slow", "refusing"])
        loses = self.random.random() < 0.5
        self.counts[f"  of links: {kind}"] += 1
        there, back = kind not in ("cut", "cut there"), kind not in ("cut", "cut back")
        delay = self.random.uniform(0.02, 0.4) * (kind == "slow")
        refuses = kind == "refusing"
        for other in others:
            how = {"delay": delay, "refuses": refuses, "breaks": refuses}
            self.cluster.order(link=(target, other), passes=(there, back), **how)
            # Peers connect to each other both ways.
            self.cluster.order(link=(other, target), passes=(back, there), **how)
        time.sleep(seconds)
        for other in others:
            self.cluster.order(link=(target, other), breaks=loses)
            self.cluster.order(link=(other, target), breaks=loses)

    def fill(self, target: str, seconds: float) -> None:
        """Fills etcd with what belongs to nobody, and makes room again."""
        for number in range(2 * QUOTA // 1_000_000):
            done = self.cluster.etcdctl("put", f"junk/{number}", value=os.urandom(1_000_000))
            if b"database space exceeded" in done.stderr:
                break
        time.sleep(seconds)
        wait_until(self.make_room, "there is room in etcd again")

    def make_room(self) -> bool:
        """Removes what `fill` has put, from the disks, too."""
        steps = [self.cluster.etcdctl("del", "--prefix", "junk/"), self.compact_now()]
        steps += [self.cluster.etcdctl("defrag", member=number) for number in range(NODES)]
        steps += [self.cluster.etcdctl("alarm", "disarm")]
        alarms = self.cluster.etcdctl("alarm", "list")
        return all(step.returncode == 0 for step in [*steps, alarms]) and not alarms.stdout.strip()

    def compact_now(self) -> subprocess.CompletedProcess[bytes]:
        """Lets etcd forget what keys were before."""
        found = self.cluster.etcdctl("get", "x", "-w", "json")
        if found.returncode:
            return found
        done = self.cluster.etcdctl("compact", str(json.loads(found.stdout)["header"]["revision"]))
        if b"has been compacted" in done.stderr:
            done.returncode = 0
        return done

    def compact(self, target: str, seconds: float) -> None:
        """Compacts while a gate is stopped."""
        node = self.cluster.nodes[target]
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds / 2)
        self.compact_now()
        time.sleep(seconds / 2)
        node.process.send_signal(signal.SIGCONT)

    def step(self, target: str, seconds: float) -> None:
        """Steps a gate's clock, and back. Ahead a little only: what has expired does not become valid again."""
        gate = int(target[-1])
        self.cluster.step(gate, self.random.choice([-7200, -60, -5, 5, 60]))
        time.sleep(1 + seconds)
        self.cluster.step(gate, 0)


# The run.


def run(arguments: argparse.Namespace, directory: Path, generator: random.Random) -> list[str]:
    """Starts everything, breaks it, and returns the violations."""
    history = History(arguments.staleness / 1000)
    cluster = Cluster(arguments.program, directory, arguments.staleness)
    load = Load(cluster, history, generator)
    faults = Faults(cluster, load, generator)
    violations: list[str] = []
    threading.excepthook = lambda failure: violations.append(f"a thread of this test failed: {failure.exc_value!r}")
    try:
        load.set_up()
        begun, done, memory = time.monotonic(), 0, {node.name: node.memory() for node in cluster.nodes.values()}
        largest = dict(memory)
        while done < arguments.faults and time.monotonic() < begun + 60 * arguments.minutes:
            done += faults.burst(generator.choice([1, 1, 2, 3, 4]))
            for node in cluster.nodes.values():
                largest[node.name] = max(largest[node.name], node.memory())
                if node.process.poll() is not None and node.is_meant_to_run:
                    violations.append(f"{node.name} has ended by itself with {node.process.returncode}")
                    node.start()
            time.sleep(max(0, begun + 60 * arguments.minutes * done / arguments.faults - time.monotonic()))
        load.finish()
        seconds = {node.name: node.processor_seconds() for node in cluster.gates}
        time.sleep(5)
        for node in cluster.gates:
            share = (node.processor_seconds() - seconds[node.name]) / 5
            print(f"{node.name}: {100 * share:.1f} % of a core at rest, {memory[node.name]} MiB at first, "
                  f"{largest[node.name]} at most, {node.memory()} at the end")
    except TimeoutError as error:
        violations.append(str(error))
    finally:
        cluster.close()
    report(history, load, faults)
    return violations + Checker(history).violations()


def report(history: History, load: Load, faults: Faults) -> None:
    """Prints the figures."""
    for name, number in [*sorted(faults.counts.items()), *sorted(load.outcomes.items())]:
        print(f"{name:40}{number:>10}")
    for kind, stale in sorted(faults.alone.items()):
        print(f"{kind}, alone {len(stale)} times: {sum(map(bool, stale))} times with stale proofs, {sum(stale)} in all")
    unknown = [mutation for mutation in history.mutations if not mutation.receipts and not mutation.is_refused]
    checker = Checker(history)
    found = sum(mutation.logged in checker.places for mutation in unknown)
    print(f"{sum(bool(each.receipts) for each in history.mutations)} mutations acknowledged, {len(unknown)} unknown "
          f"({found} in the log), {sum(each.is_refused for each in history.mutations)} refused")
    list(checker.late())
    print(f"the last one let in {checker.latest:.3f} s after the answer to the removal; "
          f"{len(history.confirmed)} removals confirmed everywhere")
    late = sorted(faults.recoveries, reverse=True)
    if late:
        print(f"recovery: median {late[len(late) // 2][0]:.2f} s, the longest:")
    for _, line in late[:10]:
        print(f"  {line}")


# The test of the checker.

ROOT, OTHER = sha256(b"root"), sha256(b"other")
Plant = Callable[[History], Any]


def logged(sequence: int, mutation: Mutation) -> Change:
    """An entry of the log."""
    digests = mutation.added + mutation.removed
    return Change(sequence, 1, mutation.logged, mutation.operation, 0, len(digests), "deck", digests)


def small_history() -> History:
    """Somebody is added and removed, and nothing is wrong."""
    made = Mutation(Operation.CREATE_COLLABORATION, "deck", attempts=[Attempt(0, 1, "unknown")])
    made.attempts.append(Attempt(1, 2, "acknowledged", 1, 1))
    added = Mutation(Operation.ADD_ROOTS, "deck", [ROOT], attempts=[Attempt(3, 4, "acknowledged", 2, 1)])
    gone = Mutation(Operation.REMOVE_ROOTS, "deck", [], [ROOT], attempts=[Attempt(10, 11, "acknowledged", 3, 1)])
    doubt = Mutation(Operation.ADD_ROOTS, "deck", [OTHER], attempts=[Attempt(12, 13, "unknown")])
    refused = Mutation(Operation.ADD_ROOTS, "deck", [OTHER], attempts=[Attempt(14, 15, "busy")])
    log = {number: logged(number, each) for number, each in enumerate([made, added, gone, doubt], 1)}
    uses = [Use(0, 5, 6, "deck", ROOT, "granted", 2, b"1"), Use(1, 13.4, 13.6, "deck", ROOT, "granted", 0, b"2")]
    uses += [Use(1, 6, 7, "deck", ROOT, "valid", granted=6), Use(2, 20, 21, "deck", ROOT, "not-participant", 3, b"3")]
    contents = [{"deck": [OTHER]} for _ in range(NODES)]
    logs = [dict(log) for _ in range(NODES)]
    return History(2.5, [made, added, gone, doubt, refused], uses, logs=logs, contents=contents)


def used(sent: float, outcome: str = "granted", at_least: int = 0, challenge: bytes = b"4") -> Plant:
    """Plants a proof, or a grant that came when the person was there."""
    use = Use(1, sent, sent + 0.2, "deck", ROOT, outcome, at_least, challenge, granted=6)
    return lambda history: history.uses.append(use)


def answered(outcome: str) -> Plant:
    """Plants another answer to the mutation whose outcome was unknown, change 4."""
    return lambda history: history.mutations[3].attempts.append(Attempt(13, 14, outcome, 4, 1))


def doubtless(history: History) -> None:
    """That mutation was only sent once, with an answer."""
    history.mutations[3].attempts.pop(0)


def lost(sequence: int) -> Plant:
    """Takes a change out of all logs."""
    return lambda history: [log.pop(sequence) for log in history.logs]


def changed(gates: range, **fields: Any) -> Plant:
    """Writes change 4 once more into logs, with other fields."""

    def plant(history: History) -> None:
        for gate in gates:
            log = history.logs[gate]
            log[fields.get("sequence", 4)] = log[4]._replace(**fields)

    return plant


def added_again(history: History) -> None:
    """The person comes back."""
    again = Mutation(Operation.ADD_ROOTS, "deck", [ROOT], attempts=[Attempt(14, 15, "acknowledged", 5, 1)])
    history.mutations.append(again)
    for log in history.logs:
        log[5] = logged(5, again)
    history.contents = [{"deck": sorted([ROOT, OTHER])}] * NODES


PLANTED: list[tuple[str, list[Plant], str]] = [
    ("nothing", [], ""),
    ("the person came back", [added_again, used(16)], ""),
    ("the last mutation is lost", [answered("acknowledged"), lost(4)], "is not at its sequence"),
    ("a mutation is lost", [lost(2)], "no log has"),
    ("a mutation was applied twice", [changed(range(NODES), sequence=5)], "applied 2 times"),
    ("a refused mutation was applied", [answered("stale"), doubtless], "was refused, and applied"),
    ("one log has a gap", [lambda history: history.logs[1].pop(2)], "has gaps"),
    ("one log differs", [changed(range(1, 2), changed=0)], "differs from another one"),
    ("a receipt is wrong", [answered("acknowledged"), changed(range(NODES), changed=0)], "not what was sent"),
    ("a change has another effect", [changed(range(NODES), changed=0)], "has not changed what it says"),
    ("a change is not what was sent", [changed(range(NODES), digests=[ROOT])], "not what was sent"),
    ("nobody has sent a change", [lambda history: history.mutations.pop(3)], "sent by nobody"),
    ("a late proof", [used(13.6)], "after the removal"),
    ("a late grant", [used(13.6, "valid", challenge=b"")], "after the removal"),
    ("an old grant of somebody who came back", [added_again, used(16, "valid", challenge=b"")], "after the removal"),
    ("a proof behind a confirmation", [lambda history: history.confirmed.update({3: 13.0})], "after the removal"),
    ("a proof behind the removal's sequence", [used(12, at_least=3)], "after the removal"),
    ("somebody is refused", [used(5, "not-participant", 2)], "refused, although"),
    ("a grant is not known", [used(5, "forged", challenge=b"")], "is not known"),
    ("a challenge was granted twice", [used(7, challenge=b"1")], "granted 2 times"),
    ("contents differ", [lambda history: history.contents[2].update({"deck": []})], "gate 2 holds something else"),
]


def self_test() -> int:
    """Plants a violation of each rule in a small history, and returns how many the checker misses."""
    missed = 0
    for name, plants, text in PLANTED:
        history = small_history()
        for plant in plants:
            plant(history)
        found = Checker(history).violations()
        is_right = any(text in violation for violation in found) if text else not found
        missed += not is_right
        print(f"{'ok' if is_right else 'MISSED'}: {name}" + ("" if is_right else f": {found}"))
    return missed


def main() -> int:
    """Runs everything and returns the exit status."""
    parser = argparse.ArgumentParser(description="Breaks a cluster in many ways, and checks all that it answered.")
    parser.add_argument("program", type=Path, nargs="?")
    parser.add_argument("--faults", type=int, default=300, help="(default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="over which they are spread (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of the choices (default: a new one)")
    parser.add_argument("--staleness", type=int, default=2500, help="in milliseconds (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the logs and data of a run without violations, too")
    parser.add_argument("--self-test", action="store_true", help="test the checker, and nothing else")
    parser.add_argument("--proxy", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.proxy:
        asyncio.run(Network().run())
        return 0
    if arguments.self_test:
        return self_test()
    if not arguments.program:
        parser.error("PROGRAM is missing")
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    directory = Path(tempfile.mkdtemp(prefix="cluster-faults-"))
    print(f"seed {seed}, logs in {directory}", flush=True)
    violations = run(arguments, directory, random.Random(seed))
    for violation in violations[:50]:
        print(f"VIOLATION: {violation}")
    if violations:
        print(f"{len(violations)} violations. Logs and data are left in {directory}")
        return 1
    if not arguments.keep:
        shutil.rmtree(directory)
    print("nothing is wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
