# SPDX-License-Identifier: Apache-2.0
"""Frames, bodies and addresses, without a service."""

from __future__ import annotations

import json
import os
import random
import struct
import unittest
from typing import Any

from rootgate import ErrorCode, Proof, ProtocolError, RootgateError, Verdict, error_name, requests, verdict_name
from rootgate.addresses import Address, parse_address, parse_addresses
from rootgate.frames import Frame, FrameReader, Reader, decode_error, encode_frame
from rootgate.protocol import HEADER, MAXIMUM_BODY, Kind, Operation
from rootgate.requests import Request
from rootgate.session import Session

SEED = int(os.environ.get("ROOTGATE_TEST_SEED") or random.randrange(1 << 32))


def error_body(code: int, detail: int = 0, text: bytes = b"no") -> bytes:
    return struct.pack("<HHI", code, len(text), detail) + text


class FrameTests(unittest.TestCase):
    def test_frames_come_whole_from_pieces_of_any_size(self) -> None:
        generator = random.Random(SEED)
        frames = [
            Frame(generator.choice([2, 3]), generator.randrange(1 << 16), generator.getrandbits(64), os.urandom(size))
            for size in [0, 1, 15, 16, 17, 4_000, *(generator.randrange(200) for _ in range(50))]
        ]
        data = b"".join(encode_frame(f.operation, f.request_id, f.body, kind=f.kind) for f in frames)
        for longest in (1, 3, 40, 5_000, len(data)):
            reader, rest = FrameReader(), data
            came: list[Frame] = []
            while rest:
                size = generator.randint(1, longest)
                came += reader.read(rest[:size])
                rest = rest[size:]
            self.assertEqual(came, frames, f"ROOTGATE_TEST_SEED={SEED}, pieces of up to {longest} bytes")

    def test_headers_that_no_answer_has_are_refused_before_their_bodies(self) -> None:
        for length, version, kind in [
            (MAXIMUM_BODY + 1, 1, 2), (2**32 - 1, 1, 2), (0, 0, 2), (0, 2, 2), (0, 1, 0), (0, 1, 1), (0, 1, 4),
        ]:  # fmt: skip
            with self.subTest(length=length, version=version, kind=kind), self.assertRaises(ProtocolError):
                list(FrameReader().read(HEADER.pack(length, version, kind, 2, 1)))

    def test_the_longest_body_is_taken(self) -> None:
        [frame] = FrameReader().read(encode_frame(2, 1, bytes(MAXIMUM_BODY), kind=Kind.ANSWER))
        self.assertEqual(len(frame.body), MAXIMUM_BODY)

    def test_errors_have_code_detail_and_text(self) -> None:
        error = decode_error(error_body(ErrorCode.BUSY, 250, "é".encode()))
        self.assertEqual((error.code, error.detail, error.text, error.retry_after), (32, 250, "é", 0.25))
        self.assertIsNone(decode_error(error_body(ErrorCode.BUSY)).retry_after)
        self.assertIsNone(decode_error(error_body(ErrorCode.BEHIND_SEQUENCE, 9)).retry_after)
        self.assertEqual((error_name(12_345), verdict_name(200)), ("internal-fault", "unknown-200"))
        for body in (b"", error_body(32)[:-1], error_body(32) + b"x"):
            with self.subTest(body=body), self.assertRaises(ProtocolError):
                decode_error(body)


class SessionTests(unittest.TestCase):
    def answer(self, session: Session, operation: int, request_id: int) -> list[Any]:
        return list(session.receive(encode_frame(operation, request_id, b"", kind=Kind.ANSWER)))

    def test_answers_find_their_requests_in_any_order(self) -> None:
        session = Session()
        ids = [session.begin(Operation.PING, b"")[0] for _ in range(10)]
        for request_id in reversed(ids):
            self.assertEqual(self.answer(session, Operation.PING, request_id), [(request_id, b"")])
            self.assertFalse(session.is_waiting(request_id))

    def test_an_answer_that_nobody_waits_for_is_refused(self) -> None:
        session = Session()
        request_id, _ = session.begin(Operation.PING, b"")
        for operation, number in [(Operation.PING, request_id + 1), (Operation.VERIFY, request_id), (0, 0)]:
            with self.subTest(operation=operation, number=number), self.assertRaises(ProtocolError):
                self.answer(session, operation, number)

    def test_a_late_answer_is_dropped_once(self) -> None:
        session = Session()
        request_id, _ = session.begin(Operation.PING, b"")
        session.abandon(request_id)
        self.assertEqual(self.answer(session, Operation.PING, request_id), [])
        with self.assertRaises(ProtocolError):
            self.answer(session, Operation.PING, request_id)

    def test_a_request_that_was_withdrawn_has_no_answer(self) -> None:
        session = Session()
        request_id, _ = session.begin(Operation.PING, b"")
        session.withdraw(request_id)
        with self.assertRaises(ProtocolError):
            self.answer(session, Operation.PING, request_id)

    def test_errors_about_the_connection_are_raised_and_others_are_not(self) -> None:
        for code in (1, 2, 3, 4, 8, 33):
            session = Session()
            session.begin(Operation.PING, b"")
            with self.subTest(code=code), self.assertRaises(RootgateError):
                list(session.receive(encode_frame(0, 0, error_body(code), kind=Kind.ERROR)))
            self.assertEqual(session.is_open, code != 33)
        session = Session()
        request_id, _ = session.begin(Operation.PING, b"")
        frame = encode_frame(Operation.PING, request_id, error_body(33), kind=Kind.ERROR)
        [(came, outcome)] = session.receive(frame)
        self.assertEqual((came, type(outcome), session.is_open), (request_id, RootgateError, False))


