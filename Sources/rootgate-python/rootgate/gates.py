# SPDX-License-Identifier: Apache-2.0
"""The addresses of the client for asyncio: a connection to each that is used, and which one is asked."""

from __future__ import annotations

import asyncio
import ssl
import weakref

from . import requests
from .addresses import Address, check_application_protocol, tls_context
from .link import Link
from .protocol import ISSUER_LIMIT, ConnectionLost, DeadlineExceeded, ProtocolError

SHUNNED = 1.0
"""Seconds in which an address that let nobody connect is not asked whose challenges its service issues."""


class Gate:
    """One address, with at most one link, or one attempt to connect, at any time."""

    def __init__(
        self,
        address: Address,
        connect_timeout: float,
        tls: ssl.SSLContext | None,
        server_name: str | None,
        key: str | None,
        *,
        is_one_of_several: bool,
    ) -> None:
        self._address = address
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._server_name = server_name
        self._key = key
        self._greets = key is not None or is_one_of_several
        self._link: Link | None = None
        self._links: weakref.WeakSet[Link] = weakref.WeakSet()
        """All that have not ended: one that the service shuts down still has answers to bring."""
        self._attempt: asyncio.Task[Link] | None = None
        self._failed_at: float | None = None
        """When the last attempt has failed, by the loop's clock."""
        self._is_closed = False

    @property
    def open_link(self) -> Link | None:
        """The link, when requests may be sent over it."""
        return self._link if self._link is not None and self._link.is_open else None

    @property
    def has_failed(self) -> bool:
        """Whether the link has ended, or the last attempt has failed."""
        return self._failed_at is not None or (self._link is not None and not self._link.is_open)

    def renew(self) -> None:
        """Forgets that it has failed."""
        self._failed_at = None
        self._link = self.open_link

    async def link(self, deadline: float) -> Link:
        """The present link, or that of an attempt to connect, which goes on for others when this caller gives up.

        Raises `DeadlineExceeded`, or why the address could not be connected to.
        """
        if self._is_closed:
            raise ConnectionLost("the client is closed", was_sent=False)
        link = self.open_link
        if link is not None:
            return link
        attempt = self.attempt()
        timeout = max(0.0, deadline - asyncio.get_running_loop().time())
        await asyncio.wait((attempt,), timeout=timeout)
        if not attempt.done():
            raise DeadlineExceeded("there was no connection in time")
        if attempt.cancelled():
            raise ConnectionLost("the client is closed", was_sent=False)
        return attempt.result()

    def attempt(self) -> asyncio.Task[Link]:
        """The present attempt to connect, or a new one."""
        if self._attempt is None:
            self._attempt = asyncio.get_running_loop().create_task(self._connect())
            self._attempt.add_done_callback(self._finish)
        return self._attempt

    def is_worth_an_attempt(self, now: float) -> bool:
        """Whether there is no link, and no attempt has just failed."""
        return self.open_link is None and (self._failed_at is None or now >= self._failed_at + SHUNNED)

    def close(self) -> None:
        """Ends all links and the attempt, for good."""
        self._is_closed = True
        for link in list(self._links):
            link.close(ConnectionLost("the client is closed"))
        if self._attempt is not None:
            self._attempt.cancel()

    def _finish(self, attempt: asyncio.Task[Link]) -> None:
        self._attempt = None
        # Whoever waited may have given up: then nobody else takes the exception.
        if not attempt.cancelled() and attempt.exception() is not None:
            self._failed_at = attempt.get_loop().time()

    async def _connect(self) -> Link:
        loop = asyncio.get_running_loop()
        try:
            link = await asyncio.wait_for(self._dial(loop), self._connect_timeout)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise DeadlineExceeded(f"{self._address} did not let connect in time") from error
        if self._greets:
            hello = requests.hello(key=self._key)
            try:
                answer = hello.read(await link.request(hello, loop.time() + self._connect_timeout))
            except BaseException:
                link.close(ConnectionLost("the hello was not accepted"))
                raise
            link.issuer = answer.limits.get(ISSUER_LIMIT)
        # Here, and not when the task has ended: who waits for the task finds the link.
        self._link, self._failed_at = link, None
        return link

    async def _dial(self, loop: asyncio.AbstractEventLoop) -> Link:
        def new_link() -> Link:
            link = Link(loop)
            self._links.add(link)
            return link

        address = self._address
        if address.path is not None:
            _, link = await loop.create_unix_connection(new_link, address.path)
            return link
        if self._tls is None:
            _, link = await loop.create_connection(new_link, address.host, address.port)
            return link
        name = self._server_name or address.host
        transport, link = await loop.create_connection(
            new_link, address.host, address.port, ssl=self._tls, server_hostname=name
        )
        chosen: ssl.SSLObject = transport.get_extra_info("ssl_object")
        try:
            check_application_protocol(chosen.selected_alpn_protocol())
        except ProtocolError as error:
            link.close(error)
            raise
        return link


class Gates:
    """Chooses among the addresses. One of them is used until it is left."""

    def __init__(
        self,
        addresses: list[Address],
        connect_timeout: float,
        tls: ssl.SSLContext | None,
        server_name: str | None,
        key: str | None,
    ) -> None:
        system = tls_context() if tls is None and any(address.encrypted for address in addresses) else None
        self.count = len(addresses)
        self._gates = [
            Gate(
                address,
                connect_timeout,
                None if address.path is not None else tls or (system if address.encrypted else None),
                server_name,
                key,
                is_one_of_several=self.count > 1,
            )
            for address in addresses
        ]
        self._place = 0
        self.is_closed = False

    def present(self) -> Gate:
        """The one that is used."""
        if self._gates[self._place].has_failed:
            self.leave(self._gates[self._place])
        return self._gates[self._place]

    def leave(self, gate: Gate) -> None:
        """Uses the next one, unless that was done already."""
        if gate is self._gates[self._place]:
            self._place = (self._place + 1) % self.count
            self._gates[self._place].renew()

    async def issuer(self, number: int, deadline: float) -> Link | None:
        """A link to the service whose challenges have a number; None when no address leads there in time.

        Connects to the addresses without a link, because a service has another number after each start.
        """
        loop = asyncio.get_running_loop()
        pending: set[asyncio.Task[Link]] | None = None
        while not self.is_closed:
            for gate in self._gates:
                link = gate.open_link
                if link is not None and link.issuer == number:
                    return link
            if pending is None:
                now = loop.time()
                pending = {gate.attempt() for gate in self._gates if gate.is_worth_an_attempt(now)}
            timeout = deadline - loop.time()
            if not pending or timeout <= 0:
                break
            _, pending = await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return None

    def close(self) -> None:
        """Ends all connections and attempts, for good."""
        self.is_closed = True
        for gate in self._gates:
            gate.close()
