# SPDX-License-Identifier: Apache-2.0
"""Measures how long a Rootgate service with many root hashes takes to start after it was killed.

    python3 start_times.py PROGRAM [--roots 10000000] [--collaborations 1] [--participants 0] [--starts 5] [--seed N]
                           [--cold] [--listening-max SECONDS] [--answer-max SECONDS]

PROGRAM is the path of the program `rootgate`. With --participants there are also shared documents with so many
participants, up to 400 each, whose records are read before the service listens.

Each start follows a SIGKILL. For each it prints the seconds from the beginning of the process until it listens, and
until it has answered for the first time whether a root hash is in a set; the answers about one that is, and about one
that was removed, must be right. With --cold the data file is not in the system's memory at a start, as far as the
system gives it away. Exits with 1 when an answer is wrong, or the median of a time is above its bound.

Needs the packages `cryptography` and `rootgate` (PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counts import positive_number
from kill_under_load import Service
from rootgate.connection import Connection, Pending
from rootgate.protocol import ErrorCode, Policy, RootgateError
from rootgate.values import Receipt, sha256

BATCH = 4_096
"""Root hashes in a mutation."""
IN_FLIGHT = 16
CROWD = 400
"""The most participants of a document."""


def digests(seed: int, first: int, count: int) -> list[bytes]:
    """Root hashes by number."""
    return [sha256(seed.to_bytes(8, "big") + number.to_bytes(8, "big")) for number in range(first, first + count)]


def batches(roots: int, collaborations: int) -> Iterator[tuple[str, int, int]]:
    """Each collaboration with the first and the number of some of its root hashes."""
    for collaboration in range(collaborations):
        first, end = (roots * part // collaborations for part in (collaboration, collaboration + 1))
        for start in range(first, end, BATCH):
            yield f"set-{collaboration}", start, min(BATCH, end - start)


def fill(client: Connection, roots: int, collaborations: int, seed: int) -> None:
    """Adds the root hashes, and removes the first one of the first set again."""
    waiting: deque[Pending[Receipt]] = deque()
    known: set[str] = set()
    for name, first, count in batches(roots, collaborations):
        if name not in known:
            known.add(name)
            waiting.append(client.create_collaboration(name, Policy.CHALLENGE))
        waiting.append(client.add_roots(name, digests(seed, first, count)))
        while len(waiting) > IN_FLIGHT:
            waiting.popleft().result()
    for pending in waiting:
        pending.result()
    client.remove_roots("set-0", digests(seed, 0, 1)).result()


def share(client: Connection, participants: int, seed: int) -> None:
    """Makes documents with participants. Each has an identity that is a root hash."""
    waiting: deque[Pending[Any]] = deque()
    for number, start in enumerate(range(0, participants, CROWD)):
        metadata = {"localIdentifier": f"document-{number}", "title": "Document", "initiatorHandle": "olga@example.com"}
        metadata["defaultShareOptions"] = {"groups": []}
        made = client.collaborate("prepare", {"owner": "olga", "metadata": metadata, "ownerName": "Olga"}).result()
        people = [
            {"identity": identity.hex(), "displayName": f"Person {start + place}"}
            for place, identity in enumerate(digests(seed + 1, start, min(CROWD, participants - start)))
        ]
        fields = {"collaboration": made["collaborationIdentifier"], "participants": people}
        waiting.append(client.collaborate("addParticipants", fields))
        while len(waiting) > IN_FLIGHT:
            waiting.popleft().result()
    for pending in waiting:
        pending.result()


def first_answer(client: Connection, seed: int, generator: random.Random, count: int) -> list[bool]:
    """Whether a removed root hash and another one of the first set are in it, as soon as the service says."""
    asked = digests(seed, 0, 1) + digests(seed, generator.randrange(1, count), 1)
    while True:
        try:
            return list(client.test_roots("set-0", asked).result())
        except RootgateError as error:
            if error.code != ErrorCode.BUSY:
                raise
            time.sleep(0.002)


def forget_file(path: Path) -> None:
    """Lets the system give away what it has of a file in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def measure(options: argparse.Namespace, folder: Path) -> int:
    """Fills a storage, and kills and starts the service again and again. Returns the exit code."""
    generator = random.Random(options.seed)
    room = max(64, options.roots // 5_000 + options.participants // 500)
    words = ["--link-base", "https://example.com/c", "--storage-max", str(room)]
    data = folder / "data" / "data.mdb"
    with Service(options.program, folder, words).listen() as service:
        client = service.connect()
        fill(client, options.roots, options.collaborations, options.seed)
        share(client, options.participants, options.seed)
    first_set = options.roots // options.collaborations
    listening: list[float] = []
    answering: list[float] = []
    for _ in range(options.starts):
        if options.cold:
            forget_file(data)
        with Service(options.program, folder, words).listen() as service:
            answer = first_answer(service.connect(), options.seed, generator, first_set)
            seconds = time.monotonic() - service.begun
        print(f"listens after {service.seconds * 1000:.0f} ms, answers after {seconds * 1000:.0f} ms", flush=True)
        if answer != [False, True]:
            print(f"wrong: {answer}")
            return 1
        listening.append(service.seconds)
        answering.append(seconds)
    size = data.stat().st_blocks * 512 >> 20
    medians = statistics.median(listening), statistics.median(answering)
    print(
        f"{options.roots:,} root hashes in {options.collaborations:,} collaborations, {options.participants:,} "
        f"participants, {size} MiB: listens after {medians[0] * 1000:.0f} ms, answers after "
        f"{medians[1] * 1000:.0f} ms (medians of {options.starts})"
    )
    return 1 if medians[0] > options.listening_max or medians[1] > options.answer_max else 0


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--roots", type=positive_number, default=10_000_000)
    parser.add_argument("--collaborations", type=positive_number, default=1)
    parser.add_argument("--participants", type=int, default=0)
    parser.add_argument("--starts", type=positive_number, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--listening-max", type=float, default=float("inf"))
    parser.add_argument("--answer-max", type=float, default=float("inf"))
    options = parser.parse_args()
    if options.roots // options.collaborations < 2:
        parser.error("a collaboration needs two root hashes")
    print(f"seed {options.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="rootgate-starts-"))
    try:
        return measure(options, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
