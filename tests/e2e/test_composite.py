"""Composite processes on the live network: the shipped example, its audit, a coordinator that vanishes."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from support.altered_images import derived
from support.channel import unique
from support.commands import done, everywhere, here
from support.launching import caught_up, executor, launch, ledger, published, task_of
from support.network import ROOT, until
from support.printed import Ran

from executor.experiment.files import write_files
from executor.ledger.follow import wait_until
from executor.process.federation import load
from experiments.data import synthetic
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.errors import StateError

EXAMPLE = ROOT / "examples/composite.yaml"
NODES = {"node01": "org1", "node06": "org2", "node11": "org3", "node16": "org4"}
STEPS = {"prepare": [0], "learn": [1, 2, 3], "evaluate": [4]}
PACKAGE = "opt/venv/lib/python3.11/site-packages/learner"

pytestmark = pytest.mark.timeout(1500)


def features() -> tuple[str, ...]:
    found = load(EXAMPLE).features
    assert isinstance(found, FeatureSchema)
    return found.features


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up rows with the columns of the example, as a pattern for --data."""
    table = synthetic(rows=1600, features=len(features()), anomalous=0.08)
    folder = tmp_path_factory.mktemp("rows") / "split"
    write_files(replace(table, features=features()), tuple(NODES), 1, folder)
    return folder / "{node}.csv"


@pytest.fixture(scope="module")
def evaluator(docker_client: DockerClient, learner_id: Digest, learner: str) -> Iterator[str]:
    """Another image, with the same program and one file more."""
    with derived(docker_client, learner_id, {"purpose": b"evaluate"}) as made:
        yield published(docker_client, "attestree/evaluator", made)


def agreed(text: str, file: Path, organisations: list[str]) -> str:
    """Propose what a file says, have all accept it, and start it."""
    file.write_text(text)
    process = str(done("process", "create", "--spec", str(file))["process"])
    for organisation in organisations:
        everywhere(ledger().transport.chain_info().height - 1)
        done("process", "accept", process, "--spec", str(file), organisation=organisation)
    caught_up()
    done("process", "start", process)
    caught_up()
    return process


def example(process: str, learner: str, evaluator: str, nodes: Mapping[str, str]) -> str:
    """The shipped file, with images of this network and nodes that take part."""
    text = EXAMPLE.read_text().replace("fraud-composite", process)
    start, end = text.index("nodes:\n"), text.index("topology:")
    listed = "".join(f"  {node}: {owner}\n" for node, owner in nodes.items())
    text = f"{text[:start]}nodes:\n{listed}abort: any\n{text[end:]}"
    prepare, learn, evaluate = text.split("attestree/learner:0.1.0")[0:3]
    return learner.join((prepare, learn, evaluate)) + evaluator + text.split("attestree/learner:0.1.0")[3]


@contextmanager
def launching(process: str, rows: Path, nodes: Mapping[str, str]) -> Iterator[list["Future[Ran]"]]:
    """Each organisation launches its node to the end, in a process of its own."""

    def one(node: str, owner: str) -> Ran:
        words = ("--organisation", owner, "--node", node, "--data", str(rows), "--timeout", "900")
        return executor("launch", "--process", process, *words, "--until-complete", "--json", seconds=1200)

    with ThreadPoolExecutor(len(nodes)) as pool:
        launches = [pool.submit(one, node, owner) for node, owner in nodes.items()]
        try:
            yield launches
        except BaseException:
            # Nobody opens another step: what waits for one ends with the process.
            here("process", "abort", process, "--reason", "the test failed")
            raise


def completed(process: str, iteration: int, nodes: Mapping[str, str], seconds: float = 600) -> None:
    """Return when each of these nodes has completed an iteration."""

    def check() -> bool | None:
        entries = ledger().orchestration.status(process).nodes
        far = [
            entry.node for entry in entries if entry.completed is not None and entry.completed >= iteration
        ]
        return set(nodes) <= set(far) or None

    wait_until(ledger(), process, check, seconds, f"iteration {iteration} of all nodes")


def opened(process: str, step: str, organisation: str = "org1") -> Any:
    answer = done("process", "open-step", process, step, organisation=organisation)
    assert (answer["kind"], answer["subject"]) == ("open-step", {"step": step})
    everywhere(answer["block"])
    return answer


