"""A composite process by the launch command: outputs on the ledger, and images that do not keep to a kind."""

import copy
import json
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.memory.composite import EVALUATE, PREPARE, Composite, composite
from support.memory.launches import SCHEMA, Host, OneByOne, at_host
from support.memory.learners import PARAMETERS

from executor.caller import Caller
from executor.cli import main
from executor.launch.account import Account
from executor.ledger.chaincodes.proxies import Ledger
from executor.model.content import fetch
from executor.process.report import StepReport
from learner import output as looks
from learner import run as steps
from learning import actions
from learning.options import from_step
from protocol.agreement.parameters import InitialModel
from protocol.agreement.process import Specification
from protocol.agreement.step import StepParameters
from protocol.task.opening import TaskId
from protocol.task.output import Figures, MetricsOutput

HELD_OUT = {"home_check": None, "held_out": "0.25"}
RANGES = [["-100.0", "100.0"], ["-0.1", "0.1"], None, None]


def specification(**more: Any) -> Any:
    made = composite(**more)
    for step in made["steps"]:
        counts = {name: step["parameters"][name] for name in ("n_new", "n_share")}
        own = {} if counts["n_new"] else counts
        step["parameters"] = {**copy.deepcopy(PARAMETERS), **own, "options": HELD_OUT}
        step["parameters"]["schema_digest"] = str(SCHEMA.digest)
        step |= {"synchronous": False, "image": made["steps"][0]["image"]}
    made["steps"][0]["parameters"]["options"] = {"ranges": RANGES}
    return made


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, Composite(specification())), monkeypatch) as found:  # type: ignore[no-untyped-call]
        yield found


