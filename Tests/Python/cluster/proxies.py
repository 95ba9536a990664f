# SPDX-License-Identifier: Apache-2.0
"""The network of a cluster under faults: a process of its own, which takes orders as lines of JSON.

    python3 proxies.py

An order is `{"listen": [PORT, SOURCE, TARGET, TARGET_PORT]}`, `{"identities": {ID: MEMBER}}`, or
`{"link": [SOURCE, TARGET], ...}` with how the link is from now on. Each is answered by a line.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import defaultdict
from typing import Any

HOST = "127.0.0.1"


class Link:
    """The connections from one process to another one."""

    def __init__(self) -> None:
        self.passes = (asyncio.Event(), asyncio.Event())
        self.delay = 0.0
        self.refuses = False
        self.writers: set[asyncio.StreamWriter] = set()
        for event in self.passes:
            event.set()

    def order(self, order: dict[str, Any]) -> None:
        """Changes how the link is. Connections that break lose what was held back."""
        self.delay, self.refuses = order.get("delay", 0.0), order.get("refuses", False)
        if order.get("breaks"):
            for writer in self.writers:
                writer.transport.abort()
        for event, passes in zip(self.passes, order.get("passes", (True, True))):
            (event.set if passes else event.clear)()


class Network:
    """The proxies."""

    def __init__(self) -> None:
        self.links: dict[tuple[str, str], Link] = defaultdict(Link)
        self.identities: dict[str, str] = {}

    async def run(self) -> None:
        """Obeys until the input ends."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            order = json.loads(line)
            if "listen" in order:
                await self.listen(*order["listen"])
            elif "identities" in order:
                self.identities = order["identities"]
            else:
                self.links[tuple(order["link"])].order(order)
            print("done", flush=True)

    async def listen(self, port: int, source: str, target: str, target_port: int) -> None:
        """Begins a proxy. Without a source, a member's first request tells which one has connected."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self.connect(reader, writer, source, target, target_port)
            except OSError:
                writer.transport.abort()

        await asyncio.start_server(accept, HOST, port)

    async def connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str, target: str, port: int
    ) -> None:
        """Carries bytes both ways until one side ends."""
        first = b"" if source else await reader.read(1 << 16)
        if match := re.search(rb"x-server-from: *([0-9a-f]+)", first, re.IGNORECASE):
            source = self.identities.get(match[1].decode(), "")
        link = self.links[source, target]
        if link.refuses:
            return writer.transport.abort()
        other_reader, other = await asyncio.open_connection(HOST, port)
        link.writers |= {writer, other}
        pumps = [self.pump(reader, other, link, 0, first), self.pump(other_reader, writer, link, 1, b"")]
        tasks = [asyncio.create_task(pump) for pump in pumps]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in (other, writer):
            each.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        link.writers -= {writer, other}

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, way: int, data: bytes
    ) -> None:
        """Carries bytes one way. An end is held back like bytes."""
        while data or (data := await reader.read(1 << 16)):
            await asyncio.sleep(link.delay)
            await link.passes[way].wait()
            writer.write(data)
            await writer.drain()
            data = b""
        await link.passes[way].wait()


if __name__ == "__main__":
    asyncio.run(Network().run())
