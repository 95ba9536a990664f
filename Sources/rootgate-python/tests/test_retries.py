# SPDX-License-Identifier: Apache-2.0
"""What both clients do when connections, answers and services go missing, against a service that is a script."""

from __future__ import annotations

import concurrent.futures
import gc
import os
import threading
import time
import unittest
import unittest.mock
from collections.abc import Sequence
from typing import Any

from rootgate import (
    Client,
    ConnectionLost,
    DeadlineExceeded,
    ErrorCode,
    Proof,
    ProtocolError,
    Receipt,
    RootgateError,
    Verdict,
    requests,
)
from rootgate.requests import Request

from fake_service import (
    RECEIPT,
    AsyncioCaller,
    BlockingCaller,
    Caller,
    FakeService,
    Operation,
    Script,
    Served,
    closed_address,
    verdicts,
)

PROOF = Proof(b"key", 0, [], b"signature", b"data")


def verify(**options: Any) -> Request[Any]:
    return requests.verify([("deck", PROOF)], **options)


def echo(served: Served) -> None:
    served.echo()


def lose(served: Served) -> None:
    """Takes a request, and loses the connection."""
    served.request()
    served.reset()


def grant(served: Served) -> None:
    """Grants proofs one at a time."""
    while True:
        operation, request_id, _ = served.request()
        served.answer(operation, request_id, verdicts(1))


def refuse(code: int, detail: int = 0) -> Script:
    """Answers every request with an error."""

    def script(served: Served) -> None:
        while True:
            operation, request_id, _ = served.request()
            served.error(operation, request_id, code, detail)

    return script


class ClientCases(unittest.TestCase):
    """Cases for the client that `new` makes."""

    new: type[BlockingCaller] | type[AsyncioCaller]

    def serve(self, *scripts: Script, local: bool = False, issuer: int | None = None) -> FakeService:
        service = FakeService(*scripts, local=local, issuer=issuer)
        self.addCleanup(service.close)
        return service

    def client(self, addresses: str | Sequence[str], **options: Any) -> Caller:
        client = self.new(addresses, **options)
        self.addCleanup(client.close)
        return client


