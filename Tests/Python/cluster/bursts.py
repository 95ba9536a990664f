# SPDX-License-Identifier: Apache-2.0
"""Bursts of faults in a cluster. Each fault lasts for the time that it takes, and leaves everything healed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection

from cluster.load import Load
from cluster.processes import NODES, QUOTA, Cluster, wait_until

KINDS = {
    "gate killed": 14, "member killed": 12, "gate stopped": 14, "member stopped": 10, "gate's link impaired": 26,
    "gate's links impaired": 10, "peers' links impaired": 12, "member's links impaired": 6, "etcd full": 4,
    "compaction behind a gate's back": 4, "gate's clock stepped": 6,
}
"""The kinds of faults, with how often each happens among the others."""


class Faults:
    """Bursts of faults of some kinds."""

    def __init__(self, cluster: Cluster, load: Load, generator: random.Random, kinds: Collection[str] = KINDS) -> None:
        self.cluster, self.load, self.random = cluster, load, generator
        self.counts: Counter[str] = Counter()
        self.alone: dict[str, list[int]] = defaultdict(list)
        """By the kind of a fault that was alone, how many proofs were stale."""
        self.recoveries: list[tuple[float, str]] = []
        """Seconds from the healing, or from the return of etcd if that was later, with what was measured."""
        self.weights = {kind: weight for kind, weight in KINDS.items() if kind in kinds}
        if not cluster.has_clocks:
            self.weights.pop("gate's clock stepped", None)
        self.actions: dict[str, Callable[[str, float], None]] = {
            "gate killed": self.kill, "member killed": self.kill,
            "gate stopped": self.stop, "member stopped": self.stop,
            "gate's link impaired": self.impair_one, "gate's links impaired": self.impair_all,
            "peers' links impaired": self.impair_one, "member's links impaired": self.impair_all,
            "etcd full": self.fill, "compaction behind a gate's back": self.compact, "gate's clock stepped": self.step,
        }

    def burst(self, number: int) -> int:
        """Lets up to so many faults happen at about the same time, heals them, and measures the recovery. Returns how
        many there were."""
        chosen = self.random.choices(list(self.weights), list(self.weights.values()), k=number)
        texts, threads, taken = [], [], set()
        for kind in chosen:
            target = f"{'member' if kind.startswith(('member', 'peers')) else 'gate'}-{self.random.randrange(NODES)}"
            if target in taken:
                continue
            taken.add(target)
            # Some outlast the lease of a gate's key.
            seconds, wait = self.random.uniform(0.2, 5) * self.random.choice([1] * 9 + [3]), self.random.uniform(0, 2)
            threads.append(threading.Timer(wait, self.actions[kind], (target, seconds)))
            texts.append(f"{kind} {target} {seconds:.1f} s")
            self.counts[kind] += 1
        before = self.load.outcomes["proof stale"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.await_recovery(time.monotonic(), ", ".join(texts))
        if len(texts) == 1:
            self.alone[chosen[0]].append(self.load.outcomes["proof stale"] - before)
        return len(texts)

    def await_recovery(self, healed: float, text: str) -> None:
        """Waits until each member reads, and each gate grants and acknowledges again."""
        wanted = [(place, what) for place in range(NODES) for what in ("reads", "grants", "changes")]
        working = self.load.working
        first: dict[tuple[int, str], float] = {}

        def is_recovered() -> bool:
            for key in wanted:
                if working.get(key, 0) > healed:
                    first.setdefault(key, working[key])
            return len(first) == len(wanted)

        try:
            wait_until(is_recovered, f"recovery from {text}")
        finally:
            etcd = min((at for (_, what), at in first.items() if what == "reads"), default=healed)
            lacking = sorted(set(wanted) - first.keys())
            measured = [(at, key) for key, at in first.items() if key[1] != "reads" or lacking]
            slowest = max(measured, default=(healed, (0, "does nothing")))
            seconds = slowest[0] - max(etcd, healed)
            line = f"{seconds:.2f} s until gate {slowest[1][0]} {slowest[1][1]}, etcd {etcd - healed:.2f} s: {text}"
            self.recoveries.append((seconds, line))
            print(f"{time.monotonic():.1f} {line}" + (f", and never: {lacking}" if lacking else ""), flush=True)

    def kill(self, target: str, seconds: float) -> None:
        """Kills a process, and starts it soon."""
        node = self.cluster.nodes[target]
        node.kill()
        time.sleep(seconds / 3)
        node.start()

    def stop(self, target: str, seconds: float) -> None:
        """Stops a process for a while."""
        node = self.cluster.nodes[target]
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        node.process.send_signal(signal.SIGCONT)

    def impair_one(self, target: str, seconds: float) -> None:
        """Impairs the links of a process with one other member."""
        others = [f"member-{number}" for number in range(NODES) if f"member-{number}" != target]
        self.impair(target, [self.random.choice(others)], seconds)

    def impair_all(self, target: str, seconds: float) -> None:
        """Impairs the links of a process with all members."""
        self.impair(target, [f"member-{number}" for number in range(NODES) if f"member-{number}" != target], seconds)

    def impair(self, target: str, others: list[str], seconds: float) -> None:
        """Cuts links, in both directions or one, or makes them slow, or breaks their connections again and again."""
        kind = self.random.choice(self.cluster.network.kinds)
        loses = self.random.random() < 0.5
        self.counts[f"  of links: {kind}"] += 1
        there, back = kind not in ("cut", "cut there"), kind not in ("cut", "cut back")
        delay = self.random.uniform(0.02, 0.4) * (kind == "slow")
        refuses = kind == "refusing"
        for other in others:
            how = {"delay": delay, "refuses": refuses, "breaks": refuses}
            self.cluster.order(link=(target, other), passes=(there, back), **how)
            # Peers connect to each other both ways.
            self.cluster.order(link=(other, target), passes=(back, there), **how)
        time.sleep(seconds)
        for other in others:
            self.cluster.order(link=(target, other), breaks=loses)
            self.cluster.order(link=(other, target), breaks=loses)

    def fill(self, target: str, seconds: float) -> None:
        """Fills etcd with what belongs to nobody, and makes room again."""
        for number in range(2 * QUOTA // 1_000_000):
            done = self.cluster.etcdctl("put", f"junk/{number}", value=os.urandom(1_000_000))
            if b"database space exceeded" in done.stderr:
                break
        time.sleep(seconds)
        wait_until(self.make_room, "there is room in etcd again")

    def make_room(self) -> bool:
        """Removes what `fill` has put, from the disks, too."""
        steps = [self.cluster.etcdctl("del", "--prefix", "junk/"), self.compact_now()]
        steps += [self.cluster.etcdctl("defrag", member=number) for number in range(NODES)]
        steps += [self.cluster.etcdctl("alarm", "disarm")]
        alarms = self.cluster.etcdctl("alarm", "list")
        return all(step.returncode == 0 for step in [*steps, alarms]) and not alarms.stdout.strip()

    def compact_now(self) -> subprocess.CompletedProcess[bytes]:
        """Lets etcd forget what keys were before."""
        found = self.cluster.etcdctl("get", "x", "-w", "json")
        if found.returncode:
            return found
        done = self.cluster.etcdctl("compact", str(json.loads(found.stdout)["header"]["revision"]))
        if b"has been compacted" in done.stderr:
            done.returncode = 0
        return done

    def compact(self, target: str, seconds: float) -> None:
        """Compacts while a gate is stopped."""
        node = self.cluster.nodes[target]
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds / 2)
        self.compact_now()
        time.sleep(seconds / 2)
        node.process.send_signal(signal.SIGCONT)

    def step(self, target: str, seconds: float) -> None:
        """Steps a gate's clock, and back. Ahead a little only: what has expired does not become valid again."""
        gate = int(target[-1])
        self.cluster.step(gate, self.random.choice([-7200, -60, -5, 5, 60]))
        time.sleep(1 + seconds)
        self.cluster.step(gate, 0)
