"""`executor launch`: the tasks of a node, of every node of the organisation on this host, or a service."""

import json
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import click

from executor.caller import Caller, caller_options
from executor.engine import engine
from executor.errors import UsageError
from executor.exits import OK, exit_code, gravest, json_option, reported
from executor.launch.account import Account
from executor.launch.log import Event, LaunchLog, LogEntry
from executor.launch.node_report import NodeReport
from executor.launch.nodes import NodeLaunch, account_for, launch_nodes, plan_node
from executor.launch.places import Places, places_of_host
from executor.launch.plan import TaskPlan
from executor.launch.serve import check_alone, serve
from executor.launch.service import READER
from executor.launch.settings import LaunchSettings
from executor.launch.source import DEFAULT_LABEL, DataSource
from executor.number_range import NumberRange
from executor.output import Progress, echo, table
from executor.sandbox.profile import Limits
from executor.stop import StopSignals
from protocol.identifiers import parse_node, parse_process

MIB = 1 << 20
THE_NODE = "the node"
"""Stands for the identity of the node that is launched."""


@click.command()
@click.option("--process", multiple=True, help="The process to work for; several are side by side.")
@click.option("--follow", is_flag=True, help="Work for every process that was accepted, until stopped.")
@click.option(
    "--node", help="The node to work for. [default: the identity's, or the organisation's only one]"
)
@click.option("--all-local", is_flag=True, help="Every node of the organisation that is enrolled here.")
@click.option("--iterations", type=click.IntRange(1), help="How many iterations. [default: 1]")
@click.option("--until-complete", is_flag=True, help="All iterations that remain.")
@click.option("--data", help="CSV or Parquet file of the node's rows; {node} stands for its name.")
@click.option("--label", default=DEFAULT_LABEL, show_default=True, help="The label column of --data: 0 or 1.")
@click.option("--drop", multiple=True, help="A column of --data to leave out.")
@click.option("--timeout", type=NumberRange(1), default=3600, show_default=True, help="Seconds per task.")
@click.option(
    "--memory", type=click.IntRange(64), default=1024, show_default=True, help="MiB for the learner."
)
@click.option("--cpus", type=NumberRange(0.1), default=1.0, show_default=True, help="CPUs for the learner.")
@click.option(
    "--tasks",
    type=click.IntRange(1),
    help="Tasks at work side by side. [default: as this host's memory and cores allow]",
)
@click.option(
    "--runtime", default="", help="The engine's runtime, runsc for example. [default: the engine's]"
)
@click.option("--dry-run", is_flag=True, help="Print the plan and the container's profile; change nothing.")
@caller_options(THE_NODE)
@json_option
@reported
def launch(  # noqa: PLR0917 - one per option
    caller: Caller,
    as_json: bool,
    process: tuple[str, ...],
    follow: bool,
    node: str | None,
    all_local: bool,
    iterations: int | None,
    until_complete: bool,
    data: str | None,
    label: str,
    drop: tuple[str, ...],
    timeout: float,
    memory: int,
    cpus: float,
    tasks: int | None,
    runtime: str,
    dry_run: bool,
) -> None:
    """Run one task of a process for one node: verify the image, FIT, SHARE, GET, sign, record.

    The image is compared with the ledger by its SHA-256 before it runs, the task's key is made for this one
    task, and the container has no network. See docs/exit-codes.md for what the exit codes mean.

    With --follow, do so for every node of the organisation on this host and every process that runs, as a
    service; --json then prints one line for each event. See docs/service.md.
    """
    limits = Limits(memory_bytes=memory * MIB, cpus=cpus)
    places = Places(tasks or places_of_host(limits))
    if follow:
        named = label if label != DEFAULT_LABEL else None
        check_alone(process, node, all_local, iterations, until_complete, data, named, drop, dry_run)
        serve(caller, engine(), LaunchSettings("", None, None, limits, timeout, runtime, places), as_json)
        return
    if not process:
        raise UsageError("LAUNCH_OPTIONS", "neither --process nor --follow is given", case="neither")
    if iterations is not None and until_complete:
        raise UsageError("LAUNCH_OPTIONS", "--iterations and --until-complete exclude each other")
    # Each names a directory, too, so create nothing for an invalid name.
    processes: list[str] = [parse_process(name) for name in dict.fromkeys(process)]
    settings = LaunchSettings(
        "",
        None if until_complete else iterations or 1,
        None if data is None else DataSource(data, label, drop),
        limits,
        timeout,
        runtime,
        places,
    )
    with StopSignals() as stop:
        work = [
            (replace(settings, process=name), each)
            for name in processes
            for each in _nodes(caller, name, node, all_local)
        ]
        client = engine()
        if dry_run:
            plans = [plan_node(caller, client, *each) for each in work]
            _print_plans([plan for plan in plans if plan is not None], as_json)
            return
        with Progress() as progress:
            log = LaunchLog(caller.network.state, caller.organisation)
            tell = partial(_tell, progress, log, len(processes) > 1)
            accounts = {name: Account(caller.organisation, name, tell) for name in processes}
            launches = [NodeLaunch(each, name, accounts[each.process]) for each, name in work]
            reports = launch_nodes(caller, client, launches, stop)
        for report in reports:
            account_for(report, accounts[report.process])
    _finish(reports, as_json)


