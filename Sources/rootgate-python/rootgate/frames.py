# SPDX-License-Identifier: Apache-2.0
"""Frames and the parts of their bodies, without input and output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .protocol import DIGEST_SIZE, HEADER, MAXIMUM_BODY, VERSION, Kind, Name, ProtocolError, RootgateError


class Frame(NamedTuple):
    """An answer or an error as it came."""

    kind: int
    operation: int
    request_id: int
    body: bytes


def encode_frame(
    operation: int, request_id: int, body: bytes = b"", *, version: int = VERSION, kind: int = Kind.REQUEST
) -> bytes:
    """A frame with its header."""
    return HEADER.pack(len(body), version, kind, operation, request_id) + body


class FrameReader:
    """Takes frames from bytes that arrive in pieces of any size. It keeps less than one frame."""

    def __init__(self) -> None:
        self._received = bytearray()

    def read(self, data: bytes) -> Iterator[Frame]:
        """The frames that the bytes complete.

        Raises `ProtocolError` for a header that no answer and no error has: another version, another kind, or a body
        of more than 2,097,152 bytes. The body is not waited for. Nothing can be read after that.
        """
        self._received += data
        while len(self._received) >= HEADER.size:
            length, version, kind, operation, request_id = HEADER.unpack_from(self._received)
            if version != VERSION or kind not in (Kind.ANSWER, Kind.ERROR) or length > MAXIMUM_BODY:
                raise ProtocolError(f"a frame has version {version}, kind {kind} and {length} bytes")
            end = HEADER.size + length
            if len(self._received) < end:
                return
            body = bytes(self._received[HEADER.size : end])
            del self._received[:end]
            yield Frame(kind, operation, request_id, body)


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

    def peek(self, count: int) -> bytes:
        """The next bytes, which can be taken again."""
        taken = self.take(count)
        self._offset -= count
        return taken

    def number(self, size: int) -> int:
        """The next integer, of that many bytes."""
        return int.from_bytes(self.take(size), "little")

    def name(self) -> str:
        """The next text with a length byte before it."""
        return self.text(self.number(1))

    def text(self, size: int) -> str:
        """The next text, of that many bytes in UTF-8."""
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("an answer has text that is not UTF-8") from error

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


def decode_error(body: bytes) -> RootgateError:
    """The error in the body of an error frame."""
    reader = Reader(body)
    code, length, detail = reader.number(2), reader.number(2), reader.number(4)
    text = reader.take(length)
    reader.end()
    return RootgateError(code, detail, text.decode(errors="replace"))


# Parts of requests. Each raises `ValueError` for what does not fit into its field.


def encode_number(value: int, size: int) -> bytes:
    """An integer of that many bytes."""
    try:
        return value.to_bytes(size, "little")
    except OverflowError as error:
        raise ValueError(f"{value} does not fit into {size} bytes") from error


def encode_name(name: Name) -> bytes:
    """A text of at most 255 bytes behind its length."""
    data = name.encode() if isinstance(name, str) else name
    return encode_number(len(data), 1) + data


def encode_digests(digests: Sequence[bytes]) -> bytes:
    """Digests behind their number."""
    return encode_number(len(digests), 4) + b"".join(sized(digest, DIGEST_SIZE, "a digest") for digest in digests)


def sized(data: bytes, size: int, what: str) -> bytes:
    """The bytes, of which there must be so many."""
    if len(data) != size:
        raise ValueError(f"{what} has {size} bytes, not {len(data)}")
    return data
