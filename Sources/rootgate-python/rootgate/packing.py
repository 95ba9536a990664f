# SPDX-License-Identifier: Apache-2.0
"""The single proofs of a connection that wait to be sent, and those in flight. It does no input and output.

All proofs that wait leave when they are at least as many as those in flight, packed into as few requests as possible.
So a lone proof leaves at once, and so does the next one. Nobody waits for a timer, requests grow with the load, and the
service has work while the client packs.

A service that is busy may limit the requests in flight. Then fewer are in flight than it has refused, and one more
after so many answers again.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Any

MAXIMUM_PROOFS = 256
"""Proofs in a request, at most."""
MAXIMUM_BYTES = 256 << 10
"""Bytes of a request, at most, unless a proof alone has more."""
ABSENT_CALLS = 64
"""So many calls that nobody waits for any more are kept, or as many as others that wait."""
ANSWERS_PER_REQUEST = 64
"""So many answers for each request that may be in flight, and one more may."""

_HEAD = struct.Struct("<QBBHI")
"""How a request with proofs begins: at least, flags, zero, names, proofs."""
_ANSWER = struct.Struct("<II")
"""How its answer begins: verdicts; a flag and zero."""


@dataclass(eq=False)
class Call:
    """One caller's proof: the body of a request with this proof alone, for the operation."""

    operation: int
    body: bytes
    waiter: Any = None
    """For the caller's use."""
    is_awaited: bool = True
    request_id: int = 0
    """The request that it is in flight with; 0: none."""

    @property
    def kind(self) -> tuple[int, bytes]:
        """What proofs have in common that can be in one request."""
        return self.operation, self.body[:8]

    def part(self) -> tuple[bytes, bytes]:
        """The name of the collaboration behind its length, and the proof behind the name's position."""
        start = _HEAD.size + 1 + self.body[_HEAD.size]
        return self.body[_HEAD.size : start], self.body[start + 2 :]


@dataclass
class Pack:
    """Calls that leave as one request, and those that follow them, each when the request before is answered."""

    calls: list[Call]
    followers: list[list[Call]] = field(default_factory=list)
    left: int = 0
    """Callers who still wait."""

    @property
    def operation(self) -> int:
        """The request's operation."""
        return self.calls[0].operation

    def body(self) -> bytes:
        """The request's body."""
        if len(self.calls) == 1:
            return self.calls[0].body
        names: dict[bytes, int] = {}
        parts: list[bytes] = []
        for call in self.calls:
            name, proof = call.part()
            parts.append(struct.pack("<H", names.setdefault(name, len(names))))
            parts.append(proof)
        at_least = int.from_bytes(self.calls[0].body[:8], "little")
        return b"".join([_HEAD.pack(at_least, 0, 0, len(names), len(self.calls)), *names, *parts])


def answers(body: bytes, count: int) -> list[bytes] | None:
    """The answer that each of the calls would have had alone; None when it is no answer to so many proofs."""
    if len(body) != _ANSWER.size + count or _ANSWER.unpack_from(body) != (count, 0):
        return None
    head = _ANSWER.pack(1, 0)
    return [head + body[place : place + 1] for place in range(_ANSWER.size, len(body))]


