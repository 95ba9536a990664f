# SPDX-License-Identifier: Apache-2.0
"""Single proofs of many tasks leave together, and each task gets its own verdict or error."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import random
import struct
import threading
import unittest
from typing import Any
from unittest import mock

from rootgate import ConnectionLost, DeadlineExceeded, ErrorCode, Proof, ProtocolError, RootgateError, requests
from rootgate.link import STALL_SECONDS, Link
from rootgate.packing import ABSENT_CALLS, MAXIMUM_BYTES, MAXIMUM_PROOFS, Call, Line, Pack, answers
from rootgate.requests import Request, encode_verification

from fake_service import PATIENCE, AsyncioCaller, BlockingCaller, Operation, Served, verdicts
from test_retries import ClientCases


def proof(number: int) -> Proof:
    return Proof(b"key %d" % number, number, [bytes([number % 256]) * 32] * (number % 3), b"signature", b"data")


def verify(number: int, deck: str = "deck", **options: Any) -> Request[Any]:
    return requests.verify([(deck, proof(number))], **options)


def call(number: int, deck: str = "deck", at_least: int = 0, operation: int = Operation.VERIFY) -> Call:
    return Call(operation, encode_verification([(deck, proof(number))], at_least=at_least), number)


class PackTests(unittest.TestCase):
    """The bytes of packs and of their answers."""

    def test_a_pack_has_the_bytes_of_one_request_with_all_proofs(self) -> None:
        decks = ["a", "b", "a", "ä" * 60, "b"]
        calls = [call(number, deck, at_least=7) for number, deck in enumerate(decks)]
        whole = encode_verification([(deck, proof(number)) for number, deck in enumerate(decks)], at_least=7)
        self.assertEqual(Pack(calls).body(), whole)
        self.assertEqual(Pack(calls[:1]).body(), calls[0].body)

    def test_an_answer_is_divided_among_the_calls(self) -> None:
        answer = struct.pack("<II", 3, 0) + b"\1\2\3"
        self.assertEqual(answers(answer, 3), [struct.pack("<IIB", 1, 0, verdict) for verdict in (1, 2, 3)])

    def test_an_answer_about_another_number_of_proofs_is_none(self) -> None:
        for answer in (
            b"",
            struct.pack("<II", 2, 0) + b"\1\1",
            struct.pack("<II", 1, 0) + b"\1\1\1",
            struct.pack("<II", 3, 1) + b"\1\1\1",
            struct.pack("<II", 3, 0) + b"\1\1\1\1",
            struct.pack("<II", 3, 0) + b"\1\1",
        ):
            self.assertIsNone(answers(answer, 3))


class LineTests(unittest.TestCase):
    """What leaves when."""

    def setUp(self) -> None:
        self.line = Line()
        self.next_id = 0

    def take(self) -> list[tuple[int, Pack]]:
        """Sends everything that leaves now."""
        taken = []
        while pack := self.line.take():
            self.next_id += 1
            self.line.sent(self.next_id, pack)
            taken.append((self.next_id, pack))
        return taken

    def add(self, *calls: Call) -> list[tuple[int, Pack]]:
        for each in calls:
            self.line.append(each)
        return self.take()

    def test_a_lone_call_leaves_at_once_and_later_ones_when_they_are_as_many_as_those_in_flight(self) -> None:
        sizes = [[len(pack.calls) for _, pack in self.add(call(number))] for number in range(16)]
        self.assertEqual([place for place, size in enumerate(sizes) if size], [0, 1, 3, 7, 15])
        self.assertEqual([size[0] for size in sizes if size], [1, 1, 2, 4, 8])
        self.assertEqual(self.add(call(16), call(17)), [])
        for request_id in range(1, 6):
            self.line.answered(request_id)
        self.assertEqual([len(pack.calls) for _, pack in self.take()], [2])

    def test_proofs_of_another_kind_are_in_another_request(self) -> None:
        calls = [call(0), call(1, at_least=5), call(2, at_least=5), call(3, operation=Operation.VERIFY_INCLUSION)]
        packs = [pack for _, pack in self.add(*calls)]
        self.assertEqual([[each.waiter for each in pack.calls] for pack in packs], [[0], [1, 2], [3]])

    def test_a_request_has_a_bounded_number_of_proofs_and_bytes(self) -> None:
        packs = [pack for _, pack in self.add(*(call(number) for number in range(MAXIMUM_PROOFS + 1)))]
        self.assertEqual([len(pack.calls) for pack in packs], [MAXIMUM_PROOFS, 1])
        large = encode_verification([("deck", Proof(b"k", 0, [], b"s", bytes(4000)))])
        count = MAXIMUM_BYTES // len(large) + 1
        packs = [pack for _, pack in self.add(*(Call(Operation.VERIFY, large) for _ in range(256 + count)))]
        self.assertTrue(all(len(pack.body()) <= MAXIMUM_BYTES for pack in packs))
        self.assertGreater(len(packs), 1)

    def test_every_call_ends_once_whatever_happens(self) -> None:
        seed = random.randrange(1 << 32)
        for number in range(300):
            absent = (1, 4, ABSENT_CALLS)[number % 3]
            with self.subTest(seed=seed + number), mock.patch("rootgate.packing.ABSENT_CALLS", absent):
                self.run_randomly(random.Random(seed + number))

    def test_calls_that_nobody_waits_for_do_not_stay_while_nothing_leaves(self) -> None:
        calls = [call(number) for number in range(1000)]
        for each in calls:
            self.line.append(each)
        for each in calls[10:]:
            self.assertIsNone(self.line.leave(each))
        [(_, pack)] = self.take()
        self.assertEqual([each.waiter for each in pack.calls], list(range(10)))
        for each in calls:
            self.line.append(each)
            self.line.leave(each)
        self.assertLessEqual(len(self.line.clear()[0]), ABSENT_CALLS + 1)

    def run_randomly(self, source: random.Random) -> None:
        """Adds, answers, refuses and gives up at random. Then each call was answered, refused alone or given up."""
        self.line, self.next_id = Line(), 0
        ended: dict[int, str] = {}
        waiting: dict[int, Call] = {}
        flying: dict[int, list[int]] = {}
        culprits = {number for number in range(60) if source.random() < 0.1}

        def send() -> None:
            for request_id, pack in self.take():
                numbers = [each.waiter for each in pack.calls]
                self.assertTrue(all(number in waiting for number in numbers))
                self.assertFalse(set(numbers) & {number for each in flying.values() for number in each})
                flying[request_id] = numbers

        def settle() -> None:
            request_id = source.choice(list(flying))
            numbers = flying.pop(request_id)
            busy = source.random() < 0.1
            if (busy or culprits & set(numbers)) and self.line.again(request_id, is_busy=busy):
                return
            calls = self.line.answered(request_id)
            self.assertEqual([each.waiter for each in calls or []], numbers)
            for number in numbers:
                if waiting.pop(number, None) is not None:
                    refused = len(numbers) == 1 and (busy or number in culprits)
                    ended[number] = "refused" if refused else "answered"

        for number in range(60):
            waiting[number] = call(number, source.choice("abc"), source.choice((0, 1)))
            self.line.append(waiting[number])
            send()
            while flying and source.random() < 0.4:
                settle()
                send()
            if waiting and source.random() < 0.1:
                given_up = source.choice(list(waiting))
                request_id = self.line.leave(waiting.pop(given_up))
                ended[given_up] = "given up"
                if request_id is not None:
                    del flying[request_id]
                send()
        while flying:
            settle()
            send()
        self.assertEqual((sorted(ended), waiting), (list(range(60)), {}))
        self.assertFalse(any(ended[number] == "answered" for number in culprits))
        self.assertEqual(self.line.clear(), ([], []))


class Unread(asyncio.Transport):
    """The way to a service that reads as much as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted = False
        self.left = 1 << 20

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.left

    def write(self, data: Any) -> None:
        pass

    def abort(self) -> None:
        self.is_aborted = True