def page(items: bytes, count: int = 1, more: int = 0) -> bytes:
    return struct.pack("<IBBH", count, more, 0, 0) + items


DIGEST = bytes(range(32))
MUTATION = bytes(16)
PROOF = Proof(b"key", 3, [DIGEST], b"signature", b"data")
STATE = struct.pack("<BIQ", 1, 0, 5)
ANSWERS: list[tuple[Request[Any], bytes]] = [
    (requests.hello(), struct.pack("<B3xIHHQ", 1, 31, 1, 9, 128) + b"\x08rootgate"),
    (requests.issue_challenges(2), struct.pack("<IH2xQ", 2, 3, 1000) + b"abcdef"),
    (requests.verify([("a", PROOF)] * 2), struct.pack("<IB3x", 2, 0) + b"\1\x1c"),
    (requests.verify_inclusion([("a", PROOF)], want_roots=True), struct.pack("<IB3x", 1, 1) + b"\2" + DIGEST),
    (requests.add_roots("a", [DIGEST]), struct.pack("<QQB", 7, 1, 1)),
    (requests.test_roots("a", [DIGEST] * 3), struct.pack("<I", 3) + b"\1\0\1"),
    (requests.list_roots("a", 9, DIGEST), page(DIGEST * 2, 2, 1)),
    (requests.count_roots("a"), STATE),
    (requests.list_collaborations(9), page(STATE + b"\1a")),
    (requests.statistics(), struct.pack("<H", 1) + b"\5roots" + struct.pack("<Q", 5)),
    (
        requests.read_changes(0, 9),
        page(struct.pack("<QQ16sHBxI", 1, 1, MUTATION, Operation.ADD_ROOTS, 0, 1) + b"\1a" + DIGEST),
    ),
    (requests.confirm_everywhere(5), struct.pack("<Q", 5)),
    (requests.collaborate("readDetails", {"collaboration": "a"}, MUTATION), b'{"title": "x"}'),
    (requests.open([("a", PROOF)]), struct.pack("<IB3x", 1, 0) + b"\1" + b"g" * 112),
    (
        requests.open_with_options([("a", PROOF)]),
        struct.pack("<IB3x", 1, 0) + b"\1" + bytes(112) + b"\1\0\3\0abc",
    ),
    (requests.check_grants([("a", b"g" * 112, None)]), struct.pack("<I4xBBBxI", 1, 1, 2, 3, 900)),
]
"""Requests with answers to them."""


