# SPDX-License-Identifier: Apache-2.0
"""Tests the checker: plants a violation of each rule in a small history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.checker import Checker
from cluster.history import Attempt, History, Mutation, Use
from cluster.processes import NODES
from rootgate.protocol import Operation
from rootgate.values import Change, sha256

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
    ("another mutation has the place", [answered("acknowledged"), changed(range(NODES), mutation=bytes(16))],
     "is not at its sequence, where another one is"),
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
    ("a gate says nothing", [lambda history: history.contents.__setitem__(1, None)], "gate 1 does not say"),
]


def self_test() -> int:
    """Plants a violation of each rule in a small history, and returns how many the checker misses."""
    missed = 0
    for name, plants, text in PLANTED:
        history = small_history()
        for plant in plants:
            plant(history)
        found = [violation for check in Checker(history).violations() for violation in check]
        is_right = any(text in violation for violation in found) if text else not found
        missed += not is_right
        print(f"{'ok' if is_right else 'MISSED'}: {name}" + ("" if is_right else f": {found}"))
    return missed
