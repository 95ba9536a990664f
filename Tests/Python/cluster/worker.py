# SPDX-License-Identifier: Apache-2.0
"""What one client of a cluster does at random."""

from __future__ import annotations

import random
import threading
import time
from collections import deque

from cluster.history import UNCERTAIN, Attempt, Mutation
from cluster.load import DECKS, FILLING, PASSING, PAUSE, PEOPLE_EACH, PROBED, WORKERS, Client, Load
from cluster.processes import NODES
from rootgate.protocol import Operation
from rootgate.simulator import Person
from rootgate.values import Proof


class Worker:
    """A client that does something at random, and has people of its own."""

    def __init__(self, load: Load, number: int, generator: random.Random) -> None:
        self.load, self.random = load, generator
        self.people = load.people[number * PEOPLE_EACH : (number + 1) * PEOPLE_EACH][number == 0 :]
        self.client = Client(load.cluster.gates_at)
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


def workers(load: Load, generator: random.Random) -> list[threading.Thread]:
    """The threads of all workers, each of which chooses for itself."""
    generators = [random.Random(generator.randbytes(8)) for _ in range(WORKERS)]
    bodies = [Worker(load, number, each).run for number, each in enumerate(generators)]
    return [threading.Thread(target=body, daemon=True) for body in bodies]
