# SPDX-License-Identifier: Apache-2.0
"""Plants bugs in a copy of the service, one at a time, and demands that `cluster_faults.py` catches each of them.

    python3 planted_cluster_bugs.py [--only NAME]... [--minutes 6] [--seed N] [--build DIRECTORY]
    python3 planted_cluster_bugs.py --list
    python3 planted_cluster_bugs.py --check

Copies the files that git tracks, as they stand, and builds the program `rootgate` in release. A cluster of it must come
through a round of faults without a violation. Then each bug of the table is planted in the copy and built, and a
cluster in which all services have it, or one has, goes through rounds with the faults that bring it out, one seed after
the other. A bug is caught when the checker reports a violation of the bug's own kind. Others, such as a service that
does not recover, do not count: they might have another cause.

Prints a line for each bug, with the checker's own words, and ends with status 1 when one was not caught. The options
are those of `planted_bugs.py`; `--minutes` is the time of faults for each bug. Needs what `cluster_faults.py` needs.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from planting import ROOT, Bug, Edit, Failed, build, command, copy_sources, first_seed, planted, report

ROUND_MINUTES = 1.5
ROUND_FAULTS = 15
PATIENCE = 600
"""Seconds behind the end of a round's faults in which the cluster has to settle, and everything to be checked."""
LATE = r"accepted [0-9.]+ s after the removal"
LOST = r"an acknowledged mutation is not at its sequence, where another one is, but at \[\]"


@dataclass(frozen=True)
class ClusterBug(Bug):
    """A mistake that shows when several services share a log."""

    violation: str = ""
    """An expression for what the checker has to report."""
    kinds: tuple[str, ...] = ()
    """The kinds of faults that bring it out; none: all kinds."""
    gate: int | None = None
    """The only gate that has the bug; `None`: all have it."""


BUGS = [
    ClusterBug(
        "staleness-ignored",
        "Proofs and grants are answered however old the last question to the log is.",
        "Sources/RootSets/SharedLog.swift",
        "        guard now <= asOf + stalenessMilliseconds, let times = presentTimes else { return false }\n"
        "        return times.contains(asOf) && now <= times.upperBound\n",
        "        guard let times = presentTimes else { return false }\n"
        "        return times.contains(asOf)\n",
        violation=LATE,
        kinds=("gate's links impaired",),
    ),
    ClusterBug(
        "segment-skipped",
        "Every fiftieth segment, if it is another gate's, is counted and not applied.",
        "Sources/RootSets/CommitQueue+Shared.swift",
        "            let outcome = try applier.apply(segment, hash: hash, at: place)\n",
        "            var counted = segment\n"
        "            if let place, place.number % 50 == 40, !isLastOwn || position < read.count - 1 {\n"
        "                counted = Segment(identifier: segment.identifier, after: segment.previous, .mutations([]))\n"
        "            }\n"
        "            let outcome = try applier.apply(counted, hash: hash, at: place)\n",
        # The gate goes on, because the hash of what it skips is that of the log. But the gates compare what they hold,
        # and this one would soon say that its storage is damaged. Then the faults would tell nothing about the checker,
        # so the gate does not hear the others.
        others=(
            Edit(
                "Sources/Cluster/Presence.swift",
                "        if let mine = told.record, mine.isOutvoted(by: others) {\n",
                "        if let mine = told.record, mine.isOutvoted(by: []) {\n",
            ),
        ),
        violation=r"gate 1 holds something else in",
        gate=1,
    ),
    ClusterBug(
        "acknowledged-unheard",
        "A change is acknowledged although etcd has not said that the segment is in the log.",
        "Sources/Etcd/OrderedLog.swift",
        "            case .unknown: doubt = failure\n",
        "            case .unknown:\n"
        "                doubt = failure\n"
        "                return .appended\n",
        violation=LOST,
        kinds=("gate's links impaired", "gate's link impaired", "member killed", "member stopped"),
    ),
    ClusterBug(
        "confirmed-alone",
        "A change is confirmed to be everywhere when the service that is asked has it.",
        "Sources/Cluster/Presence.swift",
        "            guard let since = waiting.since else { return false }\n",
        "            guard let since = waiting.since else { return false }\n            if since > 0 { return true }\n",
        violation=LATE,
        kinds=("gate's links impaired", "gate stopped"),
    ),
    ClusterBug(
        "challenge-of-another-gate",
        "A challenge that another gate has issued, and may have granted, is accepted.",
        "Sources/Verification/ChallengeBook.swift",
        "        guard number(at: 16) == epoch else { return .issuedElsewhere }\n",
        "",
        violation=r"a challenge was granted [0-9]+ times",
        kinds=("gate killed", "gate's link impaired"),
    ),
]


