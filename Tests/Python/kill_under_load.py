# SPDX-License-Identifier: Apache-2.0
"""Kills a Rootgate service again and again while it is written to, and checks that nothing is lost.

    python3 kill_under_load.py PROGRAM [--kills 10] [--seed N] [--seconds-between 0.5]

PROGRAM is the path of the program `rootgate`. Several writers send pipelined mutations of all kinds: root hashes, a few
or thousands at once, and participants of shared documents, which change records and root hashes together. The storage
is small, so that it is full at times, and its change log is trimmed all the time. At a random moment, sometimes while
it starts, the service gets SIGKILL, and a new one is started with the same data. Then, and again after every mutation
that was not acknowledged has been sent once more:

- the change log has no gaps, and nothing in it that was not sent, or was refused, or is there twice;
- every acknowledged mutation is in it, whole, at the sequence of its receipt, unless it was trimmed;
- every other mutation is in it whole or not at all, unless it was trimmed: then what the sets have more or less than
  expected has to be what such mutations add or remove;
- the collaborations, root sets and participants are what all these changes, replayed in a plain model, lead to.

The choices come from the seed; what the service has received when it is killed is a matter of timing. A killed process
loses nothing that the system has taken, so this says nothing of a loss of power. Needs the packages
`cryptography` and `rootgate` (PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counts import positive_number
from rootgate.changes import decode_edit, logged_identifier, logged_mutation
from rootgate.connection import Connection, Pending
from rootgate.protocol import ErrorCode, Operation, Policy, ProtocolError, RootgateError
from rootgate.values import Change, CollaborationState, Receipt, sha256

WRITERS = 4
PIPELINED = 24
"""Mutations that a writer has in flight."""
DECKS = {f"decks-{number}": (Policy.CHALLENGE, 0) for number in range(6)}
DECKS.update({f"nonces-{number}": (Policy.DEVICE_NONCE, 60 + number) for number in range(6)})
"""The collaborations that come and go, with policy and window."""
CROWDS = [f"crowd-{number}" for number in range(4)]
"""The collaborations into which thousands of root hashes are imported at once."""
DOCUMENTS = 3
"""Documents that are shared, with participants."""
ROOTS = [sha256(number.to_bytes(4, "big")) for number in range(4_000)]
"""What is added and removed; few enough that the same ones come and go."""
MANY_ROOTS = [sha256(number.to_bytes(5, "big")) for number in range(30_000)]
PEOPLE = [sha256(number.to_bytes(6, "big")) for number in range(400)]
BATCH = 200
"""Root hashes in a mutation, at most, unless it is an import."""
IMPORT = 4_000
PAGE = 4_096
"""Root hashes in a page; the protocol's limit. A page has a quarter as many collaborations."""
START_TIMEOUT = 60.0
OPTIONS = ["--storage-max", "8", "--storage-reserve", "4", "--log-retention", "2"]
OPTIONS += ["--link-base", "https://example.com/c"]
"""A storage that is small, with a log that is long enough for what is not acknowledged, unless it gives way to a
removal."""
REFUSALS = (ErrorCode.UNKNOWN_COLLABORATION, ErrorCode.STORAGE_FULL, ErrorCode.BUSY)


class CheckFailed(Exception):
    """Something is not as it has to be."""


def check(holds: bool, text: str) -> None:
    """Makes sure that something holds."""
    if not holds:
        raise CheckFailed(text)


# Mutations.


