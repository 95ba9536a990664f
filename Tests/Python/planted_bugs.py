# SPDX-License-Identifier: Apache-2.0
"""Plants bugs in a copy of the service, one at a time, and demands that the simulation catches each of them.

    python3 planted_bugs.py [--only NAME]... [--seconds 120] [--seed N] [--build DIRECTORY]
    python3 planted_bugs.py --list
    python3 planted_bugs.py --check

Copies the files that git tracks, as they stand, and builds the program `Simulation` in release. That one must run
without a violation. Then each bug of the table is planted in the copy, built, and run with one seed after the other
until the simulation ends with a violation or with a crash, or until the time is over. Prints a line for each bug, with
the simulation's own words, and ends with status 1 when one was not caught.

The first seed is a new one for each bug, and is printed. With `--seed` it is that one for all bugs. With `--build` the
copy stays in that directory, and the next run builds only what differs. `--check` builds nothing: it looks whether each
bug's text still stands in its file exactly once. When it does not, plant the bug in what stands there now.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from planting import Bug, Failed, build, command, copy_sources, first_seed, planted, report

STEPS = 8_000
"""Steps of one seed; the simulation's default, passed on so that the steps before a violation can be told."""
PATIENCE = 120
"""Seconds after the end of its time in which the simulation has to end its last seed."""


