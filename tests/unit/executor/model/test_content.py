"""A model is accepted whole and unaltered, or not at all."""

import base64
from dataclasses import replace
from typing import Any

import pytest
from support.published import Answers, answers, estimators, values

from executor.exits import INVALID_PAYLOAD, exit_code
from executor.model.content import Model
from executor.model.errors import ModelError
from learning.actions import predictor
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.errors import DataError
from protocol.identifiers import EstimatorId
from protocol.ledger.estimators import SharedEstimator
from protocol.trees.estimator import Estimator
from protocol.trees.tree import FORMAT_LIMITS, Tree


def test_a_model_as_the_ledger_gives_it(model: Model) -> None:
    assert model.ensemble.estimators == estimators()
    assert (model.voting.threshold, model.voting.vote, model.voting.vote_cap) == (0.3, "mean", 0.25)
    assert model.n_features == 6


@pytest.mark.parametrize("options", [{}, {"vote_cap": None}, {"vote": "majority", "threshold": "0.5"}])
def test_it_scores_as_its_node_does(options: dict[str, Any]) -> None:
    model = answers(**options).assemble()
    agreed = Parameters(
        vote=options.get("vote", "mean"),
        vote_cap=options.get("vote_cap", 0.25),
        threshold=float(options.get("threshold", 0.3)),
    )
    agreed = replace(agreed, members=model.voting.members)
    node = predictor(model.terms.node, Ensemble(estimators()), agreed)
    X = values(500, 3)
    expected = node.scores(X) if agreed.vote == "mean" else node.votes(X)
    assert (model.scores(X) == expected).all()
    assert (model.decide(model.scores(X)) == node.predict(X, agreed.threshold, agreed.vote)).all()
    assert 0 < model.decide(model.scores(X)).sum() < 500


def refused(found: Answers, code: str = "MODEL_ALTERED") -> str:
    with pytest.raises(ModelError) as caught:
        found.assemble()
    assert caught.value.code == code
    assert exit_code(caught.value) == INVALID_PAYLOAD
    return caught.value.cause


def test_another_digest_is_refused() -> None:
    found = answers()
    found.record = replace(found.record, digest=Digest(bytes(32)))
    assert "its members give the digest" in refused(found)


def test_d19_an_altered_tree_is_refused() -> None:
    found = answers()
    raw = bytearray(base64.b64decode(found.trees[3].tree))
    raw[-1] ^= 1
    found.trees[3] = replace(found.trees[3], tree=base64.b64encode(raw).decode())
    cause = refused(found)
    assert "the tree of node01/0003 is refused" in cause
    assert f"{Digest.of(bytes(raw))}, not {found.trees[3].digest}" in cause


def test_a_tree_with_its_own_digest_instead_of_the_members_is_refused() -> None:
    found = answers()
    other = Estimator(EstimatorId("node01", 3), estimators()[0].tree)
    found.trees[3] = SharedEstimator.of(other)
    assert "the tree of node01/0003 has the digest" in refused(found)


def test_a_member_exchanged_with_its_tree_is_refused() -> None:
    found = answers()
    leaf = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
    found.trees[3] = SharedEstimator.of(Estimator(EstimatorId("node01", 3), leaf))
    members = list(found.record.estimators)
    members[3] = replace(members[3], digest=leaf.digest)
    found.record = replace(found.record, estimators=tuple(members))
    assert "its members give the digest" in refused(found)


def test_a_missing_tree_is_refused() -> None:
    found = answers()
    found.trees.pop()
    assert "only 20 of its 21 trees" in refused(found)


def test_one_tree_too_many_is_refused() -> None:
    found = answers()
    found.trees.append(found.trees[0])
    assert "more trees" in refused(found)


def test_trees_in_another_order_are_refused() -> None:
    found = answers()
    found.trees[0], found.trees[1] = found.trees[1], found.trees[0]
    assert "tree 0 is node01/0001" in refused(found)


def test_members_given_twice_are_refused() -> None:
    found = answers()
    members = found.record.estimators
    found.record = replace(found.record, estimators=(*members, members[-1]))
    assert "each once" in refused(found)


@pytest.mark.parametrize("tree", ["%%%", "", "é", "gASVBQAAAAAAAABLAS4="])
def test_d19_text_that_is_no_tree_is_refused(tree: str) -> None:
    found = answers()
    found.trees[0] = replace(found.trees[0], tree=tree)
    assert "node01/0000" in refused(found)


@pytest.mark.parametrize("tree", [None, 7, ["%%%"], {}])
def test_d19_a_tree_that_is_not_text_is_refused(tree: Any) -> None:
    with pytest.raises(DataError, match="tree is not text"):
        SharedEstimator.from_dict(answers().trees[0].to_dict() | {"tree": tree})


def test_d_a_tree_beyond_the_limits_of_the_process_is_refused() -> None:
    found = answers()
    record: Any = found.agreed.specification.to_dict()
    record["steps"][0]["parameters"]["limits"]["max_internal"] = 1
    found.agree(Specification.from_dict(record))
    cause = refused(found)
    assert "the tree of node01/0000 is refused" in cause
    assert "nodes are more than 3" in cause
    assert Tree.from_bytes(base64.b64decode(found.trees[0].tree), FORMAT_LIMITS)


def test_a_specification_that_was_not_accepted_is_refused() -> None:
    found = answers()
    other = answers(threshold="0.9").agreed.specification
    found.agreed = replace(found.agreed, specification=other)
    assert "has not the digest that was accepted" in refused(found)


def test_options_of_another_learner_are_not_guessed() -> None:
    assert "another learner" in refused(answers(mine=1), "MODEL_OPTIONS")
