"""What is refused when a process is proposed, and still read where it was proposed before (C10)."""

import pytest
from support.memory.composite import altered, composite

from protocol.agreement.process import Specification
from protocol.agreement.proposal import VOTING, check_proposal
from protocol.errors import ProcessError

LEARN, EVALUATE = 1, 2
NODE = "node01"


def stating(step, **options):
    """The composite specification with a step that states more options."""
    return altered(step, "parameters", "options", {"held_out": "0.25", **options})


def both(**options):
    """The same with the step that learns and the one that evaluates."""
    made = stating(LEARN, **options)
    made["steps"][EVALUATE]["parameters"]["options"] = {"held_out": "0.25", **options}
    return made


def refusal(record):
    """Why a proposal is refused, which can be read all the same."""
    specification = Specification.from_dict(record)
    with pytest.raises(ProcessError) as caught:
        check_proposal(specification)
    assert caught.value.code == "PROCESS_STEPS"
    return caught.value.cause


@pytest.mark.parametrize("name", VOTING)
def test_c10_an_evaluation_by_another_vote_than_the_models(name):
    """Whoever reads the catalogue would take its figures for those of the model."""
    assert f"nodes with {name} None, and models of learn vote with 0.5" in refusal(
        stating(LEARN, **{name: "0.5"})
    )
    assert f"nodes with {name} 0.5" in refusal(stating(EVALUATE, **{name: "0.5"}))
    check_proposal(Specification.from_dict(both(**{name: "0.5"})))


@pytest.mark.parametrize("step", [LEARN, EVALUATE])
def test_c10_an_evaluation_of_one_node_by_another_vote(step):
    made = both(threshold="0.5")
    own = {NODE: {"options": {"threshold": "0.25"}}}
    made["steps"][step]["overrides"] = own
    assert f"measures {NODE} with threshold" in refusal(made)
    for place in (LEARN, EVALUATE):
        made["steps"][place]["overrides"] = own
    check_proposal(Specification.from_dict(made))


def test_an_evaluation_is_compared_with_the_step_that_learned_last():
    made = both(threshold="0.5")
    first = {**made["steps"][LEARN], "name": "first"}
    first["parameters"] = first["parameters"] | {"options": {"held_out": "0.25", "threshold": "0.75"}}
    made["steps"].insert(LEARN, first)
    check_proposal(Specification.from_dict(made))


def test_other_options_may_differ():
    check_proposal(Specification.from_dict(stating(LEARN, fit="plain", own_option="7")))


@pytest.mark.parametrize("step", [EVALUATE, "prepare"])
@pytest.mark.parametrize("name", ["max_internal", "max_depth"])
def test_c10_a_later_step_that_cannot_read_the_trees_of_an_earlier_one(step, name):
    """Its tasks begin with them: each node would be stuck after all of its learning."""
    made = composite()
    prepare, learn, evaluate = made["steps"]
    later = evaluate if step == EVALUATE else {**prepare, "name": "again"}
    made["steps"] = [prepare, learn, later]
    limits = learn["parameters"]["limits"]
    for wide, narrow, fits in ((16, 15, False), (16, 16, True), (16, 17, True)):
        learn["parameters"] = learn["parameters"] | {"limits": limits | {name: wide}}
        later["parameters"] = later["parameters"] | {"limits": limits | {name: narrow}}
        if fits:
            check_proposal(Specification.from_dict(made))
        else:
            assert f"reads trees of {name} 15, and step learn has some of 16" in refusal(made)


def test_c10_a_step_with_other_features_than_the_trees_have():
    digest = "sha256:" + "9" * 64
    assert "evaluate has other features than step learn" in refusal(
        altered(EVALUATE, "parameters", "schema_digest", digest)
    )
    check_proposal(Specification.from_dict(altered(0, "parameters", "schema_digest", digest)))
