# SPDX-License-Identifier: Apache-2.0
"""The requests, as values that any client can send: their bytes, how to read the answer, whether to repeat them.

Every function that makes a request takes `timeout`: seconds from the call to the answer, connecting included; without
it the client's own. Every one raises `ValueError` for what does not fit into its field on the wire. Above its own
limits, which `hello` tells, the service answers with the error limit-exceeded.

`at_least` is the sequence of a change that the service must have applied, or 0 for none. If it has not, the error is
behind-sequence, and no challenge is spent.

A mutation without an identifier gets a random one. A client that sends it again sends the same one, so it is done once.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import answers
from .frames import Reader, encode_digests, encode_name, encode_number, sized
from .protocol import (
    DEVICE_KEY_SIZE,
    DIGEST_SIZE,
    GRANT_SIZE,
    ISSUER_BYTES,
    MAXIMUM_BODY,
    MUTATION_SIZE,
    VERSION,
    Name,
    Operation,
    Policy,
    ProtocolError,
    Verdict,
)
from .values import (
    Challenges,
    Change,
    CollaborationState,
    GrantCheck,
    Hello,
    Opening,
    Proof,
    Receipt,
    Verification,
)

T = TypeVar("T")
Claim = tuple[Name, Proof]
"""A proof for a collaboration."""
_Opened = tuple[Opening, list[list[str]]]
"""An answer with the selected options of each collaboration."""


@dataclass(frozen=True)
class Split(Generic[T]):
    """How some proofs of a request are sent to other services, which have issued their challenges."""

    claims: Sequence[Claim]
    ask: Callable[[Sequence[Claim]], Request[T]]
    """The request about some of them."""
    verdicts: Callable[[T], list[int]]
    merge: Callable[[T, T, Sequence[int]], T]
    """An answer about all of them, with another one about those at these places in it."""

    def elsewhere(self, answer: T) -> dict[int, list[int]]:
        """The places of the proofs that belong to another service, by its number."""
        places: dict[int, list[int]] = {}
        for place, verdict in enumerate(self.verdicts(answer)):
            challenge = self.claims[place][1].data
            if verdict == Verdict.CHALLENGE_ELSEWHERE and len(challenge) >= ISSUER_BYTES.stop:
                places.setdefault(int.from_bytes(challenge[ISSUER_BYTES], "little"), []).append(place)
        return places

    def part(self, places: Sequence[int]) -> Request[T]:
        """The request about the proofs at some places."""
        return self.ask([self.claims[place] for place in places])


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request with its answer's type. It may be sent any number of times."""

    operation: int
    body: bytes
    decode: Callable[[Reader], T]
    repeats: bool = True
    """Whether it may be sent again when nobody knows whether it was done: it only reads, or is a mutation."""
    timeout: float | None = None
    """Seconds from the call to the answer; None: the client's own."""
    waiting: float = 0.0
    """Seconds that the service may wait for a change before it answers. They are added to the timeout."""
    is_single_proof: bool = False
    """Whether it asks for the verdict on one proof only, and may leave in one request with others that do."""
    split: Split[T] | None = None
    """How a client of several services asks them about the proofs whose challenges they have issued; None: it does not
    ask about such proofs."""

    def __post_init__(self) -> None:
        if len(self.body) > MAXIMUM_BODY:
            raise ValueError(f"a request's body has at most {MAXIMUM_BODY} bytes, not {len(self.body)}")

    def read(self, body: bytes) -> T:
        """What the body of the answer says; raises `ProtocolError` when it is no answer to this request."""
        reader = Reader(body)
        value = self.decode(reader)
        reader.end()
        return value


def hello(
    lowest: int = VERSION, highest: int = VERSION, key: str | None = None, *, timeout: float | None = None
) -> Request[Hello]:
    """Agrees on a version, presents a key and asks for the service's limits."""
    body = bytes([lowest, highest, 0, 0])
    return Request(
        Operation.HELLO, body if key is None else body + encode_name(key), answers.decode_hello, timeout=timeout
    )


def ping(data: bytes = b"", *, timeout: float | None = None) -> Request[bytes]:
    """Asks for the same bytes, at most 64. An error tells that the service is not ready."""
    return Request(Operation.PING, data, Reader.rest, timeout=timeout)


def issue_challenges(count: int, *, timeout: float | None = None) -> Request[Challenges]:
    """Asks for challenges, at most 4,096."""
    return Request(
        Operation.ISSUE_CHALLENGES, encode_number(count, 4), answers.decode_challenges, timeout=timeout
    )


