# SPDX-License-Identifier: Apache-2.0
"""The bodies of answers. Every function raises `ProtocolError` for bytes that are no such answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .frames import Reader
from .protocol import GRANT_SIZE, Operation, ProtocolError
from .values import Challenges, Change, CollaborationState, GrantCheck, Hello, Opening, Receipt, Verification

T = TypeVar("T")


def decode_hello(reader: Reader) -> Hello:
    """The body of the answer to a hello."""
    version = reader.number(1)
    reader.zero(3)
    features = reader.number(4)
    limits = {reader.number(2): reader.number(8) for _ in range(reader.number(2))}
    return Hello(version, features, limits, reader.name())


def decode_challenges(reader: Reader) -> Challenges:
    """The body of an answer with challenges."""
    count, size = reader.number(4), reader.number(2)
    reader.zero(2)
    if size == 0:
        raise ProtocolError("a challenge has no bytes")
    valid_milliseconds = reader.number(8)
    return Challenges([reader.take(size) for _ in range(count)], valid_milliseconds)


def decode_verification(reader: Reader) -> Verification:
    """The body of the answer to either verify."""
    count, with_roots = reader.number(4), reader.flag()
    reader.zero(3)
    verdicts = list(reader.take(count))
    return Verification(verdicts, reader.digests(count if with_roots else 0))


def decode_opening(reader: Reader) -> Opening:
    """The body of the answer to an open."""
    verdicts, roots = decode_verification(reader)
    grants = [reader.take(GRANT_SIZE) for _ in verdicts]
    return Opening(verdicts, roots, [grant if any(grant) else None for grant in grants])


def merge_verifications(whole: Verification, part: Verification, places: Sequence[int]) -> Verification:
    """The answer about all proofs, with that about those at these places in it."""
    return Verification(_merged(whole.verdicts, part.verdicts, places), _merged(whole.roots, part.roots, places))


def merge_openings(whole: Opening, part: Opening, places: Sequence[int]) -> Opening:
    """The answer about all proofs, with that about those at these places in it."""
    return Opening(
        _merged(whole.verdicts, part.verdicts, places),
        _merged(whole.roots, part.roots, places),
        _merged(whole.grants, part.grants, places),
    )


def _merged(whole: list[T], part: list[T], places: Sequence[int]) -> list[T]:
    """Either is empty when it was not asked for."""
    merged = list(whole)
    for place, item in zip(places if whole else (), part):
        merged[place] = item
    return merged


def decode_grant_checks(reader: Reader) -> list[GrantCheck]:
    """The body of the answer to a check of grants."""
    count = reader.number(4)
    reader.zero(4)
    return [_decode_grant_check(reader) for _ in range(count)]


def _decode_grant_check(reader: Reader) -> GrantCheck:
    status, permission, role = reader.number(1), reader.number(1), reader.number(1)
    reader.zero(1)
    return GrantCheck(status, permission, role, reader.number(4))


def decode_options(reader: Reader, collaborations: int) -> list[list[str]]:
    """The selected share options of collaborations, at the end of an answer."""
    return [
        [reader.text(reader.number(2)) for _ in range(reader.number(2))] for _ in range(collaborations)
    ]


def decode_json(reader: Reader) -> dict[str, Any]:
    """The body of the answer to a request of the collaboration layer."""
    try:
        value = json.loads(reader.rest())
    except (ValueError, RecursionError) as error:
        raise ProtocolError("an answer is not JSON") from error
    if not isinstance(value, dict):
        raise ProtocolError("an answer is not a JSON object")
    return value


def decode_receipt(reader: Reader) -> Receipt:
    """The body of the answer to a mutation."""
    return Receipt(reader.number(8), reader.number(8), reader.flag())


def decode_tests(reader: Reader) -> list[bool]:
    """The body of the answer to a test of roots."""
    return [reader.flag() for _ in range(reader.number(4))]


def decode_state(reader: Reader) -> CollaborationState:
    """A collaboration's state, the body of the answer to a count and a part of listings."""
    return CollaborationState(reader.number(1), reader.number(4), reader.number(8))


def decode_statistics(reader: Reader) -> dict[str, int]:
    """The body of the answer with statistics."""
    return {reader.name(): reader.number(8) for _ in range(reader.number(2))}


def decode_confirmation(sequence: int) -> Callable[[Reader], int]:
    """What decodes the confirmation of the change with that sequence."""

    def decode(reader: Reader) -> int:
        confirmed = reader.number(8)
        if confirmed != sequence:
            raise ProtocolError(f"an answer confirms the change {confirmed}, not {sequence}")
        return confirmed

    return decode


def decode_page(decode_item: Callable[[Reader], T]) -> Callable[[Reader], tuple[list[T], bool]]:
    """What decodes a page of such items, and whether there are more."""

    def decode(reader: Reader) -> tuple[list[T], bool]:
        count, more = reader.number(4), reader.flag()
        reader.zero(3)
        return [decode_item(reader) for _ in range(count)], more

    return decode


def decode_listed(reader: Reader) -> tuple[str, CollaborationState]:
    """An item of a page of collaborations."""
    state = decode_state(reader)
    return reader.name(), state


def decode_change(reader: Reader) -> Change:
    """An entry of the change log."""
    sequence, changed, mutation = reader.number(8), reader.number(8), reader.take(16)
    operation, policy = reader.number(2), reader.number(1)
    reader.zero(1)
    number, collaboration = reader.number(4), reader.name()
    has_digests = operation in (Operation.ADD_ROOTS, Operation.REMOVE_ROOTS)
    digests = reader.digests(number if has_digests else 0)
    edit = reader.take(number if operation == Operation.EDIT else 0)
    return Change(sequence, changed, mutation, operation, policy, number, collaboration, digests, edit)