# In the order of the layers, so that little is built again between two bugs. The layer that takes longest comes last.
BUGS = [
    Bug(
        "at-least-of-the-last",
        "Of single proofs that arrive together only the last one's `atLeast` counts.",
        "Sources/Wire/SingleProofs.swift",
        "        self.atLeast = max(self.atLeast, atLeast)\n",
        "        self.atLeast = atLeast\n",
    ),
    Bug(
        "loop-sleeps-on-work",
        "A loop whose turn of work is over goes to sleep although work waits.",
        "Sources/Transport/EventLoop.swift",
        "        } while hasReadyLines && now() < end\n        return true\n",
        "        } while hasReadyLines && now() < end\n        return now() < end\n",
    ),
    Bug(
        "beginning-sent-twice",
        "What the socket has taken of an answer is sent once more with the rest of it.",
        "Sources/Transport/Connection.swift",
        "            let isTight = start == 0 && bytes.capacity <= bytes.count + bytes.count / 8\n",
        "            let isTight = bytes.capacity <= bytes.count + bytes.count / 8\n",
    ),
    Bug(
        "receipt-without-commit",
        "Mutations that add what is there or remove what is not there get receipts, but no commit of their own.",
        "Sources/RootSets/CommitQueue.swift",
        "                (isWritten, last) = (true, receipt.sequence)\n",
        "                var isChange = receipt.changed > 0\n"
        "                if case .edit = mutation.change { isChange = true }\n"
        "                (isWritten, last) = (isWritten || isChange, receipt.sequence)\n",
    ),
    Bug(
        "receipt-before-sync",
        "A change has its receipt when the system has its bytes, before the disk has.",
        "Sources/RootSets/StorageEnvironment.swift",
        "                try check(mdb_env_open(environment, directory, UInt32(MDB_NOTLS), 0o600),",
        "                try check(mdb_env_open(environment, directory, UInt32(MDB_NOTLS | MDB_NOSYNC), 0o600),",
    ),
    Bug(
        "commit-durable-with-the-next",
        "The page that makes a commit the newest one is made durable by the next commit.",
        "Sources/RootSets/StorageEnvironment.swift",
        "                try check(mdb_env_open(environment, directory, UInt32(MDB_NOTLS), 0o600),",
        "                try check(mdb_env_open(environment, directory, UInt32(MDB_NOTLS | MDB_NOMETASYNC), 0o600),",
    ),
    Bug(
        "stale-directory",
        "A directory of buckets outlives changes, among them removals, that keep the number of buckets.",
        "Sources/RootSets/Applier.swift",
        "        if transaction.written.contains(.packed) || transaction.written.contains(.large) {\n",
        "        if transaction.tallies[.packed].count != 0 || transaction.tallies[.large].count != 0 {\n",
    ),
    Bug(
        "removal-applied-twice",
        "A removal that is sent again under its identifier is applied again.",
        "Sources/RootSets/Applier.swift",
        "        if let repeated = try receipt(ofRepeated: mutation) {\n",
        "        if mutation.change.needsSpace, let repeated = try receipt(ofRepeated: mutation) {\n",
    ),
    Bug(
        "half-of-a-stale-edit",
        "A stale edit leaves those of its records that were as expected, if its group is committed.",
        "Sources/RootSets/Applier+Records.swift",
        '                return ServiceError(.staleEdit, "a record has changed since it was read: read it again")\n'
        "            }\n",
        '                return ServiceError(.staleEdit, "a record has changed since it was read: read it again")\n'
        "            }\n"
        "            if let value = record.value, !record.isSequenced {\n"
        "                try transaction.put(environment.records, record.key, value, version: sequence + 1)\n"
        "            }\n",
    ),
    Bug(
        "log-skips-first-line",
        "Who reads the change log from its beginning does not get its first line.",
        "Sources/RootSets/Snapshot.swift",
        "                ? try changes(after: sequence, through: totals.sequence, limit: limit) : nil\n",
        "                ? try changes(after: max(sequence, totals.firstSequence), through: totals.sequence, limit: "
        "limit) : nil\n",
    ),
    Bug(
        "challenge-forgotten-early",
        "Spent challenges are forgotten when their last part of the time begins, and are granted again.",
        "Sources/Verification/SpentChallenges.swift",
        "        guard let first = generations.first, first.number < present else { return [] }\n"
        "        let count = generations.firstIndex { $0.number >= present } ?? generations.count\n",
        "        guard let first = generations.first, first.number <= present else { return [] }\n"
        "        let count = generations.firstIndex { $0.number > present } ?? generations.count\n",
    ),
    Bug(
        "challenge-of-an-earlier-start",
        "A challenge from before a restart, which may be spent, is accepted.",
        "Sources/Verification/ChallengeBook.swift",
        "        guard number(at: 16) == epoch else { return .issuedElsewhere }\n",
        "",
    ),
    Bug(
        "copies-in-one-pass",
        "Copies of a proof that are verified together are all granted.",
        "Sources/Verification/BatchVerifier.swift",
        "            case .spent: return nil\n            case .replayed: return .challengeReplayed\n",
        "            case .spent, .replayed: return nil\n",
    ),
    Bug(
        "name-of-a-refused-proof",
        "Behind refused proofs of a pass, others are judged by the collaboration of their neighbours.",
        "Sources/Verification/BatchVerifier.swift",
        "            let name = proofs[survivors[index]].collaboration\n",
        "            let name = proofs[index].collaboration\n",
    ),
    Bug(
        "verdict-of-another-request",
        "In a pass of several requests, all of them get the verdicts of the first one's proofs.",
        "Sources/Verification/WorkerPool.swift",
        "                slice.request.verdicts[position] = worker.verdicts[start]\n",
        "                slice.request.verdicts[position] = worker.verdicts[position]\n",
    ),
    Bug(
        "request-behind-a-series",
        "The request behind single proofs that are verified together is skipped.",
        "Sources/Server/Session.swift",
        "        frames = last\n        return .handled\n",
        "        frames = ahead\n        return .handled\n",
    ),
    Bug(
        "frame-of-another-query",
        "Of equal queries on one connection the first is answered as often as there are any.",
        "Sources/Server/Requests/PendingRequest.swift",
        "            FrameWriter.append(.answer, request.header.operation, requestID: request.header.requestID, to: "
        "&bytes) {\n",
        "            let first = ends.first?.request ?? request\n"
        "            FrameWriter.append(.answer, first.header.operation, requestID: first.header.requestID, to: "
        "&bytes) {\n",
    ),
    Bug(
        "worker-not-asked-again",
        "After the first change that resumes a query, no worker is asked to resume another one.",
        "Sources/Server/Collaboration/SuspendedQueries.swift",
        "            state.isWorkerAwaited = due.hasMore\n",
        "            state.isWorkerAwaited = due.hasMore || !due.changed.isEmpty\n",
    ),
    Bug(
        "notice-of-a-lost-connection",
        "A post whose connection has closed before its commit resumes no query that waits for it.",
        "Sources/Server/Collaboration/CollaborationLayer.swift",
        "                task.pending.answerChange { $0.append(contentsOf: body(receipt)) }\n",
        "                guard !task.pending.isConnectionClosed else { return }\n"
        "                task.pending.answerChange { $0.append(contentsOf: body(receipt)) }\n",
    ),
    Bug(
        "grant-outlives-removal",
        "The old grant of a participant who was removed is valid again when he is added again.",
        "Sources/Collaboration/Grants/Access.swift",
        "            since = max(own.version, defaultPermission.version)\n",
        "            since = defaultPermission.version\n",
    ),
]


