# SPDX-License-Identifier: Apache-2.0
"""The network of a cluster under faults, of namespaces: each process has an address of its own on one bridge, and a cut
link is a route that drops what one of two processes sends to the other one. Needs Linux, root and `ip`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any


def are_allowed() -> bool:
    """Whether this machine lets us make namespaces."""
    if not shutil.which("ip"):
        return False
    name = f"rootgate-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


class Namespaces:
    """A namespace for each process, and a bridge between them."""

    kinds = ("cut", "cut there", "cut back", "refusing")
    """How links can be impaired."""

    def __init__(self, names: Sequence[str]) -> None:
        """Makes them. Raises `CalledProcessError` where that is not allowed."""
        number = os.getpid() % 10_000
        # Of the addresses for benchmarks (RFC 2544), which reach nobody.
        subnet = f"198.{18 + number // 5_000}.{number % 250}"
        self._bridge = f"rgb{number}"
        self._hosts = {name: f"{subnet}.{place + 1}" for place, name in enumerate(names)}
        self._names = {name: f"rg{number}-{name}" for name in names}
        self._routes: dict[tuple[str, str], str] = {}
        try:
            self._ip("link", "add", self._bridge, "type", "bridge")
            self._ip("addr", "add", f"{subnet}.254/24", "dev", self._bridge)
            self._ip("link", "set", self._bridge, "up")
            for place, name in enumerate(names):
                end, space = f"rgv{number}x{place}", self._names[name]
                self._ip("netns", "add", space)
                self._ip("link", "add", end, "type", "veth", "peer", "name", "inside", "netns", space)
                self._ip("link", "set", end, "master", self._bridge, "up")
                self._ip("-n", space, "addr", "add", f"{self._hosts[name]}/24", "dev", "inside")
                for device in ("inside", "lo"):
                    self._ip("-n", space, "link", "set", device, "up")
        except BaseException:
            self.close()
            raise

    def host(self, name: str) -> str:
        """The address of a process."""
        return self._hosts[name]

    def command(self, name: str) -> list[str]:
        """What starts the command of a process where it belongs."""
        return ["ip", "netns", "exec", self._names[name]]

    def order(self, link: tuple[str, str], *, passes: tuple[bool, bool] = (True, True), **how: Any) -> None:
        """Says how the link from one process to another one is from now on, as `proxies.py` does."""
        source, target = link
        if not source:
            return
        for one, other, passing in ((source, target, passes[0]), (target, source, passes[1])):
            self._route(one, other, "unreachable" if how.get("refuses") else "" if passing else "blackhole")
        if how.get("breaks"):
            # Where the kernel can't do that, the connections find out by themselves.
            subprocess.run([*self.command(source), "ss", "-K", "dst", self._hosts[target]], capture_output=True)

    def _route(self, source: str, target: str, kind: str) -> None:
        """Sets what becomes of what is sent from one process to another one; empty: it arrives."""
        before = self._routes.pop((source, target), "")
        if kind != before:
            place = ["-n", self._names[source], "route"]
            if before:
                self._ip(*place, "del", before, f"{self._hosts[target]}/32")
            if kind:
                self._ip(*place, "add", kind, f"{self._hosts[target]}/32")
        if kind:
            self._routes[source, target] = kind

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def close(self) -> None:
        """Removes everything. No process may be left there."""
        for space in self._names.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True)
