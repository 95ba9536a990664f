# SPDX-License-Identifier: Apache-2.0
"""The change log: what edits say, and how a client finds its own mutations there."""

from __future__ import annotations

import hashlib
from typing import Any

from .frames import Reader
from .protocol import ProtocolError
from .requests import encode_call
from .values import Edit


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
