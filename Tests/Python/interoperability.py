# SPDX-License-Identifier: Apache-2.0
"""Checks a running Rootgate service against the protocol's specification.

    python3 interoperability.py HOST PORT [--proofs FILE]

The service may have any state and other clients, and needs a link base. The script makes two collaborations with
random names and several of the collaboration layer, and drops them at its end; when a check fails it stops and leaves
them. What was shared with its accounts, which have random names, stays. It needs the packages `cryptography` and
`rootgate` (PYTHONPATH=Sources/rootgate-python).

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
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple, NoReturn

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from rootgate.answers import decode_json
from rootgate.changes import decode_edit, logged_identifier, logged_mutation, request_digest
from rootgate.connection import Connection, Pending, connect
from rootgate.frames import Reader, decode_error, encode_frame
from rootgate.protocol import (
    DIGEST_SIZE,
    GRANT_SIZE,
    HEADER,
    MAXIMUM_BODY,
    ErrorCode,
    GrantStatus,
    Kind,
    Name,
    Operation,
    Permission,
    Policy,
    ProtocolError,
    Role,
    RootgateError,
    SignatureFormat,
    Verdict,
    error_name,
    grant_status_name,
    verdict_name,
)
from rootgate.requests import encode_grant_checks, encode_verification
from rootgate.simulator import Device, KeyEncoding, Person, der_to_raw, verify_proof
from rootgate.values import (
    Change,
    CollaborationState,
    GrantCheck,
    Opening,
    Proof,
    Receipt,
    Verification,
    device_key,
    root_hash,
    sha256,
)

CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
NO_ROOT = bytes(DIGEST_SIZE)
WINDOW = 600
"""The window of device nonces, in seconds."""
TIMEOUT = 20.0
"""Seconds for a wait on a plain socket."""
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
    "storage-bytes storage-used-bytes challenges-issued replay-memory-bytes nonces-remembered"
).split()


class CheckFailed(Exception):
    """A check came out other than expected."""


class Checks:
    """Counts the checks that passed, and stops at the first that does not."""

    def __init__(self) -> None:
        self.passed = 0
        self.section = ""
        self.last = ""

    def equal(self, name: str, came: object, expected: object) -> None:
        """Checks that two values are equal."""
        if came != expected:
            self.fail(name, came, expected)
        self.passed += 1
        self.last = name

    def true(self, name: str, holds: bool, came: object, expected: str) -> None:
        """Checks that something holds, which is described in words."""
        if not holds:
            self.fail(name, came, expected)
        self.passed += 1
        self.last = name

    def error(
        self, name: str, pending: Pending[Any], code: ErrorCode, detail: int | None = 0, names: Sequence[str] = ()
    ) -> None:
        """Checks that a request is answered by an error with a detail, or any, whose text names something."""
        came: object
        try:
            came = pending.result()
        except RootgateError as error:
            came = (error_name(error.code), error.detail if detail is not None else None)
            missing = [part for part in names if part not in error.text]
            self.equal(f"{name}: not named in “{error.text}”", missing, [])
        self.equal(name, came, (error_name(code), detail))

    def run(self, sections: Iterable[Callable[[], object]]) -> None:
        """Runs methods whose names begin with check_ and continue with what they check."""
        for section in sections:
            self.section = section.__name__[len("check_") :].replace("_", " ")
            section()

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
        self.address = (host, port)
        self.checks = checks
        self.client = Connection(host, port)
        self.prefix = f"interoperability-{os.urandom(8).hex()}"
        self.challenged = f"{self.prefix}-challenges".ljust(HELLO_LIMITS[12], ".")
        self.nonced = f"{self.prefix}-nonces é"
        self.unknown = f"{self.prefix}-unknown"
        self.journal: list[Change] = []
        self.roots: list[bytes] = []
        self.verdicts: Counter[int] = Counter()
        self.people: list[Person] = []
        self.subject = Person([Device(encoding) for encoding in KeyEncoding])
        self.stranger = Person([Device()])

    def run(self) -> None:
        """Runs the checks, in an order in which each finds what it needs."""
        self.checks.section = "statistics"
        before = self.client.statistics().result()
        sections: list[Callable[[], object]] = [
            self.check_hello_and_ping,
            self.check_collaborations_and_people,
            self.check_granted,
            self.check_boundaries,
            self.check_copies,
            self.check_refusals,
            self.check_nonces,
            self.check_inclusion_only,
            self.check_mutations,
            self.check_listings,
            self.check_bad_requests,
            self.check_bad_frames,
            self.check_removals,
            self.check_changes,
        ]
        self.checks.run(sections)
        self.checks.section = "statistics"
        self.check_statistics(before)
        self.client.close()

    # Helpers.

    def challenge(self) -> bytes:
        """One fresh challenge."""
        return self.client.issue_challenges(1).result().challenges[0]

    def verified(self, pending: Pending[Verification]) -> Verification:
        """The answer to a verify, with its verdicts counted."""
        verification = pending.result()
        self.verdicts.update(verification.verdicts)
        return verification

    def check_cases(self, cases: Sequence[Case], size: int = BATCH, inclusion_only: bool = False) -> None:
        """Sends the cases in batches, all before the first answer, and takes the answers in reverse."""
        ask = self.client.verify_inclusion if inclusion_only else self.client.verify
        batches = [cases[start : start + size] for start in range(0, len(cases), size)]
        asked = [ask([(case.collaboration, case.proof) for case in batch], want_roots=True) for batch in batches]
        for batch, pending in reversed(list(zip(batches, asked))):
            verdicts, roots = self.verified(pending)
            self.checks.equal("sizes of an answer", (len(verdicts), len(roots)), (len(batch), len(batch)))
            for case, verdict, root in zip(batch, verdicts, roots):
                came = (verdict_name(verdict), root.hex())
                self.checks.equal(case.name, came, (verdict_name(case.verdict), case.root.hex()))

    def journaled(
        self,
        pending: Pending[Receipt],
        mutation: bytes,
        operation: Operation,
        collaboration: str,
        roots: Sequence[bytes] = (),
        policy: int = 0,
        window: int = 0,
    ) -> Receipt:
        """The receipt of a mutation, which is noted for the comparison with the change log."""
        receipt = pending.result()
        self.journal.append(
            Change(
                receipt.sequence,
                receipt.changed,
                logged_identifier(mutation),
                operation,
                policy,
                window or len(roots),
                collaboration,
                sorted(roots),
            )
        )
        self.checks.equal("a first receipt is no repeat", receipt.repeat, False)
        return receipt

    def create(self, collaboration: str, policy: Policy, window: int = 0) -> Receipt:
        """Creates a collaboration."""
        mutation = os.urandom(16)
        pending = self.client.create_collaboration(collaboration, policy, window, mutation)
        operation = Operation.CREATE_COLLABORATION
        return self.journaled(pending, mutation, operation, collaboration, policy=policy, window=window)

    def drop(self, collaboration: str) -> Receipt:
        """Drops a collaboration."""
        mutation = os.urandom(16)
        pending = self.client.drop_collaboration(collaboration, mutation)
        return self.journaled(pending, mutation, Operation.DROP_COLLABORATION, collaboration)

    def add(self, collaboration: str, roots: Sequence[bytes], mutation: bytes) -> Receipt:
        """Adds root hashes."""
        pending = self.client.add_roots(collaboration, roots, mutation)
        return self.journaled(pending, mutation, Operation.ADD_ROOTS, collaboration, roots)

    def remove(self, collaboration: str, roots: Sequence[bytes], mutation: bytes) -> Receipt:
        """Removes root hashes."""
        pending = self.client.remove_roots(collaboration, roots, mutation)
        return self.journaled(pending, mutation, Operation.REMOVE_ROOTS, collaboration, roots)

    # Sections.

    def check_hello_and_ping(self) -> None:
        hello = self.client.hello().result()
        self.checks.equal("hello: version", hello.version, 1)
        self.checks.equal("hello: features", hello.features & 0x1F, 0x1F)
        known = {number: value for number, value in hello.limits.items() if number in HELLO_LIMITS}
        self.checks.equal("hello: limits", known, HELLO_LIMITS)
        self.checks.true("hello: name of the software", bool(hello.software), hello.software, "a name")
        self.checks.equal("hello: versions 0 to 255", self.client.hello(0, 255).result().version, 1)
        self.checks.error(
            "hello: only later versions", self.client.hello(2, 9), ErrorCode.UNSUPPORTED_VERSION, detail=1
        )
        for size in (0, 1, 64):
            data = os.urandom(size)
            self.checks.equal(f"ping with {size} bytes", self.client.ping(data).result(), data)
        pings = [self.client.ping(number.to_bytes(2, "big")) for number in range(500)]
        for number, ping in reversed(list(enumerate(pings))):
            self.checks.equal("500 pings in flight", ping.result(), number.to_bytes(2, "big"))
        issued = self.client.issue_challenges(100).result()
        self.checks.equal("challenges: number", len(issued.challenges), 100)
        self.checks.equal("challenges: all different", len(set(issued.challenges)), 100)
        self.checks.equal("challenges: bytes of each", len(issued.challenges[0]), hello.limits.get(13))
        self.checks.equal("challenges: validity", issued.valid_milliseconds, hello.limits.get(14))
        issuers = {int.from_bytes(challenge[16:24], "little") for challenge in issued.challenges}
        self.checks.equal("challenges: issuer", issuers, {hello.limits.get(15)})

    def check_collaborations_and_people(self) -> None:
        encodings = itertools.cycle(KeyEncoding)

        def devices(count: int) -> list[Device]:
            return [Device(next(encodings)) for _ in range(count)]

        self.people = [Person(devices(1 + number % 5)) for number in range(20)]
        self.people += [Person(devices(width), width) for width in (1, 3, 5)]
        self.roots = [person.root for person in [*self.people, self.subject]]
        self.checks.equal("create: changed", self.create(self.challenged, Policy.CHALLENGE).changed, 1)
        self.checks.equal("create: changed", self.create(self.nonced, Policy.DEVICE_NONCE, WINDOW).changed, 1)
        for collaboration in (self.challenged, self.nonced):
            changed = self.add(collaboration, self.roots, os.urandom(16)).changed
            self.checks.equal("add: changed", changed, len(self.roots))

    def check_granted(self) -> None:
        for size in (BATCH, 1):
            self.check_cases(self.granted_cases(), size)
        entries = [(self.challenged, self.subject.proof(0, self.challenge()))]
        verification = self.verified(self.client.verify(entries))
        self.checks.equal("without root hashes", verification, Verification([Verdict.GRANTED], []))

    def granted_cases(self) -> list[Case]:
        """A proof of every device in both signature formats and for both collaborations."""
        signers = [
            (person, index, signature_format)
            for person in self.people
            for index in range(len(person.devices))
            for signature_format in SignatureFormat
        ]
        cases = []
        challenges = self.client.issue_challenges(len(signers)).result().challenges
        for (person, index, signature_format), challenge in zip(signers, challenges):
            for collaboration, data in ((self.challenged, challenge), (self.nonced, os.urandom(24))):
                proof = person.proof(index, data, signature_format)
                encoding = person.devices[index].encoding.value
                name = f"granted: key {index}, {encoding}, signature {signature_format.name}"
                self.checks.equal(f"{name}, here", verify_proof(proof, self.roots), (person.root, True))
                cases.append(Case(name, collaboration, proof, Verdict.GRANTED, person.root))
        return cases

    def check_boundaries(self) -> None:
        root = self.subject.root
        cases = []
        for high, half in ((True, "upper"), (False, "lower")):
            for convert, form in ((lambda proof: proof, "DER"), (in_raw, "raw")):
                proof = convert(with_s(self.subject.proof(1, self.challenge()), high))
                name = f"s in the {half} half, {form}"
                self.checks.equal(f"{name}, here", verify_proof(proof, [root]), (root, True))
                cases.append(Case(name, self.challenged, proof, Verdict.GRANTED, root))
        for size in (16, 4_096):
            proof = self.subject.proof(0, os.urandom(size))
            cases.append(Case(f"{size} bytes of signed data", self.nonced, proof, Verdict.GRANTED, root))
        deep = self.subject.proof(0, self.challenge())
        siblings = [os.urandom(DIGEST_SIZE) for _ in range(32)]
        deep = deep._replace(key_index=2**32 - 1, inclusion_hashes=siblings)
        deep_root = root_hash(deep.public_key, deep.key_index, siblings)
        self.roots.append(deep_root)
        for collaboration in (self.challenged, self.nonced):
            self.add(collaboration, [deep_root], os.urandom(16))
        cases.append(Case("32 inclusion hashes", self.challenged, deep, Verdict.GRANTED, deep_root))
        self.check_cases(cases)

    def check_copies(self) -> None:
        copies = 8
        expected = {"granted": 1, "challenge-replayed": copies - 1}
        proof = self.subject.proof(0, self.challenge())
        verification = self.verified(self.client.verify([(self.challenged, proof)] * copies))
        self.checks.equal("copies in one request", Counter(map(verdict_name, verification.verdicts)), expected)

        proof = self.subject.proof(0, self.challenge())
        clients = [Connection(*self.address) for _ in range(copies)]
        asked = [client.verify([(self.challenged, proof)]) for client in clients]
        came = Counter(verdict_name(self.verified(pending).verdicts[0]) for pending in asked)
        self.checks.equal("copies on many connections", came, expected)
        for client in clients:
            client.close()

    def check_refusals(self) -> None:
        challenge = self.challenge()
        spent = self.challenge()
        spender = self.subject.proof(0, spent)
        self.check_cases([Case("spends", self.challenged, spender, Verdict.GRANTED, self.subject.root)])
        good = self.subject.proof(0, challenge)
        raw = in_raw(good)
        cases = [
            *self.cases_of_form(good, raw),
            *self.cases_of_challenges(challenge, spent),
            *self.cases_of_collaborations(good),
            *self.cases_of_membership(good),
            *self.cases_of_signatures(good, raw),
            *self.cases_of_order(good, spent),
        ]
        self.check_cases(cases)
        self.check_cases(cases, size=1)
        granted = Case("refused proofs spend nothing", self.challenged, good, Verdict.GRANTED, self.subject.root)
        self.check_cases([granted])

    def cases_of_form(self, good: Proof, raw: Proof) -> Iterable[Case]:
        """Proofs that are refused for lengths, key, index or the signature's encoding."""
        key, der = good.public_key, good.signature
        info = self.subject.proof(2, good.data)
        refused = {
            Verdict.MALFORMED: {
                "33 hashes": good._replace(inclusion_hashes=[os.urandom(DIGEST_SIZE)] * 33),
                "signature format 0": good._replace(signature_format=0),
                "signature format 3": good._replace(signature_format=3),
                "4,097 bytes of data": self.subject.proof(0, os.urandom(4_097)),
            },
            Verdict.BAD_KEY: {
                "hybrid prefix": good._replace(public_key=bytes([6 | key[64] & 1]) + key[1:]),
                "truncated": good._replace(public_key=key[:-1]),
                "none": good._replace(public_key=b""),
                "trailing byte": info._replace(public_key=info.public_key + b"\0"),
            },
            Verdict.BAD_INDEX: {
                "one too large": good._replace(key_index=1 << len(good.inclusion_hashes)),
                "largest": good._replace(key_index=2**64 - 1),
                "without hashes": good._replace(key_index=1, inclusion_hashes=[]),
            },
            Verdict.BAD_SIGNATURE_ENCODING: {
                "trailing byte": good._replace(signature=der + b"\0"),
                "long-form length": good._replace(signature=der[:1] + b"\x81" + der[1:]),
                "truncated": good._replace(signature=der[:-1]),
                "negative integer": good._replace(signature=der_integers("80", "01")),
                "padded integer": good._replace(signature=der_integers("0001", "01")),
                "integer of 33 bytes": good._replace(signature=der_integers("01" * 33, "01")),
                "raw with 63 bytes": raw._replace(signature=raw.signature[:-1]),
                "raw with 65 bytes": raw._replace(signature=raw.signature + b"\0"),
                "none": raw._replace(signature=b""),
            },
        }
        for verdict, proofs in refused.items():
            for name, proof in proofs.items():
                yield Case(f"{verdict_name(verdict)}: {name}", self.challenged, proof, verdict)

    def cases_of_challenges(self, challenge: bytes, spent: bytes) -> Iterable[Case]:
        """Proofs that sign a challenge that is none, or was spent."""
        forged = {
            "random": os.urandom(len(challenge)),
            "first bit changed": flipped(challenge, len(challenge) * 8 - 1),
            "last bit changed": flipped(challenge),
            "too short": challenge[:-1],
            "too long": challenge + b"\0",
            "empty": b"",
        }
        for name, data in forged.items():
            proof = self.subject.proof(0, data)
            yield Case(f"challenge-forged: {name}", self.challenged, proof, Verdict.CHALLENGE_FORGED)
        for index, name in ((0, "same key"), (1, "other key")):
            proof = self.subject.proof(index, spent)
            yield Case(f"challenge-replayed: {name}", self.challenged, proof, Verdict.CHALLENGE_REPLAYED)

    def cases_of_collaborations(self, good: Proof) -> Iterable[Case]:
        """A proof for collaborations that don't or can't exist."""
        names: list[Name] = [self.unknown, b"", b"\x1f", b"a\x7f", b"\xff", b"x" * 129]
        for name in names:
            yield Case(f"unknown-collaboration: {name!r}", name, good, Verdict.UNKNOWN_COLLABORATION)

    def cases_of_membership(self, good: Proof) -> Iterable[Case]:
        """Proofs that lead to a root hash that is not in the set."""
        siblings = good.inclusion_hashes
        proofs = {
            "changed sibling": good._replace(inclusion_hashes=[flipped(siblings[0]), *siblings[1:]]),
            "missing sibling": good._replace(inclusion_hashes=siblings[:-1]),
            "other index": good._replace(key_index=good.key_index ^ 1),
            "stranger": self.stranger.proof(0, good.data),
            "no point of the curve": good._replace(public_key=flipped(good.public_key)),
            "coordinate too large": good._replace(public_key=b"\x02" + b"\xff" * 32),
        }
        for name, proof in proofs.items():
            root = root_hash(proof.public_key, proof.key_index, proof.inclusion_hashes)
            yield Case(f"not-participant: {name}", self.challenged, proof, Verdict.NOT_PARTICIPANT, root)

    def cases_of_signatures(self, good: Proof, raw: Proof) -> Iterable[Case]:
        """Proofs of a participant with a signature of something else."""
        proofs = {
            "other key": good._replace(signature=self.subject.devices[1].sign(good.data)),
            "changed bit": raw._replace(signature=flipped(raw.signature)),
            "other data": good._replace(signature=self.subject.devices[0].sign(self.challenge())),
        }
        for name, proof in proofs.items():
            root = self.subject.root
            self.checks.equal(f"bad-signature: {name}, here", verify_proof(proof, [root]), (root, False))
            yield Case(f"bad-signature: {name}", self.challenged, proof, Verdict.BAD_SIGNATURE, root)

    def cases_of_order(self, good: Proof, spent: bytes) -> Iterable[Case]:
        """Proofs that are wrong in two ways, of which the first check decides."""
        no_key = good._replace(public_key=b"")
        stranger = self.stranger.proof(0, good.data)
        unsigned = stranger._replace(signature=good.signature)
        root = self.stranger.root
        yield Case("order: lengths, key", self.challenged, no_key._replace(signature_format=0), Verdict.MALFORMED)
        yield Case("order: key, signature encoding", self.challenged, no_key._replace(signature=b""), Verdict.BAD_KEY)
        encoding = good._replace(signature=b"")
        yield Case("order: encoding, collaboration", self.unknown, encoding, Verdict.BAD_SIGNATURE_ENCODING)
        forged = self.subject.proof(0, flipped(good.data))
        yield Case("order: collaboration, challenge", self.unknown, forged, Verdict.UNKNOWN_COLLABORATION)
        replayed = self.stranger.proof(0, spent)
        yield Case("order: challenge, membership", self.challenged, replayed, Verdict.CHALLENGE_REPLAYED)
        yield Case("order: membership, signature", self.challenged, unsigned, Verdict.NOT_PARTICIPANT, root)

    def check_nonces(self) -> None:
        root = self.subject.root
        nonce = os.urandom(16)
        proof = self.subject.proof(0, nonce)
        broken = proof._replace(signature=self.subject.devices[0].sign(b"something else"))
        other = self.subject.proof(1, nonce)
        short = self.subject.proof(0, nonce[:15])
        self.check_cases(
            [
                Case("bad-nonce: 15 bytes", self.nonced, short, Verdict.BAD_NONCE),
                Case("a wrong signature", self.nonced, broken, Verdict.BAD_SIGNATURE, root),
            ]
        )
        for case in (
            Case("refused proofs spend no nonce", self.nonced, proof, Verdict.GRANTED, root),
            Case("nonce-replayed", self.nonced, proof, Verdict.NONCE_REPLAYED),
            Case("nonce-replayed: signed anew", self.nonced, self.subject.proof(0, nonce), Verdict.NONCE_REPLAYED),
            Case("the nonce of another key", self.nonced, other, Verdict.GRANTED, root),
        ):
            self.check_cases([case])
        copies = [(self.nonced, self.subject.proof(0, os.urandom(16)))] * 8
        verdicts = self.verified(self.client.verify(copies)).verdicts
        expected = {"granted": 1, "nonce-replayed": 7}
        self.checks.equal("copies in one request", Counter(map(verdict_name, verdicts)), expected)

    def check_inclusion_only(self) -> None:
        proofs = [person.proof(index, b"") for person in self.people for index in range(len(person.devices))]
        cases = [
            Case("included", collaboration, proof, Verdict.INCLUDED, root_hash(*proof[:3]))
            for proof in proofs
            for collaboration in (self.challenged, self.nonced)
        ]
        good = self.subject.proof(0, b"")
        other = good._replace(key_index=1)
        refused = {
            Verdict.MALFORMED: good._replace(inclusion_hashes=[NO_ROOT] * 33),
            Verdict.BAD_KEY: good._replace(public_key=good.public_key[:-1]),
            Verdict.BAD_INDEX: good._replace(key_index=1 << len(good.inclusion_hashes)),
        }
        for verdict, proof in refused.items():
            cases.append(Case(f"{verdict_name(verdict)}", self.challenged, proof, verdict))
        cases.append(Case("unknown-collaboration", self.unknown, good, Verdict.UNKNOWN_COLLABORATION))
        for proof in (other, self.stranger.proof(0, b"")):
            cases.append(Case("not-participant", self.nonced, proof, Verdict.NOT_PARTICIPANT, root_hash(*proof[:3])))
        self.check_cases(cases, inclusion_only=True)
        verification = self.verified(self.client.verify_inclusion([(self.challenged, good)]))
        self.checks.equal("without root hashes", verification, Verification([Verdict.INCLUDED], []))

    def check_mutations(self) -> None:
        client, equal, error = self.client, self.checks.equal, self.checks.error
        extra = [os.urandom(DIGEST_SIZE) for _ in range(3)]
        self.roots += extra
        mutation = os.urandom(16)
        first = self.add(self.challenged, extra, mutation)
        equal("add: changed", first.changed, 3)
        repeat = first._replace(repeat=True)
        equal("retry", client.add_roots(self.challenged, extra, mutation).result(), repeat)
        conflict = ErrorCode.MUTATION_CONFLICT
        error("conflict: other digests", client.add_roots(self.challenged, extra[:2], mutation), conflict)
        error("conflict: other operation", client.remove_roots(self.challenged, extra, mutation), conflict)
        error("conflict: other collaboration", client.add_roots(self.nonced, extra, mutation), conflict)
        equal("retry after conflicts", client.add_roots(self.challenged, extra, mutation).result(), repeat)

        equal("add: nothing new", self.add(self.challenged, extra, os.urandom(16)).changed, 0)
        removal = os.urandom(16)
        removed = self.remove(self.challenged, extra[1:], removal)
        equal("remove: changed", removed.changed, 2)
        again = client.remove_roots(self.challenged, extra[1:], removal).result()
        equal("remove: retry", again, removed._replace(repeat=True))
        equal("a retry changes nothing", client.add_roots(self.challenged, extra, mutation).result(), repeat)
        equal("a retry adds nothing", client.test_roots(self.challenged, extra).result(), [True, False, False])
        equal("add: some new", self.add(self.challenged, extra, os.urandom(16)).changed, 2)
        equal("add: all new", self.add(self.nonced, extra, os.urandom(16)).changed, 3)

        self.check_mutation_copies(os.urandom(16), os.urandom(DIGEST_SIZE))
        self.check_mutation_errors(extra)

    def check_mutation_copies(self, mutation: bytes, root: bytes) -> None:
        """Sends a mutation on two connections at the same time."""
        with Connection(*self.address) as other:
            asked = [client.add_roots(self.challenged, [root], mutation) for client in (self.client, other)]
            receipts = sorted((pending.result() for pending in asked), key=lambda receipt: receipt.repeat)
        self.checks.equal("copies of a mutation: one is applied", receipts[1], receipts[0]._replace(repeat=True))
        self.checks.equal("copies of a mutation: one is a repeat", receipts[0].repeat, False)
        sequence, changed, _ = receipts[0]
        logged = logged_identifier(mutation)
        self.journal.append(Change(sequence, changed, logged, Operation.ADD_ROOTS, 0, 1, self.challenged, [root]))
        self.checks.equal("remove: one", self.remove(self.challenged, [root], os.urandom(16)).changed, 1)

    def check_mutation_errors(self, digests: Sequence[bytes]) -> None:
        """Changes what can't be changed, and asks for what is not there."""
        client, error = self.client, self.checks.error
        unknown = ErrorCode.UNKNOWN_COLLABORATION
        error("unknown collaboration: add", client.add_roots(self.unknown, digests), unknown)
        error("unknown collaboration: remove", client.remove_roots(self.unknown, digests), unknown)
        error("unknown collaboration: drop", client.drop_collaboration(self.unknown), unknown)
        error("unknown collaboration: test", client.test_roots(self.unknown, digests), unknown)
        error("unknown collaboration: list", client.list_roots(self.unknown, 7), unknown)
        error("unknown collaboration: count", client.count_roots(self.unknown), unknown)
        exists = ErrorCode.COLLABORATION_EXISTS
        error(
            "exists with another policy",
            client.create_collaboration(self.challenged, Policy.DEVICE_NONCE, WINDOW),
            exists,
        )
        error("exists with another policy", client.create_collaboration(self.nonced, Policy.CHALLENGE), exists)
        changed = self.create(self.challenged, Policy.CHALLENGE).changed
        self.checks.equal("exists with the same policy", changed, 0)

    def check_listings(self) -> None:
        client, equal = self.client, self.checks.equal
        ordered = sorted(self.roots)
        walked: list[bytes] = []
        more = True
        while more:
            page, more = client.list_roots(self.challenged, 7, walked[-1] if walked else None).result()
            self.checks.true("list roots: size of a page", 0 < len(page) <= 7, len(page), "1 to 7")
            walked += page
        equal("list roots: all pages", walked, ordered)
        equal("list roots: an exact page", client.list_roots(self.challenged, len(ordered)).result(), (ordered, False))
        equal("list roots: behind the last", client.list_roots(self.challenged, 7, ordered[-1]).result(), ([], False))
        middle = flipped(ordered[5])
        behind = [root for root in ordered if root > middle]
        page, more = client.list_roots(self.nonced, 4_096, middle).result()
        equal("list roots: behind one that is none", (page, more), (behind, False))

        mixed = [*self.roots, NO_ROOT, self.stranger.root]
        expected = [True] * len(self.roots) + [False, False]
        equal("test roots", client.test_roots(self.challenged, mixed).result(), expected)

        states = [
            (self.challenged, CollaborationState(Policy.CHALLENGE, 0, len(self.roots))),
            (self.nonced, CollaborationState(Policy.DEVICE_NONCE, WINDOW, len(self.roots))),
        ]
        for name, state in states:
            equal("count roots", client.count_roots(name).result(), state)
        names = self.collaborations(1_024)
        equal("list collaborations: each once", len(names), len(set(names)))
        listed_here = sorted(name for name in names if name.startswith(self.prefix))
        equal("list collaborations: all pages", listed_here, sorted([self.challenged, self.nonced]))
        singly = self.collaborations(1)
        lasting = set(names) & set(singly)
        orders = [[name for name in listed if name in lasting] for listed in (singly, names)]
        equal("list collaborations: the same order in any pages", *orders)

    def check_bad_requests(self) -> None:
        for operation in (0, 0x7F, 0xFFFF):
            pending = self.client.request(operation, b"", Reader.rest)
            self.checks.error(f"operation {operation}", pending, ErrorCode.UNKNOWN_OPERATION, detail=operation)
            self.check_connection()
        name = bytes([len(self.challenged)]) + self.challenged.encode()
        entries = [(self.challenged, self.subject.proof(0, os.urandom(48)))]
        verify = encode_verification(entries, want_roots=False, inclusion_only=False)
        inclusion = encode_verification(entries, want_roots=False, inclusion_only=True)

        def renumbered(body: bytes) -> bytes:
            position = 16 + len(name)
            return body[:position] + b"\1" + body[position + 1 :]

        malformed = [
            ("hello: empty", Operation.HELLO, b""),
            ("hello: not zero", Operation.HELLO, b"\1\1\1\0"),
            ("hello: trailing byte", Operation.HELLO, b"\1\1\0\0\0"),
            ("challenges: short", Operation.ISSUE_CHALLENGES, b"\1\0\0"),
            ("verify: empty", Operation.VERIFY, b""),
            ("verify: short", Operation.VERIFY, verify[:-1]),
            ("verify: trailing byte", Operation.VERIFY, verify + b"\0"),
            ("verify: without a sequence", Operation.VERIFY, verify[8:]),
            ("verify: unknown flag", Operation.VERIFY, verify[:8] + b"\2" + verify[9:]),
            ("verify: not zero", Operation.VERIFY, verify[:9] + b"\1" + verify[10:]),
            ("verify: no such position", Operation.VERIFY, renumbered(verify)),
            ("inclusion: short", Operation.VERIFY_INCLUSION, inclusion[:-1]),
            ("inclusion: no such position", Operation.VERIFY_INCLUSION, renumbered(inclusion)),
            ("add: a digest is missing", Operation.ADD_ROOTS, bytes(16) + name + b"\2\0\0\0" + bytes(DIGEST_SIZE)),
            ("test: trailing byte", Operation.TEST_ROOTS, name + b"\1\0\0\0" + bytes(DIGEST_SIZE + 1)),
            ("list: start is neither 0 nor 1", Operation.LIST_ROOTS, name + b"\1\0\0\0\2" + bytes(DIGEST_SIZE)),
            ("create: unknown policy", Operation.CREATE_COLLABORATION, bytes(16) + name + b"\3" + bytes(4)),
            ("drop: short", Operation.DROP_COLLABORATION, bytes(16) + name[:-1]),
            ("statistics: not empty", Operation.STATISTICS, b"\0"),
            ("changes: short", Operation.READ_CHANGES, bytes(11)),
            ("confirm everywhere: short", Operation.CONFIRM_EVERYWHERE, bytes(7)),
            ("confirm everywhere: trailing byte", Operation.CONFIRM_EVERYWHERE, bytes(9)),
        ]
        for label, operation, body in malformed:
            pending = self.client.request(operation, body, Reader.rest)
            self.checks.error(label, pending, ErrorCode.MALFORMED_REQUEST)
            self.check_connection()
        self.check_limits()

    def check_limits(self) -> None:
        """Asks for one more than the limits."""
        client = self.client
        nothing = Proof(b"", 0, [])
        names = [(f"{number}", nothing) for number in range(4_097)]
        over: list[tuple[str, Pending[Any], int]] = [
            ("challenges", client.issue_challenges(4_097), 4_096),
            ("proofs", client.verify([(self.challenged, nothing)] * 4_097), 4_096),
            ("proofs, inclusion-only", client.verify_inclusion([(self.challenged, nothing)] * 4_097), 4_096),
            ("collaborations", client.verify(names), 4_096),
            ("digests in an add", client.add_roots(self.challenged, [NO_ROOT] * 32_769), 32_768),
            ("digests in a test", client.test_roots(self.challenged, [NO_ROOT] * 32_769), 32_768),
            ("digests in a page", client.list_roots(self.challenged, 4_097), 4_096),
            ("collaborations in a page", client.list_collaborations(1_025), 1_024),
            ("changes in a page", client.read_changes(0, 1_025), 1_024),
        ]
        for label, pending, limit in over:
            self.checks.error(f"limit: {label}", pending, ErrorCode.LIMIT_EXCEEDED, detail=limit)
        self.check_connection()

    def check_connection(self) -> None:
        """Makes sure that the connection still works."""
        self.checks.equal("the connection goes on", self.client.ping(b"still here").result(), b"still here")

    def check_bad_frames(self) -> None:
        request_id = 0x0123_4567_89AB_CDEF
        ping = encode_frame(Operation.PING, request_id, b"ping")
        with connect(*self.address, TIMEOUT) as connection, connection.makefile("rb") as stream:
            for byte in ping:
                connection.sendall(bytes([byte]))
            answer = encode_frame(Operation.PING, request_id, b"ping", kind=Kind.ANSWER)
            self.checks.equal("a frame byte by byte", stream.read(len(answer)), answer)

        too_large = HEADER.pack(MAXIMUM_BODY + 1, 1, Kind.REQUEST, Operation.PING, request_id)
        self.check_fatal("frame too large", too_large, request_id, ErrorCode.FRAME_TOO_LARGE, MAXIMUM_BODY)
        for version in (0, 2):
            frame = encode_frame(Operation.PING, request_id, version=version)
            self.check_fatal(f"version {version}", frame, request_id, ErrorCode.UNSUPPORTED_VERSION, 1)
        for kind in (0, Kind.ANSWER, Kind.ERROR, 4):
            frame = encode_frame(Operation.PING, request_id, kind=kind)
            self.check_fatal(f"kind {int(kind)}", frame, request_id, ErrorCode.MALFORMED_FRAME, 0)
        self.check_connection()

    def check_fatal(self, name: str, frame: bytes, request_id: int, code: ErrorCode, detail: int) -> None:
        """Sends a frame on a connection of its own, which the service has to close with an error."""
        with connect(*self.address, TIMEOUT) as connection, connection.makefile("rb") as stream:
            connection.sendall(frame)
            try:
                received = stream.read()
            except socket.timeout:
                self.checks.fail(f"{name}: closed", "a connection that stays open", "a closed connection")
        self.checks.true(f"{name}: answered", len(received) > HEADER.size, received, "an error frame")
        length, *fields = HEADER.unpack_from(received)
        self.checks.equal(f"{name}: length", len(received), HEADER.size + length)
        self.checks.equal(f"{name}: header", fields, [1, Kind.ERROR, 0, request_id])
        error = decode_error(received[HEADER.size :])
        self.checks.equal(f"{name}: error", (error_name(error.code), error.detail), (error_name(code), detail))

    def check_removals(self) -> None:
        root = self.subject.root
        proof = self.subject.proof(0, self.challenge())
        self.checks.equal("remove: changed", self.remove(self.challenged, [root], os.urandom(16)).changed, 1)
        self.checks.equal("remove: test", self.client.test_roots(self.challenged, [root]).result(), [False])
        self.check_cases([Case("removed", self.challenged, proof, Verdict.NOT_PARTICIPANT, root)])
        self.checks.equal("add: changed", self.add(self.challenged, [root], os.urandom(16)).changed, 1)
        self.check_cases([Case("added again", self.challenged, proof, Verdict.GRANTED, root)])

        self.drop(self.nonced)
        dropped = self.subject.proof(0, os.urandom(16))
        self.check_cases([Case("dropped", self.nonced, dropped, Verdict.UNKNOWN_COLLABORATION)])
        self.checks.error("dropped: count", self.client.count_roots(self.nonced), ErrorCode.UNKNOWN_COLLABORATION)
        self.create(self.nonced, Policy.CHALLENGE)
        state = CollaborationState(Policy.CHALLENGE, 0, 0)
        self.checks.equal("created anew: empty", self.client.count_roots(self.nonced).result(), state)
        for collaboration in (self.nonced, self.challenged):
            self.drop(collaboration)
        left = [name for name in self.collaborations(1_024) if name.startswith(self.prefix)]
        self.checks.equal("dropped: list", left, [])

    def collaborations(self, size: int) -> list[str]:
        """The names of all collaborations, read in pages of a size."""
        names: list[str] = []
        more = True
        while more:
            listed, more = self.client.list_collaborations(size, names[-1] if names else "").result()
            names += [name for name, _ in listed]
        return names

    def check_changes(self) -> None:
        sequence = self.journal[0].sequence - 1
        changes: list[Change] = []
        more = True
        while more and sequence < self.journal[-1].sequence:
            page, more = self.client.read_changes(sequence, 3).result()
            self.checks.true("size of a page", 0 < len(page) <= 3, len(page), "1 to 3")
            sequences = [change.sequence for change in page]
            self.checks.equal("no gaps", sequences, list(range(sequence + 1, sequence + 1 + len(page))))
            sequence = sequences[-1]
            changes += page
        own = [
            change._replace(digests=sorted(change.digests))
            for change in changes
            if change.collaboration in (self.challenged, self.nonced)
        ]
        for number, (came, expected) in enumerate(itertools.zip_longest(own, self.journal)):
            self.checks.equal(f"own change {number}", came, expected)
        last = self.journal[-1].sequence
        self.checks.equal("confirm everywhere", self.client.confirm_everywhere(last).result(), last)

    def check_statistics(self, before: dict[str, int]) -> None:
        after = self.client.statistics().result()
        names = [*STATISTICS, *(f"verdict-{verdict_name(v)}" for v in Verdict if v != Verdict.UNLISTED)]
        self.checks.equal("names that are missing", [name for name in names if name not in after], [])
        last = self.journal[-1].sequence
        self.checks.true("sequence", after["sequence"] >= last, after["sequence"], f"{last} or more")
        for verdict, count in sorted(self.verdicts.items()):
            name = f"verdict-{verdict_name(verdict)}"
            given = after[name] - before[name]
            self.checks.true(f"{name}, by this script", given >= count, given, f"{count} or more")


