# SPDX-License-Identifier: Apache-2.0
"""One connection to a service, which is never made again: for tests of the protocol, and for what needs its order.

Every operation of `Connection` sends its request at once and returns a `Pending`, whose `result()` waits for the
answer. Several requests may be sent before the first result is asked for, and results may be asked for in any order:

    with Connection("localhost") as connection:
        connection.create_collaboration("decks", Policy.CHALLENGE).result()
        connection.add_roots("decks", [person.root]).result()
        challenge = connection.issue_challenges(1).result().challenges[0]
        proof = person.proof(0, challenge)
        granted = connection.verify([("decks", proof)]).result().verdicts[0] == Verdict.GRANTED

A connection is not safe to share between threads. `Client` and `AsyncClient` are for everything else.
"""

from __future__ import annotations

import selectors
import socket
import ssl
from collections.abc import Callable
from typing import Generic, TypeVar

from .addresses import check_application_protocol, environment_key
from .frames import Reader
from .operations import Operations
from .protocol import DEFAULT_PORT, LOCAL_SCHEME, MAXIMUM_BODY, RootgateError
from .requests import Request
from .session import Outcome, Session

T = TypeVar("T")


class Pending(Generic[T]):
    """A request on its way."""

    def __init__(self, connection: Connection, request_id: int, read: Callable[[bytes], T]) -> None:
        self.request_id = request_id
        self._connection = connection
        self._read = read

    def has_answer(self) -> bool:
        """Whether the answer was read already, while something else was sent or waited for."""
        return self._connection.has_answer(self.request_id)

    def result(self) -> T:
        """Waits for the answer, which can be taken once; raises `RootgateError` if it is an error."""
        return self._read(self._connection.receive(self.request_id))


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """A connected socket: TCP, or a local one when the host is `unix:` and an absolute path."""
    if not host.startswith(LOCAL_SCHEME + "/"):
        connected = socket.create_connection((host, port), timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        local.settimeout(timeout)
        local.connect(host[len(LOCAL_SCHEME) :])
    except OSError:
        local.close()
        raise
    return local


class Connection(Operations):
    """A connection to a service."""

    def __init__(
        self,
        host: str,
        port: int = DEFAULT_PORT,
        timeout: float = 30.0,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        key: str | None = None,
    ) -> None:
        """Connects. The timeout, in seconds, is for every single wait for the service.

        A `host` of `unix:` and an absolute path is a local socket; it has no port and no TLS.
        With `tls` the connection is encrypted; `server_name` is the name in the service's certificate, if not the host.
        Without `key` the environment's ROOTGATE_KEY is presented, if there is one.
        """
        self._timeout = timeout
        self._socket = connect(host, port, timeout)
        if tls is not None:
            encrypted = tls.wrap_socket(self._socket, server_hostname=server_name or host)
            self._socket = encrypted
            try:
                check_application_protocol(encrypted.selected_alpn_protocol())
            except BaseException:
                self._socket.close()
                raise
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self._session = Session()
        self._answers: dict[int, Outcome] = {}
        key = environment_key(key)
        if key:
            self.hello(key=key).result()

    def close(self) -> None:
        """Closes the connection."""
        self._selector.close()
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: Request[T]) -> Pending[T]:
        """Sends a request. Its own timeout does not count here."""
        return Pending(self, self.send(request.operation, request.body), request.read)

    def request(self, operation: int, body: bytes, decode: Callable[[Reader], T]) -> Pending[T]:
        """Sends a request with any body, whose answer the function decodes."""
        return self.ask(Request(operation, body, decode))

    # Requests and answers as bytes.

    def send(self, operation: int, body: bytes = b"") -> int:
        """Sends a request and returns its id.

        Answers that arrive in the meantime are read: a service that can't get rid of them stops reading requests.
        """
        if len(body) > MAXIMUM_BODY:
            raise ValueError(f"a request's body has at most {MAXIMUM_BODY} bytes")
        request_id, frame = self._session.begin(operation, body)
        rest = memoryview(frame)
        while rest:
            events = self._wait(selectors.EVENT_READ | selectors.EVENT_WRITE)
            if events & selectors.EVENT_READ:
                self._read()
            if events & selectors.EVENT_WRITE:
                try:
                    rest = rest[self._socket.send(rest) :]
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    continue
        return request_id

    def receive(self, request_id: int) -> bytes:
        """Waits for the answer to a request and returns its body; raises `RootgateError` if it is an error."""
        while request_id not in self._answers:
            if not self._session.is_waiting(request_id):
                raise ValueError(f"no request {request_id} is waiting for an answer")
            if not self._read():
                self._wait(selectors.EVENT_READ)
        answer = self._answers.pop(request_id)
        if isinstance(answer, RootgateError):
            raise answer
        return answer

    def has_answer(self, request_id: int) -> bool:
        """Whether the answer to a request was read and not yet taken."""
        return request_id in self._answers

    def _wait(self, events: int) -> int:
        """Waits until the socket is ready for one of the events, and returns those for which it is."""
        self._selector.modify(self._socket, events)
        ready = self._selector.select(self._timeout)
        if not ready:
            raise socket.timeout("the service does not read or answer")
        [(_, found)] = ready
        return found

    def _read(self) -> bool:
        """Takes what has arrived; returns whether anything has. TLS keeps records of its own among the bytes."""
        try:
            data = self._socket.recv(1 << 18)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        if not data:
            raise ConnectionError("the service closed the connection")
        for request_id, outcome in self._session.receive(data):
            self._answers[request_id] = outcome
        return True