class Line:
    """Decides which single proofs leave together."""

    def __init__(self) -> None:
        self._queued: deque[Call] = deque()
        self._due: deque[list[list[Call]]] = deque()
        """What leaves next, however many calls are in flight: the parts of each leave one after the other."""
        self._in_flight: dict[int, Pack] = {}
        self._in_flight_calls = 0
        self._leaving = 0
        """Calls among those queued that leave now."""
        self._absent = 0
        """Calls that nobody waits for any more, among those queued and due, as far as they were counted."""
        self._maximum = 1 << 62
        """Requests in flight, at most."""
        self._answers = 0
        """Answers since the maximum was changed."""

    def append(self, call: Call) -> None:
        """Adds a call. It leaves with `take`."""
        self._queued.append(call)

    def take(self) -> Pack | None:
        """What leaves next, if anything leaves now; `sent` follows."""
        if len(self._in_flight) >= self._maximum:
            return None
        while self._due:
            parts = [[call for call in part if call.is_awaited] for part in self._due.popleft()]
            parts = [part for part in parts if part]
            if parts:
                return Pack(parts[0], parts[1:])
        while self._queued:
            if self._leaving == 0 and len(self._queued) >= self._in_flight_calls:
                self._leaving = len(self._queued)
            if self._leaving == 0:
                return None
            if pack := self._packed():
                return pack
        return None

    def _packed(self) -> Pack | None:
        """The first of the calls that leave, and those behind it that can be in one request with it."""
        calls: list[Call] = []
        size = 0
        while self._leaving > 0 and len(calls) < MAXIMUM_PROOFS:
            call = self._queued[0]
            if not call.is_awaited:
                self._queued.popleft()
                self._leaving -= 1
                continue
            if calls and (call.kind != calls[0].kind or size + len(call.body) > MAXIMUM_BYTES):
                break
            calls.append(self._queued.popleft())
            size += len(call.body)
            self._leaving -= 1
        return Pack(calls) if calls else None

    def sent(self, request_id: int, pack: Pack) -> None:
        """The pack is in flight."""
        pack.left = len(pack.calls)
        for call in pack.calls:
            call.request_id = request_id
        self._in_flight[request_id] = pack
        self._in_flight_calls += pack.left

    def answered(self, request_id: int) -> list[Call] | None:
        """The calls of a request that was answered, which is not in flight any more; None when it is none of these."""
        pack = self._remove(request_id)
        if pack is None:
            return None
        if pack.followers:
            self._due.append(pack.followers)
        self._answers += 1
        if self._answers >= ANSWERS_PER_REQUEST * self._maximum:
            self._maximum, self._answers = self._maximum + 1, 0
        return pack.calls

    def again(self, request_id: int, is_busy: bool) -> bool:
        """Sends a request that was refused as a whole again: later, when the service is busy and others are in flight,
        and else as two halves. False when it is none of these, or has one call only."""
        pack = self._in_flight.get(request_id)
        if pack is None:
            return False
        if is_busy and len(self._in_flight) > 1:
            self._remove(request_id)
            self._maximum, self._answers = len(self._in_flight), 0
            self._due.append([pack.calls, *pack.followers])
            return True
        if len(pack.calls) == 1:
            return False
        self._remove(request_id)
        middle = len(pack.calls) // 2
        first, second = pack.calls[:middle], pack.calls[middle:]
        if is_busy:
            self._due.append([first, second, *pack.followers])
        else:
            self._due.extend(([first, *pack.followers], [second]))
        return True

    def leave(self, call: Call) -> int | None:
        """Nobody waits for a call any more, which has no answer yet. Returns the request that has no other caller and
        is not in flight any more."""
        call.is_awaited = False
        request_id = call.request_id
        pack = self._in_flight.get(request_id)
        if pack is None:
            # It stays in its place, and is left out when its turn comes, unless there are too many.
            self._absent += 1
            if self._absent > ABSENT_CALLS and 2 * self._absent > len(self._queued):
                self._drop_absent()
            return None
        pack.left -= 1
        self._in_flight_calls -= 1
        if pack.left > 0:
            return None
        self.answered(request_id)
        return request_id

    def _drop_absent(self) -> None:
        """Forgets the calls that nobody waits for, of those queued and due."""
        queued = list(self._queued)
        self._leaving = sum(call.is_awaited for call in queued[: self._leaving])
        self._queued = deque(call for call in queued if call.is_awaited)
        due = ([[call for call in part if call.is_awaited] for part in parts] for parts in self._due)
        kept = ([part for part in parts if part] for parts in due)
        self._due = deque(parts for parts in kept if parts)
        self._absent = 0

    def _remove(self, request_id: int) -> Pack | None:
        pack = self._in_flight.pop(request_id, None)
        if pack is not None:
            self._in_flight_calls -= pack.left
            for call in pack.calls:
                call.request_id = 0
        return pack

    def clear(self) -> tuple[list[Call], list[Call]]:
        """Ends everything. Returns the calls that were not sent, and those in flight; some may not be awaited."""
        unsent = [*self._queued, *(call for parts in self._due for part in parts for call in part)]
        sent: list[Call] = []
        for pack in self._in_flight.values():
            sent += pack.calls
            unsent += (call for part in pack.followers for call in part)
        self._queued.clear()
        self._due.clear()
        self._in_flight.clear()
        self._in_flight_calls = self._leaving = 0
        return unsent, sent
