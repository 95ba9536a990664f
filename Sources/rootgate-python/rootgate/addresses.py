# SPDX-License-Identifier: Apache-2.0
"""Where a service is, and how a connection to it is encrypted."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from typing import NamedTuple, Union

from .protocol import APPLICATION_PROTOCOL, DEFAULT_PORT, LOCAL_SCHEME, ProtocolError

TLS_SCHEME = "tls://"

Addresses = Union[str, Sequence[str]]
"""One address or several, each as `parse_address` takes it."""


class Address(NamedTuple):
    """A port of a host, or a local socket."""

    host: str
    """Empty for a local socket."""
    port: int
    """0 for a local socket."""
    path: str | None = None
    """The absolute path of a local socket; None for a host."""
    encrypted: bool = False
    """Whether it was written with `tls://`."""

    def __str__(self) -> str:
        if self.path is not None:
            return LOCAL_SCHEME + self.path
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{TLS_SCHEME if self.encrypted else ''}{host}:{self.port}"


def parse_address(text: str) -> Address:
    """The address that is written `host`, `host:port`, `[v6]:port`, one of these behind `tls://`, or `unix:/path`.

    Without a port it is 7570. Raises `ValueError` for any other text.
    """
    if text.startswith(LOCAL_SCHEME + "/"):
        return Address("", 0, text[len(LOCAL_SCHEME) :])
    encrypted = text.startswith(TLS_SCHEME)
    rest = text[len(TLS_SCHEME) :] if encrypted else text
    if rest.startswith("["):
        host, bracket, behind = rest[1:].partition("]")
        colon, port = behind[:1], behind[1:]
        is_sound = bool(bracket) and ":" in host and (not behind or colon == ":")
    else:
        host, colon, port = rest.partition(":")
        is_sound = not any(sign in host for sign in "/[]")
    number = DEFAULT_PORT if not colon else int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
    if not is_sound or not host or not 0 < number < 65_536:
        raise ValueError(f"an address is HOST:PORT, tls://HOST:PORT or unix:/PATH, not {text!r}")
    return Address(host, number, None, encrypted)


def parse_addresses(addresses: Addresses) -> list[Address]:
    """The addresses, of which there must be one at least; else raises `ValueError`."""
    parsed = [parse_address(text) for text in ([addresses] if isinstance(addresses, str) else addresses)]
    if not parsed:
        raise ValueError("a service has an address")
    return parsed


def tls_context(ca: str | None = None, certificate: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """What TLS 1.3 needs: a file of authorities (the system's without it), the client's certificate with its key.

    Raises `OSError` when a file can't be read, and `ssl.SSLError` when it can't be used.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([APPLICATION_PROTOCOL])
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


def check_application_protocol(chosen: str | None) -> None:
    """Raises `ProtocolError` unless the service has chosen this protocol in the handshake."""
    if chosen != APPLICATION_PROTOCOL:
        raise ProtocolError(f"the service does not speak {APPLICATION_PROTOCOL}")


def environment_key(key: str | None) -> str | None:
    """The API key, or without one that of the environment's ROOTGATE_KEY; None when there is neither."""
    return key or os.environ.get("ROOTGATE_KEY") or None
