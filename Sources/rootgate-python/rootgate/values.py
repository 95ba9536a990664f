# SPDX-License-Identifier: Apache-2.0
"""What requests and answers are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from .protocol import DEVICE_KEY_SIZE, SignatureFormat


class Proof(NamedTuple):
    """A device's claim to belong to a person. An inclusion-only verify ignores the last three fields.

    The service refuses more than 32 inclusion hashes (of 32 bytes each), and more than 4,096 bytes of data.
    """

    public_key: bytes
    key_index: int
    inclusion_hashes: Sequence[bytes]
    signature: bytes = b""
    data: bytes = b""
    signature_format: int = SignatureFormat.DER


class Hello(NamedTuple):
    """What a service says of itself."""

    version: int
    features: int
    limits: dict[int, int]
    software: str


class Challenges(NamedTuple):
    """Fresh challenges."""

    challenges: list[bytes]
    valid_milliseconds: int


class Verification(NamedTuple):
    """A verdict byte for each proof and, where asked for, a root hash for each."""

    verdicts: list[int]
    roots: list[bytes]


class Opening(NamedTuple):
    """A verdict byte for each proof, a grant for each that has one and, where asked for, a root hash for each."""

    verdicts: list[int]
    roots: list[bytes]
    grants: list[bytes | None]


class GrantCheck(NamedTuple):
    """What a service says of a grant; all but the status are 0 when it is refused."""

    status: int
    permission: int
    role: int
    milliseconds_left: int


class Receipt(NamedTuple):
    """A durable change."""

    sequence: int
    changed: int
    repeat: bool


class CollaborationState(NamedTuple):
    """A collaboration's policy, its window in seconds and the number of its root hashes."""

    policy: int
    window: int
    roots: int


class Change(NamedTuple):
    """An entry of the change log."""

    sequence: int
    changed: int
    mutation: bytes
    operation: int
    policy: int
    number: int
    collaboration: str
    digests: list[bytes]
    edit: bytes = b""


class Edit(NamedTuple):
    """Several changes that happened whole: to one collaboration, and to records, of which the keys stand here."""

    creates: bool
    drops: bool
    policy: int
    window: int
    request: bytes
    added: list[bytes]
    removed: list[bytes]
    removed_ranges: list[tuple[bytes, bytes]]
    written: list[bytes]
    unwritten: list[bytes]


def sha256(data: bytes) -> bytes:
    """A digest."""
    return hashlib.sha256(data).digest()


def device_key(public_key: bytes) -> bytes:
    """What names a device's key when a grant is checked."""
    return sha256(public_key)[:DEVICE_KEY_SIZE]


def root_hash(public_key: bytes, index: int, inclusion_hashes: Sequence[bytes]) -> bytes:
    """The root hash that a proof leads to."""
    local = sha256(public_key)
    for sibling in inclusion_hashes:
        local = sha256(sibling + local if index % 2 else local + sibling)
        index //= 2
    return local
