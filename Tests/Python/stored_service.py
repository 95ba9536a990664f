# SPDX-License-Identifier: Apache-2.0
"""Writes what a service of the present format has stored, and what it answers then, for the tests of later versions.

    python3 stored_service.py PROGRAM FORMAT [--folder Tests/StoredFormats]

PROGRAM is the path of the program `rootgate`, and FORMAT the number of the format that it writes. It is started with a
new data directory and gets requests with fixed identifiers through its protocol: something of each kind that is stored.
Then it is stopped, and its data file is packed. Started once more, it gets queries, and its answers are kept, too.

The files are `service-FORMAT.txt` and `service-FORMAT-answers.txt`, whose first lines say what is in them. A rerun
sends the same requests. What the service chooses (times, random bytes) differs, and with it the packed bytes.

Needs the packages `cryptography` and `rootgate` (PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec

from kill_under_load import CheckFailed, Service, check
from rootgate import requests
from rootgate.connection import Connection
from rootgate.frames import Reader
from rootgate.protocol import ErrorCode, Operation, Policy, RootgateError
from rootgate.requests import Request
from rootgate.simulator import Device, KeyEncoding, Person, encode_public_key
from rootgate.values import device_key, sha256

Fields = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent.parent
LINK_BASE = "https://example.com/collab"
OPTIONS = ["--storage-max", "2", "--storage-reserve", "1", "--log-retention", "1", "--link-base", LINK_BASE]
"""The change log has at most a quarter of the storage, so that its beginning is soon trimmed."""
OPTIONS += ["--grant-seconds", "86400", "--workers", "2"]
LONG_AGO = 1_700_000_000_000
FAR_AWAY = 4_000_000_000_000
"""A date in the year 2096."""
CROWD = 130
"""Root hashes of a set with buckets of its own."""
WINDOW = 3_600
FIRST_SHARES, LAST_SHARES = 5, 4
"""Shares with thumbnails of 64 KiB before and behind most changes. The last ones push the first ones, and what is
before them, out of the change log."""
THUMBNAIL = b"\x89PNG\r\n\x1a\n"
READER, VIEWER = "com.example.reader", "com.example.viewer"
ARTICLE = "https://example.com/articles/"
STATISTICS = ("sequence", "log-first-sequence", "log-bytes", "collaborations", "roots")
"""The statistics that depend only on what is stored."""
KINDS = "cbdmspajlknxituyhrezwqgvofPU"
"""The kinds of records that the collaboration layer has. `RecordKeys` has the list."""
DATABASES = 6
WHOLE_BYTES = 300
"""A longer answer is kept as its number of bytes and its hash."""
HIGHEST_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551 - 1


def fixed(text: str) -> bytes:
    """32 bytes that are the same in every run."""
    return sha256(f"stored {text}".encode())


def base64url(data: bytes) -> str:
    """The bytes as the layer's JSON has them."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class FixedDevice(Device):
    """A device whose key is the same in every run."""

    def __init__(self, name: str) -> None:
        self._key = ec.derive_private_key(int.from_bytes(fixed(name), "big") % HIGHEST_ORDER + 1, ec.SECP256R1())
        self.encoding = KeyEncoding.COMPRESSED
        self.public_key = encode_public_key(self._key.public_key(), self.encoding)


class Member:
    """Somebody with two devices, without random leaves beside them."""

    def __init__(self, name: str) -> None:
        self.name = name.capitalize()
        self.person = Person([FixedDevice(f"{name} {number}") for number in range(2)], width=2)
        self.identity = self.person.root.hex()


MEMBERS = {name: Member(name) for name in ("olga", "ana", "ben", "carl", "dora", "emil", "gil")}


class Key(NamedTuple):
    """An API key, and what a service stores of it."""

    text: str
    hash: Fields


def fixed_key(name: str) -> Key:
    """A key that is the same in every run."""
    identifier, salt, secret = fixed(f"{name} key")[:8].hex(), fixed(f"{name} salt"), fixed(f"{name} secret")
    hashed = {"identifier": identifier, "salt": salt.hex(), "hash": sha256(salt + secret).hex()}
    return Key(f"rgk_{identifier}_{base64url(secret)}", hashed)


ADMINISTRATOR = fixed_key("administrator")