# Runs of the simulation.


@dataclass
class Outcome:
    """What came of a run."""

    seconds: float
    violation: str
    """The simulation's words; empty when it found nothing."""
    seeds: int = 0
    """Seeds that were run, the one that failed included."""
    steps: int | None = None
    """Steps until the violation, about; `None` after a crash."""
    text: str = ""
    """All that was printed."""


def simulate(program: Path, seed: int, seconds: float) -> Outcome:
    """Runs seeds from `seed` on until one fails or the time is over."""
    arguments = ["--seed", str(seed), "--steps", str(STEPS), "--seconds", str(max(1, round(seconds)))]
    began = time.monotonic()
    process = subprocess.Popen(
        [str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env={**os.environ, "SWIFT_BACKTRACE": "enable=yes,color=no,interactive=no,registers=none,images=none"},
    )
    try:
        text, _ = process.communicate(timeout=seconds + PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"the simulation with seed {seed} does not end: it was killed") from error
    finally:
        process.kill()
        process.wait()
        # A process that crashes leaves its data.
        for folder in {"/dev/shm", tempfile.gettempdir()}:
            shutil.rmtree(f"{folder}/rootgate-simulation-{process.pid}", ignore_errors=True)
    outcome = Outcome(time.monotonic() - began, "", text=text)
    failure = re.search(r"^FAILED: seed (\d+)(?:, step (\d+))?: (.*)$", text, re.MULTILINE)
    if failure:
        outcome.seeds = int(failure[1]) - seed + 1
        outcome.violation = failure[3]
        if failure[2]:
            outcome.steps = (outcome.seeds - 1) * STEPS + int(failure[2])
        if process.returncode < 0:
            place = re.search(r" at \S*?((?:Sources|Tests)/\S+?:\d+)", text)
            outcome.violation += f" with {signal.Signals(-process.returncode).name}"
            outcome.violation += f", as after a failed precondition, at {place[1]}" if place else ""
    elif process.returncode != 0:
        raise Failed(f"the simulation with seed {seed} could not run, status {process.returncode}:\n{text[-4000:]}")
    return outcome


def run_clean(program: Path, seed: int, seconds: float) -> None:
    """Makes sure that the simulation finds nothing in the service as it is."""
    outcome = simulate(program, seed, seconds)
    if outcome.violation:
        raise Failed(f"the service without a planted bug fails:\n{outcome.text}")
    print(f"without a bug: nothing found. {outcome.text.strip().splitlines()[-1]}", flush=True)


def catch(bug: Bug, directory: Path, seed: int, seconds: float) -> bool:
    """Plants a bug, and tells whether the simulation has caught it. The copy is as before afterwards."""
    try:
        with planted(bug, directory):
            program, built = build(directory, "Simulation")
        outcome = simulate(program, seed, seconds)
    except Failed as error:
        print(f"{bug.name}: NOT CAUGHT, {error}", flush=True)
        return False
    after = f"seed {seed}, built in {built:.0f} s"
    if not outcome.violation:
        print(f"{bug.name}: NOT CAUGHT in {outcome.seconds:.0f} s ({after}). {bug.breaks}", flush=True)
        return False
    steps = "" if outcome.steps is None else f", {outcome.steps:,} steps"
    seeds = "1 seed" if outcome.seeds == 1 else f"{outcome.seeds:,} seeds"
    print(f"{bug.name}: caught after {seeds}{steps}, {outcome.seconds:.1f} s ({after})", flush=True)
    print(f"    {outcome.violation}", flush=True)
    return True


def catch_all(bugs: list[Bug], directory: Path, seed: int | None, seconds: float) -> int:
    """Runs everything in a directory. Returns how many bugs were not caught."""
    copy_sources(directory)
    program, built = build(directory, "Simulation")
    print(f"built in {built:.0f} s", flush=True)
    run_clean(program, first_seed(seed), seconds)
    missed = [bug.name for bug in bugs if not catch(bug, directory, first_seed(seed), seconds)]
    return report(bugs, missed)


def main() -> int:
    """Runs everything and returns the exit status."""
    return command(
        BUGS, "Plants bugs in a copy of the service for the simulation to catch.",
        ("seconds", 120, "of simulation for each bug"), catch_all)


if __name__ == "__main__":
    sys.exit(main())