@pytest.fixture(scope="module")
def finished(
    learner: str, evaluator: str, rows: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Ran]]:
    """The shipped example, whose coordinator opens a step when everybody is done with the one before."""
    process = unique("composite")
    text = example(process, learner, evaluator, NODES)
    file = tmp_path_factory.mktemp("federation") / "composite.yaml"
    assert agreed(text, file, list(NODES.values())) == process
    with launching(process, rows, NODES) as launches:
        for step, iterations in STEPS.items():
            opened(process, step)
            completed(process, iterations[-1], NODES)
    ended = [each.result() for each in launches]
    for ran in ended:
        assert ran.code == 0, ran.out + ran.err
    caught_up()
    return process, ended


def test_the_shipped_example_prepares_learns_and_evaluates_in_containers(
    finished: tuple[str, list[Ran]],
) -> None:
    process, launches = finished
    status = ledger().orchestration.status(process)
    assert (status.status, status.iterations) == ("completed", 5)
    for ran in launches:
        (node,) = ran.answer["nodes"]
        kinds = [None if task["output"] is None else task["output"]["type"] for task in node["rounds"]]
        assert kinds == ["schema", None, None, None, "metrics"]
        assert set(node["rounds"][0]["transactions"]) == {"open", "complete"}
        assert node["finished"]["model"] == node["rounds"][-1]["ensemble_digest"]
        assert node["rounds"][-1]["ensemble_digest"] == node["rounds"][-2]["ensemble_digest"]


def test_steps_ran_their_own_images(finished: tuple[str, list[Ran]], evaluator: str, learner: str) -> None:
    process, _ = finished
    for iteration, expected in ((0, learner), (3, learner), (4, evaluator)):
        image = task_of(process, "node06", iteration).image
        assert image is not None
        assert f"{image.name}:{image.version}" == expected


def test_the_report_shows_ranges_and_the_gain_of_each_node(finished: tuple[str, list[Ran]]) -> None:
    process, _ = finished
    prepare, evaluate = done("process", "report", process, organisation="org4")["steps"]
    assert [entry["node"] for entry in prepare["nodes"]] == list(NODES)
    # Made-up amounts are negative, too: one column of each node does not keep to its range.
    assert {(entry["holding"], entry["columns"]) for entry in prepare["nodes"]} == {(28, 29)}
    for entry in evaluate["nodes"]:
        stored = task_of(process, entry["node"], 4).outcome
        assert stored is not None
        assert stored.output is not None
        assert stored.output.to_dict()["federation"] == entry["federation"]
        assert 0 <= float(entry["federation"]["balanced_accuracy"]) <= 1
    assert any(entry["gain"] is not None for entry in evaluate["nodes"])


def test_its_models_are_exported_verified_compared_and_predict(
    finished: tuple[str, list[Ran]], rows: Path, tmp_path: Path
) -> None:
    """By another organisation: after an evaluation a model is still the ensemble that its task signed."""
    process, launches = finished
    (model,) = [
        node["finished"]["model"]
        for ran in launches
        for node in ran.answer["nodes"]
        if node["node"] == "node06"
    ]
    folder, data = tmp_path / "model", str(rows).format(node="node06")
    exported = done("model", "export", process, "node06", "--out", str(folder), organisation="org4")
    assert (exported["digest"], set(exported["files"])) == (model, {"json", "npz", "onnx"})
    by_ledger = done("model", "verify", process, "node06", str(folder), organisation="org4")
    assert (by_ledger["ok"], by_ledger["by"]) == (True, "the ledger")
    predicted = done("model", "predict", process, "node06", data, organisation="org4")
    assert (predicted["model"], predicted["threshold"]) == (model, 0.3)
    assert len(predicted["scores"]) == predicted["rows"] > 0
    both = ("--node", "node06", "--node", "node11")
    compared = done("model", "compare", process, data, *both, organisation="org4")
    assert len(compared["models"]) == 2


def test_the_catalogue_says_how_good_each_model_is(finished: tuple[str, list[Ran]]) -> None:
    process, _ = finished
    listed = done("model", "catalogue", process, organisation="org4")["models"]
    assert [entry["node"] for entry in listed] == list(NODES)
    for entry in listed:
        stored = task_of(process, entry["node"], STEPS["evaluate"][0]).outcome
        assert stored is not None
        assert stored.output is not None
        assert entry["measured"] == stored.output.to_dict()


