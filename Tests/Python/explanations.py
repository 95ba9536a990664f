"""Compares `rootgate explain --json` with an oracle that shares no code with it: hashlib and cryptography.

Makes random trees, proofs and faults, lets the program explain them, and computes every node and every check anew.

    python3 Tests/Python/explanations.py PROGRAM --seed 1 --count 200
"""

import argparse
import base64
import hashlib
import json
import random
import subprocess
import sys
import tempfile

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from counts import positive_number

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
X962 = serialization.Encoding.X962
UNCOMPRESSED = serialization.PublicFormat.UncompressedPoint
ENCODINGS = [
    (X962, UNCOMPRESSED),
    (X962, serialization.PublicFormat.CompressedPoint),
    (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
]


def sha(data):
    return hashlib.sha256(data).digest()


def new_key(chance):
    return ec.derive_private_key(chance.randrange(1, ORDER), ec.SECP256R1())


def levels_of(leaves):
    """All levels of the article's tree; the last node of an odd level is paired with itself."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        level = levels[-1]
        level = level + level[-1:] if len(level) % 2 else level
        levels.append([sha(level[i] + level[i + 1]) for i in range(0, len(level), 2)])
    return levels


def genuine(chance):
    """A proof as a dictionary of bytes and numbers, and the key that has signed it."""
    key = new_key(chance)
    encoded = key.public_key().public_bytes(*chance.choice(ENCODINGS))
    size = chance.choice([1, 2, 3, 5, 6, 7, 8, 9, 16, 33, chance.randrange(1, 100)])
    index = chance.randrange(size)
    leaves = [chance.randbytes(32) for _ in range(size)]
    leaves[index] = sha(encoded)
    siblings = []
    position = index
    for level in levels_of(leaves)[:-1]:
        siblings.append(level[min(position ^ 1, len(level) - 1)])
        position //= 2
    data = chance.randbytes(chance.choice([0, 16, 48, 48, 48, 200]))
    signature = key.sign(data, ec.ECDSA(hashes.SHA256()))
    kind = chance.choice(["der", "raw"])
    if kind == "raw":
        signature = b"".join(n.to_bytes(32, "big") for n in utils.decode_dss_signature(signature))
    return dict(key=encoded, index=index, siblings=siblings, data=data, signature=signature, kind=kind), key


def spoil(proof, fault, chance):
    """Puts a fault into a proof; False when the proof can't have it."""
    if fault == "many siblings":
        proof["siblings"] = [bytes(32)] * 33
    elif fault == "long data":
        proof["data"] = bytes(4097)
    elif fault == "hybrid key":
        proof["key"] = b"\x06" + proof["key"][1:]
    elif fault == "short key":
        proof["key"] = proof["key"][:-1]
    elif fault == "no point":
        # No abscissa beyond the field's prime is one.
        proof["key"] = b"\x02" + b"\xff" * 32
    elif fault == "other key":
        proof["key"] = new_key(chance).public_key().public_bytes(X962, UNCOMPRESSED)
    elif fault == "index beyond":
        proof["index"] = (1 << len(proof["siblings"])) + chance.randrange(4)
    elif fault == "negative index":
        proof["index"] = -1
    elif fault == "other index":
        if not proof["siblings"]:
            return False
        proof["index"] ^= 1 << chance.randrange(len(proof["siblings"]))
    elif fault == "long signature":
        proof["signature"] += b"\0"
    elif fault == "changed signature":
        proof["signature"] = proof["signature"][:-1] + bytes([proof["signature"][-1] ^ 1])
    elif fault == "changed sibling":
        if not proof["siblings"]:
            return False
        place = chance.randrange(len(proof["siblings"]))
        proof["siblings"][place] = sha(proof["siblings"][place])
    elif fault == "changed data":
        proof["data"] += b"x"
    return True


FAULTS = [
    "many siblings", "long data", "hybrid key", "short key", "no point", "other key", "index beyond", "negative index",
    "other index", "long signature", "changed signature", "changed sibling", "changed data",
]


def public_key(encoded):
    """Whether the encoding is accepted, and the key if it is a point of the curve."""
    form = {65: b"\x04", 33: (b"\x02", b"\x03"), 91: b"\x30", 59: b"\x30"}.get(len(encoded))
    if form is None or not encoded.startswith(form):
        return False, None
    try:
        if len(encoded) in (65, 33):
            return True, ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), encoded)
        return True, serialization.load_der_public_key(encoded)
    except ValueError:
        return True, None


