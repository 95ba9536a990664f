# SPDX-License-Identifier: Apache-2.0
"""Kills a Rootgate service again and again while it is written to, and checks that nothing is lost.

    python3 kill_under_load.py PROGRAM [--kills 10] [--seed N] [--seconds-between 2]

PROGRAM is the path of the program `rootgate`. Several writers send pipelined mutations; at a random moment the service
gets SIGKILL, and a new one is started with the same data. Then, and again after every mutation that was not
acknowledged has been sent once more:

- the change log has no gaps, and nothing in it that was not sent, or was refused, or is there twice;
- every acknowledged mutation is in it, whole, at the sequence of its receipt;
- every other mutation is in it whole or not at all;
- the collaborations and root sets are what the whole log, replayed in a plain model, leads to.

The choices come from the seed; what the service has received when it is killed is a matter of timing. A killed process
loses nothing that the system has taken, so this says nothing of a loss of power. Needs the package `cryptography`.
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
from typing import IO, Optional

from rootgate_client import (
    Change,
    Client,
    CollaborationState,
    ErrorCode,
    Operation,
    Pending,
    Policy,
    ProtocolError,
    Receipt,
    RootgateError,
    logged_identifier,
    sha256,
)

WRITERS = 4
PIPELINED = 32
"""Mutations that a writer has in flight."""
COLLABORATIONS = {f"decks-{number}": (Policy.CHALLENGE, 0) for number in range(6)}
COLLABORATIONS.update({f"nonces-{number}": (Policy.DEVICE_NONCE, 60 + number) for number in range(6)})
"""The collaborations that come and go, with policy and window."""
ROOTS = [sha256(number.to_bytes(4, "big")) for number in range(4_000)]
"""What is added and removed; few enough that the same ones come and go."""
BATCH = 200
"""Root hashes in a mutation, at most."""
PAGE = 1_000
"""Items in a page; no more than any limit of the protocol."""
START_TIMEOUT = 60.0
LOG_RETENTION = 65_536
"""MiB: the log must stay whole."""


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
    receipt: Optional[Receipt] = None
    refused: bool = False

    @property
    def logged(self) -> bytes:
        """Its identifier in the change log."""
        return logged_identifier(self.identifier)

    @property
    def is_open(self) -> bool:
        """Whether no answer came."""
        return self.receipt is None and not self.refused

    def send(self, client: Client) -> Pending[Receipt]:
        """Sends it, for the first time or again."""
        name, identifier = self.collaboration, self.identifier
        if self.operation == Operation.CREATE_COLLABORATION:
            return client.create_collaboration(name, *COLLABORATIONS[name], identifier)
        if self.operation == Operation.DROP_COLLABORATION:
            return client.drop_collaboration(name, identifier)
        if self.operation == Operation.ADD_ROOTS:
            return client.add_roots(name, self.digests, identifier)
        return client.remove_roots(name, self.digests, identifier)

    def matches(self, change: Change) -> bool:
        """Whether an entry of the log has what was sent, and what the receipt said."""
        creates = self.operation == Operation.CREATE_COLLABORATION
        policy, window = COLLABORATIONS[self.collaboration] if creates else (0, 0)
        number = window if creates else len(self.digests)
        sent = (self.logged, self.operation, policy, number, self.collaboration, sorted(self.digests))
        logged = (*change[2:-1], sorted(change.digests))
        received = self.receipt is None or self.receipt[:2] == change[:2]
        return logged == sent and received


def random_mutation(generator: random.Random) -> Mutation:
    """Mostly an add or a removal, of few root hashes as often as of many."""
    identifier = generator.randbytes(16)
    name = generator.choice(list(COLLABORATIONS))
    kinds = (Operation.CREATE_COLLABORATION, Operation.DROP_COLLABORATION, Operation.ADD_ROOTS, Operation.REMOVE_ROOTS)
    [operation] = generator.choices(kinds, weights=(6, 1, 60, 33))
    if operation in kinds[:2]:
        return Mutation(identifier, operation, name)
    return Mutation(identifier, operation, name, generator.sample(ROOTS, int((BATCH + 1) ** generator.random())))


# The service and its writers.


class Service:
    """The program at work."""

    def __init__(self, program: Path, directory: Path) -> None:
        arguments = ["serve", "--data", directory / "data", "--listen", "127.0.0.1:0", "--log-retention"]
        self.errors = directory / "errors"
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [program, *arguments, str(LOG_RETENTION)], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.port = self._port(self.process.stdout)

    def _port(self, output: Optional[IO[str]]) -> int:
        assert output is not None
        timer = threading.Timer(START_TIMEOUT, self.process.kill)
        timer.start()
        line = output.readline()
        timer.cancel()
        match = re.search(r" is listening on .*:(\d+)$", line.rstrip())
        if not match:
            self.kill()
            raise CheckFailed(f"the service did not start: it printed {line!r} and\n{self.errors.read_text()}")
        return int(match[1])

    def connect(self) -> Client:
        """A new connection."""
        return Client("127.0.0.1", self.port)

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

    def __init__(self, service: Service, generator: random.Random, loses_answers: bool) -> None:
        super().__init__()
        self.sent: list[Mutation] = []
        self.failure = ""
        """What ended it too early."""
        self._generator = generator
        self._loses_answers = loses_answers
        self._client = service.connect()
        self._in_flight: deque[tuple[Mutation, Pending[Receipt]]] = deque()

    def run(self) -> None:
        """Keeps mutations in flight."""
        with self._client:
            try:
                while True:
                    mutation = random_mutation(self._generator)
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
        try:
            mutation.receipt = pending.result()
        except RootgateError as error:
            if error.code != ErrorCode.UNKNOWN_COLLABORATION:
                raise
            mutation.refused = True


# The checks.


class Collaboration:
    """A collaboration in the model."""

    def __init__(self, policy: int, window: int) -> None:
        self.policy = policy
        self.window = window
        self.roots: set[bytes] = set()

    @property
    def state(self) -> CollaborationState:
        """What the service has to say of it."""
        return CollaborationState(self.policy, self.window, len(self.roots))


Model = dict[str, Collaboration]


def applied(change: Change, model: Model) -> int:
    """Applies a change to the model and returns how many collaborations or root hashes came or went."""
    name = change.collaboration
    if change.operation == Operation.CREATE_COLLABORATION:
        if name in model:
            return 0
        model[name] = Collaboration(change.policy, change.number)
        return 1
    check(name in model, f"change {change.sequence} is about {name}, which does not exist")
    if change.operation == Operation.DROP_COLLABORATION:
        del model[name]
        return 1
    roots = model[name].roots
    before = len(roots)
    if change.operation == Operation.ADD_ROOTS:
        roots.update(change.digests)
    else:
        roots.difference_update(change.digests)
    return abs(len(roots) - before)


def check_everything(client: Client, sent: dict[bytes, Mutation]) -> set[bytes]:
    """Compares log and sets with what was sent and answered, and returns the identifiers in the log."""
    model: Model = {}
    logged: set[bytes] = set()
    for number, change in enumerate(read_log(client), 1):
        text = f"change {change.sequence}, mutation {change.mutation.hex()},"
        check(change.sequence == number, f"{text} stands where {number} belongs")
        check(change.mutation not in logged, f"{text} is in the log twice")
        logged.add(change.mutation)
        mutation = sent.get(change.mutation)
        check(mutation is not None, f"{text} was never sent")
        assert mutation is not None
        check(not mutation.refused, f"{text} was refused")
        check(mutation.matches(change), f"{text} is not what was sent:\n  {change}\n  {mutation}")
        changed = applied(change, model)
        check(changed == change.changed, f"{text} changed {changed}, not {change.changed}")
    for mutation in sent.values():
        check(mutation.receipt is None or mutation.logged in logged, f"acknowledged, but lost: {mutation}")
    check_sets(client, model)
    return logged


def read_log(client: Client) -> list[Change]:
    """The whole change log."""
    changes: list[Change] = []
    more = True
    while more:
        page, more = client.read_changes(changes[-1].sequence if changes else 0, PAGE).result()
        check(bool(page) or not more, "an empty page of the log promises more")
        changes += page
    return changes


def check_sets(client: Client, model: Model) -> None:
    """Compares all collaborations and their root hashes with the model."""
    listed, more = client.list_collaborations(PAGE).result()
    check(not more, "there are more collaborations than were created")
    expected = {name: collaboration.state for name, collaboration in model.items()}
    check(len(listed) == len(expected) and dict(listed) == expected, f"collaborations: {listed} are not {expected}")
    for name, collaboration in model.items():
        roots: list[bytes] = []
        more = True
        while more:
            page, more = client.list_roots(name, PAGE, roots[-1] if roots else None).result()
            check(bool(page) or not more, f"an empty page of {name} promises more")
            roots += page
        differing = len(set(roots) ^ collaboration.roots)
        check(roots == sorted(collaboration.roots), f"{name}: {differing} root hashes differ from the replayed log")


def retry(client: Client, mutation: Mutation, sent: dict[bytes, Mutation], was_logged: bool) -> None:
    """Sends a mutation again until it is acknowledged; what it needs to succeed is created first."""
    try:
        receipt = mutation.send(client).result()
    except RootgateError as error:
        if error.code != ErrorCode.UNKNOWN_COLLABORATION or was_logged:
            raise
        identifier = sha256(mutation.identifier)[:16]
        creation = Mutation(identifier, Operation.CREATE_COLLABORATION, mutation.collaboration)
        sent[creation.logged] = creation
        creation.receipt = creation.send(client).result()
        receipt = mutation.send(client).result()
    check(receipt.repeat == was_logged, f"a retry is wrongly {'a' if receipt.repeat else 'no'} repeat: {mutation}")
    mutation.receipt = receipt


# The run.


def run(
    program: Path, directory: Path, kills: int, seed: int, seconds_between: float, counts: Counter[str]
) -> None:
    """Writes, kills, restarts and checks; what it does is counted."""
    generator = random.Random(seed)
    sent: dict[bytes, Mutation] = {}
    service = Service(program, directory)
    try:
        for _ in range(kills):
            moment = generator.uniform(0, 2 * seconds_between)
            generators = [random.Random(generator.randbytes(16)) for _ in range(WRITERS)]
            writers = [Writer(service, choices, number % 2 > 0) for number, choices in enumerate(generators)]
            for writer in writers:
                writer.start()
            time.sleep(moment)
            service.kill()
            counts["kills"] += 1
            for writer in writers:
                writer.join()
                check(not writer.failure, f"a writer could not write: {writer.failure}")
                sent.update((mutation.logged, mutation) for mutation in writer.sent)
            service = Service(program, directory)
            with service.connect() as client:
                check_and_retry(client, sent, counts)
            print(f"killed after {moment:.2f} s: {len(sent)} mutations so far, nothing lost", flush=True)
    finally:
        service.kill()


def check_and_retry(client: Client, sent: dict[bytes, Mutation], counts: Counter[str]) -> None:
    """Checks what a restart has left, retries what had no answer, and checks again."""
    unanswered = [mutation for mutation in sent.values() if mutation.is_open]
    logged = check_everything(client, sent)
    found = sum(mutation.logged in logged for mutation in unanswered)
    counts["unacknowledged, found in the log"] += found
    counts["unacknowledged, absent"] += len(unanswered) - found
    for mutation in unanswered:
        retry(client, mutation, sent, mutation.logged in logged)
    check_everything(client, sent)
    counts["acknowledged"] = sum(mutation.receipt is not None for mutation in sent.values())
    counts["refused"] = sum(mutation.refused for mutation in sent.values())


def main() -> int:
    """Runs everything and returns the exit status."""
    parser = argparse.ArgumentParser(description="Kills a service under load and checks that nothing is lost.")
    parser.add_argument("program", type=Path)
    parser.add_argument("--kills", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of all random choices (default: a new one)")
    parser.add_argument(
        "--seconds-between", type=float, default=2, help="of load before a kill, on average (default: %(default)s)"
    )
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    counts: Counter[str] = Counter()
    failure = ""
    directory = Path(tempfile.mkdtemp())
    try:
        run(arguments.program, directory, arguments.kills, seed, arguments.seconds_between, counts)
    except (CheckFailed, OSError, RootgateError, ProtocolError) as error:
        failure = str(error) if isinstance(error, CheckFailed) else repr(error)
    for name, number in sorted(counts.items()):
        print(f"{name:36}{number:>10}")
    if failure:
        print(f"{failure}\nThe service's data and its messages are left in {directory}")
        return 1
    shutil.rmtree(directory)
    print(f"{counts['kills']} kills, nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
