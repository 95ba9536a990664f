# SPDX-License-Identifier: Apache-2.0
"""Clients for a Rootgate service, written from PROTOCOL.md alone. They need the standard library only.

    from rootgate import Client

    with Client("localhost:7570") as client:
        client.create_collaboration("deck-42")
        client.add_roots("deck-42", participant_root_hashes)
        challenge = client.issue_challenges(1).challenges[0]          # the device signs this
        verdict = client.verify([("deck-42", proof)]).verdicts[0]     # Verdict.GRANTED, or why not

`AsyncClient` has the same operations as coroutines. `requests` lists them, with their parameters and limits.
`Connection` (of `rootgate.connection`) is a single connection without repeats, for tests of the protocol, and
`rootgate.simulator` makes test proofs; it needs the package `cryptography`.
"""

from . import requests
from .addresses import tls_context
from .asyncio_client import AsyncClient
from .blocking_client import Client
from .protocol import (
    ConnectionLost,
    DeadlineExceeded,
    ErrorCode,
    GrantStatus,
    Permission,
    Policy,
    ProtocolError,
    Role,
    RootgateError,
    SignatureFormat,
    Verdict,
    error_name,
    grant_status_name,
    verdict_name,
)
from .values import (
    Challenges,
    Change,
    CollaborationState,
    GrantCheck,
    Hello,
    Opening,
    Proof,
    Receipt,
    Verification,
    device_key,
    root_hash,
    sha256,
)

__all__ = [
    "AsyncClient",
    "Challenges",
    "Change",
    "Client",
    "CollaborationState",
    "ConnectionLost",
    "DeadlineExceeded",
    "ErrorCode",
    "GrantCheck",
    "GrantStatus",
    "Hello",
    "Opening",
    "Permission",
    "Policy",
    "Proof",
    "ProtocolError",
    "Receipt",
    "Role",
    "RootgateError",
    "SignatureFormat",
    "Verdict",
    "Verification",
    "device_key",
    "error_name",
    "grant_status_name",
    "requests",
    "root_hash",
    "sha256",
    "tls_context",
    "verdict_name",
]