# The collaboration layer.

Fields = dict[str, Any]
"""A JSON object."""
HOUR = 3_600_000
PATIENCE = 10_000
"""Milliseconds that a request waits for what is about to happen."""
WAITING_LIMIT = 1_024
"""Requests that wait on a connection."""


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def base64url(data: bytes) -> str:
    """Bytes as the layer's JSON has them."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def option(identifier: str, selected: bool = False, requires: Sequence[str] = (), effect: str = "") -> Fields:
    """A share option."""
    fields: Fields = {
        "title": f"Title of {identifier}",
        "subtitle": f"Subtitle of {identifier}",
        "identifier": identifier,
        "isSelected": selected,
        "requiredOptionsIdentifiers": list(requires),
    }
    return {**fields, "effects": [effect]} if effect else fields


def group(kind: str, identifier: str, *options: Fields) -> Fields:
    """A group of share options."""
    return {"kind": kind, "identifier": identifier, "title": "Title", "footer": "Footer", "options": list(options)}


def event(kind: str, trigger: str = "", person: str = "", link: str = "") -> Fields:
    """An event of a notice."""
    fields = {"kind": kind, "trigger": trigger, "person": person, "link": link}
    return {name: value for name, value in fields.items() if value}


class Member(NamedTuple):
    """A person with a name and an account."""

    person: Person
    name: str
    account: str

    @property
    def identity(self) -> str:
        """The root hash in hexadecimal."""
        return self.person.root.hex()


class Posted(NamedTuple):
    """What was posted, as the author's own words."""

    sequence: int
    author: Member
    events: list[Fields]


