# SPDX-License-Identifier: Apache-2.0
"""Compares the verdicts of a running Rootgate service on random proofs with those of an independent oracle.

    python3 random_proofs.py HOST PORT [--count 1000000] [--seed N] [--processes 2]

Half of the proofs have one random byte of one random field changed: of the public key, the index, an inclusion hash,
the signature or the signed data. A challenge that only refused proofs have signed is signed again, since it must not
be spent. All choices come from the seed; keys, signatures and challenges are random. The service may have any state
and other clients: each process makes collaborations with random names and drops them at its end. Needs the packages
`cryptography` and `rootgate` (PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import AbstractSet, NamedTuple

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from counts import positive_number
from rootgate.connection import Connection
from rootgate.protocol import Policy, ProtocolError, RootgateError, SignatureFormat, Verdict, verdict_name
from rootgate.simulator import Device, KeyEncoding, Person, verify_proof
from rootgate.values import Proof, root_hash

COLLABORATIONS = 2
PEOPLE = 150
"""People in each collaboration."""
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 33)
"""Leaves of a person's tree. Where one is paired with itself, some changes of the index change nothing."""
BATCH = 256
"""Proofs in a request."""
PIPELINED = 8
"""Requests in flight."""
SHOWN = 5
"""Wrong verdicts that a process prints."""
FIELDS = ("public_key", "key_index", "inclusion_hashes", "signature", "data")
INFO_HEADERS = {
    91: bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200"),
    59: bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200"),
}
"""What stands before the point in a SubjectPublicKeyInfo of that many bytes."""
POINT_PREFIXES = {65: (b"\x04",), 33: (b"\x02", b"\x03")}
"""The first bytes of a point of that many bytes."""


class Collaboration(NamedTuple):
    """A collaboration and the people in it."""

    name: str
    people: list[Person]
    roots: frozenset[bytes]


class Case(NamedTuple):
    """A proof, what was changed in it, and where it is for."""

    collaboration: Collaboration
    proof: Proof
    change: str


@dataclass
class Outcome:
    """What came of a process."""

    verdicts: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    failures: list[str] = field(default_factory=list)
    """The first wrong verdicts, and the error that ended the process."""

    def add(self, case: Case, expected: Verdict, came: int) -> None:
        """Counts a verdict."""
        self.verdicts[came] += 1
        if came == expected:
            return
        self.wrong += 1
        if self.wrong <= SHOWN:
            name, proof = case.collaboration.name, case.proof
            self.failures.append(
                f"wrong: {verdict_name(came)} instead of {verdict_name(expected)}, collaboration {name}, "
                f"changed: {case.change}\n"
                f"  public key        {proof.public_key.hex()}\n"
                f"  index             {proof.key_index}\n"
                f"  inclusion hashes  {' '.join(sibling.hex() for sibling in proof.inclusion_hashes)}\n"
                f"  signature         {proof.signature.hex()} ({SignatureFormat(proof.signature_format).name})\n"
                f"  data              {proof.data.hex()}"
            )


# The oracle.


def expected_verdict(proof: Proof, roots: AbstractSet[bytes], unspent: AbstractSet[bytes]) -> Verdict:
    """What the specification says of a proof whose public key was a point of the curve before any change."""
    _, holds = verify_proof(proof, roots)
    if holds and proof.data in unspent:
        return Verdict.GRANTED
    if not has_key_form(proof.public_key):
        return Verdict.BAD_KEY
    if proof.key_index >= 1 << len(proof.inclusion_hashes):
        return Verdict.BAD_INDEX
    if not has_signature_form(proof):
        return Verdict.BAD_SIGNATURE_ENCODING
    if proof.data not in unspent:
        return Verdict.CHALLENGE_FORGED
    if root_hash(proof.public_key, proof.key_index, proof.inclusion_hashes) not in roots:
        return Verdict.NOT_PARTICIPANT
    return Verdict.BAD_SIGNATURE


def has_key_form(key: bytes) -> bool:
    """Whether the bytes have one of the accepted encodings, of a point or of none."""
    header = INFO_HEADERS.get(len(key), b"")
    point = key[len(header) :]
    return key.startswith(header) and point[:1] in POINT_PREFIXES.get(len(point), ())


def has_signature_form(proof: Proof) -> bool:
    """Whether the signature is strict DER of two integers of at most 32 bytes, or raw."""
    if proof.signature_format == SignatureFormat.RAW:
        return len(proof.signature) == 64
    try:
        integers = decode_dss_signature(proof.signature)
    except ValueError:
        return False
    fits = all(0 <= integer < 1 << 256 for integer in integers)
    return fits and encode_dss_signature(*integers) == proof.signature


# Random proofs.


def random_person(generator: random.Random) -> Person:
    """A person with one to five devices."""
    devices = [Device(generator.choice(list(KeyEncoding))) for _ in range(generator.randint(1, 5))]
    return Person(devices, generator.choice([width for width in WIDTHS if width >= len(devices)]))


def random_case(generator: random.Random, collaborations: list[Collaboration], challenge: bytes) -> Case:
    """A proof that signs the challenge, changed in half of the cases."""
    collaboration = generator.choice(collaborations)
    person = generator.choice(collaboration.people)
    index = generator.randrange(len(person.devices))
    proof = person.proof(index, challenge, generator.choice(list(SignatureFormat)))
    if generator.random() < 0.5:
        return Case(collaboration, proof, "nothing")
    return Case(collaboration, *changed(generator, proof))


