# SPDX-License-Identifier: Apache-2.0
"""Checks the history of a cluster: what may not be lost, doubled, late, granted twice, or different."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from cluster.history import History, Mutation
from rootgate.changes import decode_edit
from rootgate.protocol import Operation
from rootgate.values import Change


class Checker:
    """Checks a history. Each check gives the violations that it finds."""

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

    def violations(self) -> list[list[str]]:
        """All that is wrong, by the check that has found it."""
        checks = (self.logs, self.mutations, self.late, self.refused, self.challenges, self.contents)
        return [list(check()) for check in checks]

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
                    # Otherwise no log that could be read goes that far, perhaps because no gate answers any more.
                    other = ", where another one is" if receipt.sequence in self.log else ""
                    yield f"an acknowledged mutation is not at its sequence{other}, but at {places}: {mutation}"
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
            if contents is None:
                yield f"gate {gate} does not say what it holds"
                continue
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