class Filling:
    """The requests that fill a storage."""

    def __init__(self, client: Connection) -> None:
        self.client = client
        self.grants: dict[str, bytes] = {}
        self.deck = ""
        """The collaboration whose identifier the service has chosen."""
        self.first_kept = 0
        """The sequence of the first change whose answer is kept."""
        self.repeats: list[tuple[str, int, bytes]] = []
        """Mutations of the administrator, with their bytes."""
        self._number = 0
        self._shares = 0

    def mutation(self) -> bytes:
        """The next mutation identifier."""
        self._number += 1
        return fixed(f"mutation {self._number}")[:16]

    def ask(self, request: str, /, **fields: Any) -> Fields:
        """Sends a request of the layer."""
        try:
            return self.client.collaborate(request, fields, self.mutation()).result()
        except RootgateError as error:
            raise CheckFailed(f"{request} {str(fields)[:500]}: {error}") from error

    def run(self) -> None:
        """Sends all of them. The service's first principal ends the rights of everybody else, so it comes last."""
        self.fill_sets()
        self.first_kept = self.share_large(FIRST_SHARES) + 1
        self.start_collaborations()
        self.fill_deck()
        self.post()
        self.invite()
        self.fill_shelf()
        self.end_and_hand_over()
        self.share_large(LAST_SHARES)
        self.make_principals()

    def fill_sets(self) -> None:
        """Sets of root hashes: a small one, one with buckets of its own, one with nonces, one that was dropped."""
        client = self.client
        for name in ("stored-roots", "stored-crowd", "stored-gone"):
            client.create_collaboration(name, Policy.CHALLENGE, 0, self.mutation()).result()
        client.create_collaboration("stored-nonces", Policy.DEVICE_NONCE, WINDOW, self.mutation()).result()
        few = [fixed(f"root {number}") for number in range(5)]
        client.add_roots("stored-roots", few, self.mutation()).result()
        client.remove_roots("stored-roots", few[1:2], self.mutation()).result()
        crowd = [fixed(f"crowd {number}") for number in range(CROWD)]
        client.add_roots("stored-crowd", crowd, self.mutation()).result()
        client.add_roots("stored-nonces", [MEMBERS["ana"].person.root], self.mutation()).result()
        client.drop_collaboration("stored-gone", self.mutation()).result()

    def share_large(self, count: int) -> int:
        """Shares links with thumbnails of 64 KiB, and returns the sequence of the last share."""
        receipt: Fields = {}
        for _ in range(count):
            self._shares += 1
            data = (THUMBNAIL + bytes([self._shares])).ljust(64 << 10, b"\0")
            thumbnail = {"data": base64url(data), "mediaType": "image/png"}
            receipt = self.share("mail", f"{ARTICLE}large/{self._shares}", "post", thumbnail=thumbnail)
        return int(receipt["sequence"])

    def share(self, account: str, url: str, conversation: str, **fields: Any) -> Fields:
        """Shares a link with an account."""
        talk = {"identifier": conversation, "name": conversation.capitalize(), "isGroup": conversation == "family"}
        fields = {"app": READER, "sharer": {"name": "Olga", "account": "olga", "avatar": "olga-1"}, **fields}
        recipients = [{"account": account, "knowsSomebody": True}]
        return self.ask("recordShare", url=url, conversation=talk, recipients=recipients, **fields)

    def start_collaborations(self) -> None:
        """Collaborations with every kind of share options, and without any."""
        metadata = {
            "localIdentifier": "deck.key",
            "title": "Deck",
            "initiatorHandle": "olga@example.com",
            "initiatorNameComponents": {"givenName": "Olga", "familyName": "Orlova", "nickname": "Olly"},
            "defaultShareOptions": {"groups": option_groups(), "givenSummary": "Everyone can write"},
        }
        answer = self.ask("prepare", owner="olga", metadata=metadata, ownerName="Olga")
        self.deck = answer["collaborationIdentifier"]
        for name, fields in {
            "stored-view": {"metadata": {"defaultPermission": "readOnly"}, "creationDate": LONG_AGO},
            "stored-changing": {"metadata": {"defaultPermission": "readWrite"}},
            "stored-ended": {"metadata": {"defaultShareOptions": {"groups": option_groups()}}},
            "stored-handed": {"metadata": {"defaultPermission": "readWrite"}},
            "stored-window": {"metadata": {"defaultPermission": "readOnly"}, "nonceWindowSeconds": WINDOW},
        }.items():
            metadata = {"localIdentifier": f"{name}.key", "title": name, **fields.pop("metadata")}
            self.ask("prepareAs", collaboration=name, owner="olga", metadata=metadata, ownerName="Olga", **fields)
        selected = ["view", "comment"]
        self.ask("updateShareOptions", collaboration="stored-ended", selectedOptions=selected, givenSummary="Look only")

    def join(self, collaboration: str, *names: str) -> None:
        """Opens the collaboration with a device of each, which gives grants."""
        members = [MEMBERS[name] for name in names]
        challenges = self.client.issue_challenges(len(members)).result().challenges
        proofs = [(collaboration, member.person.proof(0, data)) for member, data in zip(members, challenges)]
        opening = self.client.open(proofs).result()
        for name, grant in zip(names, opening.grants):
            check(grant is not None, f"{name} got no grant: {opening.verdicts}")
            self.grants[f"{collaboration} {name}"] = grant or b""

    def grant(self, name: str) -> str:
        """A grant for the deck, as the layer's JSON has it."""
        return base64url(self.grants[f"{self.deck} {name}"])

    def fill_deck(self) -> None:
        """Participants of every role, state and permission, with and without names and accounts."""
        deck = {"collaboration": self.deck}
        self.ask("claimOwnership", owner="olga", identity=MEMBERS["olga"].identity, **deck)
        new = [
            {"identity": MEMBERS["ana"].identity, "displayName": "Ana"},
            {"identity": MEMBERS["ben"].identity, "displayName": "Ben", "permission": "readWrite"},
            {"identity": MEMBERS["carl"].identity, "role": "administrator"},
            {"identity": MEMBERS["dora"].identity, "displayName": "Dora"},
            {"identity": MEMBERS["emil"].identity, "displayName": "Emil"},
        ]
        self.ask("addParticipants", participants=new, **deck)
        self.join(self.deck, "olga", "ana", "ben", "carl", "dora")
        for name in ("ana", "ben", "dora"):
            self.ask("linkAccount", identity=MEMBERS[name].identity, account=name, **deck)
        # Revokes Ben's grant; the removals revoke Dora's.
        change = {"identity": MEMBERS["ben"].identity, "displayName": "Benjamin", "permission": "readOnly"}
        self.ask("updateParticipant", participant=change, **deck)
        self.ask("removeParticipants", participants=[MEMBERS["dora"].identity], **deck)
        self.ask("updateParticipants", added=[], removed=[MEMBERS["emil"].identity], grant=self.grant("olga"), **deck)
        items = [
            {"identifier": "comments", "title": "Show comments", "subtitle": "All", "url": "https://example.com/c"},
            {"identifier": "history", "title": "Show history"},
        ]
        self.ask("customizeDetails", title="Deck for Monday", customItems=items, manageButtonTitle="Manage", **deck)

    def post(self) -> None:
        """Notices of every kind. Ana has cleared the first of them."""
        deck, link = {"collaboration": self.deck}, f"{LINK_BASE}/{self.deck}/page/3"
        ana, dora = MEMBERS["ana"].identity, MEMBERS["dora"].identity
        first = [
            {"kind": "change", "trigger": "edit", "link": link},
            {"kind": "mention", "person": ana},
            {"kind": "membership", "trigger": "addedCollaborator", "person": ana},
            {"kind": "membership", "trigger": "removedCollaborator", "person": dora},
            {"kind": "membership", "trigger": "addedCollaborator"},
        ]
        self.ask("postNotices", grant=self.grant("olga"), events=first, **deck)
        self.ask("clearNotices", grant=self.grant("ana"), **deck)
        triggers = ("created", "renamed", "moved", "deleted")
        later = [{"kind": "persistence", "trigger": trigger} for trigger in triggers]
        self.ask("postNotices", grant=self.grant("olga"), events=later, **deck)
        last = [{"kind": "change", "trigger": "comment"}, {"kind": "mention", "person": MEMBERS["olga"].identity}]
        self.ask("postNotices", grant=self.grant("ana"), events=last, **deck)

    def invite(self) -> None:
        """Invitations in every state."""
        deck = {"collaboration": self.deck}
        inviter = {"account": "ana", "name": "Ana", "handle": "ana@example.com"}
        self.ask("createInvitation", token=token("open"), **deck)
        offer = {"role": "administrator", "permission": "readWrite", "expiresAt": FAR_AWAY, "inviter": inviter}
        self.ask("createInvitation", token=token("far"), **offer, **deck)
        self.ask("createInvitation", token=token("expired"), expiresAt=now() + 1_000, **deck)
        for name in ("accepted", "completed", "revoked"):
            revoked = self.ask("createInvitation", token=token(name), **deck)["identifier"]
        self.ask("acceptInvitation", token=token("accepted"), account="cyrus")
        gil = MEMBERS["gil"]
        accepted = {"token": token("completed"), "account": "gil", "identity": gil.identity, "displayName": "Gil"}
        self.ask("acceptInvitation", **accepted)
        self.ask("revokeInvitation", identifier=revoked, **deck)
        time.sleep(1.5)

    def fill_shelf(self) -> None:
        """Ana's shelf: pinned, hidden and suggested links, thumbnails of both kinds, answers on every level."""
        ana: Fields = {"account": "ana", "everyApp": True}
        self.ask("setConsent", account="mail", everyApp=True, level={"everything": True}, isAllowed=True)
        levels: list[tuple[Fields, bool]] = [
            ({"everything": True}, True), ({"app": READER}, True), ({"app": VIEWER}, False),
            ({"conversation": "family"}, True), ({"conversation": "noise"}, False),
        ]
        for level, is_allowed in levels:
            self.ask("setConsent", level=level, isAllowed=is_allowed, **ana)
        stored = {"data": base64url(THUMBNAIL), "mediaType": "image/png"}
        title = {"title": "An article", "subtitle": "The magazine"}
        self.share("ana", ARTICLE + "1", "family", thumbnail=stored, **title)
        self.share("ana", ARTICLE + "1", "choir", thumbnail=stored, date=LONG_AGO)
        self.share("ana", ARTICLE + "2", "family", thumbnail={"url": "https://example.com/2.png"}, app=VIEWER)
        self.share("ana", ARTICLE + "3", "choir")
        self.share("ana", ARTICLE + "4", "noise")
        self.share("ana", ARTICLE + "5", "choir")
        for name in (self.deck, "stored-ended"):
            self.share("ana", f"{LINK_BASE}/{name}", "choir", title=name)
        pin = {"conversation": "family", "isPinned": True}
        self.ask("pinHighlight", url=ARTICLE + "1", **pin, **ana)
        self.ask("pinHighlight", url=ARTICLE + "2", **pin, **ana)
        self.ask("removeHighlight", url=ARTICLE + "3", **ana)
        for signal in ("viewed", "interacted", "shown"):
            self.ask("signalHighlight", url=ARTICLE + "5", signal=signal, **ana)
        self.ask("signalHighlight", url=ARTICLE + "1", signal="shown", context="detail", **ana)

    def end_and_hand_over(self) -> None:
        """A collaboration that has ended, and one with another owner than at first."""
        for name in ("stored-ended", "stored-handed", "stored-changing"):
            where = {"collaboration": name}
            self.ask("claimOwnership", owner="olga", identity=MEMBERS["olga"].identity, **where)
            new = [{"identity": MEMBERS[who].identity, "displayName": MEMBERS[who].name} for who in ("ana", "ben")]
            self.ask("addParticipants", participants=new, **where)
            self.join(name, "olga", "ana")
            self.ask("linkAccount", identity=MEMBERS["ana"].identity, account="ana", **where)
        self.ask("stopSharing", collaboration="stored-ended")
        ana = {"identity": MEMBERS["ana"].identity, "localIdentifier": "mine.key"}
        self.ask("transferOwnership", collaboration="stored-handed", owner="olga", **ana)

    def make_principals(self) -> None:
        """Principals with every role, limit and way to be known. Then two mutations of the administrator."""
        roles = [
            {"role": role, "prefixes": ["*"]} for role in ("verify", "enrol", "collaborate", "observe", "administer")
        ]
        self.ask("createPrincipal", name="administrator", roles=roles, key={"hash": ADMINISTRATOR.hash})
        self.client.hello(key=ADMINISTRATOR.text).result()
        app = {"role": "collaborate", "prefixes": ["*"], "app": READER}
        limits = {"proofsPerSecond": 10, "requestsInFlight": 11, "requestBytes": 12, "followers": 13}
        limits["mutationsPerSecond"] = 14
        self.ask(
            "createPrincipal", name="backend", roles=[{"role": "verify", "prefixes": ["a/", "b/"]}, app],
            key={"hash": fixed_key("backend").hash, "expiresAt": FAR_AWAY}, localUser=4_000_000_000, limits=limits,
            certificates=["spiffe://example.org/backend", "dns:backend.example.org", "subject:CN=backend,O=Example"])
        self.ask("addKey", name="backend", key={"hash": fixed_key("next").hash})
        self.ask("createPrincipal", name="temporary", roles=[], expiresAt=FAR_AWAY)
        self.ask("createPrincipal", name="removed", roles=[], key={"hash": fixed_key("removed").hash})
        self.ask("removePrincipal", name="removed")
        added = requests.add_roots("stored-roots", [fixed("late root")], self.mutation())
        updated = {"collaboration": "stored-view", "title": "Late"}
        customized = requests.collaborate("customizeDetails", updated, self.mutation())
        for name, request in {"add roots": added, "customizeDetails": customized}.items():
            self.client.request(request.operation, request.body, Reader.rest).result()
            self.repeats.append((name, request.operation, request.body))


