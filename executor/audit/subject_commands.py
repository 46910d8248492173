"""`executor audit process|task|estimator|model ID` and `contribution`: reports on one subject each.

They take an export on the fly, or one that is there, and verify all of it: a report on a part of a ledger is
worth what the whole is worth.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from executor.audit import challenges
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.dossier import Dossier, Subject, SubjectFindings
from executor.audit.errors import AuditError
from executor.audit.files import verify_file, write_text
from executor.audit.lineage import Contributions, Matrix, draw
from executor.audit.report import Report
from executor.audit.verify import SENTENCES
from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import exit_code, json_option, message, reported
from executor.output import answer, table

_FILE = click.Path(dir_okay=False, path_type=Path)
SUBJECTS = {
    "process": ("PROCESS", "Report on a process: who agreed, what ran, what came of it."),
    "task": ("PROCESS/NODE/ITERATION", "Report on one task: its image, key, inputs, signatures and result."),
    "estimator": ("PROCESS/NODE/COUNTER", "Report on one tree, from the task that made it to every model."),
    "model": ("PROCESS/NODE", "Report on a published model: its trees, and who had access and when."),
}


def sources(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the blocks come from."""
    for option in (
        click.option("--genesis", metavar="SHA256", help="The first block's hash, known from elsewhere."),
        click.option("--file", "file", type=_FILE, help="An export to read, in place of the ledger."),
    ):
        command = option(command)
    return caller_options("auditor", unless="file")(command)


@contextmanager
def exported(caller: Caller | None, file: Path | None, process: str) -> Iterator[tuple[Path, str | None]]:
    """Give an export: the one named, or a new one with the hash that the peer gave."""
    if file is not None:
        yield file, None
        return
    if caller is None:
        raise AssertionError("the options give one of the two")
    from executor.audit.export import export_channel  # noqa: PLC0415 - reading a file needs no ledger

    with tempfile.TemporaryDirectory(prefix="attestree-audit-") as folder:
        with caller.ledger() as ledger:
            made = export_channel(ledger.transport, process, Path(folder) / "channel.tar")
        yield made.file, made.genesis


def _anchor(genesis: str | None, peers: str | None) -> Anchor:
    if genesis is None and peers is None:
        raise UsageError("AUDIT_ANCHOR", "an export cannot vouch for itself")
    return Anchor(parse_anchor(genesis or peers or ""))


def subject_command(kind: str) -> click.Command:
    """Make the command that reports on one kind of subject."""
    metavar, summary = SUBJECTS[kind]

    @click.command(kind, help=summary)
    @click.argument("name", metavar=metavar)
    @click.option("--html", "page", type=_FILE, help="Write the report as one page to this file.")
    @sources
    @json_option
    @reported
    def command(  # noqa: PLR0917
        name: str,
        page: Path | None,
        genesis: str | None,
        file: Path | None,
        caller: Caller | None,
        as_json: bool,
    ) -> None:
        subject = Subject.parse(kind, name)
        dossier, findings = Dossier(subject), SubjectFindings(SENTENCES, subject)
        with exported(caller, file, subject.process) as (source, peers):
            found = verify_file(source, _anchor(genesis, peers), (dossier.observe,), findings=findings)
        if not dossier.events:
            raise UsageError("AUDIT_SUBJECT", f"the channel says nothing about {kind} {name}")
        report = Report.of(dossier, findings, found, anchored=genesis is not None)
        if page is not None:
            write_text(page, report.html())
        answer(report.to_dict(), report.text, as_json=as_json, indent=2)
        adverse = sum(not challenges.is_sound([each]) for each in report.challenges)
        end_unless(report.verified, len(found.failures) + adverse)

    return command


@click.command("contribution")
@click.argument("process")
@click.option("--csv", "csv_file", type=_FILE, help="Write every figure to this file.")
@click.option("--figure", type=_FILE, help="Draw the heat map of origins to this file, .png or .svg.")
@sources
@json_option
@reported
def contribution(  # noqa: PLR0917
    process: str,
    csv_file: Path | None,
    figure: Path | None,
    genesis: str | None,
    file: Path | None,
    caller: Caller | None,
    as_json: bool,
) -> None:
    """Show whose trees are in whose ensemble, from the chain alone."""
    if figure is not None and figure.suffix not in (".png", ".svg"):
        raise UsageError("AUDIT_FIGURE", f"{figure.name} ends neither in .png nor in .svg")
    counted = Contributions(process)
    with exported(caller, file, process) as (source, peers):
        found = verify_file(source, _anchor(genesis, peers), (counted.observe,))
    if not counted.found:
        raise UsageError("AUDIT_SUBJECT", f"no task of {process} has a result")
    if csv_file is not None:
        write_text(csv_file, counted.csv())
    if figure is not None:
        draw(counted, str(figure))
    adverse = challenges.verdicts(found.challenges, process)[1]
    verified = found.holds and not adverse
    owners, creators, shares = counted.matrix(counted.last)
    by_organisation = counted.matrix(counted.last, organisations=True)
    shown = {
        "process": process,
        "verified": verified,
        "iteration": counted.last,
        "nodes": _object(owners, creators, shares),
        "organisations": _object(*by_organisation),
    }
    answer(shown, lambda: _tables(counted.last, (owners, creators, shares), by_organisation), as_json=as_json)
    end_unless(verified, len(found.failures) + len(adverse))


COMMANDS = [*(subject_command(kind) for kind in SUBJECTS), contribution]


def end_unless(verified: bool, count: int, what: str = "channel") -> None:
    """Leave with the exit code of a failed audit unless all claims hold."""
    if not verified:
        refusal = AuditError("AUDIT_FAILED", f"{count} things in the {what} are not as they should be")
        click.echo(message(refusal), err=True)
        sys.exit(exit_code(refusal))


def _object(owners: list[str], creators: list[str], shares: list[list[float]]) -> dict[str, dict[str, float]]:
    return {
        owner: {creator: round(share, 4) for creator, share in zip(creators, row, strict=True)}
        for owner, row in zip(owners, shares, strict=True)
    }


def _tables(iteration: int, *found: Matrix) -> str:
    parts = []
    for (owners, creators, shares), what in zip(found, ("node", "organisation"), strict=True):
        figures = [[f"{share:.2f}" for share in row] for row in shares]
        rows = [[owner, *row] for owner, row in zip(owners, figures, strict=True)]
        title = f"share of each {what}'s trees in the ensembles after iteration {iteration}"
        parts.append(table(title, ["ensemble of", *creators], rows))
    return "\n\n".join(parts)
