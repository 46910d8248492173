"""Composite processes: steps that prepare, learn and evaluate, each with its kind's output (C10, D24)."""

from dataclasses import replace

import pytest
from support.memory.composite import (
    EVALUATE,
    FAIR,
    GOOD,
    ITERATIONS,
    PREPARE,
    Composite,
    altered,
    composite,
    learned,
    schema_output,
)
from support.memory.federation import EXECUTION, MODEL, N_FEATURES, N_NEW, estimators, prepared

from chaincode.orchestration import contract as orchestration
from protocol import canonical
from protocol.digest import Digest
from protocol.task.output import Figures, MetricsOutput
from protocol.task.result import ensemble_digest

HERE = "orchestration"
NODE = "node01"
METRICS = MetricsOutput(GOOD, FAIR)


@pytest.fixture
def federation():
    return prepared(Composite)()


@pytest.fixture
def taught():
    return prepared(learned)()


def refused(federation, iteration, output, **changes):
    """The code by which a completed result of a step that does not learn is refused."""
    player = federation.players[NODE]
    player.open(iteration)
    return player.complete_code(federation.unlearned(NODE, iteration, output, **changes))


def refused_record(federation, iteration, output):
    """The same for an output that this code would not write."""
    player = federation.players[NODE]
    player.open(iteration)
    result = federation.unlearned(NODE, iteration, METRICS).to_dict() | {"output": output}
    arguments, options = player.signed("Complete", canonical.encode(result))
    return player.member.code(*arguments, **options)


def test_a_composite_process_runs_to_its_models(taught):
    taught.evaluate()
    taught.finish()
    status = taught.admin1.evaluate(HERE, "Status", taught.process)
    assert (status["status"], status["iterations"]) == ("completed", ITERATIONS)
    model = taught.auditor1.evaluate(MODEL, "Get", taught.process, NODE)
    learned_in = taught.auditor1.evaluate(EXECUTION, "GetTask", taught.process, NODE, EVALUATE - 1)
    assert model["digest"] == learned_in["outcome"]["ensemble_digest"]


def test_the_catalogue_says_how_good_a_model_is_as_its_last_task_signed_it(taught):
    """Whatever a publisher says of its model beside that."""
    taught.evaluate()
    taught.players[NODE].publish(metrics={"balanced_accuracy": "1.0"})
    taught.admin2.submit(MODEL, "PublishFor", taught.process, "node03")
    found = taught.auditor1.evaluate(MODEL, "Catalogue", taught.process)["items"]
    assert [item["node"] for item in found] == [NODE, "node03"]
    assert [item["measured"] for item in found] == [METRICS.to_dict()] * 2
    assert found[0]["metrics"] == {"balanced_accuracy": "1.0"}


def test_the_catalogue_has_no_measure_of_a_model_that_no_task_evaluated():
    made = composite()
    prepare, learn, _ = made["steps"]
    made["steps"] = [prepare, learn, prepare | {"name": "last"}]
    found = Composite(made)
    found.prepare()
    found.learn()
    found.prepare_again()
    found.players[NODE].publish()
    (item,) = found.auditor1.evaluate(MODEL, "Catalogue", found.process)["items"]
    assert "measured" not in item


def test_outputs_are_on_the_ledger_signed_by_their_tasks(taught):
    taught.evaluate()
    for iteration, output in ((PREPARE, schema_output()), (EVALUATE, METRICS)):
        found = taught.auditor1.evaluate(EXECUTION, "Artifacts", taught.process, iteration)["items"]
        assert [item["output"] for item in found] == [output.to_dict()] * 4
        assert all(item["signed"]["signature"] for item in found)
    between = taught.auditor1.evaluate(EXECUTION, "Artifacts", taught.process, PREPARE + 1)["items"]
    assert all("output" not in item for item in between)


def test_each_step_has_its_image_and_no_neighbours_but_the_iterative(taught):
    images = [taught.context(NODE, at)["image"]["name"] for at in (PREPARE, EVALUATE)]
    assert images == ["attestree/learner", "attestree/evaluator"]
    assert [len(taught.context(NODE, at)["neighbours"]) for at in range(ITERATIONS)] == [0, 2, 2, 0]
    kinds = [taught.context(NODE, at)["step"]["kind"] for at in range(ITERATIONS)]
    assert kinds == ["prepare", "iterative", "iterative", "evaluate"]


