#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a running Rootgate service with TLS against the specification, with the Python package rootgate.

The service demands certificates of clients. Needs the packages `cryptography` and `rootgate`
(PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import ssl
import sys
import time

from rootgate import AsyncClient, Client
from rootgate.addresses import tls_context
from rootgate.connection import Connection
from rootgate.protocol import APPLICATION_PROTOCOL, Policy, Verdict
from rootgate.simulator import Device, Person

TIMEOUT = 30.0


def expect(condition: bool, text: str) -> None:
    """Ends the program unless the condition holds."""
    if not condition:
        sys.exit(f"failed: {text}")


def is_refused(address: tuple[str, int], context: ssl.SSLContext, name: str) -> bool:
    """Whether the handshake fails, or the connection ends before the first answer."""
    try:
        with socket.create_connection(address, TIMEOUT) as plain, context.wrap_socket(
            plain, server_hostname=name
        ) as connection:
            # With TLS 1.3 the refusal of a client's certificate comes after the handshake.
            return connection.recv(1) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def check_proofs(client: Connection) -> None:
    """A genuine proof is granted once, in a batch with many others that are copies."""
    collaboration = f"encryption-{os.urandom(8).hex()}"
    person = Person([Device()])
    client.create_collaboration(collaboration, Policy.CHALLENGE).result()
    client.add_roots(collaboration, [person.root]).result()
    challenge = client.issue_challenges(1).result().challenges[0]
    proof = person.proof(0, challenge)
    verdicts = client.verify([(collaboration, proof)] * 1000).result().verdicts
    expect(verdicts.count(Verdict.GRANTED) == 1, "exactly one of the copies is granted")
    pending = [client.ping(bytes([number % 256]) * 64) for number in range(300)]
    echoes = [ping.result() for ping in pending]
    expect(echoes == [bytes([number % 256]) * 64 for number in range(300)], "pings come back in their own answers")
    client.drop_collaboration(collaboration).result()


def check_clients(address: str, context: ssl.SSLContext, anonymous: ssl.SSLContext) -> None:
    """The clients that connect again get in, too, and don't try again when one side refuses the other."""

    async def ping(tls: ssl.SSLContext, name: str | None = None) -> bytes:
        async with AsyncClient(f"tls://{address}", tls=tls, server_name=name, timeout=TIMEOUT) as client:
            return await client.ping(b"encrypted")

    with Client(address, tls=context) as client:
        expect(client.ping(b"encrypted") == b"encrypted", "the blocking client gets in")
    expect(asyncio.run(ping(context)) == b"encrypted", "the client for asyncio gets in")
    begun = time.monotonic()
    for tls, name in [(anonymous, None), (context, "other.example.com")]:
        try:
            asyncio.run(ping(tls, name))
            expect(False, "a client without a certificate, or for another name, gets an error")
        except ssl.SSLError:
            pass
    expect(time.monotonic() - begun < TIMEOUT / 2, "a refusal is raised at once")


def main() -> int:
    """Runs everything and returns the exit status."""
    parser = argparse.ArgumentParser(description="Checks a running Rootgate service with TLS.")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    arguments = parser.parse_args()
    address = (arguments.host, arguments.port)

    def context() -> ssl.SSLContext:
        return tls_context(arguments.ca, arguments.certificate, arguments.key)

    with Connection(*address, tls=context()) as client:
        check_proofs(client)

    anonymous = tls_context(arguments.ca)
    expect(is_refused(address, anonymous, arguments.host), "a client without a certificate is refused")
    check_clients(f"{arguments.host}:{arguments.port}", context(), anonymous)
    older = context()
    older.minimum_version = older.maximum_version = ssl.TLSVersion.TLSv1_2
    expect(is_refused(address, older, arguments.host), "TLS 1.2 is refused")
    other = context()
    other.set_alpn_protocols(["h2"])
    expect(is_refused(address, other, arguments.host), f"a protocol other than {APPLICATION_PROTOCOL} is refused")
    expect(is_refused(address, context(), "other.example.com"), "the client refuses a certificate for another name")
    expect(is_refused(address, tls_context(), arguments.host), "the client refuses an unknown authority")
    try:
        with Connection(*address, timeout=TIMEOUT) as plain:
            plain.ping(b"").result()
        expect(False, "a plain client is refused")
    except Exception as error:  # noqa: BLE001: the end of the connection and a record of TLS are both right.
        expect(not isinstance(error, SystemExit), "a plain client is refused")
    print("all checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
