# SPDX-License-Identifier: Apache-2.0
"""Breaks a cluster of Rootgate services in many ways while it is used, and checks all that was answered.

    python3 cluster_faults.py PROGRAM [--faults 300] [--minutes 30] [--seed N] [--staleness 2500] [--keep]
                             [--kind KIND]... [--gate N=PROGRAM]... [--network namespaces]
    python3 cluster_faults.py --self-test

PROGRAM is the path of the program `rootgate`. Three members of etcd and three services, here called gates, run on
127.0.0.1. Each gate reaches each member, and each member its peers, by a proxy of its own. Clients change and use
collaborations at all gates. Faults come in bursts of one to four: SIGKILL and SIGSTOP of gates and members, links that
are cut, cut in one direction, slow or broken, a full etcd, a compaction while a gate is stopped, and steps of a gate's
clock. What a cut link holds back arrives later, as in TCP, or is lost with its connection. With `--network namespaces`
each process has a network of its own instead, and a cut link is a route that drops packets: nothing is slow there, and
TCP has to find out. After each burst everything is healed, and it is measured how long each gate takes to acknowledge a
change and to grant a proof, behind the first linearizable read of etcd. Finally:

- the change logs of all gates are equal and have no gaps. Each acknowledged mutation is there once, whole, at the
  sequence of its receipt; one without an answer at most once; a refused one not at all;
- no proof or grant of somebody who was removed was accepted that was sent later than the removal's answer and the bound
  of staleness, or than the answer to a confirm-everywhere; nobody who was added was refused behind that sequence;
- no challenge was granted twice;
- collaborations, root hashes and participants are what the log, replayed in a plain model, leads to, at all gates.

The faults come from the seed; what happens in them is a matter of timing. Bytes and requests are not doubled: TCP does
not do that. Clocks are stepped by libfaketime, in gates only, when Debian's package is there: etcd is written in Go and
asks the kernel without the C library. Needs `etcd`, `etcdctl` and the packages `cryptography` and `rootgate`
(PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from cluster.bursts import KINDS, Faults
from cluster.checker import Checker
from cluster.history import History
from cluster.load import Load
from cluster.namespaces import are_allowed
from cluster.planted_histories import self_test
from cluster.processes import NODES, Cluster
from cluster.worker import workers
from counts import positive_number


def run(arguments: argparse.Namespace, directory: Path, generator: random.Random) -> list[list[str]]:
    """Starts everything, breaks it, and returns the violations, by what has found them."""
    history = History(arguments.staleness / 1000)
    cluster = Cluster(
        arguments.program, dict(arguments.gate), directory, arguments.staleness, arguments.network == "namespaces")
    load = Load(cluster, history)
    threads, faults = workers(load, generator), Faults(cluster, load, generator, arguments.kind or KINDS)
    violations: list[str] = []
    threading.excepthook = lambda failure: violations.append(f"a thread of this test failed: {failure.exc_value!r}")
    try:
        load.set_up(threads)
        memory = {node.name: node.memory() for node in cluster.nodes.values()}
        largest = dict(memory)
        try:
            break_all(arguments, cluster, faults, generator, largest, violations)
        except TimeoutError as error:
            # What was acknowledged until then is checked like everything else, so it is read to its end.
            violations.append(str(error))
        load.finish()
        seconds = {node.name: node.processor_seconds() for node in cluster.gates}
        time.sleep(5)
        for node in cluster.gates:
            share = (node.processor_seconds() - seconds[node.name]) / 5
            print(f"{node.name}: {100 * share:.1f} % of a core at rest, {memory[node.name]} MiB at first, "
                  f"{largest[node.name]} at most, {node.memory()} at the end")
    except TimeoutError as error:
        violations.append(str(error))
    finally:
        cluster.close()
    report(history, load, faults)
    return [violations, *Checker(history).violations()]


def break_all(
    arguments: argparse.Namespace, cluster: Cluster, faults: Faults, generator: random.Random, largest: dict[str, int],
    violations: list[str],
) -> None:
    """Lets all faults happen. Notes the largest memory of each process, and which have ended by themselves. Raises
    `TimeoutError`."""
    begun, done = time.monotonic(), 0
    while done < arguments.faults and time.monotonic() < begun + 60 * arguments.minutes:
        done += faults.burst(generator.choice([1, 1, 2, 3, 4]))
        for node in cluster.nodes.values():
            largest[node.name] = max(largest[node.name], node.memory())
            if node.process.poll() is not None and node.is_meant_to_run:
                violations.append(f"{node.name} has ended by itself with {node.process.returncode}")
                node.start()
        time.sleep(max(0, begun + 60 * arguments.minutes * done / arguments.faults - time.monotonic()))


def report(history: History, load: Load, faults: Faults) -> None:
    """Prints the figures."""
    for name, number in [*sorted(faults.counts.items()), *sorted(load.outcomes.items())]:
        print(f"{name:40}{number:>10}")
    for kind, stale in sorted(faults.alone.items()):
        print(f"{kind}, alone {len(stale)} times: {sum(map(bool, stale))} times with stale proofs, {sum(stale)} in all")
    unknown = [mutation for mutation in history.mutations if not mutation.receipts and not mutation.is_refused]
    checker = Checker(history)
    found = sum(mutation.logged in checker.places for mutation in unknown)
    print(f"{sum(bool(each.receipts) for each in history.mutations)} mutations acknowledged, {len(unknown)} unknown "
          f"({found} in the log), {sum(each.is_refused for each in history.mutations)} refused")
    list(checker.late())
    print(f"the last one let in {checker.latest:.3f} s after the answer to the removal; "
          f"{len(history.confirmed)} removals confirmed everywhere")
    late = sorted(faults.recoveries, reverse=True)
    if late:
        print(f"recovery: median {late[len(late) // 2][0]:.2f} s, the longest:")
    for _, line in late[:10]:
        print(f"  {line}")


def gate_program(text: str) -> tuple[int, Path]:
    """The value of `--gate`."""
    number, _, program = text.partition("=")
    if not (number.isdecimal() and int(number) < NODES and program):
        raise argparse.ArgumentTypeError(f"{text} is not N=PROGRAM, with N below {NODES}")
    return int(number), Path(program)


def main() -> int:
    """Runs everything and returns the exit status."""
    parser = argparse.ArgumentParser(description="Breaks a cluster in many ways, and checks all that it answered.")
    parser.add_argument("program", type=Path, nargs="?")
    parser.add_argument("--faults", type=positive_number, default=300, help="(default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="over which they are spread (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of the choices (default: a new one)")
    parser.add_argument("--staleness", type=int, default=2500, help="in milliseconds (default: %(default)s)")
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="KIND",
                        help=f"only faults of this kind, and of others so given, of: {', '.join(KINDS)}")
    parser.add_argument("--network", choices=["proxies", "namespaces"], default="proxies",
                        help="what is between the processes (default: %(default)s; namespaces need Linux and root)")
    parser.add_argument("--gate", action="append", type=gate_program, default=[], metavar="N=PROGRAM",
                        help="gate N, from 0 on, runs another program")
    parser.add_argument("--keep", action="store_true", help="keep the logs and data of a run without violations, too")
    parser.add_argument("--self-test", action="store_true", help="test the checker, and nothing else")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if not arguments.program:
        parser.error("PROGRAM is missing")
    if arguments.network == "namespaces" and not are_allowed():
        print("SKIPPED: this machine allows no network namespaces", file=sys.stderr)
        return 0
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    directory = Path(tempfile.mkdtemp(prefix="cluster-faults-"))
    print(f"seed {seed}, logs in {directory}", flush=True)
    found = run(arguments, directory, random.Random(seed))
    for violations in found:
        # The first check that finds something must not hide what the others find.
        for violation in violations[:10]:
            print(f"VIOLATION: {violation}")
    if any(found):
        print(f"{sum(map(len, found))} violations. Logs and data are left in {directory}")
        return 1
    if not arguments.keep:
        shutil.rmtree(directory)
    print("nothing is wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