class Timers(asyncio.SelectorEventLoop):
    """A loop that keeps its timers for a test to end."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[Any, tuple[Any, ...]]] = []

    def call_later(self, delay: float, callback: Any, *args: Any, **options: Any) -> asyncio.TimerHandle:
        if delay == STALL_SECONDS:
            self.kept.append((callback, args))
        return super().call_later(delay, callback, *args, **options)

    def end_last(self) -> None:
        """What is to be done when the newest timer has ended."""
        callback, args = self.kept[-1]
        callback(*args)


class StallTests(unittest.TestCase):
    """A connection on which a request waits, to a service that reads little or nothing."""

    def setUp(self) -> None:
        self.loop, self.transport = Timers(), Unread()
        self.addCleanup(self.loop.close)
        self.link = Link(self.loop)
        self.link.connection_made(self.transport)
        self.link.pause_writing()

    def test_it_ends_when_nothing_is_read(self) -> None:
        async def ask() -> None:
            waiting = self.loop.create_task(self.link.request(verify(1), self.loop.time() + PATIENCE))
            await asyncio.sleep(0)
            self.loop.end_last()
            with self.assertRaisesRegex(ConnectionLost, "before the request was sent"):
                await waiting

        self.loop.run_until_complete(ask())
        self.assertTrue(self.transport.is_aborted)
        self.assertFalse(self.link.is_open)

    def test_it_stays_while_something_is_read(self) -> None:
        for _ in range(3):
            self.transport.left -= 1
            self.loop.end_last()
            self.assertTrue(self.link.is_open)
        self.loop.end_last()
        self.assertFalse(self.link.is_open)

    def test_a_pause_that_has_ended_ends_nothing(self) -> None:
        self.link.resume_writing()
        self.assertEqual([timer for timer in self.loop._scheduled if not timer.cancelled()], [])  # type: ignore
        self.assertTrue(self.link.is_open)


class Gate:
    """A service that notes its requests, and answers the first one only when it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.noted: queue.Queue[tuple[int, bytes]] = queue.Queue()

    def counts(self) -> list[int]:
        """How many proofs each request had."""
        return [int.from_bytes(body[12:16], "little") for _, body in self.noted.queue]

    def sent(self) -> list[int]:
        """The indexes of the proofs, in the order in which they came. Nothing says that it is that of the calls: those
        that were made while the client connected may leave behind the ones made then."""
        return [index for _, body in self.noted.queue for index in self.indexes(body)]

    def note(self, served: Served) -> tuple[int, int, bytes]:
        operation, request_id, body = served.request()
        self.noted.put((operation, body))
        return operation, request_id, body

    def grant(self, served: Served) -> None:
        """Verdicts that tell the proofs apart: the index in the tree."""
        operation, request_id, body = self.note(served)
        self.opened.wait(PATIENCE)
        while True:
            served.answer(operation, request_id, self.answer(body))
            operation, request_id, body = self.note(served)

    @staticmethod
    def answer(body: bytes) -> bytes:
        count = int.from_bytes(body[12:16], "little")
        return struct.pack("<II", count, 0) + bytes(Gate.indexes(body))

    @staticmethod
    def indexes(body: bytes) -> list[int]:
        """The index of each proof, which `proof` made."""
        _, _, _, names, count = struct.unpack_from("<QBBHI", body)
        place = 16
        for _ in range(names):
            place += 1 + body[place]
        indexes = []
        for _ in range(count):
            _, hashes, _, index, key, signature, data = struct.unpack_from("<HBBQBBH", body, place)
            indexes.append(index)
            place += 16 + 32 * hashes + key + signature + data
        assert place == len(body), (place, len(body))
        return indexes


