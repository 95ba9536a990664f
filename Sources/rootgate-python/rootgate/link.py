# SPDX-License-Identifier: Apache-2.0
"""One connection of the client for asyncio, with its requests in flight."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Any, Union, cast

from .packing import Call, Line, answers
from .protocol import ConnectionLost, DeadlineExceeded, ErrorCode, ProtocolError, RootgateError
from .requests import Request
from .session import Outcome, Session

SEND_BUFFER = 1 << 16
"""Bytes on their way to the system. Frames behind them wait here, and can be withdrawn."""
STALL_SECONDS = 60.0
"""The connection ends when the service has read nothing of what was sent for so long."""
REFUSES_WHOLE = frozenset(
    (ErrorCode.BUSY, ErrorCode.LIMIT_EXCEEDED, ErrorCode.MALFORMED_REQUEST, ErrorCode.ROLE_MISSING)
)
"""Errors of a request of which nothing was done, while a part of it may be done as another request."""

_End = Union[Outcome, Exception]
"""How a request has ended: never as the future's exception, which somebody would have to take."""


class Link(asyncio.Protocol):
    """One connection with the requests that wait for answers on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._session = Session()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[_End]] = {}
        self._unsent: deque[tuple[int, bytes]] = deque()
        self._line = Line()
        self._is_paused = False
        self._stall: asyncio.TimerHandle | None = None
        self._end: Exception | None = None
        self._has_received = False
        self.issuer: int | None = None
        """The number of the challenges that the service issues, as its hello told it."""

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
        self._end_stall()
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
        self._expect_progress()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._end_stall()
        self._send()

    def _expect_progress(self) -> None:
        """Ends the connection later, unless the system has taken some of what waits by then."""
        if self._end is None and self._transport is not None:
            left = self._transport.get_write_buffer_size()
            self._stall = self._loop.call_later(STALL_SECONDS, self._look_at_progress, left)

    def _look_at_progress(self, left: int) -> None:
        if self._transport is not None and self._transport.get_write_buffer_size() < left:
            self._expect_progress()
        else:
            self.close(ConnectionLost(f"the service has read nothing for {STALL_SECONDS:.0f} s"))

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

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
        if error is not None and refuses_certificate(error):
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


def refuses_certificate(error: Exception) -> bool:
    """Whether TLS has failed for another reason than the end of the connection."""
    return isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)