class RepeatCases(ClientCases):
    """What is sent again, and what is not."""

    def test_a_read_is_repeated_when_the_connection_is_lost(self) -> None:
        service = self.serve(lose, lose, echo)
        self.assertEqual(self.client(service.address).ask(requests.ping(b"x")), b"x")
        self.assertEqual(service.connections, 3)

    def test_a_mutation_is_repeated_with_the_same_identifier(self) -> None:
        bodies: list[bytes] = []

        def note(served: Served) -> None:
            operation, request_id, body = served.request()
            bodies.append(body)
            if len(bodies) < 3:
                served.reset()
            else:
                served.answer(operation, request_id, RECEIPT)

        client = self.client(self.serve(note).address)
        self.assertEqual(client.ask(requests.add_roots("deck", [bytes(32)])), Receipt(7, 1, False))
        self.assertEqual((len(bodies), len(set(bodies))), (3, 1))

    def test_a_change_whose_connection_was_lost_is_not_called_busy(self) -> None:
        for code in (ErrorCode.BUSY, ErrorCode.ROLE_MISSING):
            service = self.serve(lose, refuse(code))
            with self.assertRaises(ConnectionLost):
                self.client(service.address).ask(requests.add_roots("deck", [bytes(32)]))
            self.assertEqual(service.connections, 2)

    def test_a_change_that_was_sent_once_or_is_decided_gets_the_error(self) -> None:
        decided = (lose, refuse(ErrorCode.MUTATION_CONFLICT))
        for scripts in ((refuse(ErrorCode.BUSY),), decided, (lose, refuse(ErrorCode.STORAGE_FAILED))):
            with self.assertRaises(RootgateError):
                self.client(self.serve(*scripts).address).ask(requests.add_roots("deck", [bytes(32)]))

    def test_a_verify_or_open_of_unknown_fate_is_an_error_and_not_repeated(self) -> None:
        for request in (verify(), requests.open([("deck", PROOF)])):
            service = self.serve(lose, echo)
            client = self.client(service.address)
            with self.assertRaises(ConnectionLost) as caught:
                client.ask(request)
            self.assertTrue(caught.exception.was_sent)
            self.assertEqual(service.connections, 1)
            self.assertEqual(client.ask(requests.ping(b"on")), b"on")

    def test_what_a_service_refuses_when_it_shuts_down_is_repeated_whatever_it_is(self) -> None:
        service = self.serve(refuse(ErrorCode.SHUTTING_DOWN), grant)
        self.assertEqual(self.client(service.address).ask(verify()).verdicts, [Verdict.GRANTED])
        self.assertEqual(service.connections, 2)

    def test_what_has_no_answer_at_the_farewell_is_repeated_whatever_it_is(self) -> None:
        begun: list[bytes] = []

        def shut_down(served: Served) -> None:
            """Answers the first of two requests, and begins no other."""
            first, second = served.request(), served.request()
            begun.append(first[2])
            served.answer(*first[:2], verdicts(1))
            self.assertNotEqual(first[1], second[1])
            served.farewell()

        def go_on(served: Served) -> None:
            operation, request_id, body = served.request()
            begun.append(body)
            served.answer(operation, request_id, verdicts(1))

        service = self.serve(shut_down, go_on)
        client = self.client(service.address)
        futures = [client.start(verify(at_least=number)) for number in range(2)]
        self.assertEqual([future.result(5).verdicts for future in futures], [[1], [1]])
        self.assertEqual(sorted(begun), sorted(verify(at_least=number).body for number in range(2)))
        self.assertEqual(service.connections, 2)

    def test_what_was_never_sent_is_repeated_whatever_it_is(self) -> None:
        full = threading.Event()

        def deaf(served: Served) -> None:
            full.wait(5)
            served.reset()

        def serve(served: Served) -> None:
            while True:
                operation, request_id, body = served.request()
                served.answer(operation, request_id, verdicts(1) if operation == Operation.VERIFY else body)

        service = self.serve(deaf, serve)
        client = self.client(service.address)
        # More than the buffers of the system and of the client take.
        long = [client.start(requests.ping(bytes(2_000_000))) for _ in range(12)]
        late = client.start(verify())
        time.sleep(0.3)
        full.set()
        self.assertEqual(late.result(10).verdicts, [Verdict.GRANTED])
        self.assertEqual([len(future.result(10)) for future in long], [2_000_000] * 12)
        self.assertEqual(service.connections, 2)

    def test_a_closed_idle_connection_is_made_again(self) -> None:
        def answer_once(served: Served) -> None:
            served.answer(*served.request())

        service = self.serve(answer_once)
        client = self.client(service.address)
        for number in range(4):
            self.assertEqual(client.ask(requests.ping(bytes([number]))), bytes([number]))
        self.assertEqual(service.connections, 4)