def changed(generator: random.Random, proof: Proof) -> tuple[Proof, str]:
    """The proof with one random byte of one random field changed, and which one."""
    name = generator.choice([name for name in FIELDS if name != "inclusion_hashes" or proof.inclusion_hashes])
    value = getattr(proof, name)
    if name == "key_index":
        data, position = changed_byte(generator, value.to_bytes(8, "little"))
        return proof._replace(key_index=int.from_bytes(data, "little")), f"byte {position} of index"
    if name == "inclusion_hashes":
        number = generator.randrange(len(value))
        data, position = changed_byte(generator, value[number])
        siblings = [*value[:number], data, *value[number + 1 :]]
        return proof._replace(inclusion_hashes=siblings), f"byte {position} of inclusion hash {number}"
    data, position = changed_byte(generator, value)
    return proof._replace(**{name: data}), f"byte {position} of {name}"


def changed_byte(generator: random.Random, data: bytes) -> tuple[bytes, int]:
    """The bytes with one of them changed, and its position."""
    # A fraction, because `randrange` would draw more or less for a signature that is a byte longer.
    position = int(generator.random() * len(data))
    byte = data[position] ^ generator.randint(1, 255)
    return data[:position] + bytes([byte]) + data[position + 1 :], position


# A process.


def run(host: str, port: int, count: int, seed: int) -> Outcome:
    """Sends that many proofs."""
    outcome = Outcome()
    try:
        with Connection(host, port) as client:
            generator = random.Random(seed)
            collaborations = [make_collaboration(client, generator) for _ in range(COLLABORATIONS)]
            try:
                compare(client, generator, collaborations, count, outcome)
            finally:
                for collaboration in collaborations:
                    client.drop_collaboration(collaboration.name).result()
    except (OSError, RootgateError, ProtocolError) as error:
        outcome.failures.append(f"the process with seed {seed} ended early: {error!r}")
    return outcome


def make_collaboration(client: Connection, generator: random.Random) -> Collaboration:
    """A new collaboration with its people."""
    name = f"random-proofs-{os.urandom(8).hex()}"
    people = [random_person(generator) for _ in range(PEOPLE)]
    client.create_collaboration(name, Policy.CHALLENGE).result()
    client.add_roots(name, [person.root for person in people]).result()
    return Collaboration(name, people, frozenset(person.root for person in people))


def compare(
    client: Connection, generator: random.Random, collaborations: list[Collaboration], count: int, outcome: Outcome
) -> None:
    """Sends that many proofs in rounds of pipelined requests, and compares what comes with what has to come."""
    unspent: list[bytes] = []
    while count:
        size = min(count, BATCH * PIPELINED)
        count -= size
        # The challenges of all proofs that were refused come first, so that none becomes old.
        if len(unspent) < size:
            unspent += client.issue_challenges(size - len(unspent)).result().challenges
        cases = [random_case(generator, collaborations, challenge) for challenge in unspent[:size]]
        batches = [cases[start : start + BATCH] for start in range(0, size, BATCH)]
        asked = [client.verify([(case.collaboration.name, case.proof) for case in batch]) for batch in batches]
        valid = frozenset(unspent)
        expected = [expected_verdict(case.proof, case.collaboration.roots, valid) for case in cases]
        came = [verdict for pending in asked for verdict in pending.result().verdicts]
        if len(came) != size:
            raise ProtocolError(f"{len(came)} verdicts came for {size} proofs")
        for compared in zip(cases, expected, came):
            outcome.add(*compared)
        granted = {case.proof.data for case, verdict in zip(cases, came) if verdict == Verdict.GRANTED}
        unspent = [challenge for challenge in unspent if challenge not in granted]


def main() -> int:
    """Runs the processes, prints what came of them and returns the exit status."""
    parser = argparse.ArgumentParser(description="Compares verdicts on random proofs with those of an oracle.")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--count", type=positive_number, default=1_000_000, help="proofs (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of all random choices (default: a new one)")
    parser.add_argument(
        "--processes", type=positive_number, default=2, help="processes that send (default: %(default)s)")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    processes = arguments.processes
    shares = [arguments.count // processes + (number < arguments.count % processes) for number in range(processes)]
    tasks = [(arguments.host, arguments.port, share, seed + number) for number, share in enumerate(shares)]
    print(f"seed {seed}; the processes have {', '.join(str(task[-1]) for task in tasks)}", flush=True)

    start = time.monotonic()
    with multiprocessing.Pool(processes) as pool:
        outcomes = pool.starmap(run, tasks, chunksize=1)
    seconds = time.monotonic() - start

    verdicts: Counter[int] = sum((outcome.verdicts for outcome in outcomes), Counter())
    for verdict, number in sorted(verdicts.items()):
        print(f"{verdict_name(verdict):24}{number:>12}")
    total = sum(verdicts.values())
    wrong = sum(outcome.wrong for outcome in outcomes)
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    for failure in failures:
        print(failure)
    print(f"{seconds:.0f} s, {total / seconds:.0f} proofs/s")
    print(f"{total} proofs, {wrong} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
