# SPDX-License-Identifier: Apache-2.0
"""A blocking client for the Rootgate protocol, version 1, and a small model of the devices that make proofs.

Every operation of `Client` sends its request at once and returns a `Pending`, whose `result()` waits for the answer.
Several requests may be sent before the first result is asked for, and results may be asked for in any order:

    with Client("localhost") as client:
        client.create_collaboration("decks", Policy.CHALLENGE).result()
        client.add_roots("decks", [person.root]).result()
        challenge = client.issue_challenges(1).result().challenges[0]
        proof = person.proof(0, challenge)
        granted = client.verify([("decks", proof)]).result().verdicts[0] == Verdict.GRANTED

The requests of the collaboration layer are dictionaries, as the specification has them:

        sharing = {"collaboration": "decks", "includesRemoved": False, "limit": 100}
        people = client.collaborate("listParticipants", sharing).result()["participants"]

With `tls=tls_context(ca="authority.pem")` the connection is encrypted. `Client("unix:/run/rootgate.sock")` connects to
a local socket. With `key="rgk_..."`, or with `ROOTGATE_KEY` in the environment, it is the connection of that key's
principal.

A client is not safe to share between threads. Needs Python 3.9 and the package `cryptography`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import selectors
import socket
import ssl
import struct
from collections.abc import Collection, Iterable, Sequence
from enum import Enum, IntEnum
from typing import Any, Callable, Generic, NamedTuple, TypeVar, Union

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

T = TypeVar("T")

Name = Union[str, bytes]
"""A collaboration identifier; bytes are sent as they are, whether they follow the rules or not."""

VERSION = 1
DEFAULT_PORT = 7570
APPLICATION_PROTOCOL = "rootgate/1"
LOCAL_SCHEME = "unix:"
MAXIMUM_BODY = 2_097_152
MAXIMUM_INCLUSION_HASHES = 32
DIGEST_SIZE = 32
GRANT_SIZE = 112
DEVICE_KEY_SIZE = 16
HEADER = struct.Struct("<IBBHQ")
"""Length of the body, version, kind, operation, request id."""


class Kind(IntEnum):
    """What a frame is."""

    REQUEST = 1
    ANSWER = 2
    ERROR = 3


class Operation(IntEnum):
    """What a request asks for."""

    HELLO = 0x01
    PING = 0x02
    ISSUE_CHALLENGES = 0x03
    VERIFY = 0x10
    VERIFY_INCLUSION = 0x11
    ADD_ROOTS = 0x20
    REMOVE_ROOTS = 0x21
    TEST_ROOTS = 0x22
    LIST_ROOTS = 0x23
    COUNT_ROOTS = 0x24
    CREATE_COLLABORATION = 0x30
    DROP_COLLABORATION = 0x31
    LIST_COLLABORATIONS = 0x32
    EDIT = 0x33
    STATISTICS = 0x40
    READ_CHANGES = 0x41
    COLLABORATE = 0x80
    OPEN = 0x81
    CHECK_GRANTS = 0x82


class Policy(IntEnum):
    """What the devices of a collaboration sign."""

    CHALLENGE = 1
    DEVICE_NONCE = 2


class SignatureFormat(IntEnum):
    """How a signature is encoded."""

    DER = 1
    RAW = 2


class Verdict(IntEnum):
    """What a service says of a proof. Bytes that are not listed here are refusals."""

    GRANTED = 1
    INCLUDED = 2
    UNLISTED = 3
    MALFORMED = 16
    BAD_KEY = 17
    BAD_INDEX = 18
    BAD_SIGNATURE_ENCODING = 19
    CHALLENGE_FORGED = 20
    CHALLENGE_EXPIRED = 21
    CHALLENGE_REPLAYED = 22
    BAD_NONCE = 23
    NONCE_REPLAYED = 24
    REPLAY_MEMORY_FULL = 25
    UNKNOWN_COLLABORATION = 26
    NOT_PARTICIPANT = 27
    BAD_SIGNATURE = 28


class GrantStatus(IntEnum):
    """What a service says of a grant. Bytes that are not listed here are refusals."""

    VALID = 1
    FORGED = 16
    EXPIRED = 17
    OTHER_COLLABORATION = 18
    OTHER_DEVICE = 19
    REVOKED = 20


class Permission(IntEnum):
    """What a participant may do."""

    READ_ONLY = 1
    READ_WRITE = 2


class Role(IntEnum):
    """What a participant is."""

    OWNER = 1
    ADMINISTRATOR = 2
    MEMBER = 3


class ErrorCode(IntEnum):
    """Why a request was not carried out. Codes below 16 end the connection."""

    UNSUPPORTED_VERSION = 1
    FRAME_TOO_LARGE = 2
    MALFORMED_FRAME = 3
    TOO_MANY_CONNECTIONS = 4
    KEY_REFUSED = 8
    UNKNOWN_OPERATION = 16
    MALFORMED_REQUEST = 17
    LIMIT_EXCEEDED = 18
    UNKNOWN_COLLABORATION = 19
    COLLABORATION_EXISTS = 20
    MUTATION_CONFLICT = 21
    CHANGES_TRIMMED = 22
    STALE_EDIT = 23
    ROLE_MISSING = 28
    BUSY = 32
    SHUTTING_DOWN = 33
    STORAGE_FULL = 48
    STORAGE_FAILED = 49
    STORAGE_DAMAGED = 50
    STORAGE_IN_USE = 51
    INTERNAL_FAULT = 64
    NOT_PERMITTED = 80
    UNKNOWN_OPTION = 81
    OPTION_CONFLICT = 82
    OPTION_REQUIRED = 83
    NO_LINK_BASE = 84
    UNKNOWN_PARTICIPANT = 85
    GRANT_REFUSED = 86
    UNKNOWN_INVITATION = 87
    UNKNOWN_HIGHLIGHT = 88
    BEHIND_SEQUENCE = 89
    UNKNOWN_PRINCIPAL = 96
    PRINCIPAL_EXISTS = 97


FIRST_REQUEST_ERROR = ErrorCode.UNKNOWN_OPERATION
"""Errors with lower codes are about the connection."""


def verdict_name(verdict: int) -> str:
    """The verdict's name as the specification spells it."""
    return _spelled(Verdict(verdict)) if verdict in Verdict.__members__.values() else f"unknown-{verdict}"