class ErrorCases(ClientCases):
    """What is raised."""

    def test_busy_is_raised_with_its_time_and_not_repeated(self) -> None:
        asked: list[bytes] = []

        def busy(served: Served) -> None:
            while True:
                operation, request_id, body = served.request()
                asked.append(body)
                served.error(operation, request_id, ErrorCode.BUSY, 250)

        with self.assertRaises(RootgateError) as caught:
            self.client(self.serve(busy).address, timeout=1.0).ask(requests.ping())
        self.assertEqual((caught.exception.retry_after, len(asked)), (0.25, 1))

    def test_an_error_about_the_connection_reaches_every_request(self) -> None:
        def end(served: Served) -> None:
            served.request(), served.request()
            served.error(0, 0, ErrorCode.TOO_MANY_CONNECTIONS, 8)

        service = self.serve(end, echo)
        client = self.client(service.address)
        for future in [client.start(verify()), client.start(requests.ping())]:
            with self.assertRaises(RootgateError) as caught:
                future.result(5)
            self.assertEqual((caught.exception.code, caught.exception.detail), (ErrorCode.TOO_MANY_CONNECTIONS, 8))
        self.assertEqual(client.ask(requests.ping(b"on")), b"on")

    def test_bytes_that_are_no_frame_end_the_connection_and_not_the_client(self) -> None:
        def babble(served: Served) -> None:
            served.request()
            served.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        client = self.client(self.serve(babble, echo).address)
        with self.assertRaises(ProtocolError):
            client.ask(requests.ping())
        self.assertEqual(client.ask(requests.ping(b"on")), b"on")

    def test_an_answer_with_a_bad_body_is_an_error_of_its_own_request(self) -> None:
        def serve(served: Served) -> None:
            operation, request_id, _ = served.request()
            served.answer(operation, request_id, verdicts(3))
            served.echo()

        service = self.serve(serve)
        client = self.client(service.address)
        with self.assertRaises(ProtocolError):
            client.ask(verify())
        self.assertEqual((client.ask(requests.ping(b"on")), service.connections), (b"on", 1))

    def test_without_a_service_the_error_comes_at_the_deadline(self) -> None:
        begun = time.monotonic()
        # On a busy machine the deadline may come during an attempt.
        with self.assertRaises((ConnectionRefusedError, DeadlineExceeded)):
            self.client(closed_address(), timeout=0.4).ask(verify())
        # It gives up when the deadline would come during the next pause.
        self.assertTrue(0.1 < time.monotonic() - begun < 5, time.monotonic() - begun)

    def test_pauses_grow(self) -> None:
        service = self.serve(lose)
        with self.assertRaises((ConnectionLost, DeadlineExceeded)):
            self.client(service.address, timeout=1.0).ask(requests.ping())
        # Pauses of 25 ms, 50, 100, 200 and 400, or half of each; without growth there would be 40 attempts.
        self.assertTrue(2 <= service.connections <= 8, service.connections)

    def test_a_refused_key_is_raised_at_once(self) -> None:
        def refuse_key(served: Served) -> None:
            operation, request_id, body = served.request()
            self.assertEqual((operation, body), (Operation.HELLO, b"\1\1\0\0\3key"))
            served.error(0, request_id, ErrorCode.KEY_REFUSED)

        service = self.serve(refuse_key)
        begun = time.monotonic()
        with self.assertRaises(RootgateError) as caught:
            self.client(service.address, key="key").ask(requests.ping())
        self.assertEqual((caught.exception.code, service.connections), (ErrorCode.KEY_REFUSED, 1))
        self.assertLess(time.monotonic() - begun, 3)

    def test_a_key_is_presented_on_every_connection(self) -> None:
        keys: list[bytes] = []

        def greet(served: Served) -> None:
            operation, request_id, body = served.request()
            keys.append(body)
            served.answer(operation, request_id, b"\1\0\0\0" + bytes(6) + b"\4fake")
            served.answer(*served.request())

        client = self.client(self.serve(greet).address, key="key")
        for _ in range(3):
            self.assertEqual(client.ask(requests.ping(b"x")), b"x")
        self.assertEqual(keys, [b"\1\1\0\0\3key"] * 3)


class TimeCases(ClientCases):
    """Time-outs, cancellation and closing."""

    def late(self, give_up: threading.Event) -> Script:
        """Answers the first request when the event happens, and then pings."""

        def script(served: Served) -> None:
            first = served.request()
            give_up.wait(5)
            served.answer(*first)
            served.echo()

        return script

    def test_a_late_answer_is_dropped_and_the_connection_goes_on(self) -> None:
        given_up = threading.Event()
        service = self.serve(self.late(given_up))
        client = self.client(service.address)
        begun = time.monotonic()
        with self.assertRaises(DeadlineExceeded):
            client.ask(requests.ping(b"late", timeout=0.2))
        self.assertTrue(0.2 <= time.monotonic() - begun < 5, time.monotonic() - begun)
        given_up.set()
        self.assertEqual([client.ask(requests.ping(b"%d" % number)) for number in range(3)], [b"0", b"1", b"2"])
        self.assertEqual(service.connections, 1)

    def test_a_cancelled_request_leaves_the_connection_usable(self) -> None:
        given_up = threading.Event()
        service = self.serve(self.late(given_up))
        client = self.client(service.address)
        cancelled = client.start(verify())
        other = client.start(requests.ping(b"other"))
        time.sleep(0.1)
        self.assertTrue(cancelled.cancel())
        given_up.set()
        self.assertEqual(other.result(5), b"other")
        self.assertEqual((client.ask(requests.ping(b"on")), service.connections), (b"on", 1))

    def test_a_request_that_gave_up_before_it_was_sent_never_is(self) -> None:
        full = threading.Event()
        operations: list[int] = []

        def deaf(served: Served) -> None:
            full.wait(10)
            while True:
                request = served.request()
                operations.append(request[0])
                served.answer(*request)

        service = self.serve(deaf)
        client = self.client(service.address)
        long = [client.start(requests.ping(bytes(2_000_000))) for _ in range(12)]
        with self.assertRaises(DeadlineExceeded):
            client.ask(verify(timeout=0.5))
        full.set()
        self.assertEqual([len(future.result(10)) for future in long], [2_000_000] * 12)
        self.assertEqual(client.ask(requests.ping(b"on")), b"on")
        self.assertEqual((operations, service.connections), ([Operation.PING] * 13, 1))

    def test_a_request_that_waits_for_a_change_has_that_much_longer(self) -> None:
        def slow(served: Served) -> None:
            operation, request_id, _ = served.request()
            time.sleep(0.6)
            served.answer(operation, request_id, b'{"posts": []}')

        client = self.client(self.serve(slow).address, timeout=0.3)
        answer = client.ask(requests.collaborate("readNotices", {"waitMilliseconds": 1_000}))
        self.assertEqual(answer, {"posts": []})

    def test_a_closed_client_fails_what_is_in_flight_and_what_follows(self) -> None:
        arrived = threading.Event()

        def silent(served: Served) -> None:
            served.request()
            arrived.set()
            served.request()

        client = self.new(self.serve(silent).address)
        future = client.start(requests.ping())
        arrived.wait(5)
        client.close()
        with self.assertRaises((ConnectionLost, concurrent.futures.CancelledError)):
            future.result(5)