class CollaborationLayer:
    """All checks of the collaboration layer of one service."""

    def __init__(self, host: str, port: int, checks: Checks) -> None:
        self.address = (host, port)
        self.checks = checks
        self.client = Connection(host, port)
        self.suffix = os.urandom(8).hex()
        self.ann, self.bob, self.eve, self.leo = (self.member(name) for name in ("Ann", "Bob", "Eve", "Leo"))
        self.stranger = Person([Device()])
        self.collaboration = ""
        self.other = ""
        self.started: list[str] = []
        self.posted: list[Posted] = []
        self.journal: list[tuple[int, bytes, bytes]] = []

    def run(self) -> None:
        """Runs the checks, in an order in which each finds what it needs."""
        self.checks.run(
            [
                self.check_start,
                self.check_options,
                self.check_participants,
                self.check_repetitions,
                self.check_opening,
                self.check_grants,
                self.check_revocations,
                self.check_managing,
                self.check_ownership,
                self.check_accounts,
                self.check_notices,
                self.check_feeds,
                self.check_following,
                self.check_shelf_order,
                self.check_consent,
                self.check_attribution,
                self.check_previews,
                self.check_following_a_shelf,
                self.check_invitations,
                self.check_refused_invitations,
                self.check_closed_invitations,
                self.check_shares,
                self.check_details,
                self.check_sequences,
                self.check_bad_collaborates,
                self.check_stop,
                self.check_edits,
            ]
        )
        self.client.close()

    # Helpers.

    def member(self, name: str) -> Member:
        """Somebody with devices."""
        return Member(Person([Device(encoding) for encoding in KeyEncoding]), name, self.account(name))

    def account(self, name: str) -> str:
        """An account's name that nobody else has."""
        return f"{name.lower()}-{self.suffix}"

    def ask(self, request: str, /, **fields: Any) -> Fields:
        """The answer to a request."""
        mutation = os.urandom(16)
        answer = self.client.collaborate(request, fields, mutation).result()
        sequence = answer.get("receipt", answer).get("sequence")
        if request != "readNotices" and isinstance(sequence, int):
            self.journal.append((sequence, logged_mutation(mutation, fields), request_digest(request, fields)))
        return answer

    def changed(self, label: str, expected: int, request: str, /, **fields: Any) -> int:
        """Checks a receipt, and returns its sequence."""
        receipt = self.ask(request, **fields)
        receipt = receipt.get("receipt", receipt)
        came = (receipt["changed"], "sequence" in receipt)
        self.checks.equal(f"{label}: receipt", came, (expected, True))
        return receipt["sequence"]

    def error(
        self,
        label: str,
        code: ErrorCode,
        request: str,
        /,
        error_detail: int = 0,
        names: Sequence[str] = (),
        **fields: Any,
    ) -> None:
        """Checks that a request is refused."""
        self.checks.error(label, self.client.collaborate(request, fields), code, error_detail, names)

    def metadata(self, local_identifier: str, *groups: Fields, **fields: Any) -> Fields:
        """What a collaboration is started with."""
        metadata = {"localIdentifier": f"{local_identifier}-{self.suffix}", "title": local_identifier, **fields}
        if groups:
            return {**metadata, "defaultShareOptions": {"groups": groups}}
        return {"defaultPermission": "readWrite", **metadata}

    def prepare(self, local_identifier: str, *groups: Fields, **fields: Any) -> Fields:
        """Starts a collaboration of Ann's."""
        metadata = self.metadata(local_identifier, *groups, **fields.pop("metadata", {}))
        answer = self.ask("prepare", owner=self.ann.account, metadata=metadata, **fields)
        if answer["isNew"]:
            self.started.append(answer["collaborationIdentifier"])
        return answer

    def add(self, label: str, expected: int, *participants: Fields, collaboration: str = "") -> int:
        """Adds participants."""
        where = collaboration or self.collaboration
        return self.changed(label, expected, "addParticipants", collaboration=where, participants=participants)

    def participants(self, collaboration: str = "", removed: bool = True) -> dict[str, Fields]:
        """The participants by their identities, read in pages of two."""
        walked: list[Fields] = []
        more = True
        while more:
            after = {"after": walked[-1]["identity"]} if walked else {}
            where = collaboration or self.collaboration
            page = self.ask("listParticipants", collaboration=where, limit=2, includesRemoved=removed, **after)
            more = page["hasMore"]
            self.checks.true("participants: size of a page", len(page["participants"]) <= 2, page, "up to 2")
            walked += page["participants"]
        identities = [participant["identity"] for participant in walked]
        self.checks.equal("participants: each once", len(identities), len(set(identities)))
        return dict(zip(identities, walked))

    def proofs(self, *signers: tuple[Person, int], collaboration: str = "") -> list[tuple[Name, Proof]]:
        """A proof of each signer's device, half of them with raw signatures."""
        challenges = self.client.issue_challenges(len(signers)).result().challenges
        formats = itertools.cycle(SignatureFormat)
        return [
            (collaboration or self.collaboration, person.proof(index, challenge, next(formats)))
            for (person, index), challenge in zip(signers, challenges)
        ]

    def grants(self, *members: Member, collaboration: str = "") -> list[bytes]:
        """A grant for the first device of each."""
        signers = [(member.person, 0) for member in members]
        opening = self.client.open(self.proofs(*signers, collaboration=collaboration)).result()
        verdicts = [verdict_name(verdict) for verdict in opening.verdicts]
        self.checks.equal("grants: verdicts", verdicts, ["granted"] * len(members))
        grants = [grant for grant in opening.grants if grant is not None]
        self.checks.equal("grants: one for each", len(grants), len(members))
        return grants

    def check_statuses(
        self, label: str, grants: Sequence[bytes], expected: Sequence[GrantStatus], collaboration: str = ""
    ) -> list[GrantCheck]:
        """Checks the statuses of grants."""
        where = collaboration or self.collaboration
        came = self.client.check_grants([(where, grant, None) for grant in grants]).result()
        names = [grant_status_name(check.status) for check in came]
        self.checks.equal(label, names, [grant_status_name(status) for status in expected])
        refused = {check[1:] for check in came if check.status != GrantStatus.VALID}
        self.checks.true(f"{label}: nothing of refused ones", refused <= {(0, 0, 0)}, came, "zeros")
        return came

    # Sections.

    def check_start(self) -> None:
        equal = self.checks.equal
        groups = [
            group(
                "picker", "access", option("view", effect="readOnly"), option("edit", True, effect="readWrite")
            ),
            group(
                "switches",
                "more",
                option("invite", requires=["edit"], effect="addParticipants"),
                option("comment", True, effect="comment"),
            ),
        ]
        given = {
            "ownerIdentity": self.ann.identity,
            "ownerName": self.ann.name,
            "selectedOptions": ["edit", "invite", "comment"],
        }
        answer = self.prepare("plan", *groups, metadata={"initiatorHandle": "ann@example.com"}, **given)
        self.collaboration, url = answer["collaborationIdentifier"], answer["url"]
        equal("prepare: new", answer["isNew"], True)
        self.checks.true("prepare: link", url.endswith(self.collaboration), url, "the base and the identifier")
        highlight = answer["highlight"]
        came = [highlight[name] for name in ("collaborationIdentifier", "title", "url", "summary")]
        equal("prepare: highlight", came, [self.collaboration, "plan", url, "Title of edit"])
        recent = abs(highlight["creationDate"] - now()) < 24 * HOUR
        self.checks.true("prepare: date", recent, highlight["creationDate"], "milliseconds since 1970")
        equal("highlight by identifier", self.ask("highlight", collaboration=self.collaboration), highlight)
        equal("highlight by link", self.ask("highlight", url=url), highlight)
        for fields in ({"collaboration": "nothing"}, {"url": "https://example.com/"}):
            self.error(f"highlight: {fields}", ErrorCode.UNKNOWN_COLLABORATION, "highlight", **fields)
        for fields in ({}, {"collaboration": self.collaboration, "url": url}):
            self.error(f"highlight: {fields}", ErrorCode.MALFORMED_REQUEST, "highlight", **fields)
        came = [highlight.get(name) for name in ("initiatorHandle", "initiatorName", "localIdentifier")]
        equal("prepare: who shares", came, ["ann@example.com", "Ann", None])
        self.check_links(url, highlight)
        state = CollaborationState(Policy.CHALLENGE, 0, 1)
        equal("prepare: the gate's collaboration", self.client.count_roots(self.collaboration).result(), state)
        equal("prepare: the owner's root hash", self.tests(self.ann), [True])

        again = self.prepare("plan", metadata={"title": "Another title"})
        came = [again[name] for name in ("collaborationIdentifier", "url", "highlight", "isNew")]
        equal("prepare: again", came, [self.collaboration, url, highlight, False])
        other = self.ask("prepare", owner=self.bob.account, metadata=self.metadata("plan"))
        self.started.append(other["collaborationIdentifier"])
        self.checks.true("prepare: another owner", other["isNew"], other, "another collaboration")
        abandoned = {"owner": self.bob.account, "localIdentifier": f"plan-{self.suffix}"}
        self.changed("abandon", 1, "abandon", **abandoned)
        self.changed("abandon: again", 0, "abandon", **abandoned)
        self.error("abandoned", ErrorCode.UNKNOWN_COLLABORATION, "highlight", url=other["url"])
        moved = {"collaboration": other["collaborationIdentifier"], "owner": self.bob.account}
        moved["metadata"] = self.metadata("plan")
        came = self.ask("prepareAs", creationDate=1, **moved)
        equal("prepareAs", [came["url"], came["highlight"]["creationDate"], came["isNew"]], [other["url"], 1, True])
        self.error("prepareAs: again", ErrorCode.COLLABORATION_EXISTS, "prepareAs", **moved)
        moved["collaboration"] = f"another-{self.suffix}"
        self.error("prepareAs: the same content", ErrorCode.NOT_PERMITTED, "prepareAs", **moved)
        self.changed("abandon: moved", 1, "abandon", **abandoned)
        self.error("abandon: not an owner's", ErrorCode.MALFORMED_REQUEST, "abandon", owner=self.bob.account)

    def check_links(self, url: str, highlight: Fields) -> None:
        """Compares spellings of a collaboration's link."""
        scheme, rest = url.split("://")
        host, path = rest.split("/", 1)
        same = [
            f"{scheme.upper()}://{host.upper()}/{path}",
            f"{scheme}://{host}:443/{path}",
            f"{url}/",
            f"{url}/page/3?q=1#part",
            f"{scheme}://{host}/./x/%2E%2e/{path}",
            f"{url[:-1]}%{ord(url[-1]):02x}",
        ]
        for link in same:
            self.checks.equal(f"highlight by {link}", self.ask("highlight", url=link), highlight)
        others = [
            f"http://{rest}",
            f"{scheme}://{host}:80/{path}",
            f"{scheme}://{host}@other.example/{path}",
            f"{scheme}://me@{rest}",
            f"{url}x",
            f"{url}/..",
        ]
        for link in others:
            self.error(f"highlight by {link}", ErrorCode.UNKNOWN_COLLABORATION, "highlight", url=link)
        for link in ("javascript:alert(1)", "mailto:ann@example.com", "file:///etc/passwd", "data:,a", "https:///c"):
            self.error(f"highlight by {link}", ErrorCode.MALFORMED_REQUEST, "highlight", url=link)

    def tests(self, *members: Member) -> list[bool]:
        """Whether the members' root hashes are in the set."""
        roots = [member.person.root for member in members]
        return self.client.test_roots(self.collaboration, roots).result()

    def check_options(self) -> None:
        unknown, conflict = ErrorCode.UNKNOWN_OPTION, ErrorCode.OPTION_CONFLICT
        required = ErrorCode.OPTION_REQUIRED
        picker = group("picker", "p", option("a", True), option("b"))
        refused: list[tuple[str, ErrorCode, list[str], list[Fields], list[str] | None]] = [
            ("unknown", unknown, ["c"], [picker], ["c"]),
            ("a picker without one", conflict, ["p"], [picker], []),
            ("a picker with two", conflict, ["a", "b"], [picker], ["a", "b"]),
            ("a picker with two from the start", conflict, ["a", "b"], [self.both_selected(picker)], None),
            ("one identifier twice", conflict, ["a"], [picker, group("switches", "s", option("a"))], None),
            (
                "a requirement that is not selected",
                required,
                ["d", "b"],
                [picker, group("switches", "s", option("d", requires=["b"]))],
                ["a", "d"],
            ),
            (
                "a requirement that there is not",
                unknown,
                ["nothing"],
                [group("switches", "s", option("d", True, requires=["nothing"]))],
                None,
            ),
        ]
        for number, (label, code, names, groups, selected) in enumerate(refused):
            fields: Fields = {"owner": self.ann.account, "metadata": self.metadata(f"refused-{number}", *groups)}
            if selected is not None:
                fields["selectedOptions"] = selected
            self.error(f"prepare: {label}", code, "prepare", names=[f"“{name}”" for name in names], **fields)
        update = {"collaboration": self.collaboration}
        for label, code, selected in (
            ("unknown", unknown, ["nothing"]),
            ("none of a picker", conflict, ["comment"]),
            ("two of a picker", conflict, ["view", "edit"]),
            ("required", required, ["view", "invite"]),
        ):
            self.error(f"update: {label}", code, "updateShareOptions", selectedOptions=selected, **update)
        options = self.ask("readDetails", **update)["shareOptions"]["groups"]
        came = [item["identifier"] for part in options for item in part["options"] if item["isSelected"]]
        self.checks.equal("refused changes change nothing", came, ["edit", "invite", "comment"])
        same = {"selectedOptions": ["comment", "invite", "edit"], **update}
        self.changed("update: the same", 0, "updateShareOptions", **same)
        present = self.ask("readDetails", **update)["shareOptions"]
        self.changed("update: present options", 0, "updateShareOptions", presentOptions=present, **same)
        stale = {"presentOptions": {"groups": []}, **same}
        self.error("update: other options are present", conflict, "updateShareOptions", **stale)

        summaries: list[tuple[str, Fields, list[Fields]]] = [
            ("given summary", {"givenSummary": "Given"}, [picker]),
            ("Title of a, Title of c", {}, [picker, group("picker", "q", option("c", True))]),
            ("Title of b", {"selectedOptions": ["b"]}, [picker]),
        ]
        for number, (label, fields, groups) in enumerate(summaries):
            summary = fields.pop("givenSummary", None)
            metadata = self.metadata(f"summary-{number}", *groups)
            if summary:
                metadata["defaultShareOptions"]["givenSummary"] = summary
            answer = self.ask("prepare", owner=self.ann.account, metadata=metadata, **fields)
            self.started.append(answer["collaborationIdentifier"])
            self.checks.equal(f"summary: {label}", answer["highlight"]["summary"], summary or label)
        chosen = group("picker", "p", option("a"), option("b", True))
        answer = self.prepare("chosen", picker, metadata={"userSelectedShareOptions": {"groups": [chosen]}})
        self.checks.equal("options that the user selected", answer["highlight"]["summary"], "Title of b")

    @staticmethod
    def both_selected(picker: Fields) -> Fields:
        """The group with all options selected."""
        return {**picker, "options": [{**item, "isSelected": True} for item in picker["options"]]}

    def check_participants(self) -> None:
        equal = self.checks.equal
        where = {"collaboration": self.collaboration}
        bob = {"identity": self.bob.identity, "displayName": self.bob.name}
        eve = {"identity": self.eve.identity, "displayName": self.eve.name, "permission": "readOnly"}
        leo = {"identity": self.leo.identity, "role": "administrator"}
        self.add("add", 3, bob, eve, leo)
        self.add("add: nobody new", 0, bob, leo)
        listed = self.participants()
        fields = ("state", "role", "permission")
        came = {identity: tuple(item[field] for field in fields) for identity, item in listed.items()}
        expected = {
            self.ann.identity: ("invited", "owner", "readWrite"),
            self.bob.identity: ("invited", "member", "readWrite"),
            self.eve.identity: ("invited", "member", "readOnly"),
            self.leo.identity: ("invited", "administrator", "readWrite"),
        }
        equal("list: participants", came, expected)
        names = {identity: item.get("displayName") for identity, item in listed.items()}
        members = (self.ann, self.bob, self.eve)
        expected_names = {self.leo.identity: None, **{member.identity: member.name for member in members}}
        equal("list: names", names, expected_names)
        equal("add: root hashes", self.tests(self.ann, self.bob, self.eve, self.leo), [True] * 4)

        nobody = {"identity": self.stranger.root.hex()}
        self.error(
            "add: a second owner, among others",
            ErrorCode.NOT_PERMITTED,
            "addParticipants",
            participants=[nobody, {"identity": os.urandom(32).hex(), "role": "owner"}],
            **where,
        )
        bad = {"participants": [{"identity": "0"}], **where}
        self.error("add: no identity", ErrorCode.MALFORMED_REQUEST, "addParticipants", **bad)
        too_many = [{"identity": os.urandom(32).hex()} for _ in range(401)]
        identities = [participant["identity"] for participant in too_many]
        for request, people in (("addParticipants", too_many), ("removeParticipants", identities)):
            limit = ErrorCode.LIMIT_EXCEEDED
            self.error(f"{request}: 401", limit, request, error_detail=400, participants=people, **where)
        equal("a refused batch adds nobody", self.participants(), listed)
        self.add("add: 400", 400, *too_many[1:])
        equal("list: 400 more", len(self.participants()), len(listed) + 400)
        self.changed("remove: 400", 400, "removeParticipants", participants=identities[1:], **where)
        equal("list: without removed ones", self.participants(removed=False), listed)
        states = Counter(item["state"] for item in self.participants().values())
        equal("list: states", states, {"invited": 4, "removed": 400})
        owner = {"participants": [self.leo.identity, self.ann.identity], **where}
        self.error("remove: the owner, among others", ErrorCode.NOT_PERMITTED, "removeParticipants", **owner)
        equal("a refused batch removes nobody", self.participants(removed=False), listed)
        gone = {"participants": [self.stranger.root.hex(), identities[1]], **where}
        self.changed("remove: nobody who is there", 0, "removeParticipants", **gone)
        unknown = {"participant": {**nobody, "role": "member"}, **where}
        self.error("update: a stranger", ErrorCode.UNKNOWN_PARTICIPANT, "updateParticipant", **unknown)
        elsewhere = {"collaboration": "nothing", "participants": []}
        self.error("add: nowhere", ErrorCode.UNKNOWN_COLLABORATION, "addParticipants", **elsewhere)
        for limit, code, detail in ((257, ErrorCode.LIMIT_EXCEEDED, 256), (0, ErrorCode.MALFORMED_REQUEST, 0)):
            page = {"limit": limit, "includesRemoved": False, **where}
            self.error(f"list: a page of {limit}", code, "listParticipants", error_detail=detail, **page)

    def check_repetitions(self) -> None:
        identity = os.urandom(32).hex()
        fields = {"collaboration": self.collaboration, "participants": [{"identity": identity}]}
        mutation = os.urandom(16)
        first = self.client.collaborate("addParticipants", fields, mutation).result()
        logged = logged_mutation(mutation, fields)
        self.journal.append((first["sequence"], logged, request_digest("addParticipants", fields)))
        self.checks.equal("add: receipt", first["changed"], 1)
        self.client.collaborate("addParticipants", fields, mutation).result()
        self.checks.true("repeated: once", identity in self.participants(), identity, "a participant")
        gone = {"collaboration": self.collaboration, "participants": [identity]}
        self.changed("remove", 1, "removeParticipants", **gone)
        late = self.client.collaborate("addParticipants", fields, mutation).result()
        self.checks.equal("repeated late: receipt", late, {"sequence": first["sequence"], "changed": 0})
        state = self.participants()[identity]["state"]
        self.checks.equal("repeated late: nothing comes back", state, "removed")
        for label, request, reusing in (
            ("another request", "removeParticipants", gone),
            ("another field", "addParticipants", {**fields, "participants": []}),
            ("another order of fields", "addParticipants", dict(reversed(fields.items()))),
        ):
            reused = self.client.collaborate(request, reusing, mutation)
            self.checks.error(f"reused for {label}", reused, ErrorCode.MUTATION_CONFLICT)
        other = self.prepare("reuse")["collaborationIdentifier"]
        elsewhere = self.client.collaborate("addParticipants", {**fields, "collaboration": other}, mutation).result()
        self.checks.equal("reused for another collaboration", elsewhere["changed"], 1)
        nothing = self.client.collaborate("removeParticipants", gone, unused := os.urandom(16)).result()
        self.journal.append(
            (nothing["sequence"], logged_mutation(unused, gone), request_digest("removeParticipants", gone))
        )
        receipt = {"sequence": nothing["sequence"], "changed": 0}
        self.checks.equal("nothing to remove", nothing, {**receipt, "removed": [{"identity": identity}]})
        conflict = self.client.collaborate("addParticipants", fields, unused)
        self.checks.error("what changed nothing is remembered", conflict, ErrorCode.MUTATION_CONFLICT)
        self.changed("add again", 1, "addParticipants", **fields)
        late = self.client.collaborate("removeParticipants", gone, unused).result()
        self.checks.equal("repeated: nobody leaves", late, {**receipt, "removed": []})
        present = os.urandom(16)
        kept = self.client.collaborate("addParticipants", fields, present).result()
        digest = request_digest("addParticipants", fields)
        self.journal.append((kept["sequence"], logged_mutation(present, fields), digest))
        self.checks.equal("added who is there", kept["changed"], 0)
        self.changed("remove again", 1, "removeParticipants", **gone)
        repeated = self.client.collaborate("addParticipants", fields, present).result()
        self.checks.equal("repeated: nobody comes back", repeated, {"sequence": kept["sequence"], "changed": 0})
        self.checks.equal("repeated: still removed", self.participants()[identity]["state"], "removed")
        reused_root = self.client.add_roots(self.collaboration, [bytes.fromhex(identity)], mutation).result()
        self.checks.equal("reused for the sets", reused_root.repeat, False)
        bare = os.urandom(32)
        self.client.add_roots(self.collaboration, [bare]).result()
        both = {"collaboration": self.collaboration, "participants": [identity, bare.hex()]}
        receipt = self.ask("removeParticipants", **both)
        came = (receipt["changed"], receipt["removed"])
        self.checks.equal("remove: root hashes without a participant", came, (2, [{"identity": identity}]))
        roots = [bytes.fromhex(identity), bare]
        tests = self.client.test_roots(self.collaboration, roots).result()
        self.checks.equal("removed: root hashes", tests, [False] * 2)

    def check_opening(self) -> None:
        equal = self.checks.equal
        signers = [
            (member.person, index) for member in (self.ann, self.bob, self.eve) for index in range(len(KeyEncoding))
        ]
        proofs = self.proofs(*signers, (self.stranger, 0))
        unknown = ("nothing", self.proofs((self.bob.person, 0))[0][1])
        opening = self.client.open([*proofs, unknown], want_roots=True).result()
        granted = [Verdict.GRANTED] * len(signers)
        expected = [*granted, Verdict.NOT_PARTICIPANT, Verdict.UNKNOWN_COLLABORATION]
        equal("verdicts", [verdict_name(v) for v in opening.verdicts], [verdict_name(v) for v in expected])
        equal("root hashes", opening.roots, [*(root_hash(*proof[:3]) for _, proof in proofs), NO_ROOT])
        equal("a grant for each", [grant is not None for grant in opening.grants], [True] * len(signers) + [False] * 2)
        equal("all different", len(set(opening.grants)), len(signers) + 1)
        again = self.client.open(proofs[:1]).result()
        expected_again = Opening([Verdict.CHALLENGE_REPLAYED], [], [None])
        equal("a proof is granted once", again, expected_again)

        states = {identity: item["state"] for identity, item in self.participants(removed=False).items()}
        joined = dict.fromkeys((self.ann.identity, self.bob.identity, self.eve.identity), "joined")
        equal("states", states, {**joined, self.leo.identity: "invited"})

        checks = [
            (self.collaboration, grant, key)
            for (_, proof), grant in zip(proofs, opening.grants)
            if grant is not None
            for key in (device_key(proof.public_key), None)
        ]
        came = self.client.check_grants(checks).result()
        levels = ((Permission.READ_WRITE, Role.OWNER), (Permission.READ_WRITE, Role.MEMBER), (Permission.READ_ONLY, 3))
        equal("check: valid", [c[:3] for c in came], [(1, *level) for level in levels for _ in range(8)])
        left = [check.milliseconds_left for check in came]
        self.checks.true("check: time left", all(0 < time_left for time_left in left), left, "some time")

        self.client.add_roots(self.collaboration, [self.stranger.root]).result()
        past = self.client.open(self.proofs((self.stranger, 0))).result()
        equal("past the layer", past, Opening([Verdict.GRANTED], [], [None]))
        equal("past the layer: no participant", self.stranger.root.hex() in self.participants(), False)
        self.client.remove_roots(self.collaboration, [self.stranger.root]).result()
        equal("open: nothing", self.client.open([]).result(), Opening([], [], []))

    def check_grants(self) -> None:
        valid, forged = GrantStatus.VALID, GrantStatus.FORGED
        grant, *others = self.grants(self.bob, self.ann)
        bits = [flipped(grant, bit) for bit in range(GRANT_SIZE * 8)]
        self.check_statuses("forged: one bit", [*bits, grant], [forged] * len(bits) + [valid])
        made_up = [bytes(GRANT_SIZE), os.urandom(GRANT_SIZE), grant[:56] + others[0][56:]]
        self.check_statuses("forged: made up", made_up, [forged] * 3)
        self.other = self.prepare("other", ownerIdentity=self.ann.identity)["collaborationIdentifier"]
        self.add("other: add", 1, {"identity": self.bob.identity, "displayName": "Robert"}, collaboration=self.other)
        elsewhere = GrantStatus.OTHER_COLLABORATION
        self.check_statuses("other collaboration", [grant], [elsewhere], collaboration=self.other)
        self.check_statuses("a collaboration that there is not", [grant], [elsewhere], collaboration="nothing")
        keys = [device_key(device.public_key) for device in self.bob.person.devices]
        came = self.client.check_grants([(self.collaboration, grant, key) for key in keys]).result()
        statuses = [grant_status_name(check.status) for check in came]
        self.checks.equal("other device", statuses, ["valid"] + ["other-device"] * 3)
        [other] = self.grants(self.bob, collaboration=self.other)
        mixed = self.client.check_grants(
            [(self.other, other, None), (self.collaboration, grant, keys[0]), (self.other, grant, None)]
        ).result()
        self.checks.equal("mixed collaborations", [check.status for check in mixed], [valid, valid, elsewhere])
        self.checks.equal("nothing to check", self.client.check_grants([]).result(), [])
        too_many = self.client.check_grants([(self.collaboration, grant, None)] * 4_097)
        self.checks.error("4,097 grants", too_many, ErrorCode.LIMIT_EXCEEDED, 4_096)
        body = encode_grant_checks([(self.collaboration, grant, None)], 0)
        start = len(body) - GRANT_SIZE - 20
        malformed = {
            "empty": b"",
            "short": body[:-1],
            "trailing byte": body + b"\0",
            "a flag": body[:8] + b"\1" + body[9:],
            "not zero": body[:9] + b"\1" + body[10:],
            "unknown flag": body[: start + 2] + b"\2" + body[start + 3 :],
            "no such position": body[:start] + b"\1" + body[start + 1 :],
        }
        for label, data in malformed.items():
            pending = self.client.request(Operation.CHECK_GRANTS, data, Reader.rest)
            self.checks.error(f"check grants: {label}", pending, ErrorCode.MALFORMED_REQUEST)
        proofs = encode_verification(self.proofs((self.bob.person, 0)), want_roots=False, inclusion_only=False)
        for label, data in (("empty", b""), ("without a sequence", proofs[8:]), ("short", proofs[:-1])):
            pending = self.client.request(Operation.OPEN, data, Reader.rest)
            self.checks.error(f"open: {label}", pending, ErrorCode.MALFORMED_REQUEST)

    def check_revocations(self) -> None:
        valid, revoked = GrantStatus.VALID, GrantStatus.REVOKED
        where = {"collaboration": self.collaboration}
        members = (self.ann, self.bob, self.eve, self.leo)
        grants = self.grants(*members)
        came = self.check_statuses("before", grants, [valid] * 4)
        both, only = Permission.READ_WRITE, Permission.READ_ONLY
        self.checks.equal("before: permissions", [c.permission for c in came], [both, both, only, both])
        # Bob and Leo may do what the options say, the owner and Eve what was said of them.
        self.changed("options", 1, "updateShareOptions", selectedOptions=["view"], **where)
        statuses = [valid, revoked, valid, revoked]
        self.check_statuses("revoked by options", grants, statuses)
        grants = self.grants(*members)
        came = self.check_statuses("after new options", grants, [valid] * 4)
        self.checks.equal("after new options: permissions", [c.permission for c in came], [both, only, only, only])
        self.changed("options", 1, "updateShareOptions", selectedOptions=["edit", "invite", "comment"], **where)
        self.check_statuses("revoked by options again", grants, statuses)

        grants = self.grants(*members)
        eve = {"identity": self.eve.identity, "displayName": self.eve.name, "permission": "readWrite"}
        self.changed("update", 1, "updateParticipant", participant=eve, **where)
        self.check_statuses("revoked by an update", grants, [valid, valid, revoked, valid])
        self.changed("update", 1, "updateParticipant", participant={**eve, "permission": "readOnly"}, **where)
        grants = self.grants(*members)

        [proof] = self.proofs((self.leo.person, 1))
        self.changed("remove", 1, "removeParticipants", participants=[self.leo.identity], **where)
        self.check_statuses("revoked by removal", grants, [valid] * 3 + [revoked])
        verdicts = [self.client.verify([proof]).result().verdicts, self.client.open([proof]).result().verdicts]
        self.checks.equal("removed: verdicts", verdicts, [[Verdict.NOT_PARTICIPANT]] * 2)
        self.checks.equal("removed: root hash", self.tests(self.leo, self.bob), [False, True])
        self.add("add again", 1, {"identity": self.leo.identity, "displayName": self.leo.name})
        self.check_statuses("added again: grants stay revoked", grants, [valid] * 3 + [revoked])
        self.checks.equal("added again: state", self.participants()[self.leo.identity]["state"], "invited")
        opening = self.client.open([proof]).result()
        self.checks.equal("added again: verdict", opening.verdicts, [Verdict.GRANTED])

    def check_managing(self) -> None:
        equal = self.checks.equal
        where = {"collaboration": self.collaboration}
        bobs, eves = (base64url(grant) for grant in self.grants(self.bob, self.eve))
        newcomer, other = ({"identity": os.urandom(32).hex()} for _ in range(2))
        self.changed("manage: a member adds", 1, "addParticipants", participants=[newcomer], grant=bobs, **where)
        not_permitted = ErrorCode.NOT_PERMITTED
        for label, person, grant in (
            ("a reader lets write", {**other, "permission": "readWrite"}, eves),
            ("a member makes an administrator", {**other, "role": "administrator"}, bobs),
        ):
            adding = {"participants": [person], "grant": grant, **where}
            self.error(f"manage: {label}", not_permitted, "addParticipants", **adding)
        leaving = {"removed": [newcomer["identity"]], "added": [], **where}
        self.error("manage: a member removes", not_permitted, "updateParticipants", grant=bobs, **leaving)
        self.error("manage: a member stops", not_permitted, "stopSharing", grant=bobs, **where)
        both = {**leaving, "added": [{"identity": newcomer["identity"]}]}
        self.error("change: in and out", ErrorCode.MALFORMED_REQUEST, "updateParticipants", **both)
        answer = self.ask("updateParticipants", **{**leaving, "added": [other]})
        equal("change: both at once", (answer["changed"], answer["removed"]), (2, [newcomer]))
        found = self.ask("findParticipants", identities=[newcomer["identity"], "00" * 32], **where)
        came = ([item["state"] for item in found["participants"]], found["unknown"])
        equal("find: a removed one and nobody", came, (["removed"], ["00" * 32]))
        self.changed("change: undone", 1, "removeParticipants", participants=[other["identity"]], **where)
        eve = {"identity": self.eve.identity}
        self.changed("update: nothing said", 0, "updateParticipant", participant=eve, **where)
        renamed = {**eve, "displayName": "Eva"}
        self.changed("update: a name", 1, "updateParticipant", participant=renamed, **where)
        came = [self.participants()[self.eve.identity][field] for field in ("displayName", "permission")]
        equal("update: the permission stays", came, ["Eva", "readOnly"])
        renamed["displayName"] = self.eve.name
        self.changed("update: the name back", 1, "updateParticipant", participant=renamed, **where)
        selected = [["edit", "invite", "comment"]]
        _, options = self.client.open_with_options(self.proofs((self.bob.person, 0))).result()
        equal("open: selected options", options, selected)
        [grant] = self.grants(self.bob)
        _, options = self.client.check_grants_with_options([(self.collaboration, grant, None)]).result()
        equal("check: selected options", options, selected)
        forged = bytes([*grant[:-1], grant[-1] ^ 1])
        _, options = self.client.check_grants_with_options([(self.collaboration, forged, None)]).result()
        equal("check: no options for a forged grant", options, [[]])

    def check_ownership(self) -> None:
        equal = self.checks.equal
        deck = self.prepare("owned", nonceWindowSeconds=60)["collaborationIdentifier"]
        state = CollaborationState(Policy.DEVICE_NONCE, 60, 0)
        equal("prepare: nonces", self.client.count_roots(deck).result(), state)
        other = self.client.collaborate(
            "prepare", {"owner": self.ann.account, "metadata": self.metadata("owned"), "nonceWindowSeconds": 61}
        )
        self.checks.error("prepare: another window", other, ErrorCode.COLLABORATION_EXISTS)
        claim = {"collaboration": deck, "owner": self.ann.account, "identity": self.ann.identity}
        self.changed("claim", 1, "claimOwnership", **claim)
        self.changed("claim: again", 0, "claimOwnership", **claim)
        not_permitted = ErrorCode.NOT_PERMITTED
        for label, fields in (
            ("another identity", {**claim, "identity": self.bob.identity}),
            ("another account", {**claim, "owner": self.bob.account}),
        ):
            self.error(f"claim: {label}", not_permitted, "claimOwnership", **fields)
        roles = {identity: item["role"] for identity, item in self.participants(deck).items()}
        equal("claim: roles", roles, {self.ann.identity: "owner"})
        self.add("transfer: an heir", 1, {"identity": self.bob.identity}, collaboration=deck)
        transfer = {**claim, "identity": self.bob.identity}
        self.error("transfer: to somebody who has not joined", not_permitted, "transferOwnership", **transfer)

    def check_accounts(self) -> None:
        where = {"collaboration": self.collaboration}
        newcomer = self.member("Newcomer")
        self.add("add", 1, {"identity": newcomer.identity})
        link = {"identity": newcomer.identity, "account": newcomer.account, **where}
        self.error("link: not joined", ErrorCode.NOT_PERMITTED, "linkAccount", **link)
        self.grants(newcomer)
        self.changed("link", 1, "linkAccount", **link)
        self.changed("link: again", 0, "linkAccount", **link)
        self.checks.equal("link: listed", self.participants()[newcomer.identity].get("account"), newcomer.account)
        self.changed("unlink", 1, "linkAccount", identity=newcomer.identity, **where)
        self.checks.equal("unlink: listed", self.participants()[newcomer.identity].get("account"), None)
        self.changed("link", 1, "linkAccount", **link)
        self.changed("remove", 1, "removeParticipants", participants=[newcomer.identity], **where)
        former = self.participants()[newcomer.identity].get("account")
        self.checks.equal("removed: the account concerned", former, newcomer.account)
        unknown = ErrorCode.UNKNOWN_PARTICIPANT
        self.error("link: removed", unknown, "linkAccount", **link)
        stranger = {**link, "identity": self.stranger.root.hex()}
        self.error("link: stranger", unknown, "linkAccount", **stranger)
        for account in ("", "x" * 129, "a\n"):
            bad = {**link, "account": account}
            self.error(f"link: account {account[:3]!r}", ErrorCode.MALFORMED_REQUEST, "linkAccount", **bad)
        for member in (self.bob, self.eve):
            linked = {"identity": member.identity, "account": member.account, **where}
            self.changed("link", 1, "linkAccount", **linked)
        link = {"identity": self.bob.identity, "account": self.bob.account, "collaboration": self.other}
        self.changed("link elsewhere", 1, "linkAccount", **link)

    def post(self, author: Member, grant: bytes, *events: Fields, collaboration: str = "") -> int:
        """Posts notices and returns their sequence."""
        where = collaboration or self.collaboration
        fields = {"collaboration": where, "grant": base64url(grant), "events": events}
        sequence = self.changed("post", len(events), "postNotices", **fields)
        if where == self.collaboration:
            self.posted.append(Posted(sequence, author, list(events)))
        return sequence

    def check_notices(self) -> None:
        ann, bob, eve = self.grants(self.ann, self.bob, self.eve)
        edit, comment = event("change", "edit"), event("change", "comment")
        mention = {member.name: event("mention", person=member.identity) for member in (self.ann, self.bob, self.eve)}
        self.post(self.ann, ann, edit)
        self.post(self.bob, bob, comment, mention["Eve"], edit, mention["Ann"])
        for trigger in ("created", "deleted", "renamed", "moved"):
            self.post(self.ann, ann, event("persistence", trigger))
        joined = event("membership", "addedCollaborator", self.bob.identity)
        self.post(self.ann, ann, event("membership", "addedCollaborator"), joined)
        self.post(self.ann, ann, event("membership", "removedCollaborator"))
        self.post(self.bob, bob, joined, event("membership", "removedCollaborator", self.bob.identity))
        url = self.ask("highlight", collaboration=self.collaboration)["url"]
        places = [event("change", "comment", link=link) for link in (url, f"{url}/page/3", f"{url}/?q=1#part")]
        self.post(self.ann, ann, *places)
        self.post(self.eve, eve, mention["Bob"])
        self.post(self.eve, eve, mention["Bob"], mention["Bob"])
        self.post(self.eve, eve, comment, mention["Bob"], event("membership", "addedCollaborator", self.leo.identity))
        self.post(self.ann, ann, *[edit] * 64)
        renamed = {"identity": self.bob.identity, "displayName": "Bobby"}
        self.changed("rename", 1, "updateParticipant", participant=renamed, collaboration=self.collaboration)
        self.post(self.bob, bob, comment)

        def refused(label: str, code: ErrorCode, grant: bytes | str, *events: Fields, detail: int = 0) -> None:
            shown = grant if isinstance(grant, str) else base64url(grant)
            fields = {"collaboration": self.collaboration, "grant": shown, "events": events}
            self.error(label, code, "postNotices", error_detail=detail, **fields)

        for kind, trigger in (("change", "edit"), ("persistence", "created"), ("persistence", "moved")):
            refused("may only read", ErrorCode.NOT_PERMITTED, eve, comment, event(kind, trigger))
        unknown = event("mention", person=self.stranger.root.hex())
        refused("mention of a stranger", ErrorCode.UNKNOWN_PARTICIPANT, ann, edit, unknown)
        for trigger in ("addedCollaborator", "removedCollaborator"):
            about = event("membership", trigger, self.stranger.root.hex())
            refused("membership of a stranger", ErrorCode.UNKNOWN_PARTICIPANT, ann, edit, about)
        untrue = event("membership", "removedCollaborator", self.bob.identity)
        refused("Bob was not removed", ErrorCode.NOT_PERMITTED, ann, edit, untrue)
        owner = event("membership", "addedCollaborator", self.ann.identity)
        refused("nobody adds the owner", ErrorCode.NOT_PERMITTED, bob, comment, owner)
        foreign = self.ask("highlight", collaboration=self.other)["url"]
        for link in (foreign, f"{url}x", f"{url}/..", "https://other.example/"):
            refused(f"link {link}", ErrorCode.NOT_PERMITTED, ann, event("change", "edit", link=link))
        for link in ("javascript:alert(1)", "mailto:ann@example.com"):
            refused(f"link {link}", ErrorCode.MALFORMED_REQUEST, ann, event("change", "edit", link=link))
        refused("65 events", ErrorCode.LIMIT_EXCEEDED, ann, *[edit] * 65, detail=64)
        malformed = ErrorCode.MALFORMED_REQUEST
        for bad in (event("mention"), event("change", "moved"), event("nothing", "edit"), event("change"), {}):
            refused(f"event {bad}", malformed, ann, edit, bad)
        for shown in ("", "AAAA", base64url(ann) + "A", "*" * 150):
            refused("no grant", malformed, shown, edit)
        grant_refused = ErrorCode.GRANT_REFUSED
        refused("forged grant", grant_refused, flipped(ann), edit, detail=GrantStatus.FORGED)
        [elsewhere] = self.grants(self.bob, collaboration=self.other)
        refused("other collaboration", grant_refused, elsewhere, edit, detail=GrantStatus.OTHER_COLLABORATION)
        [leo] = self.grants(self.leo)
        leaving = {"collaboration": self.collaboration, "participants": [self.leo.identity]}
        self.changed("remove", 1, "removeParticipants", **leaving)
        refused("revoked grant", grant_refused, leo, edit, detail=GrantStatus.REVOKED)
        gone = event("membership", "addedCollaborator", self.leo.identity)
        refused("Leo takes no part", ErrorCode.UNKNOWN_PARTICIPANT, ann, edit, gone)
        self.post(self.ann, ann, event("membership", "removedCollaborator", self.leo.identity))
        removed = event("membership", "removedCollaborator", self.leo.identity)
        refused("Bob has not removed Leo", ErrorCode.NOT_PERMITTED, bob, comment, removed)
        self.post(self.bob, bob, comment)
        self.post(self.bob, elsewhere, edit, collaboration=self.other)

    def expected_posts(self, reader: Member | None = None) -> list[tuple[int, str, list[tuple[int, Fields]]]]:
        """The posts that a feed of the collaboration has."""
        expected = []
        for posted in self.posted:
            notices = [
                (place, notice)
                for place, notice in enumerate(posted.events)
                if notice["kind"] != "mention" or (reader is not None and notice["person"] == reader.identity)
            ]
            if notices:
                expected.append((posted.sequence, posted.author.identity, notices))
        return expected

    def walk(self, feed: Fields, limit: int, after: int = 0) -> list[Fields]:
        """All posts of a feed, read in pages."""
        posts: list[Fields] = []
        more = True
        while more:
            page = self.ask("readNotices", feed=feed, after=after, limit=limit)
            more = page["hasMore"]
            sequences = [post["sequence"] for post in page["posts"]]
            self.checks.equal("pages: ascending", sequences, sorted(set(sequences)))
            inside = all(after < sequence <= page["next"] for sequence in sequences)
            self.checks.true("pages: behind the cursor", inside, (after, page), "posts behind it")
            self.checks.true("pages: the cursor moves", page["next"] > after or not more, page["next"], f"over {after}")
            after = page["next"]
            posts += page["posts"]
        return posts

    @staticmethod
    def comparable(posts: Iterable[Fields]) -> list[tuple[int, str, list[tuple[int, Fields]]]]:
        """Posts as `expected_posts` has them."""
        return [
            (post["sequence"], post["author"], [(notice["place"], notice["event"]) for notice in post["notices"]])
            for post in posts
        ]

    def check_feeds(self) -> None:
        equal = self.checks.equal
        where = {"collaboration": self.collaboration}
        feeds: list[tuple[str, Fields, Member | None]] = [
            ("collaboration", where, None),
            ("author of mentions", {**where, "participant": self.bob.identity}, self.bob),
            ("who may read", {**where, "participant": self.eve.identity}, self.eve),
            ("owner", {**where, "participant": self.ann.identity}, self.ann),
        ]
        for label, feed, reader in feeds:
            for limit in (256, 5, 2, 1):
                posts = self.walk(feed, limit)
                came = self.comparable(posts)
                equal(f"{label}: pages of {limit}", came, self.expected_posts(reader))
                collaborations = {post["collaboration"] for post in posts}
                equal(f"{label}: collaboration", collaborations, {self.collaboration})
        posts = self.walk(where, 256)
        names = ["Bob" in posts[1]["notices"][0]["sentence"], "Bobby" in posts[1]["notices"][0]["sentence"]]
        equal("sentences bear the names of then", names, [True, False])
        last = posts[-1]["notices"][0]["sentence"]
        self.checks.true("sentences bear the names of now", "Bobby" in last, last, "Bobby")
        self.check_sentences(where)
        middle = posts[3]["sequence"]
        expected = [post for post in self.expected_posts() if post[0] > middle]
        equal("behind a post", self.comparable(self.walk(where, 3, middle)), expected)

        account = self.walk({"account": self.bob.account}, 3)
        here = [post for post in account if post["collaboration"] == self.collaboration]
        equal("account: here", self.comparable(here), self.expected_posts(self.bob))
        elsewhere = [post["collaboration"] for post in account if post not in here]
        equal("account: elsewhere", elsewhere, [self.other])
        equal("account: nobody's", self.walk({"account": self.account("nobody")}, 3), [])
        unlinked = {"identity": self.bob.identity, "collaboration": self.other}
        self.changed("unlink", 1, "linkAccount", **unlinked)
        equal("account: unlinked", self.walk({"account": self.bob.account}, 3), here)

        page = {"after": 0, "limit": 1}
        bad: list[tuple[ErrorCode, Fields, Fields, int]] = [
            (ErrorCode.UNKNOWN_COLLABORATION, {"collaboration": "nothing"}, page, 0),
            (ErrorCode.UNKNOWN_PARTICIPANT, {**where, "participant": self.stranger.root.hex()}, page, 0),
            (ErrorCode.UNKNOWN_PARTICIPANT, {**where, "participant": self.leo.identity}, page, 0),
            (ErrorCode.MALFORMED_REQUEST, {}, page, 0),
            (ErrorCode.MALFORMED_REQUEST, where, {**page, "limit": 0}, 0),
            (ErrorCode.LIMIT_EXCEEDED, where, {**page, "limit": 257}, 256),
        ]
        for code, feed, fields, detail in bad:
            self.error(f"feed {feed}", code, "readNotices", error_detail=detail, feed=feed, **fields)

        [bob] = self.grants(self.bob)
        clear = {"grant": base64url(bob), **where}
        viewing = {"viewer": self.bob.identity, **where}
        before = self.walk({"account": self.bob.account}, 5), self.ask("readDetails", **viewing)["recentActivity"]
        self.ask("clearNotices", **clear)
        after = self.walk({"account": self.bob.account}, 5), self.ask("readDetails", **viewing)["recentActivity"]
        equal("cleared: no other view", after, before)
        own = {**where, "participant": self.bob.identity}
        equal("cleared", self.walk(own, 5), [])
        equal("cleared: for nobody else", self.comparable(self.walk(where, 5)), self.expected_posts())
        sequence = self.post(self.bob, bob, event("change", "edit"))
        equal("cleared: goes on", [post["sequence"] for post in self.walk(own, 5)], [sequence])
        forged = {"grant": base64url(flipped(bob)), **where}
        detail = GrantStatus.FORGED
        self.error("clear: forged", ErrorCode.GRANT_REFUSED, "clearNotices", error_detail=detail, **forged)

    def check_sentences(self, where: Fields) -> None:
        """Looks for sentences of both languages."""

        def sentences(feed: Fields, **language: str) -> set[str]:
            page = self.ask("readNotices", feed=feed, after=0, limit=256, **language)
            return {notice["sentence"] for post in page["posts"] for notice in post["notices"]}

        english = {
            "Bob joined “plan”",
            "Bob left “plan”",
            "Ann added Bob to “plan”",
            "Ann removed Leo from “plan”",
            "There is a new participant in “plan”",
            "A participant no longer takes part in “plan”",
        }
        german = {
            "In „plan“ ist jemand neu dabei",
            "In „plan“ ist jemand nicht mehr dabei",
            "Bob ist „plan“ beigetreten",
            "Bob hat „plan“ verlassen",
            "Ann hat Bob zu „plan“ hinzugefügt",
            "Ann hat Leo aus „plan“ entfernt",
        }
        for expected, tags in ((english, ("", "en", "en-GB", "fr", "den")), (german, ("de", "DE", "de-AT-1996"))):
            for tag in tags:
                came = sentences(where, **({"language": tag} if tag else {}))
                self.checks.true(f"sentences: {tag}", expected <= came, came, str(expected))
        own = sentences({**where, "participant": self.bob.identity}, language="de")
        self.checks.true("sentences: to Bob", "Ann hat dich zu „plan“ hinzugefügt" in own, own, "dich")
        for tag in ("", "de_AT", "de-", "ninechars", "a-" * 17):
            fields = {"feed": where, "after": 0, "limit": 1, "language": tag}
            self.error(f"language {tag}", ErrorCode.MALFORMED_REQUEST, "readNotices", **fields)
        long = {"feed": where, "after": 0, "limit": 1, "language": "de-" + "abcdefg-" * 4 + "x"}
        self.error("long language", ErrorCode.LIMIT_EXCEEDED, "readNotices", error_detail=35, **long)
        button = self.ask("readDetails", language="de", **where)["manageButtonTitle"]
        self.checks.equal("manage button", button, "Geteilte Datei verwalten")

    def check_following(self) -> None:
        equal = self.checks.equal
        where = {"collaboration": self.collaboration}
        [ann] = self.grants(self.ann)
        last = self.ask("readNotices", feed=where, after=0, limit=256)["next"]
        begun = time.monotonic()
        page = self.ask("readNotices", feed=where, after=last, limit=5, waitMilliseconds=100)
        waited = time.monotonic() - begun
        equal("nothing comes", (page["posts"], page["hasMore"]), ([], False))
        self.checks.true("nothing comes: waited", 0.09 < waited < PATIENCE / 1_000, waited, "0.1 seconds")
        begun = time.monotonic()
        page = self.ask("readNotices", feed=where, after=0, limit=1, waitMilliseconds=PATIENCE)
        waited = time.monotonic() - begun
        self.checks.true("what is there comes at once", bool(page["posts"]) and waited < 5, waited, "a post at once")

        feeds = [
            where,
            {**where, "participant": self.bob.identity},
            {**where, "participant": self.eve.identity},
            {"account": self.bob.account},
        ]
        with Connection(*self.address) as follower:

            def follow(feed: Fields, after: int) -> Pending[Fields]:
                fields = {"feed": feed, "after": after, "limit": 5, "waitMilliseconds": PATIENCE}
                return follower.collaborate("readNotices", fields)

            pending = [follow(feed, last) for feed in feeds]
            equal("a follower still gets answers", follower.ping(b"still here").result(), b"still here")
            sequence = self.post(self.ann, ann, event("change", "edit"))
            for asked in pending:
                came = asked.result()
                equal("followers get the post", [post["sequence"] for post in came["posts"]], [sequence])
            after = came["next"]
            pending = [follow(feed, after) for feed in feeds]
            mention = self.post(self.ann, ann, event("mention", person=self.bob.identity))
            for asked in (pending[1], pending[3]):
                equal("the one who is mentioned", [post["sequence"] for post in asked.result()["posts"]], [mention])
            edit = self.post(self.ann, ann, event("change", "edit"))
            for asked in (pending[0], pending[2]):
                equal("the others", [post["sequence"] for post in asked.result()["posts"]], [edit])

            begun = time.monotonic()
            pending = [follow(where, edit) for _ in range(WAITING_LIMIT + 1)]
            while not any(asked.has_answer() for asked in pending):
                follower.ping().result()
            refused = [asked for asked in pending if asked.has_answer()]
            self.checks.error("one follower too many", refused[0], ErrorCode.LIMIT_EXCEEDED, WAITING_LIMIT)
            comment = self.post(self.ann, ann, event("change", "comment"))
            came_last = [asked.result()["posts"][-1]["sequence"] for asked in pending if asked not in refused]
            equal("as many as a connection may have", came_last, [comment] * WAITING_LIMIT)
            waited = time.monotonic() - begun
            self.checks.true("all at once", waited < PATIENCE / 1_000, waited, "no waiting for the end")

    # The shelf.

    def share(self, label: str, url: str, conversation: str, **fields: Any) -> int:
        """Shares a link with Eve's account."""
        recipients = fields.pop("recipients", [{"account": self.eve.account, "knowsSomebody": True}])
        sharer = fields.pop("sharer", {"name": "Ann", "account": self.ann.account})
        group_conversation = fields.pop("isGroup", True)
        return self.changed(
            label,
            1,
            "recordShare",
            url=url,
            app=fields.pop("app", "notes"),
            sharer=sharer,
            conversation={"identifier": f"{conversation}-{self.suffix}", "isGroup": group_conversation},
            recipients=recipients,
            **fields,
        )

    def link(self, name: str) -> str:
        """A link that nobody else shares."""
        return f"https://example.com/{self.suffix}/{name}"

    def shelf(self, **fields: Any) -> list[str]:
        """The names of the links on Eve's shelf, read in pages of two."""
        walked: list[Fields] = []
        page = self.ask("readShelf", account=self.eve.account, everyApp=True, limit=2, **fields)
        while page["highlights"]:
            walked += page["highlights"]
            page = self.ask("readShelf", account=self.eve.account, everyApp=True, limit=2, offset=len(walked), **fields)
        self.checks.equal("shelf: count", page["count"], len(walked))
        return [item["url"].rsplit("/", 1)[1] for item in walked]

    def shelf_item(self, name: str) -> Fields:
        """An item on Eve's shelf."""
        items = self.ask("readShelf", account=self.eve.account, everyApp=True, limit=64)["highlights"]
        return next(item for item in items if item["url"] == self.link(name))

    def pin(self, name: str, pinned: bool = True, changed: bool = True, **fields: Any) -> bool:
        """Pins or unpins a link, wherever it was shared; returns whether automatic sharing is offered."""
        where = {"account": self.eve.account, "url": self.link(name), "isPinned": pinned, "everyApp": True, **fields}
        answer = self.ask("pinHighlight", **where)
        self.checks.equal(f"pin {name}: receipt", answer["receipt"]["changed"] > 0, changed)
        return answer["offersAutomaticSharing"]

    def signal(self, name: str, signal: str, **fields: Any) -> None:
        """Signals what happened to an item."""
        where = {"account": self.eve.account, "url": self.link(name), "signal": signal, "everyApp": True, **fields}
        self.changed("signal", 1, "signalHighlight", **where)

    def check_shelf_order(self) -> None:
        equal = self.checks.equal
        empty = self.ask("readShelf", account=self.eve.account, everyApp=True, limit=64)
        equal("an empty shelf", (empty["highlights"], empty["count"]), ([], 0))
        self.share("before anything was said", self.link("quiet"), "talk-0")
        equal("nothing appears by itself", self.shelf(), [])
        equal("a pin brings it", (self.pin("quiet"), self.shelf()), (True, ["quiet"]))
        self.pin("quiet", pinned=False)
        equal("it leaves with the pin", self.shelf(), [])
        quiet = {"account": self.eve.account, "everyApp": True, "url": self.link("quiet")}
        self.error("signal: not on the shelf", ErrorCode.UNKNOWN_HIGHLIGHT, "signalHighlight", signal="viewed", **quiet)
        self.changed("remove: not on the shelf", 1, "removeHighlight", **quiet)
        self.consent({"everything": True}, True)
        equal("removed: automatic sharing does not bring it", self.shelf(), [])
        begun = now() - HOUR
        for number, name in enumerate(("one", "two", "three", "four")):
            self.share(f"share {name}", self.link(name), f"talk-{number % 2}", title=name, date=begun + number)
        equal("the newest first", self.shelf(), ["four", "three", "two", "one"])
        item = self.shelf_item("two")
        fields = ("title", "app", "date", "isPinned", "isSuggested")
        equal("item", [item.get(field) for field in fields], ["two", "notes", begun + 1, False, False])
        unknown = [{"account": self.eve.account, "knowsSomebody": False}]
        self.share("in a group of strangers", self.link("strange"), "strangers", recipients=unknown)
        equal("in a group of strangers: not shown", "strange" in self.shelf(), False)
        self.share("by a stranger", self.link("five"), "pair", recipients=unknown, isGroup=False, date=begun + 4)
        equal("by a stranger, not in a group: shown", self.shelf(), ["five", "four", "three", "two", "one"])
        self.share("again", self.link("one"), "talk-0", date=begun + 5, sharer={"name": "Cid"})
        equal("shared again: newest", self.shelf(), ["one", "five", "four", "three", "two"])
        attributions = self.shelf_item("one")["attributions"]
        equal("shared again: the latest share", [a["sharer"]["name"] for a in attributions], ["Cid"])
        self.share("elsewhere", self.link("two"), "talk-0", date=begun + 6, sharer={"name": "Dan"})
        equal("shared elsewhere: one item", self.shelf(), ["two", "one", "five", "four", "three"])
        attributions = self.shelf_item("two")["attributions"]
        equal("shared elsewhere: attributions", [a["sharer"]["name"] for a in attributions], ["Dan", "Ann"])

        self.pin("four")
        self.pin("four", changed=False)
        equal("pinned", self.shelf(), ["four", "two", "one", "five", "three"])
        self.pin("three")
        pinned_first = {"four", "three"}
        equal("two pinned", set(self.shelf()[:2]), pinned_first)
        self.signal("five", "viewed")
        equal("suggested", (self.shelf()[0], self.shelf_item("five")["isSuggested"]), ("five", True))
        self.signal("one", "interacted")
        self.signal("one", "interacted", context="detail")
        equal("suggested: more signals", (self.shelf()[0], set(self.shelf()[1:3])), ("one", pinned_first))
        equal("only one is suggested", self.shelf_item("five")["isSuggested"], False)
        self.pin("four", pinned=False)
        equal("unpinned", self.shelf(), ["one", "three", "two", "five", "four"])

        self.check_shelf_refusals()
        four: Fields = {"account": self.eve.account, "everyApp": True, "url": self.link("four")}
        self.changed("remove", 1, "removeHighlight", **four)
        equal("removed", self.shelf(), ["one", "three", "two", "five"])

    def check_shelf_refusals(self) -> None:
        account = self.eve.account
        unknown_highlight = ErrorCode.UNKNOWN_HIGHLIGHT
        nothing = {"account": account, "everyApp": True, "url": self.link("nothing")}
        self.error("pin: nothing", unknown_highlight, "pinHighlight", isPinned=True, **nothing)
        self.error("remove: nothing", unknown_highlight, "removeHighlight", **nothing)
        self.error("signal: nothing", unknown_highlight, "signalHighlight", signal="viewed", **nothing)
        self.error("attribution: nothing", unknown_highlight, "readAttribution", **nothing)
        elsewhere = {**nothing, "url": self.link("one"), "conversation": "elsewhere"}
        self.error("pin: not in that conversation", unknown_highlight, "pinHighlight", isPinned=True, **elsewhere)
        bad_signal = {"account": account, "url": self.link("one"), "everyApp": True, "signal": "nothing"}
        self.error("signal: unknown", ErrorCode.MALFORMED_REQUEST, "signalHighlight", **bad_signal)
        limit = ErrorCode.LIMIT_EXCEEDED
        every: Fields = {"account": account, "everyApp": True}
        self.error("shelf: a page of 65", limit, "readShelf", error_detail=64, limit=65, **every)
        self.error("shelf: a page of 0", ErrorCode.MALFORMED_REQUEST, "readShelf", limit=0, **every)
        share: Fields = {
            "url": self.link("x"),
            "app": "notes",
            "sharer": {"name": "Ann"},
            "conversation": {"identifier": "talk", "isGroup": True},
            "recipients": [],
        }
        too_many = [{"account": f"{number}", "knowsSomebody": True} for number in range(129)]
        long_link = self.link("x").ljust(2_049, "x")
        self.error("129 recipients", limit, "recordShare", error_detail=128, **{**share, "recipients": too_many})
        self.error("a link that is too long", limit, "recordShare", error_detail=2_048, **{**share, "url": long_link})
        self.error("a title that is too long", limit, "recordShare", error_detail=512, **{**share, "title": "x" * 513})

    def consent(self, level: Fields, allowed: bool | None = None, changed: int = 1) -> None:
        """Sets or takes back a consent of Eve's."""
        fields: Fields = {"account": self.eve.account, "everyApp": True, "level": level, "isAllowed": allowed}
        self.changed(f"consent {level}", changed, "setConsent", **fields)

    def check_consent(self) -> None:
        equal = self.checks.equal
        every: Fields = {"account": self.eve.account, "everyApp": True}
        read = {"apps": {}, "conversations": {}, "everything": True}
        equal("everything was allowed", self.ask("readConsent", **every), read)
        self.share("of another app", self.link("six"), "talk-1", app="maps", date=now() - HOUR + 7)
        conversation = f"talk-0-{self.suffix}"
        everything = ["one", "three", "six", "two", "five"]
        equal("nothing refused", self.shelf(), everything)
        self.consent({"app": "notes"}, False)
        equal("an app is refused", self.shelf(), ["three", "six"])
        self.consent({"app": "notes"}, True)
        equal("an app is allowed", self.shelf(), everything)
        equal("read", self.ask("readConsent", **every)["apps"], {"notes": True})
        self.consent({"conversation": conversation}, False)
        equal("a conversation is refused: the other one shows", "two" in self.shelf(), True)
        equal("a conversation is refused", "one" in self.shelf(), False)
        read = self.ask("readConsent", **every)["conversations"]
        equal("read", read, {conversation: False})
        self.consent({"everything": True}, False)
        equal("everything is refused", self.shelf(), ["three"])
        equal("read", self.ask("readConsent", **every)["everything"], False)
        self.consent({"everything": True})
        self.consent({"everything": True}, changed=0)
        equal("taken back", "everything" in self.ask("readConsent", **every), False)
        self.consent({"conversation": conversation})
        self.consent({"app": "notes"})
        equal("all taken back: only what is pinned", self.shelf(), ["three"])
        self.consent({"conversation": conversation}, True)
        equal("one conversation is allowed", self.shelf(), ["one", "three", "two"])
        self.consent({"app": "notes"}, False)
        equal("but not the app", self.shelf(), ["three"])
        self.consent({"app": "notes"})
        self.consent({"conversation": conversation})
        for level in ({}, {"everything": False}, {"nothing": "x"}):
            self.error(
                f"level {level}", ErrorCode.MALFORMED_REQUEST, "setConsent", level=level, isAllowed=None, **every)
        self.error(
            "no answer is none that is taken back", ErrorCode.MALFORMED_REQUEST, "setConsent",
            level={"everything": True}, **every)

        where = {**every, "url": self.link("two"), "isPinned": True}
        equal("the app is offered", self.ask("pinHighlight", **where)["offeredLevel"], {"app": "notes"})
        self.pin("two", pinned=False)
        self.consent({"app": "notes"}, True)
        equal("not when it is on", self.pin("two"), False)
        self.pin("two", pinned=False)
        self.consent({"app": "notes"})
        for name in ("readConsent", "setConsent"):
            level = {"level": {"app": "notes"}} if name == "setConsent" else {}
            account = self.eve.account
            self.error(f"{name}: not for apps", ErrorCode.MALFORMED_REQUEST, name, account=account, **level)
        self.consent({"everything": True}, True)
        equal("automatic sharing is not offered twice", self.pin("two"), False)
        self.pin("two", pinned=False)

    def check_attribution(self) -> None:
        equal = self.checks.equal
        fields: Fields = {"account": self.eve.account, "everyApp": True, "url": self.link("two")}
        answer = self.ask("readAttribution", **fields)
        equal("link", (answer["url"], answer["isPinned"]), (self.link("two"), False))
        equal("attributions", answer["attributions"], self.shelf_item("two")["attributions"])
        came = [(item["sharer"], item["conversation"]["identifier"]) for item in answer["attributions"]]
        ann = {"name": "Ann", "account": self.ann.account}
        equal("sharers", came, [({"name": "Dan"}, f"talk-0-{self.suffix}"), (ann, f"talk-1-{self.suffix}")])
        named = all(name in answer["summary"] for name in ("Dan", "Ann"))
        self.checks.true("summary", named, answer["summary"], "the names of both")
        titled = self.ask("readAttribution", removeTitle="Remove from here", **fields)
        titles = [item["title"] for item in titled["menu"]]
        self.checks.true("menu", "Remove from here" in titles, titles, "the given title among them")
        german = self.ask("readAttribution", removeTitle="Von hier entfernen", language="de", **fields)
        equal("menu: German", german["menu"][-1]["title"], "Von hier entfernen")
        bare = self.ask("readAttribution", language="de", **fields)["menu"][-1]["title"]
        equal("menu: German word", bare, "Entfernen")
        equal("summary: German", german["summary"], "Von Dan und Ann")
        for language, title in (("de", "Remove from here"), ("en", "Von hier entfernen")):
            wrong = {"removeTitle": title, "language": language, **fields}
            self.error(f"menu: {title}", ErrorCode.MALFORMED_REQUEST, "readAttribution", **wrong)
        self.pin("two", conversation=f"talk-1-{self.suffix}")
        pins = [item["isPinned"] for item in self.ask("readAttribution", **fields)["attributions"]]
        equal("pinned in one conversation", pins, [False, True])
        equal("pinned in one conversation: the item", self.ask("readAttribution", **fields)["isPinned"], True)
        self.pin("two", pinned=False)
        app: Fields = {"account": self.eve.account, "app": "notes", "url": self.link("two")}
        told = self.ask("readAttribution", **app)
        members = [sorted(item) for item in told["attributions"]]
        equal("for an app: nobody is named", members, [["date", "handle", "isPinned"]] * 2)
        equal("for an app: no summary", "summary" in told, False)
        handles = [item["handle"] for item in told["attributions"]]
        equal("for an app: handles", handles, [item["handle"] for item in answer["attributions"]])
        entries = [(item["kind"], item["title"], item.get("handle")) for item in told["menu"]]
        replies = [("reply", "Reply", handle) for handle in handles]
        equal("for an app: the menu", entries, [*replies, ("remove", "Remove", None)])
        pinned = self.ask("pinHighlight", handle=handles[1], isPinned=True, **app)
        equal("an app pins by a handle", pinned["receipt"]["changed"], 1)
        pins = [item["isPinned"] for item in self.ask("readAttribution", **fields)["attributions"]]
        equal("an app pins by a handle: which", pins, [False, True])
        self.pin("two", pinned=False)
        malformed = ErrorCode.MALFORMED_REQUEST
        self.error("an app names no conversation", malformed, "pinHighlight", conversation="x", isPinned=True, **app)
        self.error("no app", malformed, "readAttribution", account=app["account"], url=app["url"])
        self.error("an app and every app", malformed, "readAttribution", **{**app, "everyApp": True})
        foreign = {**app, "app": "maps"}
        self.error("another app's", ErrorCode.UNKNOWN_HIGHLIGHT, "readAttribution", **foreign)
        self.error("another app's: remove", ErrorCode.UNKNOWN_HIGHLIGHT, "removeHighlight", **foreign)
        page = self.ask("readShelf", account=self.eve.account, app="maps", limit=64)
        equal("an app's own items", {item["app"] for item in page["highlights"]}, {"maps"})
        nobody = {**fields, "account": self.account("nobody")}
        self.error("somebody else's", ErrorCode.UNKNOWN_HIGHLIGHT, "readAttribution", **nobody)

    def check_previews(self) -> None:
        equal = self.checks.equal
        image = b"\x89PNG\r\n\x1a\n" + os.urandom(65_528)
        picture = {"data": base64url(image), "mediaType": "image/png"}
        self.share("a preview", self.link("preview"), "talk-0", title="Title", subtitle="Under it", thumbnail=picture)
        item = self.shelf_item("preview")
        stored = {"hash": sha256(image).hex(), "mediaType": "image/png", "byteCount": 65_536}
        equal("preview", (item["subtitle"], item["thumbnail"]), ("Under it", stored))
        fields: Fields = {"account": self.eve.account, "url": self.link("preview"), "hash": stored["hash"]}
        equal("the thumbnail", self.ask("readThumbnail", app="notes", **fields), picture)
        unknown = ErrorCode.UNKNOWN_HIGHLIGHT
        self.error("the thumbnail: another app", unknown, "readThumbnail", app="maps", **fields)
        nobody = {**fields, "account": self.account("nobody"), "app": "notes"}
        self.error("the thumbnail: somebody else", unknown, "readThumbnail", **nobody)
        other = {**fields, "hash": "00" * 32, "app": "notes"}
        self.error("the thumbnail: another hash", unknown, "readThumbnail", **other)
        link = {"url": "https://example.com/picture.png"}
        self.share("a link in its place", self.link("preview"), "talk-0", thumbnail=link)
        item = self.shelf_item("preview")
        equal("a link in its place", (item["thumbnail"], "subtitle" in item), (link, False))
        self.error("the thumbnail is gone", unknown, "readThumbnail", app="notes", **fields)
        share: Fields = {
            "url": self.link("preview"),
            "app": "notes",
            "sharer": {"name": "Ann"},
            "conversation": {"identifier": "talk", "isGroup": True},
            "recipients": [],
        }
        malformed, limit = ErrorCode.MALFORMED_REQUEST, ErrorCode.LIMIT_EXCEEDED
        for label, thumbnail in (
            ("not its format", {"data": base64url(image), "mediaType": "image/gif"}),
            ("no format", {"data": base64url(image)}),
            ("an unknown format", {"data": base64url(image), "mediaType": "text/html"}),
            ("padding", {"data": "iVBORw0KGgo=", "mediaType": "image/png"}),
            ("a script", {"url": "javascript:alert(1)"}),
        ):
            self.error(f"a thumbnail: {label}", malformed, "recordShare", thumbnail=thumbnail, **share)
        longer = {"data": base64url(image + b"x"), "mediaType": "image/png"}
        self.error("a thumbnail that is too long", limit, "recordShare", 65_536, thumbnail=longer, **share)
        self.error("a subtitle that is too long", limit, "recordShare", 512, subtitle="x" * 513, **share)

    def check_following_a_shelf(self) -> None:
        fields = {"account": self.eve.account, "everyApp": True, "limit": 64}
        version = self.ask("readShelf", **fields)["version"]
        begun = time.monotonic()
        same = self.ask("readShelf", after=version, waitMilliseconds=100, **fields)["version"]
        waited = time.monotonic() - begun
        self.checks.equal("nothing changes", same, version)
        self.checks.true("nothing changes: waited", 0.09 < waited < PATIENCE / 1_000, waited, "0.1 seconds")
        seven = {"account": self.eve.account, "everyApp": True, "url": self.link("seven")}
        steps: list[tuple[str, Callable[[], object]]] = [
            ("shared", lambda: self.share("share", self.link("seven"), "talk-0")),
            ("pinned", lambda: self.pin("seven")),
            ("signalled", lambda: self.signal("seven", "shown")),
            ("consent", lambda: self.consent({"app": "maps"}, False)),
            ("removed", lambda: self.ask("removeHighlight", **seven)),
        ]
        with Connection(*self.address) as follower:
            for label, change in steps:
                waiting = {"after": version, "waitMilliseconds": PATIENCE, **fields}
                pending = follower.collaborate("readShelf", waiting)
                change()
                came = pending.result()
                self.checks.true(f"{label}: version", came["version"] > version, came["version"], f"over {version}")
                version = came["version"]
                current = self.ask("readShelf", **fields)
                self.checks.equal(f"{label}: what came", came, current)

    # Invitations.

    def invite(self, token: bytes, **fields: Any) -> Fields:
        """Creates an invitation."""
        where = {"collaboration": self.collaboration, "token": base64url(token)}
        return self.ask("createInvitation", **where, **fields)

    def accept(self, label: str, token: bytes, account: str, refusal: str = "", **fields: Any) -> None:
        """Accepts an invitation and checks the answer; without an identity nobody is in."""
        answer = self.ask("acceptInvitation", token=base64url(token), account=account, **fields)
        self.checks.equal(f"{label}: token", answer["token"], base64url(token))
        self.checks.equal(f"{label}: refusal", answer.get("refusal", ""), refusal)
        state = "" if refusal else "in" if "identity" in fields else "accepted"
        self.checks.equal(f"{label}: state", answer.get("state", ""), state)
        shared = answer["share"]["collaborationIdentifier"] if "share" in answer else None
        self.checks.equal(f"{label}: share", shared, self.collaboration if state == "in" else None)
        place = answer.get("collaborationIdentifier")
        self.checks.equal(f"{label}: collaboration", place, self.collaboration if state else None)

    def invitations(self, settled: bool) -> dict[str, str]:
        """The states of invitations by their identifiers, read in pages of one."""
        walked: dict[str, str] = {}
        more = True
        while more:
            after = {"after": list(walked)[-1]} if walked else {}
            where = {"collaboration": self.collaboration, "limit": 1, "includesSettled": settled}
            page = self.ask("listInvitations", **where, **after)
            more = page["hasMore"]
            for invitation in page["invitations"]:
                self.checks.equal("invitations: each once", invitation["identifier"] in walked, False)
                walked[invitation["identifier"]] = invitation["state"]
        return walked

    def check_invitations(self) -> None:
        equal = self.checks.equal
        guest, visitor = self.member("Guest"), self.member("Visitor")
        tokens = [os.urandom(16) for _ in range(3)]
        offer = {"role": "administrator", "permission": "readOnly", "expiresAt": now() + HOUR}
        offer["inviter"] = {"account": self.bob.account, "name": "Bob", "handle": "bob@example.com"}
        first = self.invite(tokens[0], **offer)
        came = [first[field] for field in ("collaboration", "role", "permission", "inviter")]
        equal("created", came, [self.collaboration, "administrator", "readOnly", offer["inviter"]])
        equal("created: identifier", len(bytes.fromhex(first["identifier"])), 16)
        equal("created again", self.invite(tokens[0], **offer)["identifier"], first["identifier"])
        other = {"collaboration": self.collaboration, "token": base64url(tokens[0]), "role": "member"}
        self.error("created with other values", ErrorCode.NOT_PERMITTED, "createInvitation", **other)
        told = {name: offer[name] for name in ("role", "permission", "expiresAt")}
        told |= {"inviterName": "Bob", "inviterHandle": "bob@example.com", "title": "plan", "state": "pending"}
        told["token"] = base64url(tokens[0])
        equal("read", self.ask("readInvitation", token=told["token"]), told)
        second, third = self.invite(tokens[1]), self.invite(tokens[2])
        pending = {item["identifier"] for item in (first, second, third)}
        equal("listed", set(self.invitations(settled=False)), pending)

        self.accept("accept", tokens[0], guest.account, identity=guest.identity, displayName=guest.name)
        participant = self.participants()[guest.identity]
        came = [participant[field] for field in ("state", "role", "permission", "displayName")]
        equal("accepted: participant", came, ["invited", "administrator", "readOnly", guest.name])
        self.grants(guest)
        equal("accepted: joined", self.participants()[guest.identity]["state"], "joined")
        self.accept("accept again", tokens[0], guest.account, identity=guest.identity, displayName=guest.name)
        again = self.ask("acceptInvitation", token=base64url(tokens[0]), account=guest.account)
        equal("accept again, without the identity", (again["state"], "share" in again), ("in", True))
        conflict = {"refusal": "conflict", "identity": visitor.identity}
        self.accept("a second identity", tokens[0], guest.account, **conflict)
        self.accept("used", tokens[0], visitor.account, refusal="used", identity=visitor.identity)
        after = {name: told[name] for name in ("inviterName", "inviterHandle", "title", "token")}
        equal("read: completed", self.ask("readInvitation", token=told["token"]), {**after, "state": "completed"})
        link = {"collaboration": self.collaboration, "identity": guest.identity}
        self.error("link: another account", ErrorCode.NOT_PERMITTED, "linkAccount", account=visitor.account, **link)
        before = set(self.participants())
        self.accept("accept without an identity", tokens[1], visitor.account)
        self.accept("accept without an identity, again", tokens[1], visitor.account)
        equal("accepted without an identity: no participant", set(self.participants()), before)
        shares = self.ask("listShares", account=visitor.account, scope="shared", limit=5)["shares"]
        equal("accepted without an identity: not shared", shares, [])
        equal("accepted: listed", self.invitations(settled=True)[second["identifier"]], "accepted")
        back = {"token": base64url(tokens[1]), "account": visitor.account}
        strange = {**back, "account": guest.account}
        self.error("withdraw: another account", ErrorCode.NOT_PERMITTED, "withdrawAcceptance", **strange)
        self.changed("withdraw", 1, "withdrawAcceptance", **back)
        self.changed("withdraw: again", 0, "withdrawAcceptance", **back)
        equal("withdrawn", self.invitations(settled=True)[second["identifier"]], "pending")
        self.accept("accept after withdrawing", tokens[1], visitor.account)
        self.accept("complete", tokens[1], visitor.account, identity=visitor.identity, displayName="Visitor")
        equal("completed: participant", self.participants()[visitor.identity]["displayName"], "Visitor")
        self.error("withdraw: completed", ErrorCode.NOT_PERMITTED, "withdrawAcceptance", **back)
        nothing = {**back, "token": base64url(os.urandom(16))}
        self.error("withdraw: unknown", ErrorCode.UNKNOWN_INVITATION, "withdrawAcceptance", **nothing)
        equal("accepted: not listed", set(self.invitations(settled=False)), {third["identifier"]})
        self.checks.true("accepted: settled", pending <= set(self.invitations(settled=True)), pending, "all of them")
        where = {"collaboration": self.collaboration}
        accepted = {"identifier": first["identifier"], **where}
        self.error("revoke: accepted", ErrorCode.NOT_PERMITTED, "revokeInvitation", **accepted)
        self.accept("accept before revoking", tokens[2], visitor.account)
        self.changed("revoke", 1, "revokeInvitation", identifier=third["identifier"], **where)
        self.changed("revoke: again", 0, "revokeInvitation", identifier=third["identifier"], **where)
        self.accept("revoked", tokens[2], visitor.account, refusal="revoked", identity=visitor.identity)
        token = base64url(tokens[2])
        equal("read: revoked", self.ask("readInvitation", token=token), {"token": token, "refusal": "revoked"})
        for account in (guest.account, visitor.account):
            shares = self.ask("listShares", account=account, scope="shared", limit=5)["shares"]
            equal("accepted: shared", [s["collaborationIdentifier"] for s in shares], [self.collaboration])

    def check_refused_invitations(self) -> None:
        guest = self.account("late")
        where = {"collaboration": self.collaboration}
        self.accept("unknown", os.urandom(16), guest, refusal="unknown")
        expired = os.urandom(16)
        late = {"token": base64url(expired), "expiresAt": now() - HOUR, **where}
        self.error("invite: too late", ErrorCode.MALFORMED_REQUEST, "createInvitation", **late)
        self.invite(expired, expiresAt=now() + 500)
        self.accept("in time, without an identity", expired, guest)
        time.sleep(0.6)
        self.accept("expired", expired, guest, refusal="expired", identity=self.stranger.root.hex())
        self.checks.equal("expired: no participant", self.stranger.root.hex() in self.participants(), False)
        for_removed = os.urandom(16)
        self.invite(for_removed)
        self.checks.equal("Leo was removed", self.participants()[self.leo.identity]["state"], "removed")
        self.accept("conflict", for_removed, guest, refusal="conflict", identity=self.leo.identity)
        self.checks.equal("conflict: still removed", self.participants()[self.leo.identity]["state"], "removed")
        self.accept("after a conflict", for_removed, guest)
        not_permitted, malformed = ErrorCode.NOT_PERMITTED, ErrorCode.MALFORMED_REQUEST
        token = base64url(os.urandom(16))
        self.error("invite: an owner", not_permitted, "createInvitation", token=token, role="owner", **where)
        for bad in ("", "*", base64url(os.urandom(15)), base64url(os.urandom(17))):
            self.error("invite: no token", malformed, "createInvitation", token=bad, **where)
            self.error("accept: no token", malformed, "acceptInvitation", token=bad, account=guest)
        unknown = {"collaboration": "nothing", "token": token}
        self.error("invite: nowhere", ErrorCode.UNKNOWN_COLLABORATION, "createInvitation", **unknown)
        nothing = {"identifier": os.urandom(16).hex(), **where}
        self.error("revoke: unknown", ErrorCode.UNKNOWN_INVITATION, "revokeInvitation", **nothing)
        with Connection(*self.address) as other:
            race = os.urandom(16)
            self.invite(race)
            clients = [self.client, other] * 4
            asked = [
                client.collaborate("acceptInvitation", {"token": base64url(race), "account": f"{number}-{self.suffix}"})
                for number, client in enumerate(clients)
            ]
            came = Counter(pending.result().get("refusal", "share") for pending in asked)
        self.checks.equal("a race of accounts", came, {"share": 1, "used": len(clients) - 1})

    def check_closed_invitations(self) -> None:
        equal = self.checks.equal
        guest, visitor = self.member("Early"), self.member("Tardy")
        anyone = {**option("anyone", True, effect="joinByInvitation")}
        place = self.prepare("closing", group("switches", "who", anyone))["collaborationIdentifier"]
        tokens = [base64url(os.urandom(16)) for _ in range(3)]
        offers = [{"collaboration": place, "token": token} for token in tokens]
        made = [self.ask("createInvitation", **offer) for offer in offers]
        known = {"token": tokens[0], "account": guest.account, "identity": guest.identity}
        equal("open: in", self.ask("acceptInvitation", **known)["state"], "in")
        half = {"token": tokens[1], "account": visitor.account}
        equal("open: accepted", self.ask("acceptInvitation", **half)["state"], "accepted")
        self.changed("close", 1, "updateShareOptions", collaboration=place, selectedOptions=[])
        late = {"token": tokens[2], "account": visitor.account}
        for fields in (half, {**half, "identity": visitor.identity}, late, {**late, "identity": visitor.identity}):
            equal("closed", self.ask("acceptInvitation", **fields).get("refusal"), "closed")
        for token in tokens[1:]:
            equal("closed: read", self.ask("readInvitation", token=token), {"token": token, "refusal": "closed"})
        equal("closed: who is in stays", self.ask("acceptInvitation", **known)["state"], "in")
        equal("closed: made again", self.ask("createInvitation", **offers[2])["identifier"], made[2]["identifier"])
        fresh = {"collaboration": place, "token": base64url(os.urandom(16))}
        self.error("closed: made", ErrorCode.NOT_PERMITTED, "createInvitation", **fresh)
        self.changed("remove", 1, "removeParticipants", collaboration=place, participants=[guest.identity])
        read = self.ask("readInvitation", token=tokens[0])
        equal("removed: read", read, {"token": tokens[0], "refusal": "conflict"})
        claim = {"collaboration": place, "owner": self.ann.account, "identity": guest.identity}
        self.error("claim: a removed person of another account", ErrorCode.NOT_PERMITTED, "claimOwnership", **claim)

    def check_shares(self) -> None:
        own: list[str] = []
        fields: Fields = {"account": self.ann.account, "scope": "private", "limit": 2}
        page = self.ask("listShares", **fields)
        while True:
            self.checks.true("size of a page", len(page["shares"]) <= 2, page, "up to 2")
            own += [share["collaborationIdentifier"] for share in page["shares"]]
            named = all(share["localIdentifier"].endswith(self.suffix) for share in page["shares"])
            self.checks.true("local identifiers", named, page["shares"], "those that Ann has chosen")
            if "next" not in page:
                break
            page = self.ask("listShares", after=page["next"], **fields)
        alive = [name for name in self.started if self.is_there(name)]
        self.checks.equal("private: what Ann has started", sorted(own), sorted(alive))
        shared = self.ask("listShares", **{**fields, "scope": "shared"})
        self.checks.equal("shared: what Ann has accepted", shared["shares"], [])
        self.error("scope", ErrorCode.MALFORMED_REQUEST, "listShares", **{**fields, "scope": "nothing"})
        too_many = {**fields, "limit": 257}
        self.error("a page of 257", ErrorCode.LIMIT_EXCEEDED, "listShares", error_detail=256, **too_many)

    def is_there(self, collaboration: str) -> bool:
        """Whether a collaboration exists."""
        try:
            self.client.count_roots(collaboration).result()
        except RootgateError as error:
            self.checks.equal("count of what is gone", error.code, ErrorCode.UNKNOWN_COLLABORATION)
            return False
        return True

    def check_details(self) -> None:
        equal = self.checks.equal
        where = {"collaboration": self.collaboration}
        details = self.ask("readDetails", **where)
        equal("highlight", details["highlight"], self.ask("highlight", **where))
        present = self.participants(removed=False)
        equal("participants", {item["identity"]: item for item in details["participants"]}, present)
        equal("number of participants", details["participantCount"], len(present))
        groups = {part["identifier"]: part["kind"] for part in details["shareOptions"]["groups"]}
        equal("share options", groups, {"access": "picker", "more": "switches"})
        recent = details["recentActivity"][0]
        newest = self.expected_posts()[-1]
        equal("recent activity", (recent["sequence"], recent["author"]), newest[:2])
        operations = {
            member.name: set(self.ask("readDetails", viewer=member.identity, **where)["manageOperations"])
            for member in (self.ann, self.bob)
        }
        self.checks.true("the owner manages", "stopSharing" in operations["Ann"], operations, "stopSharing")
        equal("a member adds people, as the options say", operations["Bob"], {"addParticipants"})
        custom = {
            "title": "A better title",
            "customItems": [{"identifier": "export", "title": "Export"}],
            "manageButtonTitle": "Manage it",
        }
        self.changed("customize", 1, "customizeDetails", **where, **custom)
        self.changed("customize again", 0, "customizeDetails", **where, **custom)
        self.changed("customize without a field", 0, "customizeDetails", **where)
        details = self.ask("readDetails", **where)
        came = [details["highlight"]["title"], details["customItems"], details["manageButtonTitle"]]
        equal("customized", came, list(custom.values()))
        stranger = {"viewer": self.stranger.root.hex(), **where}
        self.error("a stranger's view", ErrorCode.UNKNOWN_PARTICIPANT, "readDetails", **stranger)
        self.error("of nothing", ErrorCode.UNKNOWN_COLLABORATION, "readDetails", collaboration="nothing")
        self.error("customize nothing", ErrorCode.UNKNOWN_COLLABORATION, "customizeDetails", collaboration="nothing")

    def check_sequences(self) -> None:
        client = self.client
        where = {"collaboration": self.collaboration}
        [ann] = self.grants(self.ann)
        sequence = self.post(self.ann, ann, event("change", "edit"))
        future = client.statistics().result()["sequence"] + 1_000_000_000
        grants = [(self.collaboration, ann, None)]
        [check] = client.check_grants(grants, at_least=sequence).result()
        self.checks.equal("check grants: applied", grant_status_name(check.status), "valid")
        proofs = self.proofs((self.bob.person, 0))
        page: Fields = {"feed": where, "after": 0, "limit": 256}
        behind: list[tuple[str, Pending[Any]]] = [
            ("check grants", client.check_grants(grants, at_least=future)),
            ("verify", client.verify(proofs, at_least=future)),
            ("inclusion-only verify", client.verify_inclusion(proofs, at_least=future)),
            ("open", client.open(proofs, at_least=future)),
            ("confirm everywhere", client.confirm_everywhere(future)),
            ("read notices", client.collaborate("readNotices", {"atLeast": future, **page})),
        ]
        for label, pending in behind:
            self.checks.error(f"{label}: behind", pending, ErrorCode.BEHIND_SEQUENCE, detail=None)
        opening = client.open(proofs, at_least=sequence).result()
        self.checks.equal("open: applied, and nothing was spent", opening.verdicts, [Verdict.GRANTED])
        posts = self.ask("readNotices", atLeast=sequence, **page)["posts"]
        self.checks.equal("read notices: applied", posts[-1]["sequence"], sequence)

    def check_bad_collaborates(self) -> None:
        mutation = bytes(16)
        fields = json.dumps({"collaboration": self.collaboration}).encode()
        name = b"\x09highlight"
        malformed = {
            "empty": b"",
            "mutation identifier alone": mutation,
            "name is cut off": mutation + name[:-1],
            "name is not UTF-8": mutation + b"\1\xff" + fields,
            "no JSON": mutation + name,
            "bad JSON": mutation + name + fields[:-1],
            "bytes behind the JSON": mutation + name + fields + b"x",
            "a list": mutation + name + b"[]",
            "a field is missing": mutation + b"\x0breadDetails" + b"{}",
            "a field of another type": mutation + b"\x0breadDetails" + b'{"collaboration":1}',
        }
        for label, body in malformed.items():
            pending = self.client.request(Operation.COLLABORATE, body, decode_json)
            self.checks.error(label, pending, ErrorCode.MALFORMED_REQUEST)
        self.check_strict_json()
        spaces = b" " * (262_144 - len(fields))
        highlight = self.client.request(Operation.COLLABORATE, mutation + name + fields + spaces, decode_json).result()
        self.checks.equal("256 KiB of JSON", highlight["collaborationIdentifier"], self.collaboration)
        limits = {
            "JSON": (mutation + name + fields + spaces + b" ", 262_144),
            "name": (mutation + b"\x41" + b"x" * 65 + fields, 64),
        }
        for label, (body, limit) in limits.items():
            pending = self.client.request(Operation.COLLABORATE, body, decode_json)
            self.checks.error(f"limit: {label}", pending, ErrorCode.LIMIT_EXCEEDED, limit)
        unknown = self.client.collaborate("nothing", {})
        self.checks.error("unknown request", unknown, ErrorCode.UNKNOWN_OPERATION, detail=None, names=["nothing"])
        self.checks.equal("the connection goes on", self.client.ping(b"still here").result(), b"still here")

    def check_strict_json(self) -> None:
        """What “Collaborate” says about types: each text is a valid request with one thing changed."""
        name = self.collaboration
        page = f'"feed":{{"collaboration":"{name}"}},"after":0,"limit":1'
        person = f'"identity":"{"0" * 64}"'
        malformed = {
            "an unknown field": ("highlight", f'{{"collaboration":"{name}","urls":null}}', "urls"),
            "an unknown field inside": (
                "addParticipants",
                f'{{"collaboration":"{name}","participants":[{{{person}}},{{{person},"displayNam":"x"}}]}}',
                "participants[1].displayNam",
            ),
            "a field twice": ("highlight", f'{{"collaboration":"{name}","collaboration":"{name}"}}', "collaboration"),
            "a field twice, escaped": ("highlight", f'{{"url":null,"\\u0075rl":null,"collaboration":"{name}"}}', "url"),
            "a trailing comma": ("highlight", f'{{"collaboration":"{name}",}}', "byte"),
            "a byte-order mark": ("highlight", f'\ufeff{{"collaboration":"{name}"}}', "byte-order mark"),
            "half of a surrogate pair": ("highlight", '{"collaboration":"\\ud83d"}', "surrogate"),
            "null for a required field": ("readNotices", '{"feed":null,"after":0,"limit":1}', "feed"),
            "a fraction": ("readNotices", f'{{{page},"atLeast":1.0}}', "atLeast"),
            "an exponent": ("readNotices", f'{{{page},"atLeast":1e3}}', "atLeast"),
            "more than 64 bits": ("readNotices", f'{{{page},"atLeast":{1 << 64}}}', "atLeast"),
            "a negative wait": ("readNotices", f'{{{page},"waitMilliseconds":-1}}', "waitMilliseconds"),
            "a negative offset": ("readShelf", '{"account":"a","limit":1,"offset":-1}', "offset"),
            "a truth as a number": (
                "listParticipants",
                f'{{"collaboration":"{name}","limit":1,"includesRemoved":0}}',
                "includesRemoved",
            ),
            "two feeds": (
                "readNotices",
                f'{{"feed":{{"collaboration":"{name}","account":"a"}},"after":0,"limit":1}}',
                "feed",
            ),
            "two levels": (
                "setConsent",
                '{"account":"a","everyApp":true,"isAllowed":true,"level":{"everything":true,"app":"b"}}',
                "level",
            ),
            "everything is false": (
                "setConsent",
                '{"account":"a","everyApp":true,"isAllowed":true,"level":{"everything":false}}',
                "level",
            ),
            "a field of another kind of event": (
                "postNotices",
                f'{{"collaboration":"{name}","grant":"{"A" * 150}","events":[{{"kind":"change","trigger":"edit",'
                f'"person":"{"0" * 64}"}}]}}',
                "events[0].person",
            ),
            "a control character in a name": (
                "addParticipants",
                f'{{"collaboration":"{name}","participants":[{{{person},"displayName":"\\u202e"}}]}}',
                "participants[0].displayName",
            ),
        }
        for label, (request, text, place) in malformed.items():
            self.checks.error(label, self.collaborate_text(request, text), ErrorCode.MALFORMED_REQUEST, names=[place])
        limits = {
            "a wait": ("readNotices", f'{{{page},"waitMilliseconds":60001}}', 60_000),
            "an offset": ("readShelf", '{"account":"a","limit":1,"offset":1048577}', 1_048_576),
            "depth": ("highlight", "[" * 33 + "]" * 33, 32),
        }
        for label, (request, text, limit) in limits.items():
            self.checks.error(
                f"limit: {label}", self.collaborate_text(request, text), ErrorCode.LIMIT_EXCEEDED, limit
            )
        escaped = self.collaborate_text("highlight", '{"\\u001b[2J\\n":1}')
        self.checks.error("a text without control characters", escaped, ErrorCode.MALFORMED_REQUEST, names=["\\u001B"])
        null = self.collaborate_text("highlight", f'{{"collaboration":"{name}","url":null}}').result()
        self.checks.equal("null is absent", null["collaborationIdentifier"], name)

    def collaborate_text(self, request: str, text: str) -> Pending[Any]:
        """A request whose JSON is this text."""
        name = request.encode()
        body = bytes(16) + bytes([len(name)]) + name + text.encode()
        return self.client.request(Operation.COLLABORATE, body, decode_json)

    def check_stop(self) -> None:
        where = {"collaboration": self.collaboration}
        equal = self.checks.equal
        abandon = {"owner": self.ann.account, "localIdentifier": f"plan-{self.suffix}"}
        self.error("abandon: others take part", ErrorCode.NOT_PERMITTED, "abandon", **abandon)
        url = self.ask("highlight", **where)["url"]
        grants = self.grants(self.ann, self.bob)
        [proof] = self.proofs((self.bob.person, 1))
        page = {"feed": where, "after": self.posted[-1].sequence, "limit": 1, "waitMilliseconds": PATIENCE}
        shelf: Fields = {"account": self.eve.account, "everyApp": True, "limit": 64}
        self.share("its link", url, "talk-0")
        before = self.ask("readShelf", **shelf)
        equal("its link is on the shelf", url in [item["url"] for item in before["highlights"]], True)
        with Connection(*self.address) as follower:
            pending = follower.collaborate("readNotices", page)
            waiting = {"after": before["version"], "waitMilliseconds": PATIENCE}
            shown = follower.collaborate("readShelf", {**shelf, **waiting})
            self.changed("stop", 1, "stopSharing", **where)
            after = shown.result()
            equal("its link leaves the shelf", url in [item["url"] for item in after["highlights"]], False)
            equal("its link is not counted", after["count"], before["count"] - 1)
            self.checks.error("a follower", pending, ErrorCode.UNKNOWN_COLLABORATION)
        self.check_statuses("grants", grants, [GrantStatus.REVOKED] * 2)
        verdicts = [self.client.verify([proof]).result().verdicts, self.client.open([proof]).result().verdicts]
        equal("verdicts", verdicts, [[Verdict.UNKNOWN_COLLABORATION]] * 2)
        unknown = ErrorCode.UNKNOWN_COLLABORATION
        self.checks.error("count roots", self.client.count_roots(self.collaboration), unknown)
        self.error("highlight", unknown, "highlight", url=url)
        self.error("details", unknown, "readDetails", **where)
        self.error("add", unknown, "addParticipants", participants=[], **where)
        post = {"grant": base64url(grants[0]), "events": [event("change", "edit")], **where}
        try:
            self.ask("postNotices", **post)
        except RootgateError as error:
            refusals = (unknown, ErrorCode.GRANT_REFUSED)
            self.checks.true("post", error.code in refusals, error, "a refusal")
        else:
            self.checks.fail("post", "a receipt", "a refusal")
        guests = self.ask("listShares", account=self.account("guest"), scope="shared", limit=5)["shares"]
        equal("shares of a guest", guests, [])
        again = self.prepare("plan")
        fresh = again["isNew"] and again["collaborationIdentifier"] != self.collaboration
        self.checks.true("started anew", fresh, again, "a new collaboration")
        self.changed("abandon", 1, "abandon", **abandon)
        for collaboration in self.started:
            if self.is_there(collaboration):
                self.changed("stop", 1, "stopSharing", collaboration=collaboration)
        left = self.ask("listShares", account=self.ann.account, scope="private", limit=256)
        equal("all stopped", left["shares"], [])

    def check_edits(self) -> None:
        """Looks for every change of the layer in the change log."""
        sequence, end = self.journal[0][0] - 1, self.journal[-1][0]
        changes: dict[int, Change] = {}
        while sequence < end:
            page, _ = self.client.read_changes(sequence, 1_024).result()
            changes.update((change.sequence, change) for change in page)
            sequence = page[-1].sequence
        for sequence, mutation, digest in self.journal:
            change = changes[sequence]
            came = (change.operation, change.mutation, decode_edit(change.edit).request)
            self.checks.equal("an edit with its identifier and request", came, (Operation.EDIT, mutation, digest))
        edits = [
            decode_edit(change.edit)
            for change in changes.values()
            if change.operation == Operation.EDIT and change.collaboration == self.collaboration
        ]
        equal = self.checks.equal
        first, last = edits[0], edits[-1]
        equal("the start", (first.creates, first.policy, first.added), (True, Policy.CHALLENGE, [self.ann.person.root]))
        equal("the end", (last.creates, last.drops), (False, True))
        leo = [(edit.added, edit.removed) for edit in edits if self.leo.person.root in [*edit.added, *edit.removed]]
        came_and_went = [(self.leo.person.root in added, self.leo.person.root in removed) for added, removed in leo]
        # Leo was added, removed, added again, and removed again.
        equal("who came and went", came_and_went, [(True, False), (False, True)] * 2)


