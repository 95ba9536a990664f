# SPDX-License-Identifier: Apache-2.0
"""The operations as methods. Each client has the same ones, with the same parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Coroutine, Generic, ParamSpec, TypeVar, overload

from . import requests
from .requests import Request

if TYPE_CHECKING:
    from .asyncio_client import AsyncClient
    from .blocking_client import Client
    from .connection import Connection, Pending

P = ParamSpec("P")
T = TypeVar("T")


class Method(Generic[P, T]):
    """A method that makes a request with a function of `requests`, and gives it to the client's `ask`."""

    def __init__(self, make: Callable[P, Request[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type[Any]) -> Method[P, T]: ...

    @overload
    def __get__(self, client: Client, owner: type[Any]) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: AsyncClient, owner: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, client: Connection, owner: type[Any]) -> Callable[P, Pending[T]]: ...

    def __get__(self, client: Any, owner: Any) -> Any:
        if client is None:
            return self

        @functools.wraps(self._make)
        def call(*arguments: P.args, **named: P.kwargs) -> Any:
            return client.ask(self._make(*arguments, **named))

        return call


class Operations:
    """What one may ask a service. `requests` documents each operation and its parameters."""

    ping = Method(requests.ping)
    issue_challenges = Method(requests.issue_challenges)
    verify = Method(requests.verify)
    verify_inclusion = Method(requests.verify_inclusion)
    create_collaboration = Method(requests.create_collaboration)
    drop_collaboration = Method(requests.drop_collaboration)
    add_roots = Method(requests.add_roots)
    remove_roots = Method(requests.remove_roots)
    test_roots = Method(requests.test_roots)
    list_roots = Method(requests.list_roots)
    count_roots = Method(requests.count_roots)
    list_collaborations = Method(requests.list_collaborations)
    statistics = Method(requests.statistics)
    read_changes = Method(requests.read_changes)
    confirm_everywhere = Method(requests.confirm_everywhere)
    collaborate = Method(requests.collaborate)
    open = Method(requests.open)
    open_with_options = Method(requests.open_with_options)
    check_grants = Method(requests.check_grants)
    check_grants_with_options = Method(requests.check_grants_with_options)
    hello = Method(requests.hello)
