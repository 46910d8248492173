"""`executor doctor`: is this host ready, and is its network sound?"""

import json
import sys
from collections.abc import Iterator

import click
from rich.console import Console

from executor.doctor.certificates import check_certificates
from executor.doctor.finding import Finding, guarded
from executor.doctor.host import check_host
from executor.doctor.ledger import check_chaincodes, check_heights
from executor.doctor.services import check_services
from executor.network import Network, NetworkError
from executor.output import plain

UP = "run network/up.sh"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> None:
    """Check this host and its network; exit 0 only if nothing is wrong."""
    findings = []
    console = Console(highlight=False, soft_wrap=True)
    for finding in diagnose():
        findings.append(finding)
        if not as_json:
            _print(console, finding)
    ok = all(finding.ok for finding in findings)
    if as_json:
        click.echo(json.dumps({"ok": ok, "checks": [finding.to_dict() for finding in findings]}))
    sys.exit(0 if ok else 1)


def diagnose() -> Iterator[Finding]:
    """Run every check, the host first; stop where nothing further can be asked."""
    yield from check_host()
    try:
        network = Network.load()
    except NetworkError as error:
        yield Finding("network", False, str(error), UP)
        return
    orderers = f"{network.n_orderers} orderers ({network.consensus})"
    size = f"{network.n_organisations} organisations, {orderers}, {network.n_nodes} nodes"
    yield Finding("network", True, f"{network.project}: {size}")
    for name, check in (
        ("containers", check_services),
        ("channel height", check_heights),
        ("chaincode definitions", check_chaincodes),
        ("certificates", check_certificates),
    ):
        yield from guarded(name, UP, check, network)


def _print(console: Console, finding: Finding) -> None:
    mark = "[green]✓[/]" if finding.ok else "[red]✗[/]"
    console.print(f"{mark} {finding.name}: ", end="")
    console.print(plain(finding.detail), markup=False)
    if finding.remedy:
        console.print(f"    remedy: {finding.remedy}", markup=False)
