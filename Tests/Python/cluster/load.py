# SPDX-License-Identifier: Apache-2.0
"""The load of a cluster: requests, what is noted of them, and probes that measure recovery."""

from __future__ import annotations

import http.client
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster.history import Attempt, History, Mutation, Use
from cluster.processes import NODES, Cluster, wait_until
from rootgate.connection import Connection, Pending
from rootgate.protocol import Operation, ProtocolError, RootgateError, error_name
from rootgate.protocol import grant_status_name, verdict_name
from rootgate.simulator import Device, Person
from rootgate.values import Proof, device_key, sha256

WORKERS = 12
PEOPLE_EACH = 4
"""People that one worker alone adds and removes."""
DECKS = [f"deck-{number}" for number in range(3)]
PASSING = [f"passing-{number}" for number in range(4)]
"""Collaborations that come and go."""
PROBED = "probed"
"""The collaboration by which recovery is measured."""
FILLING = [sha256(number.to_bytes(4, "big")) for number in range(2_000)]
PAUSE = 0.02
REQUEST_TIMEOUT = 12.0


@dataclass
class Answer:
    """What came of a request: `answered`, the name of the error, `unreachable`, or `unknown`."""

    outcome: str
    sent: float
    answered: float
    value: Any = None


class Client:
    """A connection to each gate, made when it is needed. One thread uses it."""

    def __init__(self, places: list[tuple[str, int]], timeout: float = REQUEST_TIMEOUT) -> None:
        self._places, self._timeout = places, timeout
        self._connections: dict[int, Connection] = {}

    def ask(self, gate: int, *sends: Callable[[Connection], Pending[Any]]) -> list[Answer]:
        """Sends requests together, and waits for their answers."""
        sent = time.monotonic()
        answers: list[Answer] = []
        try:
            connection = self._connections.get(gate)
            if not connection:
                connection = self._connections[gate] = Connection(*self._places[gate], self._timeout)
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
    """What workers ask of the cluster, probes that measure its recovery, and readers of the change logs."""

    def __init__(self, cluster: Cluster, history: History) -> None:
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
        self.threads: list[threading.Thread] = []
        for probe in (self.probe_grants, self.probe_changes, self.probe_member):
            self.threads += [threading.Thread(target=probe, args=(place,), daemon=True) for place in range(NODES)]
        history.logs = [{} for _ in range(NODES)]
        self.readers = [threading.Thread(target=self.read_log, args=(gate,), daemon=True) for gate in range(NODES)]

    def set_up(self, workers: list[threading.Thread]) -> None:
        """Makes the collaborations that stay, and begins."""
        client = Client(self.cluster.gates_at)
        wait_until(lambda: all(client.ask(gate, ping)[0].value == b"" for gate in range(NODES)), "gates begin")
        metadata: dict[str, Any] = {"title": "D", "initiatorHandle": "olga@example.com"}
        metadata |= {"initiatorNameComponents": {"givenName": "Olga"}, "defaultShareOptions": {"groups": []}}
        with Connection(*self.cluster.gates_at[0]) as connection:
            for name in [*DECKS, PROBED]:
                connection.create_collaboration(name).result()
            for number in range(3):
                metadata["localIdentifier"] = f"document-{number}"
                fields = {"owner": "olga", "metadata": metadata, "ownerName": "Olga"}
                made = connection.collaborate("prepare", fields).result()
                self.documents.append(made["collaborationIdentifier"])
            connection.add_roots(PROBED, [self.people[0].root]).result()
            self.history.founded = connection.statistics().result()["sequence"]
        self.threads = workers + self.threads
        for thread in self.threads + self.readers:
            thread.start()

    def finish(self) -> None:
        """Ends the load, and reads what all gates hold. Raises `TimeoutError` when they do not come to the same end;
        then what they hold is read all the same."""
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        try:
            self.settle()
        finally:
            self.is_read.set()
            # One that does not answer has had its time.
            deadline = time.monotonic() + 2 * REQUEST_TIMEOUT
            for reader in self.readers:
                reader.join(max(0, deadline - time.monotonic()))
            self.history.contents = [read_contents(place, self.documents) for place in self.cluster.gates_at]

    def settle(self) -> None:
        """Waits until all gates have the same."""
        client = Client(self.cluster.gates_at)

        def is_settled() -> bool:
            pings = [client.ask(gate, ping)[0].outcome for gate in range(NODES)]
            figures = [client.ask(gate, lambda each: each.statistics())[0].value for gate in range(NODES)]
            return pings == ["answered"] * NODES and len({each and each["sequence"] for each in figures}) == 1

        wait_until(is_settled, "all gates are fresh and have the same sequence")

    def read_log(self, gate: int) -> None:
        """Reads a gate's change log while it grows, before it is trimmed."""
        client, log, last = Client(self.cluster.gates_at), self.history.logs[gate], 0
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
        client = Client(self.cluster.gates_at, timeout=1.0)
        while not self.is_over.wait(PAUSE):
            if proof := self.prove(client, gate, self.people[0]):
                [use] = self.show(client, gate, PROBED, [(self.people[0], proof)])
                if use.is_accepted:
                    self.working[gate, "grants"] = use.answered

    def probe_changes(self, gate: int) -> None:
        """Notes when a gate acknowledges mutations."""
        client = Client(self.cluster.gates_at, timeout=7.0)
        while not self.is_over.wait(PAUSE):
            attempt = self.mutate(client, gate, Mutation(Operation.ADD_ROOTS, PROBED, [secrets.choice(FILLING)]))
            if attempt.outcome == "acknowledged":
                self.working[gate, "changes"] = attempt.answered

    def probe_member(self, member: int) -> None:
        """Notes when a member of etcd answers a linearizable read."""
        while not self.is_over.wait(PAUSE):
            connection = http.client.HTTPConnection(
                self.cluster.member_hosts[member], self.cluster.clients[member], timeout=0.5)
            try:
                connection.request("POST", "/v3/kv/range", '{"key": "eA=="}', {"Grpc-Metadata-hasleader": "true"})
                if connection.getresponse().status == 200:
                    self.working[member, "reads"] = time.monotonic()
            except (OSError, http.client.HTTPException):
                pass
            connection.close()


def read_contents(place: tuple[str, int], documents: list[str]) -> dict[str, list[bytes]] | None:
    """All root hashes that a gate holds, and the participants of documents; `None` when it does not answer."""
    contents: dict[str, list[bytes]] = {}
    try:
        with Connection(*place, REQUEST_TIMEOUT) as connection:
            read_into(contents, connection, documents)
    except (OSError, ProtocolError, RootgateError):
        return None
    return contents


def read_into(contents: dict[str, list[bytes]], connection: Connection, documents: list[str]) -> None:
    """Reads them over a connection."""
    for name, _ in connection.list_collaborations(1_024).result()[0]:
        roots, more = connection.list_roots(name, 4_096).result()
        contents[name] = roots
        if more:
            raise ValueError(f"{name} has more root hashes than a page")
    for name in documents:
        fields = {"collaboration": name, "limit": 256, "includesRemoved": False}
        listed = connection.collaborate("listParticipants", fields).result()["participants"]
        if sorted(bytes.fromhex(each["identity"]) for each in listed) != contents.get(name):
            contents[f"{name}, participants"] = [bytes.fromhex(each["identity"]) for each in listed]
