# SPDX-License-Identifier: Apache-2.0
"""Checks a running Rootgate service against the protocol's specification.

    python3 interoperability.py HOST PORT [--proofs FILE]

The service may have any state and other clients. The script makes two collaborations with random names, and drops them
at its end; when a check fails it stops and leaves them. It needs the package `cryptography`.

FILE has JSON Lines, each a signed identity proof that something else made: `publicKey`, `inclusionHashes`, `signature`
and `data` in base64, `publicKeyIndex`, `signatureFormat` ("der" or "raw") and the expected `rootHash` in hexadecimal.
They are verified here, without the service.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import os
import socket
import sys
from collections import Counter
from typing import Callable, Iterable, NamedTuple, NoReturn, Optional, Sequence

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from rootgate_client import (
    DIGEST_SIZE,
    HEADER,
    MAXIMUM_BODY,
    Change,
    Client,
    CollaborationState,
    Device,
    ErrorCode,
    KeyEncoding,
    Kind,
    Name,
    Operation,
    Pending,
    Person,
    Policy,
    Proof,
    ProtocolError,
    Receipt,
    RootgateError,
    SignatureFormat,
    Verdict,
    Verification,
    decode_error,
    der_to_raw,
    encode_frame,
    error_name,
    root_hash,
    verdict_name,
    verify_proof,
)

CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
NO_ROOT = bytes(DIGEST_SIZE)
WINDOW = 600
"""The window of device nonces, in seconds."""
BATCH = 50
"""Proofs in a request."""
HELLO_LIMITS = {
    1: MAXIMUM_BODY,
    2: 4_096,
    3: 4_096,
    4: 32_768,
    5: 4_096,
    6: 1_024,
    7: 1_024,
    8: 4_096,
    9: 128,
    10: 4_096,
    11: 32,
    12: 128,
}
"""The limits that the specification gives numbers for; 13 and 14 are the service's own."""
STATISTICS = (
    "uptime-milliseconds resident-bytes connections connections-accepted requests requests-in-flight requests-busy "
    "proofs-waiting mutations-waiting mutations commits sequence log-first-sequence log-bytes collaborations roots "
    "storage-bytes challenges-issued replay-memory-bytes nonces-remembered"
).split()


class CheckFailed(Exception):
    """A check came out other than expected."""


class Checks:
    """Counts the checks that passed, and stops at the first that does not."""

    def __init__(self) -> None:
        self.passed = 0
        self.section = ""

    def equal(self, name: str, came: object, expected: object) -> None:
        """Checks that two values are equal."""
        if came != expected:
            self.fail(name, came, expected)
        self.passed += 1

    def true(self, name: str, holds: bool, came: object, expected: str) -> None:
        """Checks that something holds, which is described in words."""
        if not holds:
            self.fail(name, came, expected)
        self.passed += 1

    def error(self, name: str, pending: Pending[object], code: ErrorCode, detail: int = 0) -> None:
        """Checks that a request is answered by an error."""
        came: object
        try:
            came = pending.result()
        except RootgateError as error:
            came = (error_name(error.code), error.detail)
        self.equal(name, came, (error_name(code), detail))

    def fail(self, name: str, came: object, expected: object) -> NoReturn:
        """Stops."""
        raise CheckFailed(f"{self.section}: {name}\n  expected: {expected!r}\n  came:     {came!r}")


class Case(NamedTuple):
    """A proof and what a service has to say of it."""

    name: str
    collaboration: Name
    proof: Proof
    verdict: Verdict
    root: bytes = NO_ROOT


def flipped(data: bytes, bit: int = 0) -> bytes:
    """The bytes with one bit changed, counted from the end."""
    return (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")


def with_s(proof: Proof, high: bool) -> Proof:
    """The proof with its DER signature's s in the upper or the lower half of its range."""
    r, s = decode_dss_signature(proof.signature)
    if (s > CURVE_ORDER // 2) != high:
        s = CURVE_ORDER - s
    return proof._replace(signature=encode_dss_signature(r, s))


def in_raw(proof: Proof) -> Proof:
    """The proof with its DER signature as a raw one."""
    return proof._replace(signature=der_to_raw(proof.signature), signature_format=SignatureFormat.RAW)


def der_integers(*integers: str) -> bytes:
    """A DER sequence of integers whose contents are given in hexadecimal."""
    contents = [bytes.fromhex(integer) for integer in integers]
    body = b"".join(bytes([2, len(content)]) + content for content in contents)
    return bytes([0x30, len(body)]) + body


class Interoperability:
    """All checks against one service."""

    def __init__(self, host: str, port: int, checks: Checks) -> None:
        self.host = host
        self.port = port
        self.checks = checks
        self.client = Client(host, port)
        self.prefix = f"interoperability-{os.urandom(8).hex()}"
        self.challenged = f"{self.prefix}-challenges"
        self.nonced = f"{self.prefix}-nonces é"
        self.verdicts: Counter[int] = Counter()
        self.journal: list[Change] = []
        self.people: list[Person] = []

    def run(self) -> None:
        """Runs the checks, in an order in which each finds what it needs."""
        sections: list[Callable[[], None]] = [
            self.check_hello_and_ping,
            self.check_collaborations,
            self.check_people,
            self.check_granted,
            self.check_boundaries,
            self.check_copies,
            self.check_refusals,
            self.check_nonces,
            self.check_inclusion,
            self.check_mutations,
            self.check_listings,
            self.check_bad_requests,
            self.check_bad_frames,
            self.check_removals,
            self.check_changes,
            self.check_statistics,
        ]
        before = self.client.statistics().result()
        self.statistics_before = before
        for section in sections:
            self.checks.section = section.__name__.replace("_", " ")
            section()
        self.client.close()
