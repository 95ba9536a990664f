# SPDX-License-Identifier: Apache-2.0
"""A service that does what a test says, connection by connection, and the two clients behind one face."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

from rootgate import AsyncClient, Client
from rootgate.frames import encode_frame
from rootgate.protocol import HEADER, ISSUER_LIMIT, ErrorCode, Kind, Operation
from rootgate.requests import Request

PATIENCE = 10.0
"""Seconds for whatever ought to happen at once."""


class Served:
    """The service's side of one connection."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        stream.settimeout(PATIENCE)

    def _take(self, count: int) -> bytes:
        taken = b""
        while len(taken) < count:
            more = self._stream.recv(count - len(taken))
            if not more:
                raise EOFError
            taken += more
        return taken

    def request(self) -> tuple[int, int, bytes]:
        """The next request's operation, id and body."""
        length, _, _, operation, request_id = HEADER.unpack(self._take(HEADER.size))
        return operation, request_id, self._take(length)

    def answer(self, operation: int, request_id: int, body: bytes) -> None:
        """Sends an answer."""
        self.send(encode_frame(operation, request_id, body, kind=Kind.ANSWER))

    def error(self, operation: int, request_id: int, code: int, detail: int = 0, text: str = "no") -> None:
        """Sends an error."""
        body = struct.pack("<HHI", code, len(text), detail) + text.encode()
        self.send(encode_frame(operation, request_id, body, kind=Kind.ERROR))

    def greet(self, issuer: int) -> None:
        """Answers the hello that comes first. `issuer`: the number of the service's challenges."""
        operation, request_id, _ = self.request()
        assert operation == Operation.HELLO, operation
        self.answer(operation, request_id, hello(issuer))

    def farewell(self) -> None:
        """Says that everything that was begun has its answer."""
        self.error(0, 0, ErrorCode.SHUTTING_DOWN)

    def echo(self) -> None:
        """Answers pings until the client is gone."""
        while True:
            self.answer(*self.request())

    def send(self, data: bytes) -> None:
        """Sends any bytes."""
        self._stream.sendall(data)

    def reset(self) -> None:
        """Ends the connection without an answer."""
        self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._stream.close()


Script = Callable[[Served], None]
"""What the service does on a connection, which ends with it."""


class FakeService:
    """Listens, and plays one script for each connection; the last one for all that follow.

    With the number of its challenges it is one of several services: each connection begins with a hello.
    """

    def __init__(self, *scripts: Script, local: bool = False, issuer: int | None = None) -> None:
        self._scripts = scripts
        self._issuer = issuer
        self.connections = 0
        self.failures: queue.Queue[BaseException] = queue.Queue()
        self._directory = tempfile.TemporaryDirectory() if local else None
        if self._directory:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            path = os.path.join(self._directory.name, "socket")
            self._listener.bind(path)
            self._listener.listen()
            self.address = f"unix:{path}"
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._streams: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            self._streams.append(stream)
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            threading.Thread(target=self._play, args=(script, stream), daemon=True).start()

    def _play(self, script: Script, stream: socket.socket) -> None:
        try:
            served = Served(stream)
            if self._issuer is not None:
                served.greet(self._issuer)
            script(served)
        except (EOFError, OSError):
            pass
        except BaseException as failure:
            self.failures.put(failure)
        finally:
            stream.close()

    def close(self) -> None:
        """Ends everything, and raises what a script has raised."""
        # Closing alone would not end a thread that waits in accept.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        for stream in self._streams:
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if self._directory:
            self._directory.cleanup()
        if not self.failures.empty():
            raise self.failures.get()


def closed_address() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


class Caller:
    """One of the clients, whose calls can be started, waited for and cancelled."""

    def start(self, request: Request[Any]) -> concurrent.futures.Future[Any]:
        """Sends a request, and does not wait."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the client."""
        raise NotImplementedError

    def ask(self, request: Request[Any]) -> Any:
        """Sends a request and waits for its answer."""
        return self.start(request).result(PATIENCE)


class BlockingCaller(Caller):
    """The blocking client, in which every call has a thread."""

    def __init__(self, addresses: str | Sequence[str], **options: Any) -> None:
        self._client = Client(addresses, **options)

    def start(self, request: Request[Any]) -> concurrent.futures.Future[Any]:
        return self._client.submit(request)

    def ask(self, request: Request[Any]) -> Any:
        return self._client.ask(request)

    def close(self) -> None:
        self._client.close()


class AsyncioCaller(Caller):
    """The client for asyncio, in a loop of its own."""

    def __init__(self, addresses: str | Sequence[str], **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = AsyncClient(addresses, **options)

    def start(self, request: Request[Any]) -> concurrent.futures.Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._client.ask(request), self._loop)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


def hello(issuer: int) -> bytes:
    """The body of an answer to a hello that tells the number of the service's challenges."""
    return struct.pack("<B3xIHHQ", 1, 31, 1, ISSUER_LIMIT, issuer) + b"\4fake"


def verdicts(count: int) -> bytes:
    """The body of an answer to a verify that grants everything."""
    return struct.pack("<II", count, 0) + b"\1" * count


RECEIPT = struct.pack("<QQB", 7, 1, 0)
"""The body of a receipt."""

__all__ = [
    "RECEIPT",
    "AsyncioCaller",
    "BlockingCaller",
    "Caller",
    "FakeService",
    "Operation",
    "Served",
    "closed_address",
    "hello",
    "verdicts",
]