@pytest.mark.parametrize("iteration", [PREPARE, EVALUATE])
def test_an_image_that_fits_in_a_step_that_does_not_learn(taught, federation, iteration):
    """The FIT image of the learn step, run where nothing is learned: neither its trees nor its share pass."""
    found = federation if iteration == PREPARE else taught
    player = found.players[NODE]
    player.open(iteration)
    trees = estimators(NODE, 0)
    assert player.share_code(trees) == "RESULT_KIND"
    created = tuple(estimator.tree.digest for estimator in trees)
    output = schema_output() if iteration == PREPARE else METRICS
    assert refused_again(found, iteration, output, created=created) == "RESULT_KIND"
    task = found.auditor1.evaluate(EXECUTION, "GetTask", found.process, NODE, iteration)
    assert (task["state"], task["outcome"], task["offered"]) == ("open", None, None)


def refused_again(federation, iteration, output, **changes):
    return federation.players[NODE].complete_code(federation.unlearned(NODE, iteration, output, **changes))


def test_an_output_of_another_type(federation, taught):
    assert refused(taught, EVALUATE, schema_output()) == "RESULT_KIND"
    assert refused(federation, PREPARE, METRICS) == "RESULT_KIND"


def test_no_output_where_one_is_due(federation, taught):
    assert refused(taught, EVALUATE, None) == "RESULT_KIND"
    assert refused(federation, PREPARE, None) == "RESULT_KIND"


def test_an_output_where_none_is_due(federation):
    federation.prepare()
    for player in federation.players.values():
        player.open(1)
        player.share()
    player = federation.players[NODE]
    assert player.complete_code(replace(player.result(), output=METRICS)) == "RESULT_KIND"
    player.complete()


def test_an_evaluation_that_changes_the_ensemble(taught):
    kept = dict(list(taught.players[NODE].ensemble.items())[:-1])
    changes = {"ensemble": tuple(kept), "ensemble_digest": ensemble_digest(list(kept.items()))}
    assert refused(taught, EVALUATE, METRICS, **changes) == "RESULT_ENSEMBLE"
    assert refused_again(taught, EVALUATE, METRICS, first=0) == "RESULT_CREATED"
    assert refused_again(taught, EVALUATE, METRICS, ensemble_digest=Digest.of(b"x")) == "RESULT_ENSEMBLE"


@pytest.mark.parametrize(
    "changes",
    [{"schema": Digest.of(b"other")}, {"ranges": Digest.of(b"other")}, {"columns": N_FEATURES + 1}],
    ids=lambda changes: next(iter(changes)),
)
def test_d24_rows_held_against_something_else_than_agreed(federation, changes):
    assert refused(federation, PREPARE, schema_output(**changes)) == "OUTPUT_MISMATCH"


def test_d24_figures_of_trees_that_the_node_does_not_hold(taught):
    assert refused(taught, EVALUATE, MetricsOutput(GOOD, None)) == "OUTPUT_MISMATCH"


def figures(**changes):
    return GOOD.to_dict() | changes


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ({"type": "metrics", "federation": figures(recall="nan"), "own": None}, "RECORD_VALUE"),
        ({"type": "metrics", "federation": figures(recall="inf"), "own": None}, "RECORD_VALUE"),
        ({"type": "metrics", "federation": figures(recall="1.5"), "own": None}, "RECORD_VALUE"),
        ({"type": "metrics", "federation": figures(recall="-0.5"), "own": None}, "RECORD_VALUE"),
        ({"type": "metrics", "federation": figures(recall="0.12345"), "own": None}, "RECORD_VALUE"),
        ({"type": "metrics", "federation": figures(recall=1), "own": None}, "RECORD_VALUE"),
        ({"type": "metrics", "federation": figures(rows=7), "own": None}, "RECORD_FIELDS"),
        ({"type": "metrics", "federation": None, "own": figures()}, "RECORD_VALUE"),
        ({"type": "metrics", "federation": figures()}, "RECORD_FIELDS"),
        ({"type": "metrics", "federation": [], "own": None}, "RECORD_FIELDS"),
        ({"type": "rows", "rows": [[1, 2]]}, "RECORD_VALUE"),
        ({"type": ["metrics"]}, "RECORD_VALUE"),
        ([], "RECORD_VALUE"),
        (None, "RECORD_VALUE"),
        (schema_output().to_dict() | {"holding": N_FEATURES + 1}, "RECORD_VALUE"),
        (schema_output().to_dict() | {"holding": -1}, "RECORD_VALUE"),
        (schema_output().to_dict() | {"columns": 0}, "RECORD_VALUE"),
        (schema_output().to_dict() | {"schema": "sha256:1"}, "DIGEST_LENGTH"),
        (schema_output().to_dict() | {"least": ["0.5"]}, "RECORD_FIELDS"),
    ],
)
def test_d24_a_malformed_output(taught, output, code):
    assert refused_record(taught, EVALUATE, output) == code


def test_figures_may_be_missing_where_the_rows_are_of_one_class(taught):
    taught.act(NODE, EVALUATE, MetricsOutput(None, None))
    task = taught.auditor1.evaluate(EXECUTION, "GetTask", taught.process, NODE, EVALUATE)
    assert task["outcome"]["output"] == {"type": "metrics", "federation": None, "own": None}