def grant_status_name(status: int) -> str:
    """The status's name as the specification spells it."""
    return _spelled(GrantStatus(status)) if status in GrantStatus.__members__.values() else f"unknown-{status}"


def error_name(code: int) -> str:
    """The error's name as the specification spells it; an unknown code is an internal fault."""
    known = code in ErrorCode.__members__.values()
    return _spelled(ErrorCode(code) if known else ErrorCode.INTERNAL_FAULT)


def _spelled(member: Verdict | GrantStatus | ErrorCode) -> str:
    return member.name.lower().replace("_", "-")


class RootgateError(Exception):
    """An error that the service sent."""

    def __init__(self, code: int, detail: int, text: str) -> None:
        super().__init__(f"{error_name(code)} ({code}, detail {detail}): {text}")
        self.code = code
        self.detail = detail
        self.text = text

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before the request is sent again, as busy says; None when the error does not say."""
        return self.detail / 1000 if self.code == ErrorCode.BUSY and self.detail > 0 else None


class ProtocolError(Exception):
    """The service sent something that the protocol does not allow."""


# What requests and answers are made of.


class Proof(NamedTuple):
    """A device's claim to belong to a person. An inclusion-only verify ignores the last three fields."""

    public_key: bytes
    key_index: int
    inclusion_hashes: Sequence[bytes]
    signature: bytes = b""
    data: bytes = b""
    signature_format: int = SignatureFormat.DER


class Hello(NamedTuple):
    """What a service says of itself."""

    version: int
    features: int
    limits: dict[int, int]
    software: str


class Challenges(NamedTuple):
    """Fresh challenges."""

    challenges: list[bytes]
    valid_milliseconds: int


class Verification(NamedTuple):
    """A verdict byte for each proof and, where asked for, a root hash for each."""

    verdicts: list[int]
    roots: list[bytes]


class Opening(NamedTuple):
    """A verdict byte for each proof, a grant for each that has one and, where asked for, a root hash for each."""

    verdicts: list[int]
    roots: list[bytes]
    grants: list[bytes | None]


class GrantCheck(NamedTuple):
    """What a service says of a grant; all but the status are 0 when it is refused."""

    status: int
    permission: int
    role: int
    milliseconds_left: int


class Receipt(NamedTuple):
    """A durable change."""

    sequence: int
    changed: int
    repeat: bool


class CollaborationState(NamedTuple):
    """A collaboration's policy, its window in seconds and the number of its root hashes."""

    policy: int
    window: int
    roots: int


class Change(NamedTuple):
    """An entry of the change log."""

    sequence: int
    changed: int
    mutation: bytes
    operation: int
    policy: int
    number: int
    collaboration: str
    digests: list[bytes]
    edit: bytes = b""


