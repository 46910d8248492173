"""A model is accepted whole and unaltered, or not at all."""

import base64
from typing import Any

import pytest
from published import Answers, answers, estimators, values

from executor.exits import INVALID_PAYLOAD, exit_code
from executor.model.content import Model
from executor.model.errors import ModelError
from learning.actions import predictor
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from protocol.agreement.process import Specification
from protocol.trees.tree import FORMAT_LIMITS, Tree


def test_a_model_as_the_ledger_gives_it(model: Model) -> None:
    assert model.ensemble.estimators == estimators()
    assert (model.voting.threshold, model.voting.vote, model.voting.vote_cap) == (0.3, "mean", 0.1)
    assert model.n_features == 6


@pytest.mark.parametrize("options", [{}, {"vote_cap": None}, {"vote": "majority", "threshold": "0.5"}])
def test_it_scores_as_its_node_does(options: dict[str, Any]) -> None:
    model = answers(**options).assemble()
    agreed = Parameters(
        vote=options.get("vote", "mean"),
        vote_cap=options.get("vote_cap", 0.1),
        threshold=float(options.get("threshold", 0.3)),
    )
    node = predictor(Ensemble(estimators()), agreed)
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
    found.record["digest"] = f"sha256:{'0' * 64}"
    assert "its members give the digest" in refused(found)


def test_d19_an_altered_tree_is_refused() -> None:
    found = answers()
    raw = bytearray(base64.b64decode(found.trees[3]["tree"]))
    raw[-1] ^= 1
    found.trees[3]["tree"] = base64.b64encode(raw).decode()
    assert "the tree of node01/0003 has the digest" in refused(found)


def test_a_tree_with_its_own_digest_instead_of_the_members_is_refused() -> None:
    found = answers()
    other = estimators()[0].tree
    found.trees[3] |= {"tree": base64.b64encode(other.to_bytes()).decode(), "digest": str(other.digest)}
    assert "node01/0003" in refused(found)


def test_a_member_exchanged_with_its_tree_is_refused() -> None:
    found = answers()
    other = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
    found.record["estimators"][3]["digest"] = str(other.digest)
    found.trees[3] |= {"tree": base64.b64encode(other.to_bytes()).decode(), "digest": str(other.digest)}
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
    found.record["estimators"].append(found.record["estimators"][-1])
    assert "each once" in refused(found)


@pytest.mark.parametrize("tree", ["%%%", "", None, 7, "gASVBQAAAAAAAABLAS4="])
def test_d19_bytes_that_are_no_tree_are_refused(tree: Any) -> None:
    found = answers()
    found.trees[0]["tree"] = tree
    assert "node01/0000" in refused(found)


def test_d_a_tree_beyond_the_limits_of_the_process_is_refused() -> None:
    found = answers()
    limits = found.agreed["specification"]["steps"][0]["parameters"]["limits"]
    limits["max_internal"] = 1
    changed = Specification.from_dict(found.agreed["specification"])
    found.agreed["specification_digest"] = str(changed.digest)
    assert "breaks the rules of the process" in refused(found)
    assert Tree.from_bytes(base64.b64decode(found.trees[0]["tree"]), FORMAT_LIMITS)


def test_a_specification_that_was_not_accepted_is_refused() -> None:
    found = answers()
    found.agreed["specification"]["steps"][0]["parameters"]["options"]["threshold"] = "0.9"
    assert "has not the digest that was accepted" in refused(found)


def test_options_of_another_learner_are_not_guessed() -> None:
    assert "another learner" in refused(answers(mine=1), "MODEL_OPTIONS")
