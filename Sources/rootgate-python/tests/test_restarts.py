# SPDX-License-Identifier: Apache-2.0
"""Both clients while the real program is restarted. ROOTGATE_PROGRAM is the program's path.

ROOTGATE_TEST_RESTARTS says how often (default 4). Needs the package `cryptography`.
"""

from __future__ import annotations

import asyncio
import collections
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from rootgate import AsyncClient, Client, Verdict

try:
    from rootgate.simulator import Device, Person
except ImportError:
    HAS_CRYPTOGRAPHY = False
else:
    HAS_CRYPTOGRAPHY = True

PROGRAM = os.environ.get("ROOTGATE_PROGRAM")
RESTARTS = int(os.environ.get("ROOTGATE_TEST_RESTARTS") or 4)
CALLERS = 4
"""Threads or tasks."""
PATIENCE = 30.0
"""Seconds for a start, and for work between two restarts."""


class Service:
    """The program, on a port and a local socket that stay the same."""

    def __init__(self, program: str, directory: str) -> None:
        self._program = program
        self._directory = directory
        self._port = 0
        self.local = f"unix:{directory}/socket"
        self.start()

    @property
    def address(self) -> str:
        """Its port."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        words = ["serve", "--data", self._directory + "/data", "--listen", f"{self.address},{self.local}"]
        with open(self._directory + "/errors", "ab") as errors:
            self._process = subprocess.Popen([self._program, *words], stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self._process.stdout is not None
        timer = threading.Timer(PATIENCE, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        match = re.search(r"127\.0\.0\.1:(\d+)", line)
        if match is None:
            with open(self._directory + "/errors", encoding="utf-8") as errors_text:
                raise AssertionError(f"the service did not start: it printed {line!r}\n{errors_text.read()[-2000:]}")
        self._port = int(match[1])

    def stop(self) -> None:
        """Ends it as an operator does."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)
        if self._process.stdout:
            self._process.stdout.close()


class Deeds:
    """What the callers did."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self.is_over = threading.Event()
        self._lock = threading.Lock()

    def count(self, what: str) -> None:
        """Notes something that went well."""
        with self._lock:
            self.counts[what] += 1

    def verdict(self, verdict: int) -> None:
        """A challenge from before a restart was issued elsewhere; everything else is granted."""
        if verdict == Verdict.GRANTED:
            self.count("granted")
        elif verdict == Verdict.CHALLENGE_ELSEWHERE:
            self.count("expired")
        else:
            self.failures.append(f"verdict {verdict}")

    def change(self, added: int, removed: int) -> None:
        """Each of them is done once, however often it was sent."""
        if (added, removed) != (1, 1):
            self.failures.append(f"changed {added} and {removed}")
        self.count("changed")


@unittest.skipUnless(PROGRAM, "ROOTGATE_PROGRAM names no program")
@unittest.skipUnless(HAS_CRYPTOGRAPHY, "the package cryptography is missing")
class RestartTests(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.service = Service(str(PROGRAM), directory.name)
        self.addCleanup(lambda: self.service.stop())
        self.person = Person([Device()])
        with Client(self.service.address) as client:
            client.create_collaboration("deck")
            client.add_roots("deck", [self.person.root])

    def restart(self, deeds: Deeds) -> None:
        """Restarts the service again and again, while the callers work."""
        try:
            for _ in range(RESTARTS):
                self.wait_for_work(deeds)
                self.service.stop()
                self.service.start()
            self.wait_for_work(deeds)
        finally:
            deeds.is_over.set()

    def wait_for_work(self, deeds: Deeds) -> None:
        end = time.monotonic() + PATIENCE
        before = deeds.counts["granted"]
        while deeds.counts["granted"] < before + 20 and not deeds.failures:
            self.assertLess(time.monotonic(), end, f"nothing is granted: {deeds.counts}")
            time.sleep(0.01)

    def check(self, name: str, deeds: Deeds) -> None:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(deeds.counts.items()))
        print(f"{name}: {RESTARTS} restarts: {counts}, {len(deeds.failures)} errors")
        self.assertEqual(deeds.failures, [])

    def test_the_blocking_client_gets_no_error(self) -> None:
        deeds = Deeds()

        def work(client: Client) -> None:
            while not deeds.is_over.is_set():
                try:
                    proof = self.person.proof(0, client.issue_challenges(1).challenges[0])
                    deeds.verdict(client.verify([("deck", proof)]).verdicts[0])
                    root = os.urandom(32)
                    added = client.add_roots("deck", [root]).changed
                    deeds.change(added, client.remove_roots("deck", [root]).changed)
                except Exception as error:
                    deeds.failures.append(repr(error))

        with Client(self.service.address) as client:
            threads = [threading.Thread(target=work, args=(client,)) for _ in range(CALLERS)]
            for thread in threads:
                thread.start()
            try:
                self.restart(deeds)
            finally:
                for thread in threads:
                    thread.join()
        self.check("blocking client", deeds)

    def test_the_client_for_asyncio_gets_no_error(self) -> None:
        deeds = Deeds()

        async def work(client: AsyncClient) -> None:
            while not deeds.is_over.is_set():
                try:
                    proof = self.person.proof(0, (await client.issue_challenges(1)).challenges[0])
                    deeds.verdict((await client.verify([("deck", proof)])).verdicts[0])
                    root = os.urandom(32)
                    added = (await client.add_roots("deck", [root])).changed
                    deeds.change(added, (await client.remove_roots("deck", [root])).changed)
                except Exception as error:
                    deeds.failures.append(repr(error))

        async def run() -> None:
            async with AsyncClient([self.service.local, self.service.address]) as client:
                tasks = [asyncio.create_task(work(client)) for _ in range(CALLERS)]
                try:
                    await asyncio.get_running_loop().run_in_executor(None, self.restart, deeds)
                finally:
                    await asyncio.gather(*tasks)

        asyncio.run(run())
        self.check("client for asyncio", deeds)


if __name__ == "__main__":
    unittest.main()
