"""docs/codes.md: every code that the packages define, with its class, exit code and remedies."""

from importlib import import_module

from executor.exits import exit_code_of
from protocol.errors import TABLE, defined

from .repository import ROOT

PAGE = ROOT / "docs" / "codes.md"
DEFINING = (
    "learning.errors",
    "experiments.errors",
    "executor.errors",
    "executor.audit.errors",
    "executor.ledger.errors",
    "executor.model.errors",
    "executor.process.errors",
    "executor.replay.errors",
)
"""Each of these defines the rows of its classes when it is loaded."""
HEAD = """\
# Codes

Made by `scripts/docs` from `protocol/errors.py`, `learning/errors.py`, `experiments/errors.py` and
`executor/codes.py`; edit those, not this page. What a number means is in [exit codes](exit-codes.md), what
the codes of the ledger and of the formats mean in [errors](formats/errors.md). A code that comes up in
several cases has several remedies; words in braces are filled in. `PARAMETER_RANGE` of an option exits
with 2."""


def page() -> str:
    """Return the page: what the executor and its parts refuse, then what the ledger and the formats do."""
    for module in DEFINING:
        import_module(module)
    rows = {True: list[str](), False: list[str]()}
    for code, row in sorted(defined().items()):
        remedies = "<br>".join(dict.fromkeys(row.remedies.values()))
        number = exit_code_of(code, row.error)
        rows[code in TABLE].append(f"| `{code}` | {row.error.__name__} | {number} | {_shown(remedies)} |")
    head = "| code | class | exit code | remedy |\n|---|---|---|---|"
    ours, ledger = ("\n".join([head, *rows[key]]) for key in (False, True))
    return "\n\n".join([HEAD, "## Of the executor", ours, "## Of the ledger and the formats", ledger]) + "\n"


def _shown(remedy: str) -> str:
    """Return a remedy with the braces that are meant as such."""
    return remedy.replace("{{", "{").replace("}}", "}").replace("|", "\\|")
