"""Write docs/ledger.md from the contracts themselves: `python -m chaincode.document [FILE]`.

Functions, arguments, roles, keys, values, events and codes are read from the code that enforces them; a test
fails when the page is older than the code.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from chaincode.common import LedgerContract
from chaincode.common.contract import READERS
from chaincode.registry import CONTRACTS, contract
from chaincode.shim.contract import Function
from protocol.errors import TABLE
from protocol.ledger import keys

PAGE = Path(__file__).parents[1] / "docs" / "ledger.md"

INTRODUCTION = """\
# The ledger

Made by `python -m chaincode.document` from the contracts; edit those, not this page.

One channel, four chaincodes. A function is called with text arguments, by any Gateway client or by
`peer chaincode query -C attestree -n CHAINCODE -c '{"Args":["Function","argument"]}'` (`invoke` to submit).
Lists and objects are JSON, whole numbers canonical decimals; arguments with a default may be left out from
the end. Answers are JSON with sorted keys, in the same bytes on every peer. `metadata` lists a chaincode's
functions.

**Who.** Organisation, role and node of a caller are the MSP id and the Fabric CA attributes `role` and `node`
of the certificate that signed the proposal; no argument says who calls. A certificate without one of the
roles admin, data-scientist, node and auditor cannot even read.

**Provenance** of a change: `organisation`, `identity`, `role`, `certificate` (its SHA-256), `time` and `tx`.
The time is what the client put into its proposal; the order of events is that of the blocks.

**Records** are stored in their one form ([records-v1](formats/records-v1.md)), with `"version": 1`, under the
keys of [keys-v1](formats/keys-v1.md). `~` stands for the separator.

**Pages.** Lists and histories take `size` (1 to 1000) and `bookmark`, and answer `items` and `bookmark`. An
empty bookmark ends the list; a page may be short and still have one.

**Refusals** are `{"code": ..., "message": ...}` with status 400; nothing of a refused transaction is written.
Codes are stable, sentences are for people. A refusal of another chaincode that was called on the way keeps
its code.
"""

SHIM_CODES = {
    "UNKNOWN_FUNCTION": "The chaincode has no function of this name.",
    "BAD_ARGUMENT_COUNT": "There are too few or too many arguments.",
    "BAD_ARGUMENT": "An argument is not of its type, or a page size or bookmark is outside its range.",
    "BAD_CREATOR": "The caller is not an X.509 identity, or its attributes cannot be read.",
    "CALL_REFUSED": "Another chaincode refused without a code.",
    "INTERNAL": "A bug; the chaincode's log says where, under the transaction id.",
    "MISUSE": "The contract asked the peer for something it cannot do; a bug.",
    "PEER_REFUSED": "The peer answered a request of the chaincode with an error.",
    "MALFORMED": "The peer's message cannot be read.",
    "TOO_LARGE": "An answer or a write exceeds what a message to the peer may hold.",
    "UNAVAILABLE": "The chaincode is stopping; try again.",
    "STREAM_LOST": "The peer is gone; seen in logs alone.",
    "SHIM": "Never sent: the root of the above.",
}


def document() -> str:
    """Return the whole page."""
    contracts = [made for name in CONTRACTS if isinstance(made := contract(name), LedgerContract)]
    sections = [INTRODUCTION, *(_chaincode(made) for made in contracts), _codes()]
    return "\n".join(sections)


def _chaincode(made: LedgerContract) -> str:
    return "\n".join(
        (
            f"## {made.name}",
            "",
            type(made).__doc__ or "",
            "",
            "### Functions",
            "",
            *(_function(made, function) for _, function in sorted(made.functions.items())),
            "### Keys and values",
            "",
            *(_value(kind, fields) for kind, fields in made.values.items()),
            "### Events",
            "",
            *_table(
                ("event", "announced when, with"), [(f"`{name}`", text) for name, text in made.events.items()]
            ),
        )
    )


def _function(made: LedgerContract, function: Function) -> str:
    arguments = ", ".join(
        f"{parameter.name}: {parameter.type}" + (" = …" if parameter.optional else "")
        for parameter in function.parameters
    )
    roles = made.roles.get(function.name)
    who = "every role" if roles in (None, READERS) else ", ".join(sorted(roles or ()))
    return f"**`{function.name}({arguments})`** ({function.kind}; {who})<br>\n{function.doc}\n"


def _value(kind: str, fields: dict[str, str]) -> str:
    key = "~".join((kind, *keys.KINDS[kind]))
    rows = [(f"`{name}`", meaning) for name, meaning in fields.items()]
    return "\n".join((f"`{key}`", "", *_table(("field", "meaning"), rows)))


def _codes() -> str:
    shim = [(f"`{code}`", meaning) for code, meaning in SHIM_CODES.items()]
    ours = [(f"`{code}`", row.error.__name__, row.remedy) for code, row in TABLE.items()]
    return (
        "\n".join(
            (
                "## Codes",
                "",
                "Meanings are in [errors](formats/errors.md).",
                "",
                *_table(("code", "class", "remedy"), ours),
                "Codes of the layer below, which any function can answer with:",
                "",
                *_table(("code", "meaning"), shim),
            )
        ).rstrip("\n")
        + "\n"
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return [
        f"| {' | '.join(line)} |".replace("| --- ", "|---").replace("--- |", "---|") for line in lines
    ] + [""]


def main(argv: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m chaincode.document", description="Write docs/ledger.md.")
    parser.add_argument("file", nargs="?", type=Path, default=PAGE, help="where to write (docs/ledger.md)")
    parser.parse_args(argv).file.write_text(document(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
