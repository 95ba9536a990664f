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
from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple, NoReturn

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
    Reader,
    Receipt,
    RootgateError,
    SignatureFormat,
    Verdict,
    Verification,
    decode_error,
    der_to_raw,
    encode_frame,
    encode_verification,
    error_name,
    root_hash,
    verdict_name,
    verify_proof,
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
    "storage-bytes challenges-issued replay-memory-bytes nonces-remembered"
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

    def error(self, name: str, pending: Pending[Any], code: ErrorCode, detail: int = 0) -> None:
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
        self.address = (host, port)
        self.checks = checks
        self.client = Client(host, port)
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
        sections: list[Callable[[], None]] = [
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
        for section in sections:
            self.checks.section = section.__name__[len("check_") :].replace("_", " ")
            section()
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
                mutation,
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
        self.checks.equal("hello: features", hello.features & 0xF, 0xF)
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
        clients = [Client(*self.address) for _ in range(copies)]
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
        with Client(*self.address) as other:
            asked = [client.add_roots(self.challenged, [root], mutation) for client in (self.client, other)]
            receipts = sorted((pending.result() for pending in asked), key=lambda receipt: receipt.repeat)
        self.checks.equal("copies of a mutation: one is applied", receipts[1], receipts[0]._replace(repeat=True))
        self.checks.equal("copies of a mutation: one is a repeat", receipts[0].repeat, False)
        sequence, changed, _ = receipts[0]
        self.journal.append(Change(sequence, changed, mutation, Operation.ADD_ROOTS, 0, 1, self.challenged, [root]))
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
        equal("list collaborations: the same order in any pages", self.collaborations(1), names)

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
            position = 8 + len(name)
            return body[:position] + b"\1" + body[position + 1 :]

        malformed = [
            ("hello: empty", Operation.HELLO, b""),
            ("hello: not zero", Operation.HELLO, b"\1\1\1\0"),
            ("hello: trailing byte", Operation.HELLO, b"\1\1\0\0\0"),
            ("challenges: short", Operation.ISSUE_CHALLENGES, b"\1\0\0"),
            ("verify: empty", Operation.VERIFY, b""),
            ("verify: short", Operation.VERIFY, verify[:-1]),
            ("verify: trailing byte", Operation.VERIFY, verify + b"\0"),
            ("verify: not zero", Operation.VERIFY, verify[:1] + b"\1" + verify[2:]),
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
        with socket.create_connection(self.address, TIMEOUT) as connection, connection.makefile("rb") as stream:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
        with socket.create_connection(self.address, TIMEOUT) as connection, connection.makefile("rb") as stream:
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