def test_the_run_is_audited_offline(finished: tuple[str, list[Ran]], tmp_path: Path) -> None:
    process, _ = finished
    file = tmp_path / "channel.tar"
    genesis = done("audit", "export", "--process", process, str(file), identity="auditor")["genesis"]
    ran = here("audit", "verify", str(file), "--genesis", genesis)
    assert ran.code == 0, ran.out
    claims = {claim["claim"]: claim for claim in ran.answer["claims"]}
    for name in ("outputs", "steps"):
        assert claims[name]["checked"] > 0, json.dumps(claims[name])


def test_h10_a_coordinator_that_vanishes_is_replaced_and_left_out(
    learner: str, evaluator: str, rows: Path, tmp_path: Path
) -> None:
    """org1 opens the first step and is never heard of again; the other two end what they began."""
    nodes = {node: NODES[node] for node in ("node01", "node06", "node11")}
    others = {node: owner for node, owner in nodes.items() if owner != "org1"}
    text = example(unique("vanished"), learner, evaluator, nodes) + "silence_seconds: 5\n"
    process = agreed(text, tmp_path / "composite.yaml", list(nodes.values()))
    opened(process, "prepare")
    ran = launch(process, "--node", "node01", "--data", str(rows))
    assert ran.code == 0, ran.out
    with launching(process, rows, others) as launches:
        completed(process, 0, others)
        refusal = here("process", "open-step", process, "learn", organisation="org2")
        assert (refusal.code, refusal.answer["error"]["code"]) == (12, "ACCESS_COORDINATOR")
        asked = done("process", "coordinator", process, "org2", organisation="org3")
        assert not asked["holds"]
        everywhere(asked["block"])
        agreed_to = done("process", "coordinator", process, "org2", organisation="org2")
        assert agreed_to["holds"]
        everywhere(agreed_to["block"])
        opened(process, "learn", "org2")
        _left_out(process, "node01")
        completed(process, 3, others)
        opened(process, "evaluate", "org2")
    for each in launches:
        assert each.result().code == 0, each.result().out + each.result().err
    caught_up()
    status = ledger().orchestration.status(process)
    assert (status.status, status.coordinator) == ("completed", "Org2MSP")


def _left_out(process: str, node: str) -> None:
    """Two organisations vote until the silence has lasted long enough by both clocks."""

    def held() -> bool:
        for organisation in ("org2", "org3"):
            ran = here("process", "leave-out", process, node, "--reason", "gone", organisation=organisation)
            if ran.code == 0 and ran.answer["change"] is not None:
                return True
            if ran.code == 0:
                everywhere(ran.answer["block"])
        return False

    until(120, f"{node} is left out", held)


def test_an_image_that_fits_in_a_step_that_prepares(
    docker_client: DockerClient, learner_id: Digest, learner: str, rows: Path, tmp_path: Path
) -> None:
    """The task has failed with its cause; nothing that the image made is on the ledger."""
    script = (
        "from learner import run as steps\n"
        "from learner.key import standard_input\n"
        "from pathlib import Path\n"
        "from learning import actions\n"
        "from learning.parameters import Parameters\n"
        "def look(task, rows, before, say):\n"
        "    few = Parameters(n_new=2, n_max=4, n_share=1)\n"
        "    after = actions.get(actions.fit(before, rows, few), {}, few, rows)\n"
        "    return steps._result(task, before, after, steps.Slots(), 0)\n"
        "steps._look = look\n"
        "steps.run_task(Path('/attestree'), standard_input(), lambda _: None, lambda: None)\n"
    )
    main = f"{PACKAGE}/__main__.py"
    files = {main: script.encode(), f"{PACKAGE}/__pycache__/__main__.cpython-311.pyc": b""}
    with derived(docker_client, learner_id, files) as made:
        fitting = published(docker_client, "attestree/fitting", made)
        text = example(unique("fitting"), fitting, learner, {"node01": "org1"})
        process = agreed(text.replace("coordinator: org1", "#"), tmp_path / "composite.yaml", ["org1"])
        ran = launch(process, "--node", "node01", "--data", str(rows))
    assert (ran.code, ran.answer["nodes"][0]["error"]["code"]) == (13, "RESULT_KIND")
    task = task_of(process, "node01")
    assert task.closed is not None
    assert (task.state, task.closed.code, task.outcome) == ("failed", "RESULT_KIND", None)
    with pytest.raises(StateError, match="TASK_UNKNOWN"):
        ledger().execution.last_result(process, "node01")