def verify(
    proofs: Sequence[tuple[Name, Proof]],
    want_roots: bool = False,
    at_least: int = 0,
    *,
    timeout: float | None = None,
) -> Request[Verification]:
    """Asks for verdicts on proofs, at most 4,096, each for the collaboration beside it.

    A granted proof spends its challenge, so the request is not sent again when its fate is unknown. Requests for single
    proofs that many tasks send at once leave together.

    A client with several addresses sends the proofs that get `Verdict.CHALLENGE_ELSEWHERE` once more, to the service
    that has issued their challenges. They keep that verdict when there is none, or when it does not answer.
    """
    split = Split(
        tuple(proofs),
        lambda some: verify(some, want_roots, at_least),
        lambda verification: verification.verdicts,
        answers.merge_verifications,
    )
    return Request(
        Operation.VERIFY,
        encode_verification(proofs, want_roots, at_least=at_least),
        _counted(len(proofs), answers.decode_verification),
        repeats=False,
        timeout=timeout,
        is_single_proof=len(proofs) == 1 and not want_roots,
        split=split,
    )


def verify_inclusion(
    proofs: Sequence[tuple[Name, Proof]],
    want_roots: bool = False,
    at_least: int = 0,
    *,
    timeout: float | None = None,
) -> Request[Verification]:
    """Asks for verdicts on proofs, at most 4,096, without a look at their signatures."""
    body = encode_verification(proofs, want_roots, inclusion_only=True, at_least=at_least)
    decode = _counted(len(proofs), answers.decode_verification)
    is_single = len(proofs) == 1 and not want_roots
    return Request(Operation.VERIFY_INCLUSION, body, decode, timeout=timeout, is_single_proof=is_single)


def create_collaboration(
    collaboration: Name,
    policy: int = Policy.CHALLENGE,
    window: int = 0,
    mutation: bytes | None = None,
    *,
    timeout: float | None = None,
) -> Request[Receipt]:
    """Creates a collaboration; the window is for device nonces, in seconds."""
    fields = encode_name(collaboration) + encode_number(policy, 1) + encode_number(window, 4)
    return _mutating(Operation.CREATE_COLLABORATION, fields, mutation, timeout)


def drop_collaboration(
    collaboration: Name, mutation: bytes | None = None, *, timeout: float | None = None
) -> Request[Receipt]:
    """Removes a collaboration and its root hashes."""
    return _mutating(Operation.DROP_COLLABORATION, encode_name(collaboration), mutation, timeout)


def add_roots(
    collaboration: Name, roots: Sequence[bytes], mutation: bytes | None = None, *, timeout: float | None = None
) -> Request[Receipt]:
    """Adds root hashes, at most 32,768."""
    fields = encode_name(collaboration) + encode_digests(roots)
    return _mutating(Operation.ADD_ROOTS, fields, mutation, timeout)


def remove_roots(
    collaboration: Name, roots: Sequence[bytes], mutation: bytes | None = None, *, timeout: float | None = None
) -> Request[Receipt]:
    """Removes root hashes, at most 32,768."""
    fields = encode_name(collaboration) + encode_digests(roots)
    return _mutating(Operation.REMOVE_ROOTS, fields, mutation, timeout)


def test_roots(
    collaboration: Name, roots: Sequence[bytes], *, timeout: float | None = None
) -> Request[list[bool]]:
    """Asks for each root hash, of at most 32,768, whether it is in the set."""
    body = encode_name(collaboration) + encode_digests(roots)
    return Request(Operation.TEST_ROOTS, body, _counted(len(roots), answers.decode_tests), timeout=timeout)


def list_roots(
    collaboration: Name, limit: int, behind: bytes | None = None, *, timeout: float | None = None
) -> Request[tuple[list[bytes], bool]]:
    """Asks for a page of at most `limit` (4,096) root hashes behind one, and whether there are more."""
    start = b"\0" if behind is None else b"\1" + sized(behind, DIGEST_SIZE, "a digest")
    body = encode_name(collaboration) + encode_number(limit, 4) + start
    decode = answers.decode_page(lambda reader: reader.take(DIGEST_SIZE))
    return Request(Operation.LIST_ROOTS, body, decode, timeout=timeout)


def count_roots(collaboration: Name, *, timeout: float | None = None) -> Request[CollaborationState]:
    """Asks for a collaboration's policy, window and number of root hashes."""
    return Request(Operation.COUNT_ROOTS, encode_name(collaboration), answers.decode_state, timeout=timeout)


