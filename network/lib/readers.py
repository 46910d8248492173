"""Let only certificates with a role read a channel: put each role's unit into the organisations' Readers.

The language of policies in configtx.yaml knows the roles of Fabric's MSPs (peer, admin, client) and no other
unit, so the first block is changed here, as JSON, after configtxgen has made it. `finish` then writes the
block's data hash anew, because the data is another one.
"""

import argparse
import base64
import hashlib
import json
import ssl
import sys
from pathlib import Path
from typing import Any

HEADER, DATA, DATA_HASH, LENGTH_DELIMITED = 1, 2, 3, 2


def main() -> None:
    """Run one of the two steps on standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("add", "finish"))
    parser.add_argument("--units", default="", help="organisational units that may read, with commas between")
    parser.add_argument(
        "--organisations", type=Path, help="the directory that has an ORG/ca.pem for each MSP"
    )
    parser.add_argument("--msps", nargs="*", default=[], help="ORG=MSP")
    options = parser.parse_args()
    if options.step == "finish":
        sys.stdout.buffer.write(with_data_hash(sys.stdin.buffer.read()))
        return
    block = json.load(sys.stdin)
    config = block["data"]["data"][0]["payload"]["data"]["config"]
    members = config["channel_group"]["groups"]["Application"]["groups"]
    for pair in options.msps:
        organisation, _, msp = pair.partition("=")
        root = (options.organisations / organisation / "ca.pem").read_text(encoding="ascii")
        policy = members[msp]["policies"]["Readers"]["policy"]["value"]
        for unit in options.units.split(","):
            add_unit(policy, msp, unit, root)
    json.dump(block, sys.stdout)


def add_unit(policy: dict[str, Any], msp: str, unit: str, root: str) -> None:
    """Let one more kind of certificate satisfy a policy of the kind 1-of-n."""
    rules = policy["rule"]["n_out_of"]["rules"]
    rules.append({"signed_by": len(policy["identities"])})
    # Fabric tells units of one name apart by the authorities that certify them.
    certifier = hashlib.sha256(ssl.PEM_cert_to_DER_cert(root)).digest()
    principal = {
        "msp_identifier": msp,
        "organizational_unit_identifier": unit,
        "certifiers_identifier": base64.b64encode(certifier).decode(),
    }
    policy["identities"].append({"principal_classification": "ORGANIZATION_UNIT", "principal": principal})


def with_data_hash(block: bytes) -> bytes:
    """Return a first block whose header is that of its data: number 0, no predecessor."""
    fields = dict(read_fields(block))
    entries = [value for _, value in read_fields(fields[DATA])]
    header = field(DATA_HASH, hashlib.sha256(b"".join(entries)).digest())
    return b"".join(field(number, header if number == HEADER else value) for number, value in fields.items())


def read_fields(raw: bytes) -> list[tuple[int, bytes]]:
    """Take a protobuf message apart whose fields all have a length, as those of a block do."""
    found, place = [], 0
    while place < len(raw):
        tag, place = read_number(raw, place)
        if tag & 7 != LENGTH_DELIMITED:
            raise SystemExit("the first block has a field that no first block has")
        size, place = read_number(raw, place)
        found.append((tag >> 3, raw[place : place + size]))
        place += size
    return found


def read_number(raw: bytes, place: int) -> tuple[int, int]:
    """Read a variable-length number; returns it and the place after it."""
    number = shift = 0
    while True:
        byte = raw[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place


def field(number: int, value: bytes) -> bytes:
    """Write one field with a length."""
    return write_number(number << 3 | LENGTH_DELIMITED) + write_number(len(value)) + value


def write_number(number: int) -> bytes:
    """Write a variable-length number."""
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


if __name__ == "__main__":
    main()