@dataclass
class Mutation:
    """A change that was sent, and what is known of it."""

    identifier: bytes
    operation: Operation
    collaboration: str
    digests: list[bytes] = field(default_factory=list)
    """What is added; what is removed by REMOVE_ROOTS."""
    removed: list[bytes] = field(default_factory=list)
    """Of participants: who is removed."""
    sequence: int | None = None
    """Of its receipt; 0 when it changed nothing and is not in the log."""
    changed: int = 0
    refusal: int = 0
    """The code of the error that has refused it, or 0."""

    @property
    def refused(self) -> bool:
        """Whether it was refused."""
        return self.refusal != 0

    @property
    def fields(self) -> dict[str, Any]:
        """Of a request of the layer."""
        added = [{"identity": digest.hex()} for digest in self.digests]
        return {
            "collaboration": self.collaboration, "added": added, "removed": [digest.hex() for digest in self.removed]
        }

    @property
    def logged(self) -> bytes:
        """Its identifier in the change log."""
        if self.operation == Operation.COLLABORATE:
            return logged_mutation(self.identifier, self.fields)
        return logged_identifier(self.identifier)

    @property
    def is_open(self) -> bool:
        """Whether no answer came."""
        return self.sequence is None and not self.refused

    def send(self, client: Connection) -> Pending[Any]:
        """Sends it, for the first time or again."""
        name, identifier = self.collaboration, self.identifier
        if self.operation == Operation.COLLABORATE:
            return client.collaborate("updateParticipants", self.fields, identifier)
        if self.operation == Operation.CREATE_COLLABORATION:
            return client.create_collaboration(name, *DECKS[name], identifier)
        if self.operation == Operation.DROP_COLLABORATION:
            return client.drop_collaboration(name, identifier)
        if self.operation == Operation.ADD_ROOTS:
            return client.add_roots(name, self.digests, identifier)
        return client.remove_roots(name, self.digests, identifier)

    def settle(self, pending: Pending[Any]) -> bool:
        """Takes the answer; returns whether it says that the mutation is a repeat. Raises `ConnectionError`."""
        try:
            answer = pending.result()
        except RootgateError as error:
            if error.code not in REFUSALS:
                raise
            self.refusal = error.code
            return False
        if isinstance(answer, Receipt):
            self.sequence, self.changed = answer.sequence, answer.changed
            return answer.repeat
        self.sequence, self.changed = answer.get("sequence", 0), answer["changed"]
        return False

    def changed_in(self, change: Change) -> int:
        """What a receipt of an entry of the log says. The layer counts participants, the log root hashes."""
        return self.changed if self.operation == Operation.COLLABORATE else change.changed

    def matches(self, change: Change) -> bool:
        """Whether an entry of the log has what was sent, and what the receipt said."""
        if self.sequence is not None and (self.sequence, self.changed) != (change.sequence, self.changed_in(change)):
            return False
        if self.operation == Operation.COLLABORATE:
            edit = decode_edit(change.edit)
            added, removed = set(edit.added), set(edit.removed)
            same = change.operation == Operation.EDIT and change.collaboration == self.collaboration
            return same and added <= set(self.digests) and removed <= set(self.removed)
        creates = self.operation == Operation.CREATE_COLLABORATION
        policy, window = DECKS[self.collaboration] if creates else (0, 0)
        number = window if creates else len(self.digests)
        sent = (self.logged, self.operation, policy, number, self.collaboration, sorted(self.digests))
        return (*change[2:-2], sorted(change.digests)) == sent


def random_mutation(generator: random.Random, documents: list[str]) -> Mutation:
    """Mostly an add or a removal, of few root hashes as often as of many."""
    identifier = generator.randbytes(16)
    kinds = ("create", "drop", "add", "remove", "import", "clear", "people")
    [kind] = generator.choices(kinds, weights=(12, 2, 100, 60, 4, 2, 40))
    if kind == "people":
        people = generator.sample(PEOPLE, generator.randint(1, 20))
        cut = generator.randint(0, len(people))
        return Mutation(identifier, Operation.COLLABORATE, generator.choice(documents), people[:cut], people[cut:])
    if kind in ("import", "clear"):
        operation = Operation.ADD_ROOTS if kind == "import" else Operation.REMOVE_ROOTS
        digests = generator.sample(MANY_ROOTS, generator.randint(1, IMPORT))
        return Mutation(identifier, operation, generator.choice(CROWDS), digests)
    name = generator.choice(list(DECKS))
    if kind in ("create", "drop"):
        operation = Operation.CREATE_COLLABORATION if kind == "create" else Operation.DROP_COLLABORATION
        return Mutation(identifier, operation, name)
    operation = Operation.ADD_ROOTS if kind == "add" else Operation.REMOVE_ROOTS
    return Mutation(identifier, operation, name, generator.sample(ROOTS, int((BATCH + 1) ** generator.random())))


# The service and its writers.