def test_a_node_without_estimators_comes_to_a_step_that_makes_none(federation):
    """A node that was away while the others learned has nothing to evaluate: it leaves, and they end."""
    away, process = federation, federation.process
    others = [node for node in away.players if node != NODE]
    away.miss_learning(NODE)
    player = away.players[NODE]
    assert player.member.code(*player.call_open(EVALUATE)) == "ENSEMBLE_EMPTY"
    away.admin1.submit(HERE, "Leave", process, NODE, EVALUATE)
    for node in others:
        away.act(node, EVALUATE, METRICS)
    away.publish_all(*others)
    assert away.admin2.submit(HERE, "Complete", process)["status"] == "completed"


def test_a_node_that_fits_nothing_still_shares_and_takes():
    """n_new 0 from the second learning step on: what the node has it offers, what it is offered it takes."""
    resting = composite()
    second = {**resting["steps"][1], "name": "rest", "iterations": 1}
    second["parameters"] = {**second["parameters"], "n_new": 0}
    resting["steps"].insert(2, second)
    found = Composite(resting)
    found.prepare()
    found.learn()
    for player in found.players.values():
        player.open(EVALUATE)
        player.share(estimators(player.node, 1))
    for node, player in found.players.items():
        result = found.unlearned(node, EVALUATE, None, slots=tuple(player.slots()), first=20)
        player.complete(result)
    assert found.context(NODE, EVALUATE)["parameters"]["n_new"] == 0


@pytest.mark.parametrize(
    ("specification", "code"),
    [
        (altered(0, "kind", "publish"), "PROCESS_VALUE"),
        (altered(0, "iterations", 2), "PROCESS_VALUE"),
        (altered(0, "parameters", "n_new", 1), "PROCESS_VALUE"),
        (altered(2, "parameters", "n_share", 1), "PROCESS_VALUE"),
        (altered(1, "parameters", "n_share", 0), "PROCESS_VALUE"),
        (altered(1, "parameters", "n_new", 0), "PROCESS_VALUE"),
        (altered(1, "overrides", {NODE: {"n_new": 0}}), "PROCESS_VALUE"),
        (altered(0, "overrides", {NODE: {"n_new": 5}}), "PROCESS_VALUE"),
        (altered(0, "parameters", "options", {}), "PROCESS_FIELDS"),
        (altered(0, "parameters", "options", {"ranges": []}), "PROCESS_FIELDS"),
        (altered(0, "parameters", "options", "ranges", 0, ["1.0", "0.0"]), "PROCESS_VALUE"),
        (altered(0, "parameters", "options", "ranges", 0, ["0.0", "inf"]), "PROCESS_VALUE"),
        (altered(0, "parameters", "options", "ranges", 0, ["0.0"]), "PROCESS_VALUE"),
        (altered(2, "parameters", "options", {}), "PROCESS_FIELDS"),
        (altered(2, "parameters", "options", {"held_out": "1.0"}), "PROCESS_VALUE"),
        (altered(2, "parameters", "options", {"held_out": 1}), "PROCESS_VALUE"),
        (altered(1, "parameters", "options", {}), "PROCESS_STEPS"),
        (altered(1, "parameters", "options", {"held_out": "0.5"}), "PROCESS_STEPS"),
        (altered(2, "overrides", {NODE: {"options": {"held_out": "0.5"}}}), "PROCESS_STEPS"),
        (altered(2, "parameters", "seed", 7), "PROCESS_STEPS"),
        (altered(1, "parameters", "options", {"held_out": "0.25", "vote": "majority"}), "PROCESS_STEPS"),
        (altered(2, "parameters", "options", {"held_out": "0.25", "threshold": "0.75"}), "PROCESS_STEPS"),
        (altered(2, "overrides", {NODE: {"options": {"vote_cap": "0.5"}}}), "PROCESS_STEPS"),
        (altered(2, "parameters", "limits", "max_depth", 63), "PROCESS_STEPS"),
        (altered(2, "parameters", "limits", "n_features", N_FEATURES + 1), "PROCESS_STEPS"),
    ],
)
def test_c10_steps_that_contradict_their_kind(specification, code):
    federation = Composite(started=False)
    assert federation.scientist1.code(HERE, "Create", specification | {"process": "other"}) == code