class Edit(NamedTuple):
    """Several changes that happened whole: to one collaboration, and to records, of which the keys stand here."""

    creates: bool
    drops: bool
    policy: int
    window: int
    request: bytes
    added: list[bytes]
    removed: list[bytes]
    removed_ranges: list[tuple[bytes, bytes]]
    written: list[bytes]
    unwritten: list[bytes]


# Frames.


def encode_frame(
    operation: int, request_id: int, body: bytes = b"", *, version: int = VERSION, kind: int = Kind.REQUEST
) -> bytes:
    """A frame with its header."""
    return HEADER.pack(len(body), version, kind, operation, request_id) + body


class Reader:
    """Takes a body apart from its beginning; a body that does not have what is asked for is a `ProtocolError`."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._offset = 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        taken = self._body[self._offset : self._offset + count]
        if len(taken) != count:
            raise ProtocolError("an answer ends too early")
        self._offset += count
        return taken

    def number(self, size: int) -> int:
        """The next integer, of that many bytes."""
        return int.from_bytes(self.take(size), "little")

    def name(self) -> str:
        """The next text with a length byte before it."""
        return self._text(self.take(self.number(1)))

    def digests(self, count: int) -> list[bytes]:
        """The next digests."""
        return [self.take(DIGEST_SIZE) for _ in range(count)]

    def flag(self) -> bool:
        """The next byte, which is 0 or 1."""
        value = self.number(1)
        if value > 1:
            raise ProtocolError(f"an answer has {value} where 0 or 1 belongs")
        return value == 1

    def zero(self, count: int) -> None:
        """Passes over reserved bytes."""
        if any(self.take(count)):
            raise ProtocolError("an answer has reserved bytes that are not zero")

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(len(self._body) - self._offset)

    def end(self) -> None:
        """Makes sure that nothing is left."""
        if self._offset != len(self._body):
            raise ProtocolError("an answer has bytes behind its end")

    @staticmethod
    def _text(data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("an answer has text that is not UTF-8") from error


def decode_error(body: bytes) -> RootgateError:
    """The error in the body of an error frame."""
    reader = Reader(body)
    code, length, detail = reader.number(2), reader.number(2), reader.number(4)
    text = reader.take(length)
    reader.end()
    return RootgateError(code, detail, text.decode(errors="replace"))


def _number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little")


def _name(name: Name) -> bytes:
    data = name.encode() if isinstance(name, str) else name
    return _number(len(data), 1) + data


def _digests(digests: Sequence[bytes]) -> bytes:
    return _number(len(digests), 4) + b"".join(digests)


def _mutation(mutation: bytes | None) -> bytes:
    return os.urandom(16) if mutation is None else mutation


# Requests.


def encode_verification(
    proofs: Sequence[tuple[Name, Proof]],
    want_roots: bool = False,
    inclusion_only: bool = False,
    at_least: int = 0,
    want_options: bool = False,
) -> bytes:
    """The body of a verify, of an open, or of an inclusion-only verify."""
    positions = _positions(name for name, _ in proofs)
    encode = _encode_inclusion if inclusion_only else _encode_proof
    head = _batch_head(at_least, want_roots + 2 * want_options, positions, len(proofs))
    return b"".join([head, *(encode(positions[name], proof) for name, proof in proofs)])


def _positions(names: Iterable[Name]) -> dict[Name, int]:
    """The position of each name among the different ones."""
    return {name: position for position, name in enumerate(dict.fromkeys(names))}


def _batch_head(at_least: int, flags: int, positions: dict[Name, int], count: int) -> bytes:
    """How a request with proofs or grants begins."""
    return b"".join([struct.pack("<QBBHI", at_least, flags, 0, len(positions), count), *map(_name, positions)])


def _encode_proof(position: int, proof: Proof) -> bytes:
    head = struct.pack(
        "<HBBQBBH",
        position,
        len(proof.inclusion_hashes),
        proof.signature_format,
        proof.key_index,
        len(proof.public_key),
        len(proof.signature),
        len(proof.data),
    )
    return b"".join([head, proof.public_key, *proof.inclusion_hashes, proof.signature, proof.data])


def _encode_inclusion(position: int, proof: Proof) -> bytes:
    head = struct.pack("<HBBQ", position, len(proof.inclusion_hashes), len(proof.public_key), proof.key_index)
    return b"".join([head, proof.public_key, *proof.inclusion_hashes])


def encode_grant_checks(
    grants: Sequence[tuple[Name, bytes, bytes | None]], at_least: int, want_options: bool = False
) -> bytes:
    """The body of a check of grants."""
    positions = _positions(name for name, _, _ in grants)
    checks = (
        struct.pack("<HBB", positions[name], key is not None, 0) + (key or bytes(DEVICE_KEY_SIZE)) + grant
        for name, grant, key in grants
    )
    return b"".join([_batch_head(at_least, 2 * want_options, positions, len(grants)), *checks])


# Answers.


def decode_hello(reader: Reader) -> Hello:
    """The body of the answer to a hello."""
    version = reader.number(1)
    reader.zero(3)
    features = reader.number(4)
    limits = {reader.number(2): reader.number(8) for _ in range(reader.number(2))}
    return Hello(version, features, limits, reader.name())


def decode_challenges(reader: Reader) -> Challenges:
    """The body of an answer with challenges."""
    count, size = reader.number(4), reader.number(2)
    reader.zero(2)
    valid_milliseconds = reader.number(8)
    return Challenges([reader.take(size) for _ in range(count)], valid_milliseconds)


def decode_verification(reader: Reader) -> Verification:
    """The body of the answer to either verify."""
    count, with_roots = reader.number(4), reader.flag()
    reader.zero(3)
    verdicts = list(reader.take(count))
    return Verification(verdicts, reader.digests(count if with_roots else 0))


def decode_opening(reader: Reader) -> Opening:
    """The body of the answer to an open."""
    verdicts, roots = decode_verification(reader)
    grants = [reader.take(GRANT_SIZE) for _ in verdicts]
    return Opening(verdicts, roots, [grant if any(grant) else None for grant in grants])


def decode_grant_checks(reader: Reader) -> list[GrantCheck]:
    """The body of the answer to a check of grants."""
    count = reader.number(4)
    reader.zero(4)
    return [_decode_grant_check(reader) for _ in range(count)]


def _decode_grant_check(reader: Reader) -> GrantCheck:
    status, permission, role = reader.number(1), reader.number(1), reader.number(1)
    reader.zero(1)
    return GrantCheck(status, permission, role, reader.number(4))


def decode_options(reader: Reader, collaborations: int) -> list[list[str]]:
    """The selected share options of collaborations, at the end of an answer."""
    return [
        [reader.take(reader.number(2)).decode() for _ in range(reader.number(2))] for _ in range(collaborations)
    ]


def decode_json(reader: Reader) -> dict[str, Any]:
    """The body of the answer to a request of the collaboration layer."""
    try:
        value = json.loads(reader.rest())
    except ValueError as error:
        raise ProtocolError("an answer is not JSON") from error
    if not isinstance(value, dict):
        raise ProtocolError("an answer is not a JSON object")
    return value


def decode_receipt(reader: Reader) -> Receipt:
    """The body of the answer to a mutation."""
    return Receipt(reader.number(8), reader.number(8), reader.flag())


def decode_tests(reader: Reader) -> list[bool]:
    """The body of the answer to a test of roots."""
    return [reader.flag() for _ in range(reader.number(4))]


def decode_state(reader: Reader) -> CollaborationState:
    """A collaboration's state, the body of the answer to a count and a part of listings."""
    return CollaborationState(reader.number(1), reader.number(4), reader.number(8))