def check_proofs(path: str, checks: Checks) -> None:
    """Verifies the proofs in a file."""
    checks.section = path
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    checks.true("number of proofs", bool(lines), len(lines), "at least one")
    for number, line in enumerate(lines, 1):
        fields = json.loads(line)
        proof = Proof(
            base64.b64decode(fields["publicKey"], validate=True),
            fields["publicKeyIndex"],
            [base64.b64decode(digest, validate=True) for digest in fields["inclusionHashes"]],
            base64.b64decode(fields["signature"], validate=True),
            base64.b64decode(fields["data"], validate=True),
            SignatureFormat[fields["signatureFormat"].upper()],
        )
        expected = bytes.fromhex(fields["rootHash"])
        root, valid = verify_proof(proof, [expected])
        checks.equal(f"proof {number}: root hash", root.hex(), expected.hex())
        checks.equal(f"proof {number}: signature", valid, True)


def main() -> int:
    """Runs everything and returns the exit status."""
    parser = argparse.ArgumentParser(description="Checks a running Rootgate service against the specification.")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--proofs", metavar="FILE", help="JSON Lines with signed identity proofs to verify")
    arguments = parser.parse_args()
    checks = Checks()
    try:
        if arguments.proofs:
            check_proofs(arguments.proofs, checks)
        Interoperability(arguments.host, arguments.port, checks).run()
        CollaborationLayer(arguments.host, arguments.port, checks).run()
    except CheckFailed as failure:
        print(failure)
        return 1
    except (OSError, RootgateError, ProtocolError) as error:
        print(f"{checks.section}: behind {checks.last!r}\n  expected: an answer\n  came:     {error!r}")
        return 1
    print(f"{checks.passed} checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
