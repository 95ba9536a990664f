# SPDX-License-Identifier: Apache-2.0
"""A model of people and their devices, which makes proofs for tests, and checks proofs. Needs `cryptography`."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from enum import Enum

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .protocol import DIGEST_SIZE, MAXIMUM_INCLUSION_HASHES, SignatureFormat
from .values import Proof, root_hash, sha256


class KeyEncoding(Enum):
    """How a public key is encoded."""

    UNCOMPRESSED = "uncompressed"
    COMPRESSED = "compressed"
    SUBJECT_PUBLIC_KEY_INFO = "SubjectPublicKeyInfo"
    COMPRESSED_SUBJECT_PUBLIC_KEY_INFO = "compressed SubjectPublicKeyInfo"


_ALGORITHM = bytes.fromhex("301306072a8648ce3d020106082a8648ce3d030107")
"""The AlgorithmIdentifier of an elliptic curve key on prime256v1."""

_INFO_PREFIXES = {
    65: bytes.fromhex("3059") + _ALGORITHM + bytes.fromhex("034200"),
    33: bytes.fromhex("3039") + _ALGORITHM + bytes.fromhex("032200"),
}
"""What stands before a point of that many bytes in a SubjectPublicKeyInfo."""


def encode_public_key(key: ec.EllipticCurvePublicKey, encoding: KeyEncoding) -> bytes:
    """A public key's bytes."""
    if encoding in (KeyEncoding.UNCOMPRESSED, KeyEncoding.SUBJECT_PUBLIC_KEY_INFO):
        point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    else:
        point = key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    if encoding in (KeyEncoding.UNCOMPRESSED, KeyEncoding.COMPRESSED):
        return point
    return _INFO_PREFIXES[len(point)] + point


def decode_public_key(data: bytes) -> ec.EllipticCurvePublicKey:
    """The public key in any of the encodings; raises `ValueError` if there is none."""
    for size, prefix in _INFO_PREFIXES.items():
        if data.startswith(prefix) and len(data) == len(prefix) + size:
            data = data[len(prefix) :]
            break
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)


def der_to_raw(signature: bytes) -> bytes:
    """A DER signature's integers, r then s, as 32 bytes each."""
    r, s = decode_dss_signature(signature)
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def raw_to_der(signature: bytes) -> bytes:
    """The reverse of `der_to_raw`; raises `ValueError` for other than 64 bytes."""
    if len(signature) != 64:
        raise ValueError("a raw signature has 64 bytes")
    return encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))


class Device:
    """A device with a key of its own."""

    def __init__(self, encoding: KeyEncoding = KeyEncoding.UNCOMPRESSED) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.encoding = encoding
        self.public_key = encode_public_key(self._key.public_key(), encoding)

    def sign(self, data: bytes, signature_format: int = SignatureFormat.DER) -> bytes:
        """A signature of the data."""
        signature = self._key.sign(data, ec.ECDSA(hashes.SHA256()))
        return signature if signature_format == SignatureFormat.DER else der_to_raw(signature)


class Tree:
    """A Merkle tree. Random leaves fill it up to its width; an odd level pairs its last node with itself."""

    def __init__(self, leaves: Sequence[bytes], width: int = 8) -> None:
        self._levels = [list(leaves) + [os.urandom(DIGEST_SIZE) for _ in range(width - len(leaves))]]
        while len(self._levels[-1]) > 1:
            level = self._levels[-1]
            paired = level + level[-1:] if len(level) % 2 else level
            self._levels.append([sha256(left + right) for left, right in zip(paired[::2], paired[1::2])])

    @property
    def root(self) -> bytes:
        """The root hash."""
        return self._levels[-1][0]

    def inclusion_hashes(self, index: int) -> list[bytes]:
        """The siblings on the way from a leaf to the root, leaf level first."""
        siblings = []
        for level in self._levels[:-1]:
            siblings.append(level[min(index ^ 1, len(level) - 1)])
            index //= 2
        return siblings


class Person:
    """A person with devices."""

    def __init__(self, devices: Sequence[Device], width: int = 8) -> None:
        self.devices = devices
        self._tree = Tree([sha256(device.public_key) for device in devices], width)

    @property
    def root(self) -> bytes:
        """The root hash: who the person is in a collaboration."""
        return self._tree.root

    def proof(self, index: int, data: bytes, signature_format: int = SignatureFormat.DER) -> Proof:
        """A proof by one of the devices that signs the data."""
        device = self.devices[index]
        signature = device.sign(data, signature_format)
        return Proof(device.public_key, index, self._tree.inclusion_hashes(index), signature, data, signature_format)


def verify_proof(proof: Proof, roots: Collection[bytes]) -> tuple[bytes, bool]:
    """The root hash that a proof leads to, and whether it is one of the roots and the signature is valid."""
    root = root_hash(proof.public_key, proof.key_index, proof.inclusion_hashes)
    depth = len(proof.inclusion_hashes)
    possible = depth <= MAXIMUM_INCLUSION_HASHES and 0 <= proof.key_index < 1 << depth
    return root, possible and root in roots and _is_signed(proof)


def _is_signed(proof: Proof) -> bool:
    raw = proof.signature_format == SignatureFormat.RAW
    try:
        signature = raw_to_der(proof.signature) if raw else proof.signature
        decode_public_key(proof.public_key).verify(signature, proof.data, ec.ECDSA(hashes.SHA256()))
    except (ValueError, InvalidSignature):
        return False
    return True
