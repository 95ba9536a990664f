# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio, which connects again and repeats what is safe. The blocking client is made of it."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Sequence
from typing import Any, TypeVar

from .addresses import Addresses, environment_key, parse_addresses
from .gates import Gates
from .link import refuses_certificate
from .operations import Operations
from .protocol import ConnectionLost, ErrorCode, Operation, ProtocolError, RootgateError
from .requests import Request, Split

T = TypeVar("T")

PAUSE = 0.025
"""Seconds before the second round of attempts; each next pause is twice as long, and each is shortened by up to a
half."""
LONGEST_PAUSE = 2.0
"""Seconds between two rounds of attempts, at most."""
CHANGES = {
    Operation.ADD_ROOTS, Operation.REMOVE_ROOTS, Operation.CREATE_COLLABORATION, Operation.DROP_COLLABORATION,
    Operation.EDIT, Operation.COLLABORATE,
}
"""Requests that may change something."""
UNDECIDED = {
    ErrorCode.BUSY, ErrorCode.SHUTTING_DOWN, ErrorCode.STALE, ErrorCode.ROLE_MISSING, ErrorCode.KEY_REFUSED,
    ErrorCode.LIMIT_EXCEEDED, ErrorCode.TOO_MANY_CONNECTIONS,
}
"""Errors that a service answers before it looks whether it has carried out the same change before."""