def decode_statistics(reader: Reader) -> dict[str, int]:
    """The body of the answer with statistics."""
    return {reader.name(): reader.number(8) for _ in range(reader.number(2))}


def decode_change(reader: Reader) -> Change:
    """An entry of the change log."""
    sequence, changed, mutation = reader.number(8), reader.number(8), reader.take(16)
    operation, policy = reader.number(2), reader.number(1)
    reader.zero(1)
    number, collaboration = reader.number(4), reader.name()
    has_digests = operation in (Operation.ADD_ROOTS, Operation.REMOVE_ROOTS)
    digests = reader.digests(number if has_digests else 0)
    edit = reader.take(number if operation == Operation.EDIT else 0)
    return Change(sequence, changed, mutation, operation, policy, number, collaboration, digests, edit)


def encode_call(name: str, fields: dict[str, Any]) -> bytes:
    """The body of a collaborate behind its mutation identifier."""
    return _name(name) + json.dumps(fields).encode()


def request_digest(name: str, fields: dict[str, Any]) -> bytes:
    """What the change log keeps of a request of the layer with its edit."""
    return hashlib.sha256(encode_call(name, fields)).digest()[:16]


def logged_identifier(mutation: bytes, principal: bytes = bytes(16)) -> bytes:
    """The mutation identifier in the change log of a mutation from outside of the layer."""
    return hashlib.sha256(principal + mutation + b"\x00").digest()[:16]