class AddressCases(ClientCases):
    """Several addresses, several callers."""

    def test_the_next_address_is_tried_when_one_does_not_answer(self) -> None:
        service = self.serve(echo, issuer=1)
        client = self.client([closed_address(), "unix:/nowhere", service.address])
        # Without a pause, which follows a whole round.
        with unittest.mock.patch("rootgate.asyncio_client.PAUSE", 60):
            self.assertEqual(client.ask(requests.ping(b"x")), b"x")

    def test_a_lost_connection_moves_on_to_the_next_address(self) -> None:
        services = [self.serve(lose, issuer=1), self.serve(lose, issuer=2), self.serve(echo, issuer=3)]
        client = self.client([service.address for service in services])
        self.assertEqual(client.ask(requests.ping(b"x")), b"x")
        self.assertEqual([service.connections for service in services], [1, 1, 1])
        self.assertEqual(client.ask(requests.ping(b"y")), b"y")
        self.assertEqual([service.connections for service in services], [1, 1, 1])

    def test_local_sockets(self) -> None:
        service = self.serve(lose, echo, local=True)
        self.assertEqual(self.client(service.address).ask(requests.ping(b"x")), b"x")

    def test_many_requests_share_a_connection_and_are_answered_in_any_order(self) -> None:
        def reverse(served: Served) -> None:
            for taken in reversed([served.request() for _ in range(100)]):
                served.answer(*taken)

        service = self.serve(reverse)
        client = self.client(service.address)
        results: dict[int, bytes] = {}

        def call(number: int) -> None:
            results[number] = client.ask(requests.ping(b"%d" % number))

        threads = [threading.Thread(target=call, args=(number,)) for number in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        self.assertEqual(results, {number: b"%d" % number for number in range(100)})
        self.assertEqual(service.connections, 1)


class BlockingClientTests(unittest.TestCase):
    """What only the blocking client has to do."""

    def test_a_client_that_nobody_refers_to_ends_its_thread(self) -> None:
        service = FakeService(echo)
        before = {thread for thread in threading.enumerate()}
        client = Client(service.address)
        self.assertEqual(client.ping(b"x"), b"x")
        [thread] = [thread for thread in threading.enumerate() if thread.name == "rootgate client"]
        del client
        gc.collect()
        thread.join(5)
        self.assertFalse(thread.is_alive())
        self.assertNotIn(thread, before)
        service.close()

    def test_a_closed_client_says_so(self) -> None:
        client = Client(closed_address())
        client.close()
        client.close()
        with self.assertRaises(ConnectionLost) as caught:
            client.ping()
        self.assertFalse(caught.exception.was_sent)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_client_from_before_a_fork_is_refused(self) -> None:
        client = Client(closed_address())
        child = os.fork()
        if child == 0:
            try:
                client.ping(timeout=1)
            except RuntimeError:
                os._exit(7)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        client.close()


def load_tests(loader: unittest.TestLoader, *_: object) -> unittest.TestSuite:
    """Every case with both clients."""
    suite = loader.loadTestsFromTestCase(BlockingClientTests)
    for cases in (RepeatCases, ErrorCases, TimeCases, AddressCases):
        for new in (BlockingCaller, AsyncioCaller):
            both = type(f"{new.__name__}{cases.__name__}", (cases,), {"new": new})
            suite.addTests(loader.loadTestsFromTestCase(both))
    return suite


if __name__ == "__main__":
    unittest.main()