def integers(signature, kind):
    if kind == "raw":
        return (int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")) \
            if len(signature) == 64 else None
    try:
        pair = utils.decode_dss_signature(signature)
    except ValueError:
        return None
    return pair if utils.encode_dss_signature(*pair) == signature else None


def expected(proof, roots):
    """The leaf, the levels, the root and the outcome of each check, from the rules of PROTOCOL.md."""
    outcomes = dict.fromkeys(["collaboration", "freshness", "spending"], "not-checked")

    def judge(check, holds, verdict):
        outcomes[check] = "passed" if holds else verdict

    siblings = proof["siblings"]
    judge("lengths", len(siblings) <= 32 and len(proof["data"]) <= 4096, "malformed")
    accepted, key = public_key(proof["key"])
    judge("key-encoding", accepted, "bad-key")
    fits = len(siblings) <= 32 and 0 <= proof["index"] < 1 << len(siblings)
    if len(siblings) <= 32:
        judge("index", fits, "bad-index")
    else:
        outcomes["index"] = "not-checked"
    pair = integers(proof["signature"], proof["kind"])
    judge("signature-encoding", pair is not None, "bad-signature-encoding")
    node, levels = sha(proof["key"]), []
    for level, sibling in enumerate(siblings if fits else []):
        bit = proof["index"] >> level & 1
        parent = sha(sibling + node) if bit else sha(node + sibling)
        levels.append(dict(
            level=level, bit=bit, node=node.hex(), sibling=sibling.hex(), siblingSide="left" if bit else "right",
            parent=parent.hex()))
        node = parent
    outcomes["membership"] = "not-checked"
    if fits:
        judge("membership", node.hex() in roots, "not-participant")
    outcomes["curve"] = outcomes["signature"] = "not-checked"
    if accepted:
        judge("curve", key is not None, "bad-key")
    if key is not None and pair is not None:
        try:
            key.verify(utils.encode_dss_signature(*pair), proof["data"], ec.ECDSA(hashes.SHA256()))
            outcomes["signature"] = "passed"
        except InvalidSignature:
            outcomes["signature"] = "bad-signature"
    return sha(proof["key"]).hex(), levels, node.hex() if fits else None, outcomes


ORDER_OF_CHECKS = [
    "lengths", "key-encoding", "index", "signature-encoding", "collaboration", "freshness", "membership", "curve",
    "signature", "spending",
]


def differences(explained, proof, roots):
    leaf, levels, root, outcomes = expected(proof, roots)
    found = [] if explained["leaf"] == leaf else ["leaf"]
    if explained.get("levels") != (levels if root else None):
        found.append("levels")
    if explained.get("rootHash") != root:
        found.append("root hash")
    if [check["check"] for check in explained["checks"]] != ORDER_OF_CHECKS:
        found.append("order of checks")
    for check in explained["checks"]:
        outcome = check["verdict"] if check["outcome"] == "failed" else check["outcome"]
        if outcome != outcomes[check["check"]]:
            found.append(f"{check['check']} is {outcome}, and should be {outcomes[check['check']]}")
    failed = [check for check in ORDER_OF_CHECKS if outcomes[check] not in ("passed", "not-checked")]
    if explained.get("failed") != (failed[0] if failed else None):
        found.append("the first check that has failed")
    if explained.get("verdict") != (outcomes[failed[0]] if failed else None):
        found.append("the verdict")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--count", type=positive_number, default=100)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    proofs, roots = [], set()
    while len(proofs) < options.count:
        proof, _ = genuine(chance)
        root = expected(proof, roots)[2]
        # Half of the proofs have no fault or one, the others two.
        for fault in chance.sample(FAULTS, chance.choice([0, 1, 2, 2])):
            if not spoil(proof, fault, chance):
                break
        else:
            roots.add(root)
            proofs.append(proof)
    wrong = 0
    with tempfile.NamedTemporaryFile("w") as known:
        known.write("".join(root + "\n" for root in sorted(roots)))
        known.flush()
        for start in range(0, len(proofs), 100):
            part = proofs[start:start + 100]
            lines = "".join(json.dumps(dict(
                publicKey=base64.b64encode(proof["key"]).decode(), publicKeyIndex=proof["index"],
                inclusionHashes=[base64.b64encode(hash).decode() for hash in proof["siblings"]],
                signature=base64.b64encode(proof["signature"]).decode(), signatureFormat=proof["kind"],
                data=base64.b64encode(proof["data"]).decode())) + "\n" for proof in part)
            run = subprocess.run(
                [options.program, "explain", "--json", "--roots", known.name, "-"], input=lines.encode(),
                stdout=subprocess.PIPE)
            explained = [json.loads(line) for line in run.stdout.splitlines()]
            if len(explained) != len(part):
                sys.exit(f"{len(explained)} explanations of {len(part)} proofs")
            if run.returncode != (1 if any("verdict" in line for line in explained) else 0):
                sys.exit(f"the exit code is {run.returncode}")
            for number, (line, proof) in enumerate(zip(explained, part)):
                for difference in differences(line, proof, roots):
                    wrong += 1
                    print(f"proof {start + number}: {difference}")
    print(f"{len(proofs)} proofs, {wrong} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
