# SPDX-License-Identifier: Apache-2.0
"""What both clients do with the addresses of several services, which are scripts."""

from __future__ import annotations

import concurrent.futures
import functools
import struct
import threading
import time
import unittest
import unittest.mock
from collections.abc import Sequence
from typing import Any

from rootgate import (
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
from rootgate.frames import Reader
from rootgate.protocol import GRANT_SIZE
from rootgate.requests import Request

from fake_service import (
    PATIENCE,
    RECEIPT,
    AsyncioCaller,
    BlockingCaller,
    FakeService,
    Operation,
    Script,
    Served,
    closed_address,
    verdicts,
)
from test_retries import ClientCases, echo, grant, lose, refuse

GRANTED, ELSEWHERE = Verdict.GRANTED, Verdict.CHALLENGE_ELSEWHERE


def proof(issuer: int, number: int = 0) -> Proof:
    """A proof that signs a challenge of a service. Its number tells it from others."""
    return Proof(b"key", number, [], b"signature", struct.pack("<QQQQQQ", 0, 0, issuer, 0, 0, 0))


def asked(body: bytes) -> list[tuple[str, int, int]]:
    """The collaboration, the number and the issuer of each proof in a request."""
    reader = Reader(body)
    reader.take(10)
    names, count = reader.number(2), reader.number(4)
    decks = [reader.name() for _ in range(names)]
    proofs: list[tuple[str, int, int]] = []
    for _ in range(count):
        deck = decks[reader.number(2)]
        reader.take(2)
        number = reader.number(8)
        key, signature, data = reader.number(1), reader.number(1), reader.number(2)
        reader.take(key + signature)
        proofs.append((deck, number, int.from_bytes(reader.take(data)[16:24], "little")))
    reader.end()
    return proofs


REFUSED = 99


class FakeGate:
    """A service that grants the proofs whose challenges it has issued. Others belong elsewhere.

    It refuses the proofs with the number `REFUSED`.
    """

    def __init__(self, issuer: int) -> None:
        self.issuer = issuer
        self.requests: list[list[int]] = []
        """The numbers of the proofs in each request."""
        self.sequences: set[int] = set()
        """Of the changes that a request has named."""

    def root(self, number: int) -> bytes:
        """The root hash that it sends for a proof."""
        return bytes([self.issuer, number] * 16)

    def serve(self, served: Served) -> None:
        """Answers verifies and opens."""
        while True:
            operation, request_id, body = served.request()
            proofs = asked(body)
            self.requests.append([number for _, number, _ in proofs])
            self.sequences.add(int.from_bytes(body[:8], "little"))
            own = [issuer == self.issuer for _, _, issuer in proofs]
            has_roots = body[8] & 1
            answer = struct.pack("<IB3x", len(proofs), has_roots)
            answer += bytes(self.verdict(number, is_own) for is_own, (_, number, _) in zip(own, proofs))
            roots = [self.root(number) for _, number, _ in proofs]
            answer += b"".join(roots if has_roots else [])
            if operation == Operation.OPEN:
                for is_own, (_, number, _) in zip(own, proofs):
                    answer += self.grant(number) if is_own else bytes(GRANT_SIZE)
            if body[8] & 2:
                for deck in dict.fromkeys(deck for deck, _, _ in proofs):
                    accepts = any(is_own and deck == other for is_own, (other, _, _) in zip(own, proofs))
                    option = deck.encode()
                    answer += struct.pack("<HH", 1, len(option)) + option if accepts else bytes(2)
            served.answer(operation, request_id, answer)

    def verdict(self, number: int, is_own: bool) -> int:
        """What it says of a proof."""
        return Verdict.BAD_SIGNATURE if number == REFUSED else GRANTED if is_own else ELSEWHERE

    def grant(self, number: int) -> bytes:
        """The grant that it sends for a proof."""
        return bytes([self.issuer, number] * (GRANT_SIZE // 2))


def silent(served: Served) -> None:
    """Takes what comes, and answers nothing."""
    while True:
        served.request()


class GatesCases(ClientCases):
    """Several services."""

    def gates(self, count: int) -> tuple[list[FakeGate], list[FakeService]]:
        """Services with the numbers from 1."""
        gates = [FakeGate(number + 1) for number in range(count)]
        return gates, [self.serve(gate.serve, issuer=gate.issuer) for gate in gates]

    def noting(self, bodies: list[bytes], script: Script) -> Script:
        """Notes the first request's body. `script` gets the same request once more."""

        def note(served: Served) -> None:
            request = served.request()
            bodies.append(request[2])
            again = iter([request])
            original = served.request
            with unittest.mock.patch.object(served, "request", lambda: next(again, None) or original()):
                script(served)

        return note


def addresses(services: Sequence[FakeService]) -> list[str]:
    """The addresses of services."""
    return [service.address for service in services]


class RoutingCases(GatesCases):
    """Proofs go to the services that have issued their challenges."""

    issuers = [1, 2, 3, 2, 1, 3, 2]
    """Of the challenges of a batch."""
    decks = ["a", "b", "c", "a", "c", "a", "b"]

    def claims(self) -> list[tuple[str, Proof]]:
        return [(self.decks[place], proof(issuer, place)) for place, issuer in enumerate(self.issuers)]

    def test_only_the_proofs_that_belong_elsewhere_are_sent_again_each_to_its_issuer(self) -> None:
        gates, services = self.gates(3)
        client = self.client(addresses(services))
        answer = client.ask(requests.verify(self.claims(), want_roots=True))
        self.assertEqual(answer.verdicts, [GRANTED] * 7)
        self.assertEqual(answer.roots, [gates[issuer - 1].root(place) for place, issuer in enumerate(self.issuers)])
        self.assertEqual([gate.requests for gate in gates], [[[0, 1, 2, 3, 4, 5, 6]], [[1, 3, 6]], [[2, 5]]])
        # The connections are kept.
        client.ask(requests.verify(self.claims()))
        self.assertEqual([service.connections for service in services], [1, 1, 1])

    def test_what_was_not_asked_for_stays_empty(self) -> None:
        _, services = self.gates(2)
        answer = self.client(addresses(services)).ask(requests.verify([("a", proof(2)), ("a", proof(1))]))
        self.assertEqual(answer, ([GRANTED] * 2, []))

    def test_grants_and_options_are_put_together(self) -> None:
        gates, services = self.gates(3)
        client = self.client(addresses(services))
        grants = [gates[issuer - 1].grant(place) for place, issuer in enumerate(self.issuers)]
        opening, options = client.ask(requests.open_with_options(self.claims()))
        self.assertEqual((opening.verdicts, opening.grants), ([GRANTED] * 7, grants))
        # The second service knows only b first and then a, the third one c and then a.
        self.assertEqual(options, [["a"], ["b"], ["c"]])
        opening = client.ask(requests.open(self.claims(), want_roots=True))
        roots = [gates[issuer - 1].root(place) for place, issuer in enumerate(self.issuers)]
        self.assertEqual(opening, ([GRANTED] * 7, roots, grants))

    def test_options_of_the_first_answer_stay_when_the_second_one_accepts_nothing(self) -> None:
        gates, services = self.gates(2)
        gates[1].issuer = 7
        claims = [("a", proof(1)), ("b", proof(1)), ("a", proof(2))]
        opening, options = self.client(addresses(services)).ask(requests.open_with_options(claims))
        self.assertEqual((opening.verdicts, options), ([GRANTED, GRANTED, ELSEWHERE], [["a"], ["b"]]))
        self.assertEqual(gates[1].requests, [[0]])

    def test_a_proof_whose_issuer_nobody_is_stays_elsewhere(self) -> None:
        gates, services = self.gates(2)
        client = self.client([*addresses(services), closed_address()])
        claims = [("a", proof(2, 0)), ("a", proof(9, 1)), ("a", proof(1, 2))]
        self.assertEqual(client.ask(requests.verify(claims)).verdicts, [GRANTED, ELSEWHERE, GRANTED])
        self.assertEqual([gate.requests for gate in gates], [[[0, 1, 2]], [[0]]])

    def test_a_proof_that_is_refused_for_another_reason_is_not_sent_again(self) -> None:
        gates, services = self.gates(2)
        answer = self.client(addresses(services)).ask(requests.verify([("a", proof(2, REFUSED)), ("a", proof(2, 1))]))
        self.assertEqual((answer.verdicts, gates[1].requests), ([Verdict.BAD_SIGNATURE, GRANTED], [[1]]))

    def test_the_sequence_that_a_service_must_know_goes_with_the_proofs(self) -> None:
        for ask in (requests.verify, requests.open):
            gates, services = self.gates(2)
            self.client(addresses(services)).ask(ask([("a", proof(2))], at_least=5))
            self.assertEqual([gate.sequences for gate in gates], [{5}, {5}])

    def test_data_that_are_too_short_for_a_challenge_stay_elsewhere(self) -> None:
        gates, services = self.gates(2)
        short = proof(2)._replace(data=bytes(16) + b"\2" + bytes(6))
        answer = self.client(addresses(services)).ask(requests.verify([("a", short)]))
        self.assertEqual((answer.verdicts, len(gates[1].requests)), ([ELSEWHERE], 0))

    def test_a_proof_whose_issuer_gives_no_answer_is_sent_there_once_and_stays_elsewhere(self) -> None:
        def babble(served: Served) -> None:
            operation, request_id, _ = served.request()
            served.answer(operation, request_id, verdicts(2))

        for script in (lose, babble, refuse(ErrorCode.STALE), refuse(ErrorCode.BUSY), refuse(ErrorCode.SHUTTING_DOWN)):
            gates, services = self.gates(1)
            bodies: list[bytes] = []
            services.append(self.serve(self.noting(bodies, script), issuer=2))
            claims = [("a", proof(1, 0)), ("a", proof(2, 1))]
            answer = self.client(addresses(services)).ask(requests.verify(claims))
            self.assertEqual((answer.verdicts, len(bodies), gates[0].requests), ([GRANTED, ELSEWHERE], 1, [[0, 1]]))

    def test_an_issuer_that_is_silent_is_waited_for_until_the_deadline(self) -> None:
        # It answers the hello, or not even that.
        for issuer in (2, None):
            _, services = self.gates(1)
            services.append(self.serve(silent, issuer=issuer))
            begun = time.monotonic()
            answer = self.client(addresses(services)).ask(requests.verify([("a", proof(2))], timeout=0.5))
            self.assertEqual(answer.verdicts, [ELSEWHERE])
            self.assertTrue(0.4 < time.monotonic() - begun < 2.5, time.monotonic() - begun)

    def test_an_issuer_is_asked_before_a_silent_address_gives_its_number(self) -> None:
        _, services = self.gates(2)
        addresses = [services[0].address, self.serve(silent).address, services[1].address]
        client = self.client(addresses, connect_timeout=5)
        begun = time.monotonic()
        self.assertEqual(client.ask(requests.verify([("a", proof(2))])).verdicts, [GRANTED])
        self.assertLess(time.monotonic() - begun, 4)

    def test_single_proofs_of_many_callers_find_their_issuers_and_share_requests(self) -> None:
        gates, services = self.gates(3)
        client = self.client(addresses(services))
        futures = [client.start(requests.verify([("a", proof(1 + number % 3, number))])) for number in range(60)]
        self.assertEqual([future.result(PATIENCE).verdicts for future in futures], [[GRANTED]] * 60)
        self.assertEqual([service.connections for service in services], [1, 1, 1])
        for place, gate in enumerate(gates[1:], 1):
            self.assertEqual(sorted(number for numbers in gate.requests for number in numbers), [*range(place, 60, 3)])
            self.assertLess(len(gate.requests), 20)

    def test_an_address_that_lets_nobody_connect_is_not_asked_for_its_number_again_at_once(self) -> None:
        _, services = self.gates(1)
        services.append(self.serve(lose))
        client = self.client(addresses(services))
        for _ in range(5):
            self.assertEqual(client.ask(requests.verify([("a", proof(2))])).verdicts, [ELSEWHERE])
        self.assertEqual(services[1].connections, 1)
        with unittest.mock.patch("rootgate.gates.SHUNNED", 0):
            client.ask(requests.verify([("a", proof(2))]))
        self.assertEqual(services[1].connections, 2)

    def test_a_service_that_was_restarted_is_found_by_its_new_number(self) -> None:
        _, services = self.gates(1)
        restarted = [FakeGate(2), FakeGate(3)]

        def begin(served: Served) -> None:
            gate = restarted[services[1].connections - 1]
            served.greet(gate.issuer)
            if gate.issuer == 3:
                gate.serve(served)

        services.append(self.serve(begin))
        client = self.client(addresses(services))
        self.assertEqual(client.ask(requests.verify([("a", proof(2))])).verdicts, [ELSEWHERE])
        time.sleep(0.05)
        self.assertEqual(client.ask(requests.verify([("a", proof(3))])).verdicts, [GRANTED])

    def test_with_one_address_the_verdict_stays_and_there_is_no_hello(self) -> None:
        gate = FakeGate(1)
        client = self.client(self.serve(gate.serve).address)
        self.assertEqual(client.ask(requests.verify([("a", proof(2))])).verdicts, [ELSEWHERE])
        self.assertEqual(gate.requests, [[0]])

    def test_an_inclusion_only_verify_belongs_nowhere(self) -> None:
        bodies: list[bytes] = []

        def elsewhere(served: Served) -> None:
            operation, request_id, _ = served.request()
            served.answer(operation, request_id, struct.pack("<IIB", 1, 0, ELSEWHERE))

        services = [self.serve(elsewhere, issuer=1), self.serve(self.noting(bodies, elsewhere), issuer=2)]
        answer = self.client(addresses(services)).ask(requests.verify_inclusion([("a", proof(2))]))
        self.assertEqual((answer.verdicts, bodies), ([ELSEWHERE], []))


REQUESTS: list[tuple[Request[Any], bytes]] = [
    (requests.ping(b"x"), b"x"),
    (requests.add_roots("deck", [bytes(32)]), RECEIPT),
    (requests.read_changes(0, 9), bytes(8)),
    (requests.verify([("deck", proof(1))]), verdicts(1)),
    (requests.open([("deck", proof(1))]), verdicts(1) + bytes(GRANT_SIZE)),
]
"""Requests with answers to them."""


class FailoverCases(GatesCases):
    """Another service is asked when one can't answer."""

    def test_without_a_service_the_error_comes_within_the_deadline(self) -> None:
        services = [self.serve(lose) for _ in range(3)]
        client = self.client([closed_address(), *addresses(services)], timeout=0.6)
        begun = time.monotonic()
        with self.assertRaises((ConnectionLost, ConnectionRefusedError, DeadlineExceeded)):
            client.ask(requests.verify([("deck", proof(1))]))
        self.assertTrue(0.1 < time.monotonic() - begun < 5, time.monotonic() - begun)
        # As many rounds as one address alone would be tried: with pauses of 25 ms, 50, 100 and 200, or half of each.
        for service in services:
            self.assertTrue(2 <= service.connections <= 7, service.connections)

    def test_the_next_service_answers_when_one_is_stale_whatever_the_request_is(self) -> None:
        for request, body in REQUESTS:
            asked_first: list[bytes] = []
            asked_next: list[bytes] = []

            def answer(served: Served) -> None:
                operation, request_id, _ = served.request()
                served.answer(operation, request_id, body)
                served.echo()

            stale = self.serve(self.noting(asked_first, refuse(ErrorCode.STALE)), issuer=1)
            other = self.serve(self.noting(asked_next, answer), issuer=2)
            client = self.client([stale.address, other.address])
            with unittest.mock.patch("rootgate.asyncio_client.PAUSE", 60):
                client.ask(request)
            self.assertEqual((asked_first, asked_next), ([request.body], [request.body]))
            # It is used from then on.
            self.assertEqual(client.ask(requests.ping(b"on")), b"on")
            self.assertEqual((stale.connections, other.connections), (1, 1))

    def test_when_all_are_stale_the_error_says_so_at_the_deadline(self) -> None:
        services = [self.serve(refuse(ErrorCode.STALE), issuer=number) for number in range(2)]
        begun = time.monotonic()
        # On a busy machine the deadline may come during an attempt.
        with self.assertRaises((RootgateError, DeadlineExceeded)) as caught:
            self.client(addresses(services), timeout=1.0).ask(requests.verify([("deck", proof(1))]))
        if isinstance(caught.exception, RootgateError):
            self.assertEqual(caught.exception.code, ErrorCode.STALE)
        self.assertTrue(0.3 < time.monotonic() - begun < 5, time.monotonic() - begun)
        self.assertEqual([service.connections for service in services], [1, 1])

    def test_with_one_address_stale_is_an_error_at_once(self) -> None:
        count = 0

        def stale(served: Served) -> None:
            nonlocal count
            while True:
                operation, request_id, _ = served.request()
                count += 1
                served.error(operation, request_id, ErrorCode.STALE)

        with self.assertRaises(RootgateError):
            self.client(self.serve(stale).address).ask(requests.ping())
        self.assertEqual(count, 1)

    def test_a_service_that_shuts_down_hands_over_without_a_pause(self) -> None:
        for request, body in REQUESTS:

            def answer(served: Served) -> None:
                operation, request_id, _ = served.request()
                served.answer(operation, request_id, body)

            def drain(served: Served) -> None:
                operation, request_id, _ = served.request()
                served.error(operation, request_id, ErrorCode.SHUTTING_DOWN)
                served.farewell()

            draining, other = self.serve(drain, issuer=1), self.serve(answer, issuer=2)
            with unittest.mock.patch("rootgate.asyncio_client.PAUSE", 60):
                self.client([draining.address, other.address]).ask(request)
            self.assertEqual((draining.connections, other.connections), (1, 1))

    def test_a_verify_or_open_of_unknown_fate_is_sent_to_no_other_service(self) -> None:
        for request in (requests.verify([("deck", proof(1))]), requests.open([("deck", proof(1))])):
            bodies: list[bytes] = []
            lost, other = self.serve(lose, issuer=1), self.serve(self.noting(bodies, echo), issuer=2)
            client = self.client([lost.address, other.address])
            with self.assertRaises(ConnectionLost) as caught:
                client.ask(request)
            self.assertTrue(caught.exception.was_sent)
            # The next request goes there.
            self.assertEqual(client.ask(requests.ping(b"on")), b"on")
            self.assertEqual((bodies, lost.connections), ([b"on"], 1))

    def test_a_mutation_is_repeated_at_the_next_service_with_the_same_identifier(self) -> None:
        bodies: list[bytes] = []

        def receive(served: Served) -> None:
            operation, request_id, _ = served.request()
            served.answer(operation, request_id, RECEIPT)

        services = [self.serve(self.noting(bodies, script), issuer=1) for script in (lose, receive)]
        client = self.client(addresses(services))
        self.assertEqual(client.ask(requests.add_roots("deck", [bytes(32)])), Receipt(7, 1, False))
        self.assertEqual((len(bodies), len(set(bodies))), (2, 1))

    def test_many_requests_leave_a_service_once(self) -> None:
        stale, other = self.serve(refuse(ErrorCode.STALE), issuer=1), self.serve(grant, issuer=2)
        third = self.serve(grant, issuer=3)
        client = self.client(addresses([stale, other, third]))
        claims = [("deck", proof(2)), ("deck", proof(2))]
        futures = [client.start(requests.verify(claims[:1], want_roots=True)) for _ in range(50)]
        self.assertEqual([future.result(PATIENCE).verdicts for future in futures], [[GRANTED]] * 50)
        self.assertEqual((other.connections, third.connections), (1, 0))

    def test_a_service_that_breaks_the_protocol_is_passed_over_unless_all_do(self) -> None:
        def babble(served: Served) -> None:
            served.request()
            served.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        services = [self.serve(babble), self.serve(echo, issuer=2)]
        self.assertEqual(self.client(addresses(services)).ask(requests.ping(b"x")), b"x")
        # One that may come back is waited for.
        with self.assertRaises((OSError, ProtocolError)):
            begun = time.monotonic()
            self.client([closed_address(), services[0].address], timeout=0.4).ask(requests.ping(b"x"))
        self.assertGreater(time.monotonic() - begun, 0.1)
        services = [self.serve(babble) for _ in range(2)]
        with self.assertRaises(ProtocolError):
            self.client(addresses(services)).ask(requests.ping(b"x"))
        self.assertEqual([service.connections for service in services], [1, 1])

    def test_an_attempt_that_nobody_waits_for_any_more_leaves_the_address_when_it_fails(self) -> None:
        mute, other = self.serve(silent), self.serve(echo, issuer=2)
        client = self.client([mute.address, other.address], connect_timeout=0.4)
        future = client.start(requests.ping(b"x"))
        with self.assertRaises((TimeoutError, concurrent.futures.TimeoutError)):
            future.result(0.1)
        future.cancel()
        time.sleep(0.6)
        self.assertEqual(client.ask(requests.ping(b"x", timeout=0.3)), b"x")

    def test_a_client_that_is_closed_ends_its_connections_to_all(self) -> None:
        ended = threading.Semaphore(0)

        def serve(gate: FakeGate, served: Served) -> None:
            try:
                gate.serve(served)
            finally:
                ended.release()

        gates = [FakeGate(number) for number in range(1, 4)]
        services = [self.serve(functools.partial(serve, gate), issuer=gate.issuer) for gate in gates]
        client = self.new(addresses(services))
        try:
            self.assertEqual(client.ask(requests.verify([("a", proof(9))])).verdicts, [ELSEWHERE])
        finally:
            client.close()
        self.assertTrue(all(ended.acquire(timeout=PATIENCE / 3) for _ in services))


class BlockingRoutingTests(RoutingCases):
    new = BlockingCaller


class AsyncioRoutingTests(RoutingCases):
    new = AsyncioCaller


class BlockingFailoverTests(FailoverCases):
    new = BlockingCaller


class AsyncioFailoverTests(FailoverCases):
    new = AsyncioCaller


del ClientCases, GatesCases, RoutingCases, FailoverCases


if __name__ == "__main__":
    unittest.main()
