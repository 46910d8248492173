"""What a process has to keep to that is proposed with a model to start from: its trees have a past.

The model is of another process, which may have started from one itself, and so on. Whoever made a tree is
known by the name of its node alone, so that a name keeps its organisation from one process to the next.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from protocol.agreement.parameters import InitialModel
from protocol.agreement.plan import Plan
from protocol.agreement.process import Specification
from protocol.agreement.proposal import check_trees
from protocol.errors import ProcessError, StateError

PlanOf: TypeAlias = Callable[[str], Plan]
"""How to find what holds in a process."""
MAX_PAST = 100
"""How many processes are asked for the organisation of a name: every peer asks them for whoever proposes."""


def check_origin(specification: Specification, creators: Iterable[str], plan_of: PlanOf) -> None:
    """Refuse to start from a model, given who created its trees, by terms that are not those of its trees."""
    model = specification.initial_model
    if model is None:
        return
    source = plan_of(model.process).specification
    if source.confidential and not specification.confidential:
        raise StateError(
            "MODEL_CONFIDENTIAL", f"the trees of {model.process} are confidential, and of this process not"
        )
    made = source.voting(model.node, source.iterations - 1)
    for step in specification.steps:
        check_trees(step, made, f"the model of {model.process}/{model.node}")
    check_names(specification.nodes, creators, model, plan_of)


def check_names(
    nodes: Mapping[str, str], creators: Iterable[str], model: InitialModel, plan_of: PlanOf
) -> None:
    """Refuse nodes by whose names another organisation's trees would count, and be told, as their own."""
    sought, origin, past = sorted({*creators} & nodes.keys()), model, 0
    while sought:
        if past == MAX_PAST:
            raise ProcessError("PROCESS_NODES", f"whose {sought[0]} was in the model is too long ago to tell")
        plan = plan_of(origin.process)
        for node in sought:
            owner = plan.nodes.get(node, nodes[node])
            if owner != nodes[node]:
                raise ProcessError(
                    "PROCESS_NODES",
                    f"{node} of {owner} made trees of the model, and would belong to {nodes[node]}",
                )
        if plan.specification.initial_model is None:
            return
        sought = [node for node in sought if node not in plan.nodes]
        origin, past = plan.specification.initial_model, past + 1