def report(host: Host, *options: str) -> str:
    ran = CliRunner().invoke(main, ["process", "report", host.process, *options])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def caller_of_reports(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    """Let the report be read by whoever asks."""
    ledger = host.ledger
    monkeypatch.setattr(Host, "ledger", lambda _, __: ledger("auditor"))


def test_a_launch_goes_through_all_steps_and_the_report_shows_what_came_of_them(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = host.launch("--node", "node01", "--until-complete", "--json", *host.data)
    (node,) = json.loads(ran.stdout)["nodes"]
    kinds = [None if found["output"] is None else found["output"]["type"] for found in node["rounds"]]
    assert kinds == ["schema", None, None, "metrics"]
    for iteration, kind in enumerate(("prepare", "FIT", "FIT", "evaluate")):
        assert f"node01 iteration {iteration}: {kind}\n" in ran.stderr
    assert node["rounds"][0]["output"]["columns"] == 4
    model = fetch(host.ledger(), host.process, "node01")
    assert (model.terms.iteration, str(model.digest)) == (EVALUATE, node["finished"]["model"])
    assert len(model.scores(np.zeros((2, 4), dtype=np.float32))) == 2
    caller_of_reports(monkeypatch, host)
    prepare, evaluate = json.loads(report(host, "--json"))["steps"]
    assert (prepare["step"], prepare["nodes"][0]["holding"]) == ("prepare", 3)
    found = evaluate["nodes"][0]
    for name, gain in found["gain"].items():
        assert gain == round(float(found["federation"][name]) - float(found["own"][name]), 3)
    text = report(host)
    assert "within the ranges agreed on" in text
    assert f"{float(found['federation']['recall']):.3f}" in text


def test_h17_a_report_says_that_an_initial_model_may_have_learned_from_rows_held_out() -> None:
    prepare, _, evaluate = Specification.from_dict(specification()).steps
    began = InitialModel("before", "node02", SCHEMA.digest)
    found = StepReport(evaluate, (), began)
    assert "before/node02: nothing says whether it learned" in found.text()
    assert found.to_dict()["doubt"] in found.text()
    for other in (StepReport(prepare, (), began), StepReport(evaluate, ())):
        assert "doubt" not in other.to_dict()
        assert "nothing says" not in other.text()


def test_a_report_shows_rows_of_one_class_as_such(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "output_of", _without_figures(looks.output_of))
    host.launch("--node", "node01", "--until-complete", *host.data)
    caller_of_reports(monkeypatch, host)
    assert "none" in report(host)
    found = json.loads(report(host, "--json"))["steps"][1]["nodes"][0]
    assert (found["federation"], found["own"], found["gain"]) == (None, None, None)


def _without_figures(honest: Any) -> Any:
    def look(task: Any, rows: Any, state: Any) -> Any:
        found = honest(task, rows, state)
        return MetricsOutput(None, None) if isinstance(found, MetricsOutput) else found

    return look


HONEST, GOOD = steps._look, Figures(1.0, 1.0, 1.0)


def _fitting(task: Any, rows: Any, before: Any, _: Any) -> Any:
    """A learner of one thing: it FITs in whatever step it is run."""
    parameters = from_step(StepParameters.from_dict({**PARAMETERS, "options": {"home_check": None}}))
    after = actions.get(actions.fit(before, rows, parameters), {}, parameters, rows)
    return steps._result(task, before, after, steps.Slots(), 0)


def _saying(output: Any) -> Any:
    """A learner that says something else of its rows than its step is for."""

    def look(*given: Any) -> Any:
        result, state = HONEST(*given)
        return replace(result, output=output), state

    return look


WRONG = {"fits": _fitting, "no output": _saying(None), "another type": _saying(MetricsOutput(GOOD, None))}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_image_that_does_not_keep_to_the_kind_of_its_step(
    host: Host, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """The task has failed with its cause, and nothing of it is on the ledger but that."""
    monkeypatch.setattr(steps, "_look", WRONG[wrong])
    ran = host.launch("--node", "node01", "--json", *host.data)
    (node,) = json.loads(ran.stdout)["nodes"]
    assert (ran.exit_code, node["error"]["code"]) == (13, "RESULT_KIND")
    task = host.ledger().execution.get_task(TaskId(host.process, "node01", PREPARE))
    assert task.closed is not None
    assert (task.state.value, task.closed.code) == ("failed", "RESULT_KIND")
    assert (task.outcome, task.offered) == (None, None)
    monkeypatch.setattr(steps, "_look", HONEST)
    ran = host.launch("--node", "node01", "--json", *host.data)
    assert ran.exit_code == 0
    again = host.ledger().execution.get_task(TaskId(host.process, "node01", PREPARE))
    assert (again.state.value, again.attempt) == ("completed", 2)


def test_an_evaluation_of_trees_that_the_node_does_not_hold(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.launch("--node", "node01", "--iterations", EVALUATE, *host.data)
    monkeypatch.setattr(looks, "output_of", lambda *_: MetricsOutput(GOOD, None))
    ran = host.launch("--node", "node01", "--json", *host.data)
    (node,) = json.loads(ran.stdout)["nodes"]
    assert (ran.exit_code, node["error"]["code"]) == (13, "OUTPUT_MISMATCH")


# --- central orchestration ---


@pytest.fixture
def central(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    federation = Composite(specification(coordinator="Org2MSP"))  # type: ignore[no-untyped-call]
    with at_host(Host(socket_folder, federation), monkeypatch) as found:
        yield found


def opening(host: Host, step: str) -> None:
    with OneByOne.lock:
        host.federation.admin2.submit("orchestration", "OpenStep", host.process, step)


def test_a_launch_waits_until_its_step_is_opened(central: Host) -> None:
    """The coordinator opens each step when somebody waits for it."""
    seen: list[str] = []

    def coordinate() -> None:
        for step in ("prepare", "learn", "evaluate"):
            while f"waiting until step {step} is opened" not in "".join(seen):
                assert not ended.wait(0.05)
            opening(central, step)

    ended = threading.Event()
    patch = pytest.MonkeyPatch()
    honest = Account.step
    patch.setattr(Account, "step", lambda account, *said: (seen.append(said[-1]), honest(account, *said))[1])
    opener = threading.Thread(target=coordinate)
    opener.start()
    try:
        ran = central.launch("--node", "node01", "--until-complete", "--json", *central.data)
    finally:
        ended.set()
        opener.join()
        patch.undo()
    (node,) = json.loads(ran.stdout)["nodes"]
    assert [found["iteration"] for found in node["rounds"]] == [0, 1, 2, 3]


def test_h10_a_launch_does_not_wait_for_ever_for_a_coordinator_that_vanished(central: Host) -> None:
    ran = central.launch("--node", "node01", "--timeout", 1, "--json", *central.data)
    (node,) = json.loads(ran.stdout)["nodes"]
    assert (ran.exit_code, node["error"]["code"]) == (3, "WAIT_TIMEOUT")
    assert "step prepare to be opened" in node["error"]["cause"]
    assert not list(central.ledger().execution.list_tasks(central.process))


def test_a_stop_ends_the_wait_for_a_step(central: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Account.step

    def hear(account: Account, *said: Any) -> None:
        honest(account, *said)
        if said[-1].startswith("waiting until step"):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Account, "step", hear)
    ran = central.launch("--node", "node01", "--timeout", 150, "--json", *central.data)
    (node,) = json.loads(ran.stdout)["nodes"]
    assert (ran.exit_code, node["error"]["code"]) == (1, "INTERRUPTED")


def test_commands_open_steps_and_replace_the_coordinator(
    central: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation = central.federation
    people = {"org1": federation.scientist1, "org2": federation.scientist2}
    monkeypatch.setattr(Caller, "ledger", lambda caller: Ledger(OneByOne(people[caller.organisation])))

    def typed(*words: str, organisation: str) -> Any:
        command = ["process", *words, "--organisation", organisation, "--json"]
        return json.loads(CliRunner().invoke(main, command).stdout)

    process = central.process
    refused = typed("open-step", process, organisation="org1")
    assert refused["error"]["code"] == "ACCESS_COORDINATOR"
    change = typed("open-step", process, organisation="org2")
    assert (change["subject"], change["iteration"]) == ({"step": "prepare"}, 0)
    assert typed("open-step", process, "prepare", organisation="org2")["error"]["code"] == "STEP_ORDER"
    asked = typed("coordinator", process, "org1", organisation="org2")
    assert (asked["holds"], asked["subject"]) == (False, {"coordinator": "Org1MSP"})
    assert typed("coordinator", process, "org1", organisation="org1")["holds"] is True
    assert typed("open-step", process, "learn", organisation="org1")["subject"] == {"step": "learn"}
    shown = CliRunner().invoke(main, ["process", "status", process, "--organisation", "org1"]).stdout
    assert "Org1MSP coordinates and has yet to open evaluate" in shown
    assert "change 1: coordinator Org1MSP from iteration 1" in shown
    assert "change 2: open-step learn from iteration 1" in shown
