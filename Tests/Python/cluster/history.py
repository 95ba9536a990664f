# SPDX-License-Identifier: Apache-2.0
"""What was sent to a cluster and what was answered, for the checker."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from rootgate.changes import decode_edit, logged_identifier, logged_mutation
from rootgate.connection import Connection, Pending
from rootgate.protocol import Operation
from rootgate.values import Change

UNCERTAIN = ("unknown", "storage-failed", "internal-fault")
"""Outcomes after which a mutation may be in the log. Every other one but `acknowledged` says that it is not."""


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
    contents: list[dict[str, list[bytes]] | None] = field(default_factory=list)
    """The root hashes of each collaboration, at each gate; `None`: the gate did not say."""
    founded: int = 0
    """The sequence behind what was made before the load began."""