def logged_mutation(mutation: bytes, fields: dict[str, Any], principal: bytes = bytes(16)) -> bytes:
    """The mutation identifier in the change log of a request of the layer."""
    if "collaboration" in fields:
        subject = b"\x01" + fields["collaboration"].encode()
    elif "conversation" in fields and "recipients" in fields:
        subject = b"\x03" + fields["conversation"]["identifier"].encode()
    else:
        subject = b"\x02" + fields["owner" if "owner" in fields else "account"].encode()
    return hashlib.sha256(principal + mutation + subject).digest()[:16]


def decode_edit(body: bytes) -> Edit:
    """The body of an edit in the change log."""
    reader = Reader(body)
    flags, policy = reader.number(1), reader.number(1)
    reader.zero(2)
    window, added, removed, ranges, records = (reader.number(4) for _ in range(5))
    request = reader.take(16)
    digests = reader.digests(added), reader.digests(removed)
    keys = [(reader.take(reader.number(2)), reader.take(reader.number(2))) for _ in range(ranges)]
    written: list[bytes] = []
    unwritten: list[bytes] = []
    for _ in range(records):
        expectation, record_flags = reader.number(1), reader.number(1)
        key_size, value_size, version = reader.number(2), reader.number(4), reader.number(8)
        if expectation > 3 or record_flags > 4 or (expectation != 3 and version):
            raise ProtocolError(f"a record has expectation {expectation}, version {version} and flags {record_flags}")
        (written if record_flags & 2 else unwritten).append(reader.take(key_size))
        reader.take(value_size)
    reader.end()
    return Edit(flags & 1 == 1, flags & 2 == 2, policy, window, request, *digests, keys, written, unwritten)


def _page(decode_item: Callable[[Reader], T]) -> Callable[[Reader], tuple[list[T], bool]]:
    def decode(reader: Reader) -> tuple[list[T], bool]:
        count, more = reader.number(4), reader.flag()
        reader.zero(3)
        return [decode_item(reader) for _ in range(count)], more

    return decode


def _decode_listed(reader: Reader) -> tuple[str, CollaborationState]:
    state = decode_state(reader)
    return reader.name(), state


# The client.


class Pending(Generic[T]):
    """A request on its way."""

    def __init__(self, client: Client, request_id: int, decode: Callable[[Reader], T]) -> None:
        self.request_id = request_id
        self._client = client
        self._decode = decode

    def has_answer(self) -> bool:
        """Whether the answer was read already, while something else was sent or waited for."""
        return self._client.has_answer(self.request_id)

    def result(self) -> T:
        """Waits for the answer, which can be taken once; raises `RootgateError` if it is an error."""
        reader = Reader(self._client.receive(self.request_id))
        value = self._decode(reader)
        reader.end()
        return value


