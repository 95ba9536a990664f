# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio, which connects again and repeats what is safe. The blocking client is made of it."""

from __future__ import annotations

import asyncio
import random
import ssl
import weakref
from collections import deque
from typing import Any, TypeVar, Union, cast

from . import requests
from .addresses import Address, Addresses, check_application_protocol, environment_key, parse_addresses, tls_context
from .operations import Operations
from .packing import Call, Line, answers
from .protocol import ConnectionLost, DeadlineExceeded, ErrorCode, ProtocolError, RootgateError
from .requests import Request
from .session import Outcome, Session

T = TypeVar("T")

PAUSE = 0.025
"""Seconds before the second attempt; each next pause is twice as long, and each is shortened by up to a half."""
LONGEST_PAUSE = 2.0
"""Seconds between two attempts, at most."""
SEND_BUFFER = 1 << 16
"""Bytes on their way to the system. Frames behind them wait here, and can be withdrawn."""
REFUSES_WHOLE = frozenset(
    (ErrorCode.BUSY, ErrorCode.LIMIT_EXCEEDED, ErrorCode.MALFORMED_REQUEST, ErrorCode.ROLE_MISSING)
)
"""Errors of a request of which nothing was done, while a part of it may be done as another request."""


_End = Union[Outcome, Exception]
"""How a request has ended: never as the future's exception, which somebody would have to take."""


class _Link(asyncio.Protocol):
    """One connection with the requests that wait for answers on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._session = Session()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[_End]] = {}
        self._unsent: deque[tuple[int, bytes]] = deque()
        self._line = Line()
        self._is_paused = False
        self._end: Exception | None = None
        self._has_received = False

    @property
    def is_open(self) -> bool:
        """Whether new requests may be sent: the connection has not ended, and the service is not shutting down."""
        return self._end is None and self._session.is_open

    async def request(self, request: Request[Any], deadline: float) -> bytes:
        """Sends a request and returns the body of its answer.

        Raises `RootgateError`, `ProtocolError`, `DeadlineExceeded`, `ConnectionLost` with whether it was sent, and
        `ssl.SSLError` when the service's refusal of a certificate comes after the handshake. The connection stays
        usable after a time-out and after a cancellation.
        """
        if self._end is not None:
            raise _unsent()
        future: asyncio.Future[_End] = self._loop.create_future()
        if request.is_single_proof:
            call = Call(request.operation, request.body, future)
            self._line.append(call)
            self._send()
            try:
                await asyncio.wait((future,), timeout=max(0.0, deadline - self._loop.time()))
            finally:
                if not future.done():
                    self._leave(call)
        else:
            request_id, frame = self._session.begin(request.operation, request.body)
            self._waiting[request_id] = future
            self._unsent.append((request_id, frame))
            self._send()
            try:
                await asyncio.wait((future,), timeout=max(0.0, deadline - self._loop.time()))
            finally:
                if not future.done():
                    self._forget(request_id)
        if not future.done():
            raise DeadlineExceeded("the service did not answer in time")
        end = future.result()
        if isinstance(end, Exception):
            raise end
        return end

    def close(self, reason: Exception) -> None:
        """Ends the connection; what waits fails with the reason, or was not sent."""
        self._fail(reason)
        if self._transport is not None:
            self._transport.abort()

    def _send(self) -> None:
        while not self._is_paused and self._transport is not None and self._end is None:
            if self._unsent:
                _, frame = self._unsent.popleft()
            elif pack := self._line.take():
                request_id, frame = self._session.begin(pack.operation, pack.body())
                self._line.sent(request_id, pack)
            else:
                return
            self._transport.write(frame)

    def _leave(self, call: Call) -> None:
        """Lets nobody wait for a proof's verdict any longer, which may let others leave."""
        request_id = self._line.leave(call)
        if request_id is not None:
            self._session.abandon(request_id)
        self._send()

    def _forget(self, request_id: int) -> None:
        """Lets nobody wait any longer. A frame that was not sent yet never will be."""
        self._waiting.pop(request_id, None)
        if any(waiting == request_id for waiting, _ in self._unsent):
            self._unsent = deque(item for item in self._unsent if item[0] != request_id)
            self._session.withdraw(request_id)
        else:
            self._session.abandon(request_id)

    def _fail(self, reason: Exception) -> None:
        """Ends every request: those that were not sent with an error that says so."""
        if self._end is not None:
            return
        self._end = reason
        unsent = {request_id for request_id, _ in self._unsent}
        self._unsent.clear()
        waiting, self._waiting = self._waiting, {}
        for request_id, future in waiting.items():
            if not future.done():
                future.set_result(_unsent() if request_id in unsent else _copy(reason))
        not_sent, sent = self._line.clear()
        for call in not_sent:
            _end(call, _unsent())
        for call in sent:
            _end(call, _copy(reason))

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=SEND_BUFFER)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._send()

    def data_received(self, data: bytes) -> None:
        self._has_received = True
        if self._end is not None:
            return
        try:
            for request_id, outcome in self._session.receive(data):
                future = self._waiting.pop(request_id, None)
                if future is None:
                    self._finish(request_id, outcome)
                elif not future.done():
                    future.set_result(outcome)
            # Behind all answers that have come: what waits leaves together.
            self._send()
        except (RootgateError, ProtocolError) as error:
            self.close(error)

    def _finish(self, request_id: int, outcome: Outcome) -> None:
        """Gives each caller of a request with single proofs the verdict on its proof, or the error."""
        if isinstance(outcome, RootgateError) and outcome.code in REFUSES_WHOLE:
            if self._line.again(request_id, is_busy=outcome.retry_after is not None):
                return
        calls = self._line.answered(request_id) or []
        if isinstance(outcome, RootgateError):
            for call in calls:
                _end(call, _copy(outcome))
            return
        bodies = answers(outcome, len(calls))
        for place, call in enumerate(calls):
            _end(call, bodies[place] if bodies else ProtocolError("an answer is not about the proofs of its request"))

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None and _refuses_certificate(error):
            # With TLS 1.3 the service's refusal of a client's certificate arrives after the handshake.
            self._fail(error)
        elif self._has_received:
            self._fail(ConnectionLost("the connection was lost before the answer came"))
        else:
            self._fail(
                ConnectionLost(
                    "the service closed the connection without a byte: it may speak TLS, or it may be no Rootgate "
                    "service"
                )
            )