def _nodes(caller: Caller, process: str, node: str | None, all_local: bool) -> list[str]:
    """Return the nodes to work for: those of the organisation that are in the process and enrolled here."""
    if node is not None and all_local:
        raise UsageError("LAUNCH_OPTIONS", "--node and --all-local exclude each other")
    named = node or (caller.identity if caller.identity != THE_NODE else None)
    if named is not None and not all_local:
        _check_enrolled(caller, parse_node(named))
        return [named]
    with replace(caller, identity=READER).ledger() as ledger:
        taking_part = [entry.node for entry in ledger.orchestration.status(process).nodes]
    local = [name for name in taking_part if _is_enrolled(caller, caller.organisation, name)]
    if not local or (len(local) > 1 and not all_local):
        raise UsageError(
            "LAUNCH_NODE",
            f"{caller.organisation} has {', '.join(local) or 'no node'} of process {process} on this host",
        )
    return local


def _check_enrolled(caller: Caller, node: str) -> None:
    if _is_enrolled(caller, caller.organisation, node):
        return
    homes = [name for name in caller.network.organisations if _is_enrolled(caller, name, node)]
    cause = f"{caller.organisation} has no identity {node!r} on this host"
    if homes:
        raise UsageError("LAUNCH_NODE", cause, case="elsewhere", home=homes[0])
    raise UsageError("LAUNCH_NODE", cause, case="not enrolled", organisation=caller.organisation, node=node)


def _is_enrolled(caller: Caller, organisation: str, node: str) -> bool:
    return caller.network.msp_folder(organisation, node).is_dir()


def _print_plans(plans: list[TaskPlan], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"plans": [plan.to_dict() for plan in plans]}))
        return
    for plan in plans:
        echo(f"{plan.task.id.node}, iteration {plan.task.id.iteration}: nothing was done; a launch would")
        for number, step in enumerate(_steps(plan), 1):
            echo(f"  {number}. {step}")
        click.echo(json.dumps(plan.to_dict()["sandbox"]["profile"], indent=2))
    if not plans:
        echo("nothing is left to do")


def _steps(plan: TaskPlan) -> list[str]:
    task, context = plan.task, plan.context
    neighbours = ", ".join(context.neighbours)
    return [
        f"run {task.image.name} {task.image.version} by the ledger's image id, {task.image.image_id}",
        f"open task {task.id} with a new key and data commitment {plan.commitment}",
        f"start from state {task.state or 'nothing'} with parameters {context.parameters_digest}",
        f"FIT on {len(plan.dataset.table.y)} rows"
        + (f", SHARE with and GET from {neighbours}" if neighbours else ", without neighbours"),
        f"complete the task by the learner's signed result{', publish the model' if context.is_last else ''}",
        f"keep the container to profile {plan.profile.digest}:",
    ]


def _tell(progress: Progress, log: LaunchLog, several: bool, entry: LogEntry) -> None:
    """Keep what happens, and show each step of a node; how its launch ended is shown when all have.

    With several processes each node is told by its process, too.
    """
    log.write(entry)
    if entry.node is not None and entry.event in (Event.NODE_STEP, Event.TASK_DONE):
        row = f"{entry.process} {entry.node}" if several else entry.node
        place = row if entry.iteration is None else f"{row} iteration {entry.iteration}"
        progress.say(f"{place}: {entry.text}", row)


def _finish(reports: list[NodeReport], as_json: bool) -> None:
    """Print what was done, and end with the exit code of the gravest failure."""
    failures = [error for report in reports for error in report.failures]
    code = exit_code(gravest(failures)) if failures else OK
    if as_json:
        answer: dict[str, Any] = {"nodes": [report.to_dict() for report in reports]}
        if failures:
            answer["exit_code"] = code
        click.echo(json.dumps(answer))
    else:
        _print_reports(reports)
    sys.exit(code)


def _print_reports(reports: list[NodeReport]) -> None:
    several = len({report.process for report in reports}) > 1
    named = [(f"{report.process} {report.node}" if several else report.node, report) for report in reports]
    if any(report.tasks for report in reports):
        echo(_summary_text(named))
    for name, report in named:
        if report.finished is not None:
            echo(
                f"{name}: model {report.finished['model']} is published;"
                f" the process is {report.finished['process']}"
            )
        elif report.left is not None:
            since = f"from iteration {report.left} on"
            echo(f"{name}: takes no part {since}: its organisation let it leave")
        elif not report.tasks and report.error is None:
            echo(f"{name}: nothing was left to do")
        for error in report.failures:
            echo(f"executor: {name}: {error}", err=True)


def _summary_text(named: list[tuple[str, NodeReport]]) -> str:
    """Return a table of what the tasks came to."""
    columns = ("Node", "Iteration", "Created", "Taken", "Refused", "Ensemble", "Block", "Seconds", "Digest")
    rows = []
    for node, report in named:
        for summary in report.tasks:
            found = summary.to_dict()
            counts = [str(found[name.lower()]) for name in columns[1:7]]
            rows.append((node, *counts, f"{summary.seconds:.1f}", summary.result.ensemble_digest.hex[:12]))
    return table("Tasks", columns, rows)