def tls_context(ca: str | None = None, certificate: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """What TLS needs: a file of authorities (the system's without it), and the client's certificate with its key."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([APPLICATION_PROTOCOL])
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


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


class Client:
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
            self._socket = tls.wrap_socket(self._socket, server_hostname=server_name or host)
            if self._socket.selected_alpn_protocol() != APPLICATION_PROTOCOL:
                self._socket.close()
                raise ProtocolError(f"the service does not speak {APPLICATION_PROTOCOL}")
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self._received = bytearray()
        self._ids = itertools.count(1)
        self._in_flight: dict[int, int] = {}
        self._answers: dict[int, bytes | RootgateError] = {}
        key = key or os.environ.get("ROOTGATE_KEY")
        if key:
            self.hello(key=key).result()

    def close(self) -> None:
        """Closes the connection."""
        self._selector.close()
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Requests and answers as bytes.

    def send(self, operation: int, body: bytes = b"") -> int:
        """Sends a request and returns its id.

        Answers that arrive in the meantime are read: a service that can't get rid of them stops reading requests.
        """
        if len(body) > MAXIMUM_BODY:
            raise ValueError(f"a request's body has at most {MAXIMUM_BODY} bytes")
        request_id = next(self._ids)
        self._in_flight[request_id] = operation
        rest = memoryview(encode_frame(operation, request_id, body))
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
            if request_id not in self._in_flight:
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
        self._received += data
        while len(self._received) >= HEADER.size:
            length, version, kind, operation, request_id = HEADER.unpack_from(self._received)
            if version != VERSION or kind not in (Kind.ANSWER, Kind.ERROR) or length > MAXIMUM_BODY:
                raise ProtocolError(f"a frame has version {version}, kind {kind} and {length} bytes")
            end = HEADER.size + length
            if len(self._received) < end:
                break
            body = bytes(self._received[HEADER.size : end])
            del self._received[:end]
            self._accept(kind, operation, request_id, body)
        return True

    def _accept(self, kind: int, operation: int, request_id: int, body: bytes) -> None:
        answer = body if kind == Kind.ANSWER else decode_error(body)
        if isinstance(answer, RootgateError) and operation == 0 and (
            answer.code < FIRST_REQUEST_ERROR or answer.code == ErrorCode.SHUTTING_DOWN
        ):
            raise answer
        if self._in_flight.pop(request_id, None) != operation:
            raise ProtocolError(f"nobody waits for an answer to request {request_id}, operation {operation}")
        self._answers[request_id] = answer

    # Operations.

    def request(self, operation: int, body: bytes, decode: Callable[[Reader], T]) -> Pending[T]:
        """Sends a request whose answer the function decodes."""
        return Pending(self, self.send(operation, body), decode)

    def hello(self, lowest: int = VERSION, highest: int = VERSION, key: str | None = None) -> Pending[Hello]:
        """Agrees on a version, presents a key and asks for the service's limits."""
        body = bytes([lowest, highest, 0, 0])
        return self.request(Operation.HELLO, body if key is None else body + _name(key), decode_hello)

    def ping(self, data: bytes = b"") -> Pending[bytes]:
        """Asks for the same bytes, at most 64."""
        return self.request(Operation.PING, data, Reader.rest)

    def issue_challenges(self, count: int) -> Pending[Challenges]:
        """Asks for challenges."""
        return self.request(Operation.ISSUE_CHALLENGES, _number(count, 4), decode_challenges)

    # `at_least` is the sequence of a change that the service must have applied, or 0 for none.

    def verify(
        self, proofs: Sequence[tuple[Name, Proof]], want_roots: bool = False, at_least: int = 0
    ) -> Pending[Verification]:
        """Asks for verdicts on proofs, each for the collaboration beside it."""
        body = encode_verification(proofs, want_roots, at_least=at_least)
        return self.request(Operation.VERIFY, body, decode_verification)

    def verify_inclusion(
        self, proofs: Sequence[tuple[Name, Proof]], want_roots: bool = False, at_least: int = 0
    ) -> Pending[Verification]:
        """Asks for verdicts on proofs without a look at their signatures."""
        body = encode_verification(proofs, want_roots, inclusion_only=True, at_least=at_least)
        return self.request(Operation.VERIFY_INCLUSION, body, decode_verification)

    # A mutation that is to be sent again, when no receipt arrived, needs an identifier of the caller's choice.

    def create_collaboration(
        self, collaboration: Name, policy: int = Policy.CHALLENGE, window: int = 0, mutation: bytes | None = None
    ) -> Pending[Receipt]:
        """Creates a collaboration; the window is for device nonces, in seconds."""
        body = _mutation(mutation) + _name(collaboration) + _number(policy, 1) + _number(window, 4)
        return self.request(Operation.CREATE_COLLABORATION, body, decode_receipt)

    def drop_collaboration(self, collaboration: Name, mutation: bytes | None = None) -> Pending[Receipt]:
        """Removes a collaboration and its root hashes."""
        body = _mutation(mutation) + _name(collaboration)
        return self.request(Operation.DROP_COLLABORATION, body, decode_receipt)

    def add_roots(self, collaboration: Name, roots: Sequence[bytes], mutation: bytes | None = None) -> Pending[Receipt]:
        """Adds root hashes."""
        body = _mutation(mutation) + _name(collaboration) + _digests(roots)
        return self.request(Operation.ADD_ROOTS, body, decode_receipt)

    def remove_roots(
        self, collaboration: Name, roots: Sequence[bytes], mutation: bytes | None = None
    ) -> Pending[Receipt]:
        """Removes root hashes."""
        body = _mutation(mutation) + _name(collaboration) + _digests(roots)
        return self.request(Operation.REMOVE_ROOTS, body, decode_receipt)

    def test_roots(self, collaboration: Name, roots: Sequence[bytes]) -> Pending[list[bool]]:
        """Asks for each root hash whether it is in the set."""
        return self.request(Operation.TEST_ROOTS, _name(collaboration) + _digests(roots), decode_tests)

    def list_roots(
        self, collaboration: Name, limit: int, behind: bytes | None = None
    ) -> Pending[tuple[list[bytes], bool]]:
        """Asks for a page of root hashes, and whether there are more."""
        start = _number(0, 1) if behind is None else _number(1, 1) + behind
        body = _name(collaboration) + _number(limit, 4) + start
        return self.request(Operation.LIST_ROOTS, body, _page(lambda reader: reader.take(DIGEST_SIZE)))

    def count_roots(self, collaboration: Name) -> Pending[CollaborationState]:
        """Asks for a collaboration's policy, window and number of root hashes."""
        return self.request(Operation.COUNT_ROOTS, _name(collaboration), decode_state)

    def list_collaborations(
        self, limit: int, behind: Name = ""
    ) -> Pending[tuple[list[tuple[str, CollaborationState]], bool]]:
        """Asks for a page of collaborations, and whether there are more."""
        return self.request(Operation.LIST_COLLABORATIONS, _number(limit, 4) + _name(behind), _page(_decode_listed))

    def statistics(self) -> Pending[dict[str, int]]:
        """Asks for the service's statistics."""
        return self.request(Operation.STATISTICS, b"", decode_statistics)

    def read_changes(self, sequence: int, limit: int) -> Pending[tuple[list[Change], bool]]:
        """Asks for a page of the changes behind a sequence, and whether there are more."""
        return self.request(Operation.READ_CHANGES, _number(sequence, 8) + _number(limit, 4), _page(decode_change))

    # The collaboration layer.

    def collaborate(
        self, name: str, fields: dict[str, Any], mutation: bytes | None = None
    ) -> Pending[dict[str, Any]]:
        """Sends a request of the layer: its name and its fields."""
        body = _mutation(mutation) + encode_call(name, fields)
        return self.request(Operation.COLLABORATE, body, decode_json)

    def open(
        self, proofs: Sequence[tuple[Name, Proof]], at_least: int = 0, want_roots: bool = False
    ) -> Pending[Opening]:
        """Asks for verdicts on proofs, and for grants."""
        body = encode_verification(proofs, want_roots, at_least=at_least)
        return self.request(Operation.OPEN, body, decode_opening)

    def open_with_options(
        self, proofs: Sequence[tuple[Name, Proof]]
    ) -> Pending[tuple[Opening, list[list[str]]]]:
        """As `open`, and for the selected options of each collaboration, in the order in which they are first named."""
        body = encode_verification(proofs, want_options=True)
        count = len({name for name, _ in proofs})
        return self.request(
            Operation.OPEN, body, lambda reader: (decode_opening(reader), decode_options(reader, count))
        )

    def check_grants(
        self, grants: Sequence[tuple[Name, bytes, bytes | None]], at_least: int = 0
    ) -> Pending[list[GrantCheck]]:
        """Asks whether grants hold, each for the collaboration before it and the device key behind it, if any."""
        return self.request(Operation.CHECK_GRANTS, encode_grant_checks(grants, at_least), decode_grant_checks)

    def check_grants_with_options(
        self, grants: Sequence[tuple[Name, bytes, bytes | None]]
    ) -> Pending[tuple[list[GrantCheck], list[list[str]]]]:
        """As `check_grants`, and for the selected options of each collaboration."""
        count = len({name for name, _, _ in grants})
        return self.request(
            Operation.CHECK_GRANTS,
            encode_grant_checks(grants, 0, want_options=True),
            lambda reader: (decode_grant_checks(reader), decode_options(reader, count)),
        )


# A model of people and their devices, and the rules of a proof.


class KeyEncoding(Enum):
    """How a public key is encoded."""

    UNCOMPRESSED = "uncompressed"
    COMPRESSED = "compressed"
    SUBJECT_PUBLIC_KEY_INFO = "SubjectPublicKeyInfo"
    COMPRESSED_SUBJECT_PUBLIC_KEY_INFO = "compressed SubjectPublicKeyInfo"


_ALGORITHM = bytes.fromhex("301306072a8648ce3d020106082a8648ce3d030107")
"""The AlgorithmIdentifier of an elliptic curve key on prime256v1."""

_INFO_PREFIXES = {
    65: bytes.fromhex("3059") + _ALGORITHM + bytes.fromhex("034200"),
    33: bytes.fromhex("3039") + _ALGORITHM + bytes.fromhex("032200"),
}
"""What stands before a point of that many bytes in a SubjectPublicKeyInfo."""


def encode_public_key(key: ec.EllipticCurvePublicKey, encoding: KeyEncoding) -> bytes:
    """A public key's bytes."""
    if encoding in (KeyEncoding.UNCOMPRESSED, KeyEncoding.SUBJECT_PUBLIC_KEY_INFO):
        point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    else:
        point = key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    if encoding in (KeyEncoding.UNCOMPRESSED, KeyEncoding.COMPRESSED):
        return point
    return _INFO_PREFIXES[len(point)] + point


def decode_public_key(data: bytes) -> ec.EllipticCurvePublicKey:
    """The public key in any of the encodings; raises `ValueError` if there is none."""
    for size, prefix in _INFO_PREFIXES.items():
        if data.startswith(prefix) and len(data) == len(prefix) + size:
            data = data[len(prefix) :]
            break
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)