def _end(call: Call, end: _End) -> None:
    """Ends a call, unless its caller has given up."""
    future: asyncio.Future[_End] = call.waiter
    if not future.done():
        future.set_result(end)


def _unsent() -> ConnectionLost:
    return ConnectionLost("the connection was lost before the request was sent", was_sent=False)


def _copy(error: Exception) -> Exception:
    """The same error for another task: one that several tasks raise would gather their tracebacks."""
    if isinstance(error, RootgateError):
        return RootgateError(error.code, error.detail, error.text)
    return type(error)(*error.args)


class _Connector:
    """Keeps at most one link to the service, or one attempt to connect, at any time."""

    def __init__(
        self,
        addresses: list[Address],
        connect_timeout: float,
        tls: ssl.SSLContext | None,
        server_name: str | None,
        key: str | None,
    ) -> None:
        system = tls_context() if tls is None and any(address.encrypted for address in addresses) else None
        self._targets = [
            (address, None if address.path is not None else tls or (system if address.encrypted else None))
            for address in addresses
        ]
        self._server_name = server_name
        self._key = key
        self._connect_timeout = connect_timeout
        self._first = 0
        self._link: _Link | None = None
        self._links: weakref.WeakSet[_Link] = weakref.WeakSet()
        """All that have not ended: one that the service shuts down still has answers to bring."""
        self._attempt: asyncio.Task[_Link] | None = None
        self.is_closed = False

    async def link(self, deadline: float) -> _Link:
        """The present link, or that of an attempt to connect, which goes on for others when this caller gives up.

        Raises `DeadlineExceeded`, or why the last address could not be connected to.
        """
        if self.is_closed:
            raise ConnectionLost("the client is closed", was_sent=False)
        if self._link is not None:
            if self._link.is_open:
                return self._link
            # The address of a connection that has ended comes last.
            self._first = (self._first + 1) % len(self._targets)
            self._link = None
        loop = asyncio.get_running_loop()
        if self._attempt is None:
            self._attempt = loop.create_task(self._connect())
            self._attempt.add_done_callback(self._finish)
        attempt = self._attempt
        await asyncio.wait((attempt,), timeout=max(0.0, deadline - loop.time()))
        if not attempt.done():
            raise DeadlineExceeded("there was no connection in time")
        if attempt.cancelled():
            raise ConnectionLost("the client is closed", was_sent=False)
        return attempt.result()

    def close(self) -> None:
        """Ends all links and the attempt, for good."""
        self.is_closed = True
        for link in list(self._links):
            link.close(ConnectionLost("the client is closed"))
        if self._attempt is not None:
            self._attempt.cancel()

    def _finish(self, attempt: asyncio.Task[_Link]) -> None:
        self._attempt = None
        # Whoever waited may have given up: then nobody else takes the exception.
        if not attempt.cancelled() and attempt.exception() is None:
            self._link = attempt.result()

    async def _connect(self) -> _Link:
        """Connects to the first address that lets it, from the one that was used last."""
        count = len(self._targets)
        failure: Exception = ConnectionLost("the service has no address", was_sent=False)
        first = self._first
        for number in range(count):
            self._first = (first + number) % count
            try:
                return await self._connect_to(*self._targets[self._first])
            except (OSError, ProtocolError, RootgateError) as error:
                if isinstance(error, RootgateError) and error.code == ErrorCode.KEY_REFUSED:
                    # Who refuses the key refuses it at every address.
                    raise
                failure = error
        self._first = (first + 1) % count
        raise failure

    async def _connect_to(self, address: Address, tls: ssl.SSLContext | None) -> _Link:
        loop = asyncio.get_running_loop()
        try:
            link = await asyncio.wait_for(self._dial(loop, address, tls), self._connect_timeout)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise DeadlineExceeded(f"{address} did not let connect in time") from error
        if self._key is not None:
            hello = requests.hello(key=self._key)
            try:
                hello.read(await link.request(hello, loop.time() + self._connect_timeout))
            except BaseException:
                link.close(ConnectionLost("the key was not accepted"))
                raise
        return link

    async def _dial(self, loop: asyncio.AbstractEventLoop, address: Address, tls: ssl.SSLContext | None) -> _Link:
        def new_link() -> _Link:
            link = _Link(loop)
            self._links.add(link)
            return link

        if address.path is not None:
            _, link = await loop.create_unix_connection(new_link, address.path)
            return link
        if tls is None:
            _, link = await loop.create_connection(new_link, address.host, address.port)
            return link
        name = self._server_name or address.host
        transport, link = await loop.create_connection(
            new_link, address.host, address.port, ssl=tls, server_hostname=name
        )
        chosen: ssl.SSLObject = transport.get_extra_info("ssl_object")
        try:
            check_application_protocol(chosen.selected_alpn_protocol())
        except ProtocolError as error:
            link.close(error)
            raise
        return link