def option_groups() -> list[Fields]:
    """Share options of both kinds, with all effects."""
    write = {"title": "Everyone can write", "identifier": "write", "isSelected": True, "effects": ["readWrite"]}
    view = {"title": "Everyone can look", "identifier": "view", "subtitle": "Nothing else", "effects": ["readOnly"]}
    effects = {
        "invite": "joinByInvitation", "comment": "comment", "mention": "mention", "add": "addParticipants"
    }
    switches: list[Fields] = [
        {"title": f"Allow to {name}", "identifier": name, "isSelected": name != "add", "effects": [effect]}
        for name, effect in effects.items()
    ]
    switches.append({"title": "Print", "identifier": "print", "requiredOptionsIdentifiers": ["comment"]})
    picker = {"kind": "picker", "identifier": "permission", "title": "Who", "footer": "Choose one"}
    return [
        {**picker, "options": [write, view]},
        {"kind": "switches", "identifier": "more", "options": switches},
    ]


def token(name: str) -> str:
    """The token of an invitation."""
    return base64url(fixed(f"token {name}")[:16])


def now() -> int:
    """The date, in milliseconds."""
    return int(time.time() * 1_000)


# What is asked.


class Query(NamedTuple):
    """A request that only reads, or that was sent before. It has fields or a body, or asks for the statistics."""

    name: str
    request: str = ""
    """The name of a request of the layer."""
    fields: Fields | None = None
    operation: int = 0
    body: bytes = b""
    is_touched: bool = False
    """Whether the changes that the test makes afterwards change the answer."""
    grows: str = ""
    """The field of the answer that every later change makes larger."""
    cleared: tuple[int, int] | None = None
    """The first byte and the number of bytes of the answer that depend on the time of asking."""