class Service:
    """The program at work. As a context it is killed at the end, if it still runs."""

    def __init__(self, program: Path, directory: Path, options: list[str] = OPTIONS) -> None:
        arguments = ["serve", "--data", directory / "data", "--listen", "127.0.0.1:0", *options]
        self.errors = directory / "errors"
        self.begun = time.monotonic()
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True)
        self.port = 0
        self.seconds = 0.0
        """From its beginning until it listened."""

    def listen(self) -> Service:
        """Waits until it listens."""
        output = self.process.stdout
        assert output is not None
        timer = threading.Timer(START_TIMEOUT, self.process.kill)
        timer.start()
        line = output.readline()
        timer.cancel()
        self.seconds = time.monotonic() - self.begun
        match = re.search(r" is listening on .*:(\d+)$", line.rstrip())
        if not match:
            self.kill()
            raise CheckFailed(f"the service did not start: it printed {line!r} and\n{self.errors.read_text()[-4000:]}")
        self.port = int(match[1])
        return self

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def connect(self) -> Connection:
        """A new connection."""
        return Connection("127.0.0.1", self.port)

    def kill(self) -> None:
        """Ends it without any warning."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


class Writer(threading.Thread):
    """Sends mutations until the service is gone.

    Then it takes the answers that have arrived, or loses them like a client that fails at the same time: in that way
    many of the mutations that it does not know to be done are.
    """

    def __init__(
        self, service: Service, generator: random.Random, documents: list[str], loses_answers: bool
    ) -> None:
        super().__init__()
        self._documents = documents
        self.sent: list[Mutation] = []
        self.failure = ""
        """What ended it too early."""
        self._generator = generator
        self._loses_answers = loses_answers
        self._client = service.connect()
        self._in_flight: deque[tuple[Mutation, Pending[Any]]] = deque()

    def run(self) -> None:
        """Keeps mutations in flight."""
        with self._client:
            try:
                while True:
                    mutation = random_mutation(self._generator, self._documents)
                    self.sent.append(mutation)
                    self._in_flight.append((mutation, mutation.send(self._client)))
                    if len(self._in_flight) == PIPELINED:
                        self._settle()
            except ConnectionError:
                if not self._loses_answers:
                    self._settle_rest()
            except (OSError, RootgateError, ProtocolError) as error:
                self.failure = repr(error)

    def _settle_rest(self) -> None:
        while self._in_flight:
            try:
                self._settle()
            except ConnectionError:
                pass
            except (OSError, RootgateError, ProtocolError) as error:
                self.failure = repr(error)

    def _settle(self) -> None:
        mutation, pending = self._in_flight.popleft()
        mutation.settle(pending)


# The checks.


class Collaboration:
    """A collaboration in the model."""

    def __init__(self, policy: int, window: int, is_document: bool = False) -> None:
        self.policy = policy
        self.window = window
        self.is_document = is_document
        self.roots: set[bytes] = set()

    @property
    def state(self) -> CollaborationState:
        """What the service has to say of it."""
        return CollaborationState(self.policy, self.window, len(self.roots))


class Model:
    """What the service has to hold after a number of changes."""

    def __init__(self, sequence: int, collaborations: dict[str, Collaboration]) -> None:
        self.sequence = sequence
        self.collaborations = collaborations
        self.kept: dict[int, Mutation] = {}
        """The newest changes by their sequence."""
        self.untold = 0
        """Changes that were trimmed before anybody was told of them."""

    def apply(self, mutation: Mutation, is_certain: bool = True) -> int:
        """Applies a change and returns how many collaborations or root hashes came or went. `is_certain`: whether the
        model knows all changes before."""
        name, sets = mutation.collaboration, self.collaborations
        if not is_certain and name not in sets:
            sets[name] = Collaboration(*DECKS[name])
        if mutation.operation == Operation.CREATE_COLLABORATION:
            if name in sets:
                return 0
            sets[name] = Collaboration(*DECKS[name])
            return 1
        check(name in sets, f"a change is about {name}, which does not exist: {mutation}")
        if mutation.operation == Operation.DROP_COLLABORATION:
            del sets[name]
            return 1
        roots = sets[name].roots
        before = len(roots)
        if mutation.operation == Operation.REMOVE_ROOTS:
            roots.difference_update(mutation.digests)
            return before - len(roots)
        roots.update(mutation.digests)
        added = len(roots) - before
        roots.difference_update(mutation.removed)
        return added + before + added - len(roots)

    def advance(self, mutation: Mutation, changed: int | None, is_certain: bool = True) -> None:
        """Applies the next change of the log. `changed`: what came or went, if that is known."""
        self.sequence += 1
        found = self.apply(mutation, is_certain)
        changed = changed if is_certain else None
        check(changed in (None, found), f"change {self.sequence} changed {found}, not {changed}: {mutation}")
        self.kept[self.sequence] = mutation


def check_everything(client: Connection, sent: dict[bytes, Mutation], model: Model) -> dict[bytes, int]:
    """Compares log, sets and participants with what was sent and answered. Returns the sequences of the identifiers in
    the log."""
    first = client.statistics().result()["log-first-sequence"]
    log = read_log(client, first)
    logged = {change.mutation: change.sequence for change in log}
    check(len(logged) == len(log), "a mutation is in the log twice")
    receipts = {mutation.sequence: mutation for mutation in sent.values() if mutation.sequence}
    last = log[-1].sequence if log else first - 1
    untold = 0
    while model.sequence < min(first - 1, last):
        # The log does not have it any more, so only its receipt tells what it was.
        mutation = receipts.get(model.sequence + 1)
        if mutation is None:
            untold += 1
            model.sequence += 1
            continue
        known = None if mutation.operation == Operation.COLLABORATE else mutation.changed
        model.advance(mutation, known, not untold)
    unknown = [mutation for mutation in sent.values() if mutation.is_open and mutation.logged not in logged]
    check(untold <= len(unknown), f"{untold} changes were trimmed, and only {len(unknown)} mutations have no answer")
    for number, change in enumerate(log, first):
        check(change.sequence == number, f"change {change.sequence} stands where {number} belongs")
        mutation = sent.get(change.mutation) or model.kept.get(number)
        check(mutation is not None, f"change {number}, mutation {change.mutation.hex()}, was never sent")
        assert mutation is not None
        check(not mutation.refused, f"change {number} was refused: {mutation}")
        check(mutation.matches(change), f"change {number} is not what was sent:\n  {change}\n  {mutation}")
        if number > model.sequence:
            model.advance(mutation, change.changed, not untold)
        check(model.kept.get(number) is mutation, f"change {number} is another one than before")
    check(model.sequence == last, f"the log ends with {last}, and {model.sequence} was there")
    check(max(receipts, default=0) <= last, f"change {max(receipts, default=0)} was acknowledged, and is lost")
    model.kept = {number: mutation for number, mutation in model.kept.items() if number >= first}
    if untold:
        model.untold += untold
        adopt_sets(client, model, unknown)
    check_sets(client, model)
    return logged


def read_log(client: Connection, first: int) -> list[Change]:
    """The whole change log that was kept."""
    changes: list[Change] = []
    more = True
    while more:
        page, more = client.read_changes(changes[-1].sequence if changes else first - 1, 1_000).result()
        check(bool(page) or not more, "an empty page of the log promises more")
        changes += page
    return changes


def adopt_sets(client: Connection, model: Model, unknown: list[Mutation]) -> None:
    """Takes over the sets behind changes that nobody knows. Mutations without an answer have to explain them."""
    listed, more = client.list_collaborations(PAGE // 4).result()
    check(not more, "there are more collaborations than were created")
    states = dict(listed)
    for name in states.keys() | model.collaborations.keys():
        about = [mutation for mutation in unknown if mutation.collaboration == name]
        kinds = {mutation.operation for mutation in about}
        if name not in states:
            check(Operation.DROP_COLLABORATION in kinds, f"{name} is gone, and nobody has dropped it")
            del model.collaborations[name]
            continue
        if name not in model.collaborations:
            check(Operation.CREATE_COLLABORATION in kinds, f"{name} is there, and nobody has made it")
            model.collaborations[name] = Collaboration(*DECKS[name])
        expected = model.collaborations[name].roots
        found = set(list_roots(client, name))
        removals = {digest for each in about if each.operation == Operation.REMOVE_ROOTS for digest in each.digests}
        additions = {digest for each in about if each.operation != Operation.REMOVE_ROOTS for digest in each.digests}
        removals |= {digest for each in about for digest in each.removed}
        check(found - expected <= additions, f"{name} has {len(found - expected - additions)} root hashes too many")
        if Operation.DROP_COLLABORATION not in kinds:
            check(expected - found <= removals, f"{name} lacks {len(expected - found - removals)} root hashes")
        model.collaborations[name].roots = found


def list_roots(client: Connection, name: str) -> list[bytes]:
    """All root hashes of a collaboration."""
    roots: list[bytes] = []
    more = True
    while more:
        page, more = client.list_roots(name, PAGE, roots[-1] if roots else None).result()
        check(bool(page) or not more, f"an empty page of {name} promises more")
        roots += page
    return roots


def check_sets(client: Connection, model: Model) -> None:
    """Compares all collaborations, their root hashes and the participants with the model."""
    listed, more = client.list_collaborations(PAGE // 4).result()
    check(not more, "there are more collaborations than were created")
    expected = {name: collaboration.state for name, collaboration in model.collaborations.items()}
    check(len(listed) == len(expected) and dict(listed) == expected, f"collaborations: {listed} are not {expected}")
    for name, collaboration in model.collaborations.items():
        roots = list_roots(client, name)
        differing = len(set(roots) ^ collaboration.roots)
        check(roots == sorted(collaboration.roots), f"{name}: {differing} root hashes differ from the replayed changes")
        if collaboration.is_document:
            people = list_people(client, name)
            check(people == roots, f"{name}: the participants are not those of the replayed changes")


def list_people(client: Connection, name: str) -> list[bytes]:
    """The identities of a document's participants. Its owner has none before he opens it."""
    people: list[bytes] = []
    more = True
    while more:
        after = {"after": people[-1].hex()} if people else {}
        fields = {"collaboration": name, "limit": 256, "includesRemoved": False, **after}
        page = client.collaborate("listParticipants", fields).result()
        more = page["hasMore"]
        people += [bytes.fromhex(participant["identity"]) for participant in page["participants"]]
    return people


