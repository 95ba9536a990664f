# SPDX-License-Identifier: Apache-2.0
"""The requests in flight on one connection, without input and output."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Union

from .frames import FrameReader, decode_error, encode_frame
from .protocol import FIRST_REQUEST_ERROR, ErrorCode, Kind, ProtocolError, RootgateError

Outcome = Union[bytes, RootgateError]
"""The body of an answer, or an error."""


class Session:
    """Numbers the requests of a connection, and finds the request of each answer."""

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._ids = itertools.count(1)
        self._waiting: dict[int, int] = {}
        self._abandoned: dict[int, int] = {}
        self.is_open = True
        """Whether the service begins new requests: False from its first `shutting-down`."""

    def begin(self, operation: int, body: bytes) -> tuple[int, bytes]:
        """The id of a new request, and its frame, which is to be sent."""
        request_id = next(self._ids)
        self._waiting[request_id] = operation
        return request_id, encode_frame(operation, request_id, body)

    def is_waiting(self, request_id: int) -> bool:
        """Whether a request has no answer yet."""
        return request_id in self._waiting

    def abandon(self, request_id: int) -> None:
        """Lets nobody wait for an answer any longer. It is dropped when it comes."""
        operation = self._waiting.pop(request_id, None)
        if operation is not None:
            self._abandoned[request_id] = operation

    def withdraw(self, request_id: int) -> None:
        """Forgets a request whose frame was not sent. No answer to it can come."""
        self._waiting.pop(request_id, None)
        self._abandoned.pop(request_id, None)

    def receive(self, data: bytes) -> Iterator[tuple[int, Outcome]]:
        """The requests that the bytes answer, with their answers or errors.

        Raises `RootgateError` for an error about the connection, such as the `shutting-down` behind the last answer,
        and `ProtocolError` for what the protocol does not allow. The connection is to be closed then.
        """
        for frame in self._frames.read(data):
            outcome: Outcome = frame.body if frame.kind == Kind.ANSWER else decode_error(frame.body)
            if isinstance(outcome, RootgateError):
                self.is_open = self.is_open and outcome.code != ErrorCode.SHUTTING_DOWN
                if frame.operation == 0 and (
                    outcome.code < FIRST_REQUEST_ERROR or outcome.code == ErrorCode.SHUTTING_DOWN
                ):
                    raise outcome
            if self._abandoned.get(frame.request_id) == frame.operation:
                del self._abandoned[frame.request_id]
            elif self._waiting.pop(frame.request_id, None) == frame.operation:
                yield frame.request_id, outcome
            else:
                raise ProtocolError(
                    f"nobody waits for an answer to request {frame.request_id}, operation {frame.operation}"
                )