def layer_queries(filling: Filling) -> Iterator[Query]:
    """The queries about collaborations."""

    def ask(name: str, request: str, is_touched: bool = False, **fields: Any) -> Query:
        # A feed's last page ends with the last change of the storage.
        grows = "next" if request == "readNotices" else ""
        return Query(f"{request}: {name}", request, fields, is_touched=is_touched, grows=grows)

    names = {"the deck": filling.deck}
    names.update({name: name for name in ("stored-view", "stored-changing", "stored-ended", "stored-handed")})
    names["stored-window"] = "stored-window"
    for name, identifier in names.items():
        where: Fields = {"collaboration": identifier}
        is_touched = name == "stored-changing"
        yield ask(name, "highlight", **where)
        yield ask(name, "readDetails", is_touched, language="en", **where)
        yield ask(name, "listParticipants", is_touched, limit=64, includesRemoved=True, **where)
        yield ask(name, "listInvitations", limit=64, includesSettled=True, **where)
        yield ask(name, "readNotices", is_touched, feed=where, after=0, limit=64, language="de")
    deck: Fields = {"collaboration": filling.deck}
    link = f"{LINK_BASE}/{filling.deck}/page/3"
    yield ask("by its link", "highlight", url=link)
    yield ask("as Ana sees it", "readDetails", viewer=MEMBERS["ana"].identity, language="de", **deck)
    yield ask("the first of several", "listParticipants", limit=2, includesRemoved=False, **deck)
    identities = [MEMBERS[name].identity for name in ("dora", "emil")] + ["0" * 64]
    yield ask("removed and unknown ones", "findParticipants", identities=identities, **deck)
    yield ask("pending ones", "listInvitations", limit=1, includesSettled=False, **deck)
    for name in ("ana", "olga"):
        feed = {"participant": MEMBERS[name].identity, **deck}
        yield ask(f"the deck, for {name}", "readNotices", feed=feed, after=0, limit=64)
    yield ask("of an account", "readNotices", feed={"account": "ben"}, after=0, limit=64, language="en")
    for state in ("open", "far", "expired", "accepted", "completed", "revoked", "unknown"):
        yield ask(state, "readInvitation", token=token(state))
    for account in ("olga", "ana", "gil", "cyrus"):
        for scope in ("private", "shared"):
            yield ask(f"{scope} ones of {account}", "listShares", account=account, scope=scope, limit=64)
    yield Query("listPrincipals: all", "listPrincipals", {"limit": 64})