def der_to_raw(signature: bytes) -> bytes:
    """A DER signature's integers, r then s, as 32 bytes each."""
    r, s = decode_dss_signature(signature)
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def raw_to_der(signature: bytes) -> bytes:
    """The reverse of `der_to_raw`; raises `ValueError` for other than 64 bytes."""
    if len(signature) != 64:
        raise ValueError("a raw signature has 64 bytes")
    return encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))


def sha256(data: bytes) -> bytes:
    """A digest."""
    return hashlib.sha256(data).digest()


def device_key(public_key: bytes) -> bytes:
    """What names a device's key when a grant is checked."""
    return sha256(public_key)[:DEVICE_KEY_SIZE]


class Device:
    """A device with a key of its own."""

    def __init__(self, encoding: KeyEncoding = KeyEncoding.UNCOMPRESSED) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.encoding = encoding
        self.public_key = encode_public_key(self._key.public_key(), encoding)

    def sign(self, data: bytes, signature_format: int = SignatureFormat.DER) -> bytes:
        """A signature of the data."""
        signature = self._key.sign(data, ec.ECDSA(hashes.SHA256()))
        return signature if signature_format == SignatureFormat.DER else der_to_raw(signature)


class Tree:
    """A Merkle tree. Random leaves fill it up to its width; an odd level pairs its last node with itself."""

    def __init__(self, leaves: Sequence[bytes], width: int = 8) -> None:
        self._levels = [list(leaves) + [os.urandom(DIGEST_SIZE) for _ in range(width - len(leaves))]]
        while len(self._levels[-1]) > 1:
            level = self._levels[-1]
            paired = level + level[-1:] if len(level) % 2 else level
            self._levels.append([sha256(left + right) for left, right in zip(paired[::2], paired[1::2])])

    @property
    def root(self) -> bytes:
        """The root hash."""
        return self._levels[-1][0]

    def inclusion_hashes(self, index: int) -> list[bytes]:
        """The siblings on the way from a leaf to the root, leaf level first."""
        siblings = []
        for level in self._levels[:-1]:
            siblings.append(level[min(index ^ 1, len(level) - 1)])
            index //= 2
        return siblings