class AsyncClient(Operations):
    """A client of a service, or of several that share their changes, for any number of tasks of one event loop.

    Requests are pipelined over one connection and answered in any order. When the connection is lost, the client
    connects again, with growing pauses, and repeats requests until their deadlines: those that were not sent or not
    begun, whatever they are; those that only read; and mutations, with the same identifier. A verify or an open whose
    fate is unknown raises `ConnectionLost`, because the first attempt may have spent the challenge.

    Every operation is a coroutine, with the parameters of the function of that name in `requests`. It raises:

    - `RootgateError` for an error of the service; of `busy`, `retry_after` says when to try again
    - `ConnectionLost` when the connection was lost and the request may not be repeated, or is a change whose
      repetition was not decided; any `OSError` when there was no connection until the deadline; `ssl.SSLError` at once
      when one side refuses the other's certificate
    - `DeadlineExceeded` when no answer came in time; a late one is dropped, and the connection goes on
    - `ProtocolError` when the service breaks the protocol
    - `ValueError` when a parameter does not fit into its field

    Verifies of one proof each that many tasks ask for at once are packed into one request. A lone one leaves at once.
    A request that is refused before anything of it was done is sent again in halves, so the refusal of one proof
    reaches its own caller only; other errors reach all whose proofs were in the request.

    A cancelled task leaves the connection to the others, too. The service may carry its request out all the same.

    With several addresses one is used, until it can't be connected to, its connection is lost, or the service shuts
    down or answers `stale`. Then the next one is used, and what may be repeated is sent there, without a pause until
    all have been tried. A request that was answered by `stale` may be repeated, whatever it is. A proof that belongs to
    another service (`Verdict.CHALLENGE_ELSEWHERE`) is sent there, if an address leads to it, and the answers are put
    together. Otherwise, or when that service gives no answer, the proof keeps this verdict.
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
        service, or to services of one cluster.
        `timeout`: seconds for a request, connecting included. `connect_timeout`: seconds for one attempt to connect.
        `tls`: encrypts every TCP connection; without it `tls://` trusts the system's authorities. `server_name`: the
        name in the service's certificate, if not the host. `key`: the API key that every connection presents first;
        without one that of the environment's ROOTGATE_KEY. Raises `ValueError` for what is no address.
        """
        self._timeout = timeout
        self._gates = Gates(parse_addresses(addresses), connect_timeout, tls, server_name, environment_key(key))

    async def close(self) -> None:
        """Closes the connection. Requests in flight raise `ConnectionLost`, and so do all later ones."""
        self._gates.close()
        # The transport closes its socket in the loop's next turn.
        await asyncio.sleep(0)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(self, request: Request[T]) -> T:
        """Sends a request, and repeats it as the class says. Every operation calls this."""
        timeout = self._timeout if request.timeout is None else request.timeout
        deadline = asyncio.get_running_loop().time() + timeout + request.waiting
        answer = await self._ask(request, deadline)
        if request.split is None or self._gates.count == 1:
            return answer
        return await self._ask_issuers(request.split, answer, deadline)

    async def _ask(self, request: Request[T], deadline: float) -> T:
        """Asks one service after the other, until there is an answer or an error that another one would give, too."""
        loop = asyncio.get_running_loop()
        pause = PAUSE
        attempts = refusals = 0
        lost: ConnectionLost | None = None
        while True:
            gate = self._gates.present()
            try:
                link = await gate.link(deadline)
            except (OSError, RootgateError, ProtocolError) as error:
                # Who refuses the other's certificate or key refuses it the next time, too.
                refusals += _is_refusal(error)
                if _refuses_key(error) or refusals == self._gates.count:
                    raise _told(error, lost)
                failure: Exception = error
            else:
                try:
                    return request.read(await link.request(request, deadline))
                except (ConnectionLost, RootgateError) as error:
                    if not self._may_repeat(error, request):
                        raise _told(error, lost)
                    if isinstance(error, ConnectionLost) and error.was_sent and request.operation in CHANGES:
                        lost = error
                    failure = error
            self._gates.leave(gate)
            attempts += 1
            jittered = 0.0
            if attempts % self._gates.count == 0:
                retry_after = failure.retry_after or 0.0 if isinstance(failure, RootgateError) else 0.0
                # Each client pauses for a different time: otherwise all clients would connect at the same moment.
                jittered = max(retry_after, pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, LONGEST_PAUSE)
                refusals = 0
            if self._gates.is_closed or loop.time() + jittered >= deadline:
                raise _told(failure, lost)
            if jittered > 0:
                await asyncio.sleep(jittered)

    def _may_repeat(self, error: ConnectionLost | RootgateError, request: Request[Any]) -> bool:
        """Whether a request that ended with this error may be sent again: it was not begun, or may be done twice."""
        if isinstance(error, ConnectionLost):
            return request.repeats or not error.was_sent
        if error.code == ErrorCode.STALE:
            # Another service may have heard of the others.
            return self._gates.count > 1
        return error.code == ErrorCode.SHUTTING_DOWN

    async def _ask_issuers(self, split: Split[T], answer: T, deadline: float) -> T:
        """The answer with the verdicts of the services that have issued the challenges of other proofs in it."""
        groups = split.elsewhere(answer)
        if not groups:
            return answer
        asks = (self._ask_issuer(split, number, places, deadline) for number, places in groups.items())
        for places, parts in zip(groups.values(), await asyncio.gather(*asks)):
            for part in parts:
                answer = split.merge(answer, part, places)
        return answer

    async def _ask_issuer(self, split: Split[T], number: int, places: Sequence[int], deadline: float) -> list[T]:
        """What the service with a number says of some proofs; nothing when there is none, or when it gives no answer.

        The proofs are sent once: their fate is unknown then.
        """
        link = await self._gates.issuer(number, deadline)
        if link is None:
            return []
        request = split.part(places)
        try:
            return [request.read(await link.request(request, deadline))]
        except (OSError, RootgateError, ProtocolError):
            # What other proofs have got beside them still holds.
            return []


def _told(error: Exception, lost: ConnectionLost | None) -> Exception:
    """The error, or else that the connection was lost: if that may have carried out an earlier sending of the change,
    and the error says that the last one was not decided."""
    undecided = isinstance(error, RootgateError) and error.code in UNDECIDED
    return lost if lost is not None and undecided else error


def _is_refusal(error: Exception) -> bool:
    """Whether one side has refused the other's certificate, key or protocol."""
    return _refuses_key(error) or isinstance(error, ProtocolError) or refuses_certificate(error)


def _refuses_key(error: Exception) -> bool:
    """Whether the service has refused the key. Then it is refused at every address."""
    return isinstance(error, RootgateError) and error.code == ErrorCode.KEY_REFUSED