def shelf_queries() -> Iterator[Query]:
    """The queries about shelves."""
    scopes: dict[str, Fields] = {"every app": {"everyApp": True}, "the reader": {"app": READER}}
    scopes["the viewer"] = {"app": VIEWER}
    for name, scope in scopes.items():
        for account in ("ana", "mail"):
            fields: Fields = {"account": account, "limit": 64, **scope}
            yield Query(f"readShelf: {account}, for {name}", "readShelf", fields)
        for number in (1, 2, 3):
            fields = {"account": "ana", "url": f"{ARTICLE}{number}", "language": "de", **scope}
            yield Query(f"readAttribution: article {number}, for {name}", "readAttribution", fields)
        fields = {"account": "ana", "url": ARTICLE + "1", "hash": sha256(THUMBNAIL).hex(), **scope}
        yield Query(f"readThumbnail: for {name}", "readThumbnail", fields)
    for account in ("ana", "mail"):
        yield Query(f"readConsent: {account}", "readConsent", {"account": account, "everyApp": True})


def plain(name: str, request: Request[Any], **fields: Any) -> Query:
    """A query that is kept as bytes."""
    return Query(name, operation=request.operation, body=request.body, **fields)


def set_queries(filling: Filling, last: int) -> Iterator[Query]:
    """The queries about root sets, proofs, grants and changes. `last`: the sequence of the last change."""
    sets = ("stored-roots", "stored-crowd", "stored-nonces", "stored-gone", "stored-changing", filling.deck)
    for name in sets:
        # Who comes to the other one leaves it again.
        is_touched = name == "stored-roots"
        shown = "the deck" if name == filling.deck else name
        yield plain(f"count roots: {shown}", requests.count_roots(name), is_touched=is_touched)
        yield plain(f"list roots: {shown}", requests.list_roots(name, 4_096), is_touched=is_touched)
    yield plain("list roots: a page", requests.list_roots("stored-crowd", 3, fixed("crowd 7")))
    asked = [fixed(f"crowd {number}") for number in range(0, CROWD + 40, 40)]
    yield plain("test roots: stored-crowd", requests.test_roots("stored-crowd", asked))
    asked = [fixed(f"root {number}") for number in range(6)]
    yield plain("test roots: stored-roots", requests.test_roots("stored-roots", asked))
    yield plain("list collaborations: all", requests.list_collaborations(1_024), is_touched=True)
    yield Query("statistics: what is stored", is_touched=True)
    nonce = fixed("nonce")
    proof = MEMBERS["ana"].person.proof(0, nonce)
    names = ("stored-nonces", "stored-window", "stored-view", filling.deck)
    yield plain("verify: a device's nonce", requests.verify([("stored-nonces", proof)], want_roots=True))
    inclusion = requests.verify_inclusion([(name, proof) for name in names], want_roots=True)
    yield plain("inclusion-only verify: several", inclusion)
    for name, grant in filling.grants.items():
        collaboration, who = name.split(" ")
        claim = (collaboration, grant, device_key(MEMBERS[who].person.devices[0].public_key))
        body = requests.encode_grant_checks([claim], 0, want_options=True)
        shown = name.replace(filling.deck, "the deck")
        yield Query(f"check grants: {shown}", operation=Operation.CHECK_GRANTS, body=body, cleared=(12, 4))
    yield plain("read changes: trimmed", requests.read_changes(0, 1))
    for sequence in range(filling.first_kept - 1, last, 4):
        # The page that has the last change tells whether others follow.
        page = requests.read_changes(sequence, 4)
        yield plain(f"read changes: after {sequence}", page, is_touched=sequence + 4 >= last)
    yield plain("confirm everywhere: the last change", requests.confirm_everywhere(last))
    for name, operation, body in filling.repeats:
        yield Query(f"{name}: sent again", operation=operation, body=body)