class PackingCases(ClientCases):
    """Many tasks with one client."""

    def ask_many(self, client: Any, count: int, **options: Any) -> list[concurrent.futures.Future[Any]]:
        return [client.start(verify(number, "deck" if number % 3 else "other", **options)) for number in range(count)]

    def test_many_calls_leave_in_few_requests_and_each_gets_its_own_verdict(self) -> None:
        gate = Gate()
        client = self.client(self.serve(gate.grant).address)
        futures = self.ask_many(client, 200)
        while gate.noted.empty():
            pass
        gate.opened.set()
        self.assertEqual([future.result(PATIENCE).verdicts for future in futures], [[number] for number in range(200)])
        counts = gate.counts()
        self.assertEqual((counts[0], sum(counts)), (1, 200))
        self.assertLess(len(counts), 30)

    def test_calls_one_after_the_other_are_requests_of_their_own(self) -> None:
        gate = Gate()
        gate.opened.set()
        client = self.client(self.serve(gate.grant).address)
        for number in range(5):
            self.assertEqual(client.ask(verify(number)).verdicts, [number])
        self.assertEqual(gate.counts(), [1] * 5)

    def test_what_asks_for_roots_or_has_several_proofs_is_not_packed(self) -> None:
        several = requests.verify([("deck", proof(1)), ("deck", proof(2))])
        roots = requests.verify([("deck", proof(1))], want_roots=True)
        self.assertFalse(several.is_single_proof or roots.is_single_proof)
        self.assertTrue(verify(1).is_single_proof and requests.verify_inclusion([("deck", proof(1))]).is_single_proof)

    def test_a_refusal_of_one_proof_reaches_its_caller_only(self) -> None:
        for code in (ErrorCode.LIMIT_EXCEEDED, ErrorCode.MALFORMED_REQUEST, ErrorCode.ROLE_MISSING, ErrorCode.BUSY):
            gate = Gate()

            def refuse(served: Served, gate: Gate = gate, code: int = code) -> None:
                while True:
                    operation, request_id, body = gate.note(served)
                    gate.opened.wait(PATIENCE)
                    if 13 in Gate.indexes(body):
                        served.error(operation, request_id, code, detail=5)
                    else:
                        served.answer(operation, request_id, Gate.answer(body))

            client = self.client(self.serve(refuse).address)
            futures = self.ask_many(client, 40)
            while gate.noted.empty():
                pass
            gate.opened.set()
            for number, future in enumerate(futures):
                if number == 13:
                    with self.assertRaises(RootgateError) as raised:
                        future.result(PATIENCE)
                    self.assertEqual(raised.exception.code, code)
                else:
                    self.assertEqual(future.result(PATIENCE).verdicts, [number])

    def test_another_error_reaches_all_whose_proofs_were_in_the_request(self) -> None:
        gate = Gate()

        def fail(served: Served) -> None:
            first = gate.note(served)
            gate.opened.wait(PATIENCE)
            served.answer(first[0], first[1], Gate.answer(first[2]))
            while True:
                operation, request_id, _ = gate.note(served)
                served.error(operation, request_id, ErrorCode.STORAGE_FAILED)

        client = self.client(self.serve(fail).address)
        futures = self.ask_many(client, 20)
        while gate.noted.empty():
            pass
        gate.opened.set()
        first = gate.sent()[0]
        self.assertEqual(futures.pop(first).result(PATIENCE).verdicts, [first])
        errors = [future.exception(PATIENCE) for future in futures]
        self.assertTrue(all(isinstance(error, RootgateError) and error.code == 49 for error in errors), errors)
        self.assertEqual(len({id(error) for error in errors}), 19)

    def test_an_answer_about_other_proofs_is_nobodys_verdict(self) -> None:
        gate = Gate()

        def mislead(served: Served) -> None:
            first = gate.note(served)
            gate.opened.wait(PATIENCE)
            served.answer(first[0], first[1], Gate.answer(first[2]))
            while True:
                operation, request_id, body = gate.note(served)
                # As if it were about one proof, whatever the request has.
                served.answer(operation, request_id, verdicts(1 if len(Gate.indexes(body)) > 1 else 2))

        client = self.client(self.serve(mislead).address)
        futures = self.ask_many(client, 20)
        while gate.noted.empty():
            pass
        gate.opened.set()
        first = gate.sent()[0]
        self.assertEqual(futures.pop(first).result(PATIENCE).verdicts, [first])
        for future in futures:
            self.assertIsInstance(future.exception(PATIENCE), ProtocolError)

    def test_who_gives_up_leaves_the_others_their_verdicts(self) -> None:
        gate = Gate()
        client = self.client(self.serve(gate.grant).address)
        futures = self.ask_many(client, 30)
        late = client.start(verify(77, timeout=0.2))
        while gate.noted.empty():
            pass
        for number in range(0, 30, 7):
            futures[number].cancel()
        with self.assertRaises(DeadlineExceeded):
            late.result(PATIENCE)
        gate.opened.set()
        for number, future in enumerate(futures):
            if number % 7:
                self.assertEqual(future.result(PATIENCE).verdicts, [number])
        self.assertEqual(client.ask(verify(99)).verdicts, [99])

    def test_when_the_connection_is_lost_only_what_was_not_sent_is_sent_again(self) -> None:
        gate = Gate()
        good = Gate()
        good.opened.set()

        def lose(served: Served) -> None:
            for _ in range(3):
                gate.note(served)
            served.reset()

        client = self.client(self.serve(lose, good.grant).address)
        # One, one and two are in flight; two more wait.
        futures = [client.start(verify(number)) for number in range(6)]
        lost = []
        for number, future in enumerate(futures):
            try:
                self.assertEqual(future.result(PATIENCE).verdicts, [number])
            except ConnectionLost as error:
                self.assertTrue(error.was_sent)
                lost.append(number)
        self.assertEqual((len(lost), lost), (4, sorted(gate.sent())))
        self.assertEqual(sorted(lost + good.sent()), list(range(6)))

    def test_a_shutdown_lets_what_was_not_begun_be_sent_again(self) -> None:
        gate, good = Gate(), Gate()
        good.opened.set()

        def shut_down(served: Served) -> None:
            first = gate.note(served)
            gate.opened.wait(PATIENCE)
            served.answer(first[0], first[1], Gate.answer(first[2]))
            for _ in range(2):
                operation, request_id, _ = gate.note(served)
                served.error(operation, request_id, ErrorCode.SHUTTING_DOWN)
            served.farewell()
            # What is left unread would reset the connection, and the last words could be lost.
            while True:
                served.request()

        client = self.client(self.serve(shut_down, good.grant).address)
        futures = self.ask_many(client, 10)
        while gate.noted.empty():
            pass
        gate.opened.set()
        self.assertEqual([future.result(PATIENCE).verdicts for future in futures], [[number] for number in range(10)])


class BlockingPackingTests(PackingCases):
    new = BlockingCaller


class AsyncioPackingTests(PackingCases):
    new = AsyncioCaller


del PackingCases, ClientCases


if __name__ == "__main__":
    unittest.main()
