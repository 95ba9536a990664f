"""Verifies the files of an audit with nothing but Python's standard library, from the description in the handbook.

    python3 Tests/Python/audit_chain.py SECRET FILE...

The files are given from the oldest to the newest. Prints the number of lines, or what is wrong, and then exits with 1;
without a file with 2.
"""

import hashlib
import hmac
import json
import struct
import sys


def generations(path):
    """The secrets of a secret's file, by the names of their generations."""
    with open(path, "rb") as file:
        data = file.read()
    assert len(data) == 152 and data[:16] == b"rootgate secret\n"
    assert hashlib.sha256(data[:120]).digest() == data[120:]
    version, holds = struct.unpack_from("<II", data, 16)
    assert version == 1 and holds in (1, 2, 3)
    return {data[24 + 48 * i : 32 + 48 * i].hex(): data[40 + 48 * i : 72 + 48 * i] for i in range(min(holds, 2))}


def usage():
    """Says how the program is used, and returns its exit code then."""
    print("usage: audit_chain.py SECRET FILE...", file=sys.stderr)
    return 2


def audit_key(secret):
    """RFC 5869: extract without a salt, expand to one block."""
    extracted = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, b"rootgate audit v1\x01", hashlib.sha256).digest()


def main():
    if len(sys.argv) < 3:
        sys.exit(usage())
    secrets = generations(sys.argv[1])
    number, before, covered = 0, "00" * 32, 0
    for path in sys.argv[2:]:
        with open(path, "rb") as file:
            content = file.read()
        assert content.endswith(b"\n"), f"{path} ends in the middle of a line"
        for line in content[:-1].split(b"\n"):
            number += 1
            assert all(byte >= 0x20 for byte in line), f"a control character in line {number}"
            fields = json.loads(line)
            assert fields["n"] == number, f"line {number} has the number {fields['n']}"
            assert fields["before"] == before, f"line {number} does not name the hash of the line before"
            before = hashlib.sha256(line).hexdigest()
            if fields["key"] in secrets:
                signed, separator, _ = line.rpartition(b',"tag"')
                assert separator
                tag = hmac.new(audit_key(secrets[fields["key"]]), signed, hashlib.sha256).digest()[:16]
                assert tag.hex() == fields["tag"], f"the tag of line {number} is not genuine"
                covered = number
    print(f"{number} lines, {covered} covered by tags, last hash {before}")


try:
    main()
except (AssertionError, KeyError, ValueError) as error:
    print(f"wrong: {error}")
    sys.exit(1)
