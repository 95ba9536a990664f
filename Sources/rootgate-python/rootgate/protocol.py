# SPDX-License-Identifier: Apache-2.0
"""The protocol's numbers and names, and what can go wrong."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Union

Name = Union[str, bytes]
"""A collaboration identifier; bytes are sent as they are, whether they follow the rules or not."""

VERSION = 1
DEFAULT_PORT = 7570
APPLICATION_PROTOCOL = "rootgate/1"
LOCAL_SCHEME = "unix:"
MAXIMUM_BODY = 2_097_152
"""Bytes of a frame's body, at most."""
MAXIMUM_INCLUSION_HASHES = 32
DIGEST_SIZE = 32
MUTATION_SIZE = 16
GRANT_SIZE = 112
DEVICE_KEY_SIZE = 16
ISSUER_LIMIT = 15
"""The number of the limit in a hello that is no limit, but says which challenges the service has issued."""
ISSUER_BYTES = slice(16, 24)
"""Where that number stands in each of these challenges."""
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
    CONFIRM_EVERYWHERE = 0x42
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
    CHALLENGE_ELSEWHERE = 29


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
    POLICY_REFUSED = 25
    ROLE_MISSING = 28
    BUSY = 32
    SHUTTING_DOWN = 33
    STALE = 34
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
        """`code`: an `ErrorCode`, or a number that is not known here. `detail`: what the specification says of it."""
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


class ConnectionLost(ConnectionError):
    """The connection ended without an answer, or there was none."""

    def __init__(self, text: str, *, was_sent: bool = True) -> None:
        """`was_sent`: whether the service may have carried out the request."""
        super().__init__(text)
        self.was_sent = was_sent


class DeadlineExceeded(TimeoutError):
    """No answer came in time. The service may have carried out the request, and may still do so."""
