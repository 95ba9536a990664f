# SPDX-License-Identifier: Apache-2.0
"""The blocking client, for any number of threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import ssl
import threading
import weakref
from typing import TypeVar

from .addresses import Addresses
from .asyncio_client import AsyncClient
from .operations import Operations
from .protocol import ConnectionLost
from .requests import Request

T = TypeVar("T")


class Client(Operations):
    """A client of a service, or of several that share their changes, for any number of threads.

    It has a thread of its own, which runs an `AsyncClient`: so it repeats what that repeats, and raises what that
    raises. Every operation waits for its answer and returns it. The requests of several threads are pipelined over one
    connection; `submit` pipelines those of one thread.

    A client does not survive a fork: make one in each process.
    """

    def __init__(
        self,
        addresses: Addresses = "localhost",
        *,
        timeout: float = 10.0,
        connect_timeout: float = 3.0,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        key: str | None = None,
    ) -> None:
        """Makes a client, which connects at its first request. The parameters are those of `AsyncClient`."""
        self._client = AsyncClient(
            addresses, timeout=timeout, connect_timeout=connect_timeout, tls=tls, server_name=server_name, key=key
        )
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rootgate client", daemon=True)
        self._thread.start()
        self._end = weakref.finalize(self, _end, self._client, self._loop, self._thread, self._process)

    def close(self) -> None:
        """Closes the connection and ends the thread. Requests in flight raise `ConnectionLost`, and so do later ones.

        A client that is no longer referred to, or that lives at the end of the program, is closed by itself.
        """
        self._end()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: Request[T]) -> T:
        """Sends a request and waits for its answer. Every operation calls this.

        An exception that interrupts the wait, such as `KeyboardInterrupt`, leaves the connection usable.
        """
        future = self.submit(request)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise ConnectionLost("the client was closed") from error
        except BaseException:
            future.cancel()
            raise

    def submit(self, request: Request[T]) -> concurrent.futures.Future[T]:
        """Sends a request that a function of `requests` has made, and does not wait:

            futures = [client.submit(requests.verify(batch)) for batch in batches]
            verdicts = [future.result().verdicts for future in futures]

        Cancelling the future drops the answer. Raises `ConnectionLost` when the client is closed, and `RuntimeError`
        in another process than the one that made the client.
        """
        if os.getpid() != self._process:
            raise RuntimeError("the client was made before a fork: make one in each process")
        if not self._end.alive:
            raise ConnectionLost("the client is closed", was_sent=False)
        return asyncio.run_coroutine_threadsafe(self._client.ask(request), self._loop)


def _end(client: AsyncClient, loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    """Ends a client's thread. After a fork there is none."""
    if os.getpid() != process:
        return
    closing = asyncio.run_coroutine_threadsafe(_end_loop(client), loop)
    closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
    # The last reference may be given up by the thread itself.
    if threading.current_thread() is not thread:
        thread.join()
        loop.close()


async def _end_loop(client: AsyncClient) -> None:
    """Closes the client and lets every request end: those in flight get an error, and others are cancelled."""
    await client.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, pausing = await asyncio.wait(others, timeout=0.05)
        for task in pausing:
            task.cancel()
        await asyncio.gather(*pausing, return_exceptions=True)