def answer(client: Connection, query: Query) -> Fields:
    """What is kept of the answer to a query."""
    try:
        if query.fields is not None:
            return {"answer": client.collaborate(query.request, query.fields, bytes(16)).result()}
        if not query.operation:
            statistics = client.statistics().result()
            return {"answer": {name: statistics[name] for name in STATISTICS}}
        body = bytearray(client.request(query.operation, query.body, Reader.rest).result())
    except RootgateError as error:
        check(error.code != ErrorCode.MALFORMED_REQUEST, f"{query.name}: {error}")
        return {"error": error.code}
    if query.cleared:
        first, count = query.cleared
        body[first : first + count] = bytes(count)
    if len(body) <= WHOLE_BYTES:
        return {"answer": body.hex()}
    return {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def line(query: Query, answered: Fields) -> str:
    """A query with its answer, as JSON."""
    kept: Fields = {"name": query.name}
    if query.fields is not None:
        kept.update(request=query.request, fields=query.fields)
    elif query.operation:
        kept.update(operation=int(query.operation), body=query.body.hex())
    if query.is_touched:
        kept["isTouched"] = True
    if query.grows:
        kept["grows"] = query.grows
    if query.cleared:
        kept["cleared"] = list(query.cleared)
    return json.dumps({**kept, **answered}, ensure_ascii=False, separators=(",", ":"))


# What is stored.


def entries(backup: bytes) -> Iterator[tuple[int, bytes]]:
    """The database and the key of every entry of a backup, whose stream has version 1."""
    place = 80
    while backup[place] != 0xFF:
        database, key = backup[place], int.from_bytes(backup[place + 2 : place + 4], "little")
        value = int.from_bytes(backup[place + 4 : place + 8], "little")
        yield database, backup[place + 8 : place + 8 + key]
        place += 8 + key + value


def check_contents(program: Path, folder: Path, data_format: int) -> None:
    """Makes sure that every database has entries, and that there is a record of every kind."""
    path = folder / "backup"
    command = [program, "backup", "--data", folder / "data", "--output", path, "--quiet"]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(made.returncode == 0, f"there is no backup: {made.stdout}")
    backup = path.read_bytes()
    found = int.from_bytes(backup[20:24], "little")
    check(found == data_format, f"the program writes format {found}")
    listed = list(entries(backup))
    databases = {database for database, _ in listed}
    check(len(databases) == DATABASES, f"there are entries of the databases {sorted(databases)} only")
    # The layer's records are those of the database that has the record of the number of principals.
    [records] = {database for database, key in listed if key == b"P"}
    kinds = {chr(key[0]) for database, key in listed if database == records}
    check(kinds == set(KINDS), f"kinds of records: missing {set(KINDS) - kinds}, unknown {kinds - set(KINDS)}")


# The data file, which is one of LMDB on a machine with 64 bits.

PAGE = 4_096
PAGE_HEAD = 16
BRANCH, LEAF, LARGE_VALUE, TREE = 1, 2, 1, 2
NO_PAGE = (1 << 64) - 1


def integer(data: bytes, place: int, size: int) -> int:
    """An integer in the file."""
    return int.from_bytes(data[place : place + size], "little")


def parts_below(data: bytes, root: int) -> Iterator[tuple[int, int]]:
    """Where the parts of the file begin and end that a tree uses, and the trees and the large values in it."""
    if root == NO_PAGE:
        return
    start = root * PAGE
    flags, lower, upper = (integer(data, start + place, 2) for place in (10, 12, 14))
    check(flags & (BRANCH | LEAF) != 0, f"page {root} has the flags {flags}")
    yield start, start + lower
    yield start + upper, start + PAGE
    for place in range(PAGE_HEAD, lower, 2):
        node = start + integer(data, start + place, 2)
        size, node_flags = integer(data, node, 4), integer(data, node + 4, 2)
        value = node + 8 + integer(data, node + 6, 2)
        if flags & BRANCH:
            yield from parts_below(data, size | node_flags << 32)
        elif node_flags & LARGE_VALUE:
            first = integer(data, value, 8) * PAGE
            yield first, first + PAGE_HEAD + size
        elif node_flags & TREE:
            yield from parts_below(data, integer(data, value + 40, 8))


def without_old_contents(data: bytes) -> bytes:
    """The file with zeros where neither of its last two commits has anything. What is there makes it long."""
    kept = bytearray(len(data))
    kept[: 2 * PAGE] = data[: 2 * PAGE]
    for meta in (0, 1):
        for tree in (0, 1):
            root = integer(data, meta * PAGE + PAGE_HEAD + 24 + 48 * tree + 40, 8)
            for start, end_of_part in parts_below(data, root):
                kept[start:end_of_part] = data[start:end_of_part]
    return bytes(kept)


# The files.

DATA_HEAD = """\
# The data file of a service with data of format {format}, by gzip and in base64. {version} wrote it on {date}: it was
# filled through its protocol by Tests/Python/stored_service.py, which makes it anew. What neither of its last two
# commits has was overwritten with zeros, so that it is short.
#
# It has root sets (a small one, one with buckets of its own, one with nonces; one was dropped), and of the
# collaboration layer a record of every kind: collaborations with share options of every kind, one that has ended and
# one that was handed over; participants of every role and state; notices of every kind, some of them cleared;
# invitations in every state; a shelf with pinned, hidden and suggested links and with thumbnails; answers about
# consent; principals with roles, keys and limits. The beginning of the change log is trimmed.
"""
ANSWERS_HEAD = """\
# What the service with the data of service-{format}.txt has answered. {version} wrote it on {date}, by
# Tests/Python/stored_service.py, which makes it anew with that file.
#
# The first line has the time at which it was asked (in milliseconds since 1970), the API key of its administrator, and
# its file with the secret, in base64. They belong to nothing else. Whoever asks again has to set the date to that time:
# notices, invitations and grants end, and a suggestion depends on the time.
#
# Each other line is a query: a request of the layer with its fields, or an operation with the body of its frame in
# hexadecimal, or the statistics. Then comes what was answered: JSON, the body in hexadecimal, the number of its bytes
# and its SHA-256 when it is long, or the code of the error. "isTouched": the changes that the test makes change it.
# "grows": so does every change with this field of the answer.
#
# Left out are the texts of errors, which are for people; the statistics that tell of the process or the file; the time
# that a grant has left ("cleared": the first byte and the number of bytes that count as zeros), because the clock goes
# on; hello, challenges and snapshots, which tell nothing of what is stored.
"""


def make(options: argparse.Namespace, folder: Path) -> None:
    """Fills a storage and asks about it."""
    with Service(options.program, folder, OPTIONS).listen() as service:
        filling = Filling(service.connect())
        filling.run()
        end(service)
    data, secret = (folder / "data" / "data.mdb").read_bytes(), (folder / "data" / "secret").read_bytes()
    check_contents(options.program, folder, options.format)
    with Service(options.program, folder, OPTIONS).listen() as service:
        client = Connection("127.0.0.1", service.port, key=ADMINISTRATOR.text)
        last = client.statistics().result()["sequence"]
        queries = [*layer_queries(filling), *shelf_queries(), *set_queries(filling, last)]
        check(len({query.name for query in queries}) == len(queries), "two queries have one name")
        asked: Fields = {"at": now(), "key": ADMINISTRATOR.text, "secret": base64.b64encode(secret).decode()}
        lines = [json.dumps(asked, separators=(",", ":"))]
        lines += [line(query, answer(client, query)) for query in queries]
        after = client.statistics().result()["sequence"]
        end(service)
    check(after == last, "a query has changed something")
    version = subprocess.run([options.program, "version"], check=True, capture_output=True, text=True).stdout
    words = {"format": options.format, "version": f"Version {version.split()[-1]}", "date": time.strftime("%Y-%m-%d")}
    packed = base64.b64encode(gzip.compress(without_old_contents(data), 9, mtime=0)).decode()
    wrapped = "\n".join(packed[start : start + 76] for start in range(0, len(packed), 76))
    path: Path = options.folder / f"service-{options.format}.txt"
    path.write_text(DATA_HEAD.format(**words) + wrapped + "\n", encoding="utf-8")
    answers: Path = options.folder / f"service-{options.format}-answers.txt"
    answers.write_text(ANSWERS_HEAD.format(**words) + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(data)} bytes of data, {last} changes, {len(queries)} queries: {path}, {answers}")


def end(service: Service) -> None:
    """Ends a service as an operator does."""
    service.process.terminate()
    check(service.process.wait(30) == 0, f"the service did not end in order: {service.errors.read_text()[-2000:]}")
    if service.process.stdout:
        service.process.stdout.close()


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("format", type=int)
    parser.add_argument("--folder", type=Path, default=ROOT / "Tests" / "StoredFormats")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rootgate-stored-"))
    try:
        make(options, folder)
    except (CheckFailed, OSError, RootgateError) as error:
        print(error)
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