class AsyncClient(Operations):
    """A client of a service, for any number of tasks of one event loop.

    Requests are pipelined over one connection and answered in any order. When the connection is lost, the client
    connects again, with growing pauses, and repeats requests until their deadlines: those that were not sent or not
    begun, whatever they are; those that only read; and mutations, with the same identifier. A verify or an open whose
    fate is unknown raises `ConnectionLost`, because the first attempt may have spent the challenge.

    Every operation is a coroutine, with the parameters of the function of that name in `requests`. It raises:

    - `RootgateError` for an error of the service; of `busy`, `retry_after` says when to try again
    - `ConnectionLost` when the connection was lost and the request may not be repeated; any `OSError` when there was
      no connection until the deadline; `ssl.SSLError` at once when one side refuses the other's certificate
    - `DeadlineExceeded` when no answer came in time; a late one is dropped, and the connection goes on
    - `ProtocolError` when the service breaks the protocol
    - `ValueError` when a parameter does not fit into its field

    Verifies of one proof each that many tasks ask for at once are packed into one request. A lone one leaves at once.
    A request that is refused before anything of it was done is sent again in halves, so the refusal of one proof
    reaches its own caller only; other errors reach all whose proofs were in the request.

    A cancelled task leaves the connection to the others, too. The service may carry its request out all the same.
    """

    def __init__(
        self,
        addresses: Addresses = "localhost",
        *,
        timeout: float = 10.0,
        connect_timeout: float = 3.0,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        key: str | None = None,
    ) -> None:
        """Makes a client, which connects at its first request.

        `addresses`: one or several of `host`, `host:port`, `tls://host:port`, `unix:/path`, which all lead to the same
        service. One of them is used until a connection fails, and then the others are tried in turn.
        `timeout`: seconds for a request, connecting included. `connect_timeout`: seconds for one attempt to connect.
        `tls`: encrypts every TCP connection; without it `tls://` trusts the system's authorities. `server_name`: the
        name in the service's certificate, if not the host. `key`: the API key that every connection presents first;
        without one that of the environment's ROOTGATE_KEY. Raises `ValueError` for what is no address.
        """
        self._timeout = timeout
        self._connector = _Connector(
            parse_addresses(addresses), connect_timeout, tls, server_name, environment_key(key)
        )

    async def close(self) -> None:
        """Closes the connection. Requests in flight raise `ConnectionLost`, and so do all later ones."""
        self._connector.close()
        # The transport closes its socket in the loop's next turn.
        await asyncio.sleep(0)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(self, request: Request[T]) -> T:
        """Sends a request, and repeats it as the class says. Every operation calls this."""
        loop = asyncio.get_running_loop()
        timeout = self._timeout if request.timeout is None else request.timeout
        deadline = loop.time() + timeout + request.waiting
        pause = PAUSE
        while True:
            try:
                link = await self._connector.link(deadline)
            except (OSError, RootgateError, ProtocolError) as error:
                # Who refuses the other's certificate or key refuses it the next time, too.
                if _is_refusal(error):
                    raise
                failure: Exception = error
            else:
                try:
                    return request.read(await link.request(request, deadline))
                except (ConnectionLost, RootgateError) as error:
                    if not _may_repeat(error, request):
                        raise
                    failure = error
            retry_after = failure.retry_after or 0.0 if isinstance(failure, RootgateError) else 0.0
            # Each client pauses for a different time: otherwise all clients would connect at the same moment.
            jittered = max(retry_after, pause * random.uniform(0.5, 1.0))
            if self._connector.is_closed or loop.time() + jittered >= deadline:
                raise failure
            await asyncio.sleep(jittered)
            pause = min(pause * 2, LONGEST_PAUSE)


def _is_refusal(error: Exception) -> bool:
    """Whether one side has refused the other's certificate, key or protocol."""
    if isinstance(error, RootgateError):
        return error.code == ErrorCode.KEY_REFUSED
    return isinstance(error, ProtocolError) or _refuses_certificate(error)


def _refuses_certificate(error: Exception) -> bool:
    """Whether TLS has failed for another reason than the end of the connection."""
    return isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)


def _may_repeat(error: ConnectionLost | RootgateError, request: Request[Any]) -> bool:
    """Whether a request that ended with this error may be sent again: it was not begun, or may be done twice."""
    if isinstance(error, ConnectionLost):
        return request.repeats or not error.was_sent
    return error.code == ErrorCode.SHUTTING_DOWN
