"""Models of processes whose last step does not learn, or makes no trees: as sound as any other."""

from typing import Any

import pytest
from support.memory.composite import EVALUATE, Composite, composite
from support.memory.federation import EXECUTION, MODEL, estimators

from chaincode.orchestration import contract as orchestration_contract
from executor.model.content import ModelTerms, terms_of
from executor.model.output import vote_cap
from protocol.ledger.models import ModelRecord
from protocol.ledger.processes import ProcessRecord
from protocol.ledger.tasks import Standing, TaskEvidence

NODE = "node01"


def voting(threshold: str, **more: str) -> dict[str, str]:
    return {"held_out": "0.25", "threshold": threshold, "vote": "majority", "vote_cap": "0.125", **more}


def ended(made: Any, *, evaluated: bool = False) -> Any:
    """A composite process of the steps given, each of one iteration but for the first, at its end."""
    federation = Composite(made)  # type: ignore[no-untyped-call]
    federation.prepare()
    federation.learn()
    if evaluated:
        federation.evaluate()
    return federation


def answers(federation: Any) -> tuple[ModelRecord, ProcessRecord, TaskEvidence, Standing]:
    ask, process = federation.admin1.evaluate, federation.process
    record = ModelRecord.from_dict(ask(MODEL, "Get", process, NODE))
    task = TaskEvidence.from_dict(ask(EXECUTION, "GetTask", process, NODE, record.iteration))
    agreed = ProcessRecord.from_dict(ask("orchestration", "Get", process))
    return record, agreed, task, Standing.from_dict(ask(EXECUTION, "Standing", process, NODE))


def terms(federation: Any) -> ModelTerms:
    return terms_of(*answers(federation))


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Learned by a majority of trees, evaluated as if the mean decided, which an earlier version let pass."""
    monkeypatch.setattr(orchestration_contract, "check_proposal", lambda _: None)
    made = composite()  # type: ignore[no-untyped-call]
    made["steps"][1]["parameters"]["options"] = voting("0.625")
    made["steps"][2]["parameters"]["options"] = voting("0.25", vote="mean", vote_cap="1.0")
    federation = ended(made, evaluated=True)
    federation.finish()
    return federation


def test_a_model_after_an_evaluation_is_what_its_task_signed(evaluated: Any) -> None:
    found = terms(evaluated)
    assert found.iteration == EVALUATE
    task = answers(evaluated)[2]
    assert task.opening is not None
    assert found.parameters_digest == task.opening.parameter_hash


def test_a_model_votes_as_it_was_learned_and_not_as_it_was_evaluated(evaluated: Any) -> None:
    record, agreed, _, _ = answers(evaluated)
    found = terms(evaluated).voting
    assert (found.threshold, found.vote, found.vote_cap) == (0.625, "majority", 0.125)
    assert vote_cap(agreed.specification, record) == 0.125


def test_a_model_of_a_process_that_ends_with_a_step_that_prepares() -> None:
    made = composite()  # type: ignore[no-untyped-call]
    prepare, learn, _ = made["steps"]
    learn["parameters"]["options"] = voting("0.625")
    made["steps"] = [{**prepare, "name": "first"}, learn, prepare]
    federation = ended(made)
    federation.prepare_again()
    federation.publish_all()
    found = terms(federation).voting
    assert (found.threshold, found.vote, found.vote_cap) == (0.625, "majority", 0.125)


def test_a_model_whose_last_task_made_no_trees() -> None:
    made = composite()  # type: ignore[no-untyped-call]
    prepare, learn, _ = made["steps"]
    rest = {**learn, "name": "rest", "iterations": 1, "parameters": {**learn["parameters"], "n_new": 0}}
    made["steps"] = [prepare, learn, rest]
    federation = ended(made)
    for player in federation.players.values():
        player.open(EVALUATE)
        player.share(estimators(player.node, 1))
    for node, player in federation.players.items():
        player.complete(federation.unlearned(node, EVALUATE, None, slots=tuple(player.slots())))
    federation.publish_all()
    assert terms(federation).iteration == EVALUATE
