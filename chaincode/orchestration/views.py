"""What readers are shown of a process: lists, status, and what the other chaincodes check against."""

from typing import Any

from chaincode.orchestration.process import Process, Progress, next_iteration
from protocol.agreement.process import parameters_digest


def brief(record: dict[str, Any]) -> dict[str, Any]:
    """Return a process in a list."""
    specification = record["specification"]
    return {
        "process": record["process"],
        "status": record["status"],
        "description": specification["description"],
        "organisations": specification["organisations"],
        "created": record["created"],
        "ended": record["ended"],
    }


def status(process: Process, progress: Progress) -> dict[str, Any]:
    """Return where a process and each of its nodes stand; `iteration` is null when no node has work left."""
    plan = progress.plan
    current = progress.current()
    return {
        "process": process.id,
        "status": process.record["status"],
        "consortium": list(plan.consortium),
        "accepted": sorted(process.record["accepted"]),
        "missing": process.missing_acceptances(),
        "iteration": current,
        "iterations": plan.iterations,
        "changes": [_change(entry) for entry in process.record["changes"]],
        "nodes": [_node(progress, node) for node in sorted(plan.nodes)],
    }


def _change(entry: dict[str, Any]) -> dict[str, Any]:
    waiting = [name for name in entry["needed"] if name not in entry["agreed"]]
    shown = {name: entry[name] for name in ("number", "kind", "iteration", "subject", "asked", "holds")}
    return {**shown, "missing": waiting}


def _node(progress: Progress, node: str) -> dict[str, Any]:
    record, upcoming = progress.records.get(node), progress.next_of(node)
    return {
        "node": node,
        "organisation": progress.plan.nodes[node],
        "completed": None if record is None else record["iteration"],
        "next": upcoming,
        "left": progress.plan.has_left(node),
        "updated": None if record is None else record["updated"]["time"],
    }


def task_context(
    process: Process, node: str, iteration: int, image: dict[str, Any], progress: dict[str, Any] | None
) -> dict[str, Any]:
    """Return what execution-record checks a task against."""
    specification, plan = process.specification, process.plan
    step, first = specification.step_at(iteration)
    parameters = specification.parameters(node, iteration)
    described = image["image"]
    return {
        "process": process.id,
        "status": process.record["status"],
        "node": node,
        "organisation": plan.nodes[node],
        "iteration": iteration,
        "iterations": plan.iterations,
        "next": next_iteration(plan, node, progress),
        "step": {
            "name": step.name,
            "kind": step.kind.value,
            "first": first,
            "iterations": step.iterations,
        },
        "synchronous": step.synchronous,
        "active": plan.is_active(node, iteration),
        "neighbours": list(plan.neighbours(node, iteration)),
        "image": {
            "name": described["name"],
            "version": described["version"],
            "image_id": described["image_id"],
            "manifest_digest": described["manifest_digest"],
            "status": image["status"],
        },
        "parameters": parameters,
        "parameters_digest": str(parameters_digest(parameters)),
        "limits": parameters["limits"],
        "schema_digest": parameters["schema_digest"],
        "task_seconds": specification.task_seconds,
        "consortium": list(plan.consortium),
    }


def model_context(process: Process) -> dict[str, Any]:
    """Return what the model chaincode checks a publication against."""
    plan = process.plan
    return {
        "process": process.id,
        "status": process.record["status"],
        "consortium": list(plan.consortium),
        "nodes": {node: plan.nodes[node] for node in sorted(plan.nodes)},
        "iterations": plan.iterations,
    }