def list_collaborations(
    limit: int, behind: Name = "", *, timeout: float | None = None
) -> Request[tuple[list[tuple[str, CollaborationState]], bool]]:
    """Asks for a page of at most `limit` (1,024) collaborations behind one, and whether there are more."""
    body = encode_number(limit, 4) + encode_name(behind)
    decode = answers.decode_page(answers.decode_listed)
    return Request(Operation.LIST_COLLABORATIONS, body, decode, timeout=timeout)


def statistics(*, timeout: float | None = None) -> Request[dict[str, int]]:
    """Asks for the service's statistics."""
    return Request(Operation.STATISTICS, b"", answers.decode_statistics, timeout=timeout)


def read_changes(
    sequence: int, limit: int, *, timeout: float | None = None
) -> Request[tuple[list[Change], bool]]:
    """Asks for a page of at most `limit` (1,024) changes behind a sequence, and whether there are more."""
    body = encode_number(sequence, 8) + encode_number(limit, 4)
    return Request(Operation.READ_CHANGES, body, answers.decode_page(answers.decode_change), timeout=timeout)


def confirm_everywhere(sequence: int, *, timeout: float | None = None) -> Request[int]:
    """Asks whether every service of the cluster has the change with a sequence; the answer comes when it is so.

    The answer is the sequence. The error `ErrorCode.BUSY` says, after eight seconds, that nobody knows yet.
    """
    return Request(
        Operation.CONFIRM_EVERYWHERE, encode_number(sequence, 8), answers.decode_confirmation(sequence), timeout=timeout
    )


def collaborate(
    name: str, fields: dict[str, Any], mutation: bytes | None = None, *, timeout: float | None = None
) -> Request[dict[str, Any]]:
    """Sends a request of the collaboration layer: its name and its fields, as the specification has them."""
    waiting = fields.get("waitMilliseconds", 0)
    return Request(
        Operation.COLLABORATE,
        _identifier(mutation) + encode_call(name, fields),
        answers.decode_json,
        timeout=timeout,
        waiting=waiting / 1000 if isinstance(waiting, int) else 0.0,
    )


def open(
    proofs: Sequence[tuple[Name, Proof]],
    at_least: int = 0,
    want_roots: bool = False,
    *,
    timeout: float | None = None,
) -> Request[Opening]:
    """Asks for verdicts on proofs, at most 4,096, and for grants. Like a verify, it is not sent again."""
    body = encode_verification(proofs, want_roots, at_least=at_least)
    decode = _counted(len(proofs), answers.decode_opening)
    split = Split(
        tuple(proofs),
        lambda some: open(some, at_least, want_roots),
        lambda opening: opening.verdicts,
        answers.merge_openings,
    )
    return Request(Operation.OPEN, body, decode, repeats=False, timeout=timeout, split=split)


def open_with_options(
    proofs: Sequence[tuple[Name, Proof]], *, timeout: float | None = None
) -> Request[tuple[Opening, list[list[str]]]]:
    """As `open`, and for the selected options of each collaboration, in the order in which they are first named."""
    decode = _with_options(_counted(len(proofs), answers.decode_opening), len({name for name, _ in proofs}))
    body = encode_verification(proofs, want_options=True)
    split = Split(tuple(proofs), open_with_options, lambda answer: answer[0].verdicts, _merge_options(tuple(proofs)))
    return Request(Operation.OPEN, body, decode, repeats=False, timeout=timeout, split=split)


def check_grants(
    grants: Sequence[tuple[Name, bytes, bytes | None]], at_least: int = 0, *, timeout: float | None = None
) -> Request[list[GrantCheck]]:
    """Asks whether grants hold, each for the collaboration before it and the device key behind it, if any."""
    decode = _counted(len(grants), answers.decode_grant_checks)
    return Request(Operation.CHECK_GRANTS, encode_grant_checks(grants, at_least), decode, timeout=timeout)


def check_grants_with_options(
    grants: Sequence[tuple[Name, bytes, bytes | None]], *, timeout: float | None = None
) -> Request[tuple[list[GrantCheck], list[list[str]]]]:
    """As `check_grants`, and for the selected options of each collaboration."""
    checks = _counted(len(grants), answers.decode_grant_checks)
    decode = _with_options(checks, len({name for name, _, _ in grants}))
    return Request(Operation.CHECK_GRANTS, encode_grant_checks(grants, 0, want_options=True), decode, timeout=timeout)


def _identifier(mutation: bytes | None) -> bytes:
    return os.urandom(MUTATION_SIZE) if mutation is None else sized(mutation, MUTATION_SIZE, "a mutation identifier")