def test_d12_a_model_is_published_within_the_limits_of_the_step_that_learned(monkeypatch):
    """Whatever the evaluation says of trees, after which no node could publish those it never shared."""
    monkeypatch.setattr(orchestration, "check_proposal", lambda _: None)  # as in an earlier version
    narrow = Composite(altered(2, "parameters", "limits", "max_internal", 1))
    narrow.prepare()
    narrow.learn_privately(8)
    narrow.evaluate()
    narrow.finish()
    assert narrow.auditor1.evaluate(MODEL, "Get", narrow.process, NODE)["stored"]
    wide = Composite(altered(1, "parameters", "limits", "max_internal", 8))
    wide.prepare()
    wide.learn_privately(8)
    wide.evaluate()
    assert wide.players[NODE].publish_code() == "TREE_TOO_MANY_NODES"


def test_c10_steps_in_an_order_that_comes_to_nothing():
    federation = Composite(started=False)
    prepare, learn, evaluate = composite()["steps"]
    for steps in ([prepare], [prepare, evaluate], [evaluate, learn], [prepare, evaluate, learn]):
        made = composite(process="other", steps=steps)
        assert federation.scientist1.code(HERE, "Create", made) == "PROCESS_STEPS"


def test_an_evaluation_may_come_first_where_the_process_starts_from_a_model(taught):
    taught.evaluate()
    taught.finish()
    model = taught.auditor1.evaluate(MODEL, "Get", taught.process, NODE)
    initial = {"process": taught.process, "node": NODE, "digest": model["digest"]}
    _, learn, evaluate = composite()["steps"]
    first = {**evaluate, "name": "before"}
    made = composite(process="again", steps=[first, learn, evaluate], initial_model=initial)
    taught.create(made)
    for caller in (taught.admin1, taught.admin2):
        caller.submit(HERE, "Accept", "again")
    taught.admin1.submit(HERE, "Start", "again")
    taught.process, player = "again", taught.players[NODE]
    player.state = None
    own = max(estimator_id.counter for estimator_id in player.ensemble if estimator_id.creator == NODE) + 1
    player.open(0)
    some = dict(list(player.ensemble.items())[1:])
    fewer = {"ensemble": tuple(some), "ensemble_digest": ensemble_digest(list(some.items()))}
    assert refused_again(taught, 0, METRICS, first=own, **fewer) == "RESULT_ENSEMBLE"
    player.complete(taught.unlearned(NODE, 0, METRICS, first=own))
    task = taught.auditor1.evaluate(EXECUTION, "GetTask", "again", NODE, 0)
    assert task["outcome"]["ensemble_digest"] == model["digest"]


def test_figures_have_one_spelling():
    assert Figures.from_dict(GOOD.to_dict()) == GOOD
    assert GOOD.to_dict() == {"balanced_accuracy": "0.95", "precision": "0.875", "recall": "0.9"}


# The data that rows are held out of

OTHER = Digest.of(b"other rows")


def code_with_other_data(federation, iteration):
    player = federation.players[NODE]
    player.data = OTHER
    return player.member.code(*player.call_open(iteration))


def test_h17_an_evaluation_on_other_data_than_was_learned_from(taught):
    """Which rows are held out is drawn from the file: those of another may be rows that were learned from."""
    assert code_with_other_data(taught, EVALUATE) == "DATA_MISMATCH"
    taught.players[NODE].data = taught.players["node02"].data
    taught.evaluate()


def test_h17_learning_from_other_data_than_rows_were_held_out_of_before(federation):
    """One row more is enough to hold out others, which the iteration before may have learned from."""
    federation.prepare()
    federation.play(1)
    assert code_with_other_data(federation, 2) == "DATA_MISMATCH"


def test_h17_a_step_in_between_that_holds_nothing_out_does_not_free_the_data():
    made = composite()
    prepare, learn, evaluate = made["steps"]
    federation = Composite(made | {"steps": [learn, prepare, evaluate]})
    for player in federation.players.values():
        player.joined = 0
    for iteration in (0, 1):
        federation.play(iteration)
    player = federation.players[NODE]
    player.data = OTHER
    player.open(2)
    player.complete(federation.unlearned(NODE, 2, schema_output(), first=2 * N_NEW))
    assert player.member.code(*player.call_open(EVALUATE)) == "DATA_MISMATCH"


def test_a_file_that_was_only_prepared_may_be_mended_before_the_first_task_that_learns(federation):
    federation.prepare()
    for player in federation.players.values():
        player.data = OTHER
    federation.learn()
    federation.evaluate()


def test_where_no_rows_are_held_out_data_may_grow_from_task_to_task():
    federation = prepared()()
    federation.play(0)
    federation.players[NODE].data = OTHER
    federation.players[NODE].open(1)


def test_a_task_that_came_to_nothing_binds_to_no_data(federation):
    """It has created no trees that anybody holds."""
    federation.prepare()
    player = federation.players[NODE]
    player.data = OTHER
    player.open(1)
    player.member.submit(EXECUTION, "Fail", federation.process, NODE, 1, "OOM", "too much")
    player.data = federation.players["node02"].data
    player.open(1)