class RequestTests(unittest.TestCase):
    def test_answers_are_read_whole_and_nothing_else_is(self) -> None:
        for request, body in ANSWERS:
            with self.subTest(operation=Operation(request.operation).name, body=body[:40]):
                request.read(body)
                for end in range(len(body)):
                    with self.assertRaises(ProtocolError):
                        request.read(body[:end])
                with self.assertRaises(ProtocolError):
                    request.read(body + b"\0")

    def test_changed_answers_raise_nothing_but_a_protocol_error(self) -> None:
        generator = random.Random(SEED)
        for request, body in ANSWERS:
            for _ in range(500):
                changed = bytearray(body)
                for _ in range(generator.randint(1, 3)):
                    changed[generator.randrange(len(changed))] = generator.randrange(256)
                try:
                    request.read(bytes(changed))
                except ProtocolError:
                    pass
                except Exception as error:
                    self.fail(f"ROOTGATE_TEST_SEED={SEED}: {bytes(changed)!r} raises {error!r}")

    def test_an_answer_about_another_number_of_items_is_refused(self) -> None:
        for request in (requests.verify([("a", PROOF)]), requests.verify_inclusion([("a", PROOF)])):
            with self.assertRaises(ProtocolError):
                request.read(struct.pack("<IB3x", 2, 0) + b"\1\1")
        with self.assertRaises(ProtocolError):
            requests.test_roots("a", [DIGEST]).read(struct.pack("<I", 0))

    def test_a_confirmation_of_another_change_is_refused(self) -> None:
        with self.assertRaises(ProtocolError):
            requests.confirm_everywhere(5).read(struct.pack("<Q", 6))

    def test_challenges_without_bytes_are_refused_before_they_are_counted(self) -> None:
        with self.assertRaises(ProtocolError):
            requests.issue_challenges(1).read(struct.pack("<IH2xQ", 2**32 - 1, 0, 1))

    def test_json_that_is_no_object_or_too_deep_is_refused(self) -> None:
        request = requests.collaborate("readDetails", {})
        for body in (b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000):
            with self.subTest(body=body[:10]), self.assertRaises(ProtocolError):
                request.read(body)

    def test_what_does_not_fit_into_its_field_is_a_value_error(self) -> None:
        wrong: list[Any] = [
            lambda: requests.issue_challenges(-1),
            lambda: requests.issue_challenges(2**32),
            lambda: requests.count_roots("a" * 256),
            lambda: requests.add_roots("a", [b"short"]),
            lambda: requests.add_roots("a", [], mutation=b"short"),
            lambda: requests.create_collaboration("a", policy=256),
            lambda: requests.list_roots("a", 1, b"short"),
            lambda: requests.verify([("a", PROOF._replace(key_index=-1))]),
            lambda: requests.verify([("a", PROOF._replace(key_index=2**64))]),
            lambda: requests.verify([("a", PROOF._replace(public_key=bytes(256)))]),
            lambda: requests.verify([("a", PROOF._replace(data=bytes(65_536)))]),
            lambda: requests.verify([("a", PROOF._replace(inclusion_hashes=[b"short"]))]),
            lambda: requests.verify([("a", PROOF)], at_least=-1),
            lambda: requests.verify_inclusion([("a", PROOF._replace(inclusion_hashes=[DIGEST] * 256))]),
            lambda: requests.check_grants([("a", b"short", None)]),
            lambda: requests.check_grants([("a", bytes(112), b"short")]),
            lambda: requests.collaborate("x" * 256, {}),
            lambda: requests.collaborate("readDetails", {"a": float("nan")}),
            lambda: requests.ping(bytes(MAXIMUM_BODY + 1)),
        ]
        for number, make in enumerate(wrong):
            with self.subTest(number=number), self.assertRaises(ValueError):
                make()

    def test_only_verify_and_open_are_not_repeated(self) -> None:
        once = {request.operation for request, _ in ANSWERS if not request.repeats}
        self.assertEqual(once, {Operation.VERIFY, Operation.OPEN})

    def test_a_request_that_waits_for_a_change_has_more_time(self) -> None:
        self.assertEqual(requests.collaborate("readNotices", {"waitMilliseconds": 20_000}).waiting, 20.0)
        self.assertEqual(requests.collaborate("readNotices", {"waitMilliseconds": "x"}).waiting, 0.0)

    def test_bodies_have_the_bytes_of_the_specification(self) -> None:
        body = requests.add_roots("decks", [b"\xa7" * 32], bytes(range(16, 32))).body
        self.assertEqual(body.hex(), "101112131415161718191a1b1c1d1e1f056465636b7301000000" + "a7" * 32)
        name, fields = b"\x0breadDetails", {"collaboration": "a"}
        body = requests.collaborate("readDetails", fields, MUTATION).body
        self.assertEqual((body[16:28], json.loads(body[28:])), (name, fields))

    def test_readers_refuse_flags_and_reserved_bytes(self) -> None:
        with self.assertRaises(ProtocolError):
            Reader(b"\2").flag()
        with self.assertRaises(ProtocolError):
            Reader(b"\0\1").zero(2)
        self.assertEqual(Verdict(Reader(b"\1").number(1)), Verdict.GRANTED)


class AddressTests(unittest.TestCase):
    def test_addresses(self) -> None:
        for text, address in {
            "localhost": Address("localhost", 7570),
            "gate.example.com:1": Address("gate.example.com", 1),
            "[::1]": Address("::1", 7570),
            "[::1]:65535": Address("::1", 65_535),
            "tls://gate:443": Address("gate", 443, None, True),
            "tls://[::1]:443": Address("::1", 443, None, True),
            "unix:/run/rootgate.sock": Address("", 0, "/run/rootgate.sock"),
            "unix:70": Address("unix", 70),
        }.items():
            with self.subTest(text=text):
                self.assertEqual(parse_address(text), address)
                self.assertEqual(parse_address(str(address)), address)

    def test_texts_that_are_no_address(self) -> None:
        for text in [
            "", ":1", "a:", "a:0", "a:65536", "a:-1", "a:1:2", "a:x", "a:１", "::1", "[::1", "[::1]1", "[a]:1", "tls://",
            "https://a:1", "a/b", "unix:relative", "[]:1", "tls://unix:/a", "a:000001", "a:+1",
        ]:  # fmt: skip
            with self.subTest(text=text), self.assertRaises(ValueError):
                parse_address(text)
        with self.assertRaises(ValueError):
            parse_addresses([])


if __name__ == "__main__":
    unittest.main()