def _mutating(operation: int, fields: bytes, mutation: bytes | None, timeout: float | None) -> Request[Receipt]:
    return Request(operation, _identifier(mutation) + fields, answers.decode_receipt, timeout=timeout)


def _counted(count: int, decode: Callable[[Reader], T]) -> Callable[[Reader], T]:
    """Refuses an answer about another number of items than the request has."""

    def decode_counted(reader: Reader) -> T:
        answered = int.from_bytes(reader.peek(4), "little")
        if answered != count:
            raise ProtocolError(f"an answer is about {answered} items, not {count}")
        return decode(reader)

    return decode_counted


def _with_options(
    decode: Callable[[Reader], T], collaborations: int
) -> Callable[[Reader], tuple[T, list[list[str]]]]:
    return lambda reader: (decode(reader), answers.decode_options(reader, collaborations))


def _merge_options(claims: Sequence[Claim]) -> Callable[[_Opened, _Opened, Sequence[int]], _Opened]:
    """What puts the answer about some of the proofs into that about all, with the options of each collaboration."""

    def merge(whole: _Opened, part: _Opened, places: Sequence[int]) -> _Opened:
        asked = dict.fromkeys(claims[place][0] for place in places)
        options = dict(zip(asked, part[1]))
        # An answer has no options of a collaboration of which it accepts no proof.
        names = dict.fromkeys(name for name, _ in claims)
        merged = [options.get(name) or others for name, others in zip(names, whole[1])]
        return answers.merge_openings(whole[0], part[0], places), merged

    return merge


# Bodies.


def encode_verification(
    proofs: Sequence[tuple[Name, Proof]],
    want_roots: bool = False,
    inclusion_only: bool = False,
    at_least: int = 0,
    want_options: bool = False,
) -> bytes:
    """The body of a verify, of an open, or of an inclusion-only verify."""
    positions = _positions(name for name, _ in proofs)
    encode = _encode_inclusion if inclusion_only else _encode_proof
    head = _batch_head(at_least, want_roots + 2 * want_options, positions, len(proofs))
    return b"".join([head, *(encode(positions[name], proof) for name, proof in proofs)])


def _positions(names: Iterable[Name]) -> dict[Name, int]:
    """The position of each name among the different ones."""
    return {name: position for position, name in enumerate(dict.fromkeys(names))}


def _batch_head(at_least: int, flags: int, positions: dict[Name, int], count: int) -> bytes:
    """How a request with proofs or grants begins."""
    return b"".join([_packed("<QBBHI", at_least, flags, 0, len(positions), count), *map(encode_name, positions)])


def _encode_proof(position: int, proof: Proof) -> bytes:
    head = _packed(
        "<HBBQBBH",
        position,
        len(proof.inclusion_hashes),
        proof.signature_format,
        proof.key_index,
        len(proof.public_key),
        len(proof.signature),
        len(proof.data),
    )
    return b"".join([head, proof.public_key, *_siblings(proof), proof.signature, proof.data])


def _encode_inclusion(position: int, proof: Proof) -> bytes:
    head = _packed("<HBBQ", position, len(proof.inclusion_hashes), len(proof.public_key), proof.key_index)
    return b"".join([head, proof.public_key, *_siblings(proof)])


def _siblings(proof: Proof) -> list[bytes]:
    return [sized(digest, DIGEST_SIZE, "an inclusion hash") for digest in proof.inclusion_hashes]


def _packed(layout: str, *numbers: int) -> bytes:
    try:
        return struct.pack(layout, *numbers)
    except struct.error as error:
        raise ValueError(f"a number does not fit into its field: {error}") from error


def encode_grant_checks(
    grants: Sequence[tuple[Name, bytes, bytes | None]], at_least: int, want_options: bool = False
) -> bytes:
    """The body of a check of grants."""
    positions = _positions(name for name, _, _ in grants)
    checks = (
        _packed("<HBB", positions[name], key is not None, 0)
        + sized(bytes(DEVICE_KEY_SIZE) if key is None else key, DEVICE_KEY_SIZE, "a device's key")
        + sized(grant, GRANT_SIZE, "a grant")
        for name, grant, key in grants
    )
    return b"".join([_batch_head(at_least, 2 * want_options, positions, len(grants)), *checks])


def encode_call(name: str, fields: dict[str, Any]) -> bytes:
    """The body of a collaborate behind its mutation identifier."""
    return encode_name(name) + json.dumps(fields, allow_nan=False).encode()