# Runs of the cluster.


def break_cluster(program: Path, seed: int, kinds: tuple[str, ...] = (), bug: tuple[int, Path] | None = None) -> str:
    """Lets a cluster go through a round of faults. Returns what was printed."""
    command = [sys.executable, str(ROOT / "Tests/Python/cluster_faults.py"), str(program), "--seed", str(seed)]
    command += ["--faults", str(ROUND_FAULTS), "--minutes", str(ROUND_MINUTES)]
    for kind in kinds:
        command += ["--kind", kind]
    if bug:
        command += ["--gate", f"{bug[0]}={bug[1]}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "Sources/rootgate-python")},
    )
    try:
        text, _ = process.communicate(timeout=60 * ROUND_MINUTES + PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"the round with seed {seed} does not end: it was killed") from error
    finally:
        if process.poll() is None:
            # With the cluster's processes, which are in the same session.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if not re.search(r"^(nothing is wrong|\d+ violations\..*)$", text, re.MULTILINE):
        raise Failed(f"the round with seed {seed} could not run, status {process.returncode}:\n{text[-4000:]}")
    return text


def violations(text: str) -> list[str]:
    """What the checker has reported."""
    return re.findall(r"^VIOLATION: (.*)$", text, re.MULTILINE)


def remove_data(text: str) -> None:
    """Removes what a round with violations has left."""
    if left := re.search(r"^\d+ violations\. Logs and data are left in (\S+)$", text, re.MULTILINE):
        shutil.rmtree(left[1])


def run_clean(program: Path, seed: int) -> None:
    """Makes sure that nothing is found in the service as it is."""
    text = break_cluster(program, seed)
    if violations(text):
        raise Failed(f"the service without a planted bug fails:\n{text}")
    print(f"without a bug: nothing found (seed {seed})", flush=True)


def catch(bug: ClusterBug, directory: Path, clean: Path, seed: int, minutes: float) -> bool:
    """Plants a bug, and tells whether the checker has caught it."""
    others: list[str] = []
    began = built = 0.0
    rounds = max(1, round(minutes / ROUND_MINUTES))
    try:
        with planted(bug, directory):
            program, built = build(directory, "rootgate")
        began = time.monotonic()
        for number in range(rounds):
            one = None if bug.gate is None else (bug.gate, program)
            text = break_cluster(clean if one else program, seed + number, bug.kinds, one)
            remove_data(text)
            right = [found for found in violations(text) if re.search(bug.violation, found)]
            if right:
                after = f"seed {seed + number}, built in {built:.0f} s"
                print(f"{bug.name}: caught after {(time.monotonic() - began) / 60:.1f} minutes, round {number + 1} "
                      f"({after})", flush=True)
                # What follows the colon are the records of the history.
                print(f"    {right[0].split(': ')[0]}", flush=True)
                return True
            others += violations(text)
    except Failed as error:
        print(f"{bug.name}: NOT CAUGHT, {error}", flush=True)
        return False
    print(f"{bug.name}: NOT CAUGHT in {rounds} rounds from seed {seed} on (built in {built:.0f} s). {bug.breaks}",
          flush=True)
    for found in others[:5]:
        print(f"    another violation: {found.split(': ')[0]}", flush=True)
    return False


def catch_all(bugs: list[ClusterBug], directory: Path, seed: int | None, minutes: float) -> int:
    """Runs everything in a directory. Returns how many bugs were not caught."""
    copy_sources(directory)
    program, built = build(directory, "rootgate")
    print(f"built in {built:.0f} s", flush=True)
    # The next build replaces the program.
    clean = Path(shutil.copy(program, directory / ".build/rootgate-clean"))
    run_clean(clean, first_seed(seed))
    missed = [bug.name for bug in bugs if not catch(bug, directory, clean, first_seed(seed), minutes)]
    return report(bugs, missed)


def main() -> int:
    """Runs everything and returns the exit status."""
    return command(
        BUGS, "Plants bugs in a copy of the service for a cluster to show.",
        ("minutes", 6, "of faults for each bug"), catch_all)


if __name__ == "__main__":
    sys.exit(main())
