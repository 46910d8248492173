"""Write docs/ledger.md from the contracts themselves: `python -m chaincode.document [FILE]`.

Functions, arguments, roles, keys, values, events and codes are read from the code that enforces them; a test
fails when the page is older than the code.
"""

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args, get_origin

from chaincode.common import LedgerContract
from chaincode.common.contract import READERS
from chaincode.registry import CONTRACTS, contract
from chaincode.shim.contract import Function
from protocol.errors import TABLE
from protocol.ledger import common, keys
from protocol.ledger.common import History, Page
from protocol.ledger.record import LedgerRecord

FILE = Path(__file__).parents[1] / "docs" / "ledger.md"

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

**Records** are stored in their one form ([records-v1](formats/records-v1.md)), with `"version": 1`, under the
keys of [keys-v1](formats/keys-v1.md). `~` stands for the separator.

**Answers** have the fields of the record that is named behind the function; each record is a class of
`protocol/ledger/` and is described once on this page, those that several chaincodes use under
[Common parts](#common-parts).

**Pages.** Lists and histories take `size` (1 to 1000) and `bookmark`, and answer `items` and `bookmark`. An
empty bookmark ends the list; a page may be short and still have one. An item of a history is a change, newest
first: `tx`, `time` and `value`, which is null where the record was removed. Fabric lists a key's changes from
the newest on and can begin nowhere else, so a page of a history reads what comes before it as well: its
bookmark may be up to ten times `size`, and less than 1000. Whoever reads a long history takes large pages.
Pages hold at most 512 KiB of records, or one.

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
    described: set[type[LedgerRecord]] = set()
    chaincodes = [_chaincode(made, described) for made in contracts]
    return "\n".join([INTRODUCTION, *chaincodes, _common(described), _codes()])


def _chaincode(made: LedgerContract, described: set[type[LedgerRecord]]) -> str:
    answers = [answer_of(function)[1] for _, function in sorted(made.functions.items())]
    stored = made.values.values()
    other = [record for record in _with_parts([*stored, *filter(None, answers)]) if record not in stored]
    own = [record for record in other if record.__module__ != common.__name__ and record not in described]
    described.update(stored, own)
    return "\n".join(
        (
            f"## {made.name}",
            "",
            type(made).__doc__ or "",
            "",
            "### Functions",
            "",
            *(_function(made, function) for _, function in sorted(made.functions.items())),
            "### Keys and records",
            "",
            *(_stored(kind, record) for kind, record in made.values.items()),
            *(("### Parts and answers", "") if own else ()),
            *(_record(record) for record in own),
            "### Events",
            "",
            *_table(
                ("event", "announced when, with"), [(f"`{name}`", text) for name, text in made.events.items()]
            ),
        )
    )


def answer_of(function: Function) -> tuple[str, type[LedgerRecord] | None]:
    """Return how a function's answer is called, and the record that it consists of."""
    answer = inspect.signature(function.call).return_annotation
    record = next(iter(get_args(answer)), answer)
    if not (isinstance(record, type) and issubclass(record, LedgerRecord)):
        return "", None
    if record is LedgerRecord:
        return "history of the record asked for", None
    shape = {Page: "page of ", History: "history of "}.get(get_origin(answer), "")
    return f"{shape}`{record.__name__}`", record


def _with_parts(records: Sequence[type[LedgerRecord]]) -> list[type[LedgerRecord]]:
    """Return records and all that they hold, each once, a record before its parts."""
    found: dict[type[LedgerRecord], None] = {}
    for record in records:
        if record not in found:
            found[record] = None
            found |= dict.fromkeys(_with_parts(record.parts()))
    return list(found)


def _function(made: LedgerContract, function: Function) -> str:
    arguments = ", ".join(
        f"{parameter.name}: {parameter.type}" + (" = …" if parameter.optional else "")
        for parameter in function.parameters
    )
    roles = made.roles.get(function.name)
    who = "every role" if roles in (None, READERS) else ", ".join(sorted(roles or ()))
    answer, _ = answer_of(function)
    gives = f" → {answer}" if answer else ""
    return f"**`{function.name}({arguments})`**{gives} ({function.kind}; {who})<br>\n{function.doc}\n"


def _stored(kind: str, record: type[LedgerRecord]) -> str:
    return f"Under `{'~'.join((kind, *keys.KINDS[kind]))}`:\n\n{_record(record)}"


def _record(record: type[LedgerRecord]) -> str:
    rows = [(f"`{field.name}`", field.type, field.meaning) for field in record.describe()]
    return "\n".join(
        (f"`{record.__name__}`: {record.__doc__}", "", *_table(("field", "type", "meaning"), rows))
    )


def _common(described: set[type[LedgerRecord]]) -> str:
    used = [record for record in _with_parts(list(described)) if record not in described]
    ordered = sorted(used, key=lambda record: record.__name__)
    return "\n".join(("## Common parts", "", *(_record(record) for record in ordered)))


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
    parser.add_argument("file", nargs="?", type=Path, default=FILE, help="where to write (docs/ledger.md)")
    parser.parse_args(argv).file.write_text(document(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