def retry(client: Connection, mutation: Mutation, sequence: int | None, counts: Counter[str]) -> None:
    """Sends a mutation again. If the log has it, at that sequence, it is a repeat."""
    first = client.statistics().result()["log-first-sequence"]
    if sequence is not None and sequence < first:
        # The full storage has made room for a removal that was retried before: of the log, too.
        counts["retried when the log had it no more"] += 1
        sequence = None
    was_logged = sequence is not None
    repeat = mutation.settle(mutation.send(client))
    check(not (mutation.refused and was_logged), f"a retry was refused, although it was applied: {mutation}")
    if mutation.operation != Operation.COLLABORATE and not mutation.refused:
        check(repeat == was_logged, f"a retry is wrongly {'a' if repeat else 'no'} repeat: {mutation}")


# The run.


def set_up(client: Connection) -> tuple[Model, list[str]]:
    """Makes the collaborations that stay. Returns the model and the documents."""
    for name in CROWDS:
        client.create_collaboration(name).result()
    collaborations = {name: Collaboration(Policy.CHALLENGE, 0) for name in CROWDS}
    documents = []
    for number in range(DOCUMENTS):
        metadata = {"localIdentifier": f"document-{number}", "title": "Document", "initiatorHandle": "olga@example.com"}
        metadata["initiatorNameComponents"] = {"givenName": "Olga"}
        metadata["defaultShareOptions"] = {"groups": []}
        made = client.collaborate("prepare", {"owner": "olga", "metadata": metadata, "ownerName": "Olga"}).result()
        documents.append(made["collaborationIdentifier"])
    listed, _ = client.list_collaborations(PAGE // 4).result()
    for name, state in listed:
        if name in documents:
            collaborations[name] = Collaboration(state.policy, state.window, is_document=True)
    return Model(client.statistics().result()["sequence"], collaborations), documents


def run(
    program: Path, directory: Path, kills: int, seed: int, seconds_between: float, counts: Counter[str],
    starts: list[float],
) -> None:
    """Writes, kills, restarts and checks; what it does is counted."""
    generator = random.Random(seed)
    service = Service(program, directory).listen()
    try:
        with service.connect() as client:
            model, documents = set_up(client)
            kept = read_log(client, 1)
        sent: dict[bytes, Mutation] = {}
        for change in kept:
            model.kept[change.sequence] = Known(change)
        for number in range(1, kills + 1):
            writers = write_until_killed(service, generator, documents, seconds_between)
            counts["kills"] += 1
            for writer in writers:
                sent.update((mutation.logged, mutation) for mutation in writer.sent)
            service = Service(program, directory)
            if generator.random() < 0.1:
                time.sleep(generator.uniform(0, 0.1))
                service.kill()
                counts["kills during a start"] += 1
                service = Service(program, directory)
            starts.append(service.listen().seconds)
            with service.connect() as client:
                check_and_retry(client, sent, model, counts)
            if number % 50 == 0 or number == kills:
                print(f"{number} kills, {counts['acknowledged']} mutations acknowledged, nothing lost", flush=True)
            # Of the older ones only the sets tell.
            sent = {key: mutation for key, mutation in sent.items() if (mutation.sequence or 0) in model.kept}
    finally:
        service.kill()


class Known(Mutation):
    """A change of the beginning, which stands in the log as it was read then."""

    def __init__(self, change: Change) -> None:
        super().__init__(b"", Operation.EDIT, change.collaboration)
        self.change = change

    def matches(self, change: Change) -> bool:
        """Whether it is still the same."""
        return change == self.change


def write_until_killed(
    service: Service, generator: random.Random, documents: list[str], seconds_between: float
) -> list[Writer]:
    """Lets writers write, and kills the service at a random moment."""
    moment = generator.uniform(0, 2 * seconds_between)
    generators = [random.Random(generator.randbytes(16)) for _ in range(WRITERS)]
    writers = [
        Writer(service, choices, documents, number % 2 > 0) for number, choices in enumerate(generators)
    ]
    for writer in writers:
        writer.start()
    time.sleep(moment)
    service.kill()
    for writer in writers:
        writer.join()
        check(not writer.failure, f"a writer could not write: {writer.failure}")
    return writers


def check_and_retry(client: Connection, sent: dict[bytes, Mutation], model: Model, counts: Counter[str]) -> None:
    """Checks what a restart has left, retries what had no answer, and checks again."""
    # Requests for what the check of the start has not come to may be refused as busy.
    while client.statistics().result()["storage-checked"] != 1:
        time.sleep(0.005)
    unanswered = [mutation for mutation in sent.values() if mutation.is_open]
    answered = [mutation for mutation in sent.values() if not mutation.is_open and mutation.sequence not in model.kept]
    logged = check_everything(client, sent, model)
    found = sum(mutation.logged in logged for mutation in unanswered)
    counts["unacknowledged, found in the log"] += found
    counts["unacknowledged, absent"] += len(unanswered) - found
    for mutation in unanswered:
        retry(client, mutation, logged.get(mutation.logged), counts)
    check_everything(client, sent, model)
    counts["acknowledged"] += sum(not mutation.refused for mutation in answered + unanswered)
    for mutation in answered + unanswered:
        if mutation.refused:
            counts[f"refused, {ErrorCode(mutation.refusal).name}"] += 1
    counts["first sequence in the log"] = min(model.kept, default=0)
    counts["trimmed before anybody was told"] = model.untold


def main() -> int:
    """Runs everything and returns the exit status."""
    parser = argparse.ArgumentParser(description="Kills a service under load and checks that nothing is lost.")
    parser.add_argument("program", type=Path)
    parser.add_argument("--kills", type=positive_number, default=10, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of all random choices (default: a new one)")
    parser.add_argument(
        "--seconds-between", type=float, default=0.5, help="of load before a kill, on average (default: %(default)s)"
    )
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    counts: Counter[str] = Counter()
    failure = ""
    starts: list[float] = []
    directory = Path(tempfile.mkdtemp())
    try:
        run(arguments.program, directory, arguments.kills, seed, arguments.seconds_between, counts, starts)
    except (CheckFailed, OSError, RootgateError, ProtocolError) as error:
        failure = str(error) if isinstance(error, CheckFailed) else repr(error)
    for name, number in sorted(counts.items()):
        print(f"{name:36}{number:>10}")
    if starts:
        milliseconds = sorted(1000 * seconds for seconds in starts)
        print(f"restart: median {milliseconds[len(starts) // 2]:.0f} ms, at most {milliseconds[-1]:.0f} ms")
    if failure:
        print(f"{failure}\nThe service's data and its messages are left in {directory}")
        return 1
    shutil.rmtree(directory)
    print(f"{counts['kills']} kills, nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
