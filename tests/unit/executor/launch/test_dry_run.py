"""What `executor launch --dry-run` says a launch would do, and that a launch then does just that."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.memory.launches import SCHEMA, Host, at_host, fresh
from support.memory.learners import table_of
from support.memory.scenario import DIGESTS

from executor.exits import ENGINE_UNREACHABLE
from executor.sandbox.profile import ROWS, SOCKET, STATE
from protocol import canonical
from protocol.digest import Digest
from protocol.task.commitment import data_commitment
from protocol.task.opening import TaskId


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh()), monkeypatch) as found:
        yield found


def told(result: Result) -> Any:
    return json.loads(result.stdout)


def refused(result: Result) -> tuple[int, str]:
    return result.exit_code, told(result)["error"]["code"]


def test_a_dry_run_shows_what_a_launch_would_do_and_changes_nothing(host: Host) -> None:
    before = host.federation.blocks
    shown = host.launch("--node", "node01", *host.data, "--memory", 512, "--cpus", 0.5, "--dry-run", "--json")
    assert (shown.exit_code, host.federation.blocks) == (0, before)
    (plan,) = told(shown)["plans"]
    context = host.ledger().orchestration.task_context(TaskId(host.process, "node01", 0))
    sandbox, data = plan.pop("sandbox"), plan.pop("data")
    assert plan == {
        "process": host.process,
        "node": "node01",
        "iteration": 0,
        "iterations": 2,
        "synchronous": False,
        "neighbours": ["node02", "node04"],
        "image": {
            "name": "attestree/learner",
            "version": "1.0.0",
            "repository": "registry.example:5000/attestree/learner",
            "manifest_digest": DIGESTS[1],
            "image_id": DIGESTS[2],
        },
        "parameters": context.parameters.to_dict(),
        "parameters_digest": str(context.parameters_digest),
        "state": None,
    }
    file = Digest.of(host.rows("node01").read_bytes())
    salt = (host.directory() / "salt").read_bytes()
    assert data == {
        "file": str(host.rows("node01")),
        "rows": 120,
        "features": 4,
        "commitment": str(data_commitment(salt, file, table_of(0).digest, SCHEMA.digest)),
    }
    assert sandbox["digest"] == str(canonical.digest(sandbox["profile"]))
    assert (sandbox["profile"]["memory_bytes"], sandbox["profile"]["nano_cpus"]) == (512 << 20, 500_000_000)
    assert not (host.directory() / "data.json").exists()


def test_what_was_planned_is_what_the_task_commits_to(host: Host) -> None:
    options = ("--node", "node01", *host.data, "--memory", 512, "--cpus", 0.5)
    (plan,) = told(host.launch(*options, "--dry-run", "--json"))["plans"]
    assert host.launch(*options).exit_code == 0
    opening = host.ledger().execution.get_task(TaskId(host.process, "node01", 0)).opening
    assert opening is not None
    assert str(opening.sandbox) == plan["sandbox"]["digest"]
    assert str(opening.data) == plan["data"]["commitment"]
    assert str(opening.parameter_hash) == plan["parameters_digest"]
    assert str(opening.image_id) == plan["image"]["image_id"]


def test_the_runtime_that_is_asked_for_is_planned_or_refused_before_a_pull(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("--node", "node01", "--runtime", "runsc", "--json", *host.data)
    described, there = host.engine.info(), dict(host.engine.images)
    host.engine.images.clear()
    result = host.launch(*asked)
    assert told(result)["nodes"][0]["error"]["code"] == "SANDBOX_UNSUPPORTED"
    host.engine.images |= there
    monkeypatch.setattr(host.engine, "info", lambda: {**described, "Runtimes": {"runsc": {}}})
    (plan,) = told(host.launch(*asked, "--dry-run"))["plans"]
    assert plan["sandbox"]["profile"]["runtime"] == "runsc"
    assert host.launch(*asked).exit_code == 0
    task = host.ledger().execution.get_task(TaskId(host.process, "node01", 0))
    assert str(task.opening.sandbox) == plan["sandbox"]["digest"]


def test_a_dry_run_is_told_step_by_step(host: Host) -> None:
    assert "nothing was left to do" not in host.launch("--node", "node01", *host.data).stdout
    shown = host.launch("--node", "node01", "--dry-run")
    assert shown.exit_code == 0
    state = host.ledger().execution.standing(host.process, "node01").state
    lines = shown.stdout.splitlines()
    assert lines[0] == "node01, iteration 1: nothing was done; a launch would"
    assert [line[:5] for line in lines[1:7]] == [f"  {number}. " for number in range(1, 7)]
    assert f"run attestree/learner 1.0.0 by the ledger's image id, {DIGESTS[2]}" in lines[1]
    assert f"open task {host.process}/node01/1 with a new key" in lines[2]
    assert f"start from state {state} with parameters" in lines[3]
    assert "FIT on 120 rows, SHARE with and GET from node02, node04" in lines[4]
    assert lines[5].endswith("signed result, publish the model")
    assert (lines[7], lines[8][:3], lines[-1]) == ("{", '  "', "}")
    assert json.loads("".join(lines[7:]))["image_id"] == DIGESTS[2]
    host.launch("--node", "node01")
    assert host.launch("--node", "node01", "--dry-run").stdout == "nothing is left to do\n"


def test_a_dry_run_pulls_nothing(host: Host) -> None:
    host.engine.images.clear()
    result = host.launch("--node", "node01", *host.data, "--dry-run", "--json")
    assert refused(result) == (ENGINE_UNREACHABLE, "IMAGE_UNAVAILABLE")


def test_a_task_that_starts_from_a_state_has_it_mounted(host: Host) -> None:
    def mounted() -> set[str]:
        (plan,) = told(host.launch("--node", "node01", *host.data, "--dry-run", "--json"))["plans"]
        return {mount["destination"] for mount in plan["sandbox"]["profile"]["mounts"]}

    assert mounted() == {ROWS, SOCKET}
    host.launch("--node", "node01", *host.data)
    assert mounted() == {ROWS, SOCKET, STATE}


def test_a_dry_run_of_a_node_that_is_alone_says_so(host: Host) -> None:
    for node in ("node02", "node03", "node04"):
        admin = host.federation.admin1 if node == "node02" else host.federation.admin2
        admin.submit("orchestration", "Leave", host.process, node, 0, "")
    lines = host.launch("--node", "node01", *host.data, "--dry-run").stdout.splitlines()
    assert lines[3].startswith("  3. start from state nothing with parameters sha256:")
    assert lines[4] == "  4. FIT on 120 rows, without neighbours"
    assert lines[5] == "  5. complete the task by the learner's signed result"


def test_every_local_node_is_planned_that_has_something_to_do(host: Host) -> None:
    host.launch("--node", "node01", "--until-complete", *host.data)
    (plan,) = told(host.launch("--all-local", *host.data, "--dry-run", "--json"))["plans"]
    assert (plan["node"], plan["iteration"]) == ("node02", 0)