class Person:
    """A person with devices."""

    def __init__(self, devices: Sequence[Device], width: int = 8) -> None:
        self.devices = devices
        self._tree = Tree([sha256(device.public_key) for device in devices], width)

    @property
    def root(self) -> bytes:
        """The root hash: who the person is in a collaboration."""
        return self._tree.root

    def proof(self, index: int, data: bytes, signature_format: int = SignatureFormat.DER) -> Proof:
        """A proof by one of the devices that signs the data."""
        device = self.devices[index]
        signature = device.sign(data, signature_format)
        return Proof(device.public_key, index, self._tree.inclusion_hashes(index), signature, data, signature_format)


def root_hash(public_key: bytes, index: int, inclusion_hashes: Sequence[bytes]) -> bytes:
    """The root hash that a proof leads to."""
    local = sha256(public_key)
    for sibling in inclusion_hashes:
        local = sha256(sibling + local if index % 2 else local + sibling)
        index //= 2
    return local


def verify_proof(proof: Proof, roots: Collection[bytes]) -> tuple[bytes, bool]:
    """The root hash that a proof leads to, and whether it is one of the roots and the signature is valid."""
    root = root_hash(proof.public_key, proof.key_index, proof.inclusion_hashes)
    depth = len(proof.inclusion_hashes)
    possible = depth <= MAXIMUM_INCLUSION_HASHES and 0 <= proof.key_index < 1 << depth
    return root, possible and root in roots and _is_signed(proof)


def _is_signed(proof: Proof) -> bool:
    raw = proof.signature_format == SignatureFormat.RAW
    try:
        signature = raw_to_der(proof.signature) if raw else proof.signature
        decode_public_key(proof.public_key).verify(signature, proof.data, ec.ECDSA(hashes.SHA256()))
    except (ValueError, InvalidSignature):
        return False
    return True
