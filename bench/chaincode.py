"""The chaincode shim against Fabric's own shims for Go and Node.

All three chaincodes store and read the same values as services with mutual TLS on one network, loaded by one
Go client that lets them take turns in slices of at most two seconds. A ratio is the median over the rounds,
so what else the machine does in the meantime hits all alike. The network is removed afterwards.
"""

import os

from bench._chaincode_load import Outcome, Scenario, load, memory_under
from bench._chaincode_network import GO, NODE, NODES, PYTHON, network
from bench._chaincode_round import TREES, RoundOutcome, play_round, real_trees, share_milliseconds
from bench.report import Goal, Report

SIZES, CLIENTS = (1_000, 100_000), (1, 60)
EVALUATES = [Scenario("evaluate", size, clients, 0.6, 12) for size in SIZES for clients in CLIENTS]
# A submit waits for its block, at least 200 ms: a slice has to be longer to hold several.
# Single rounds of many clients stray by a tenth, as blocks fill or time out, so there are more of them.
SUBMITS = [
    Scenario("submit", size, clients, 2.0, 9 if clients == 1 else 21) for size in SIZES for clients in CLIENTS
]
MANY = [Scenario("writes"), Scenario("reads")]
HEAVIEST = Scenario("submit", 100_000, 60, 4.0, 1)
LANGUAGES = {PYTHON: "this shim", GO: "Go", NODE: "Node"}


def measure() -> Report:
    """Measure throughput, large transactions, a round of twenty nodes, SHARE by itself, and memory."""
    trees = real_trees()
    share = share_milliseconds(trees)
    with network() as running:
        busy = f"{os.getloadavg()[0]:.1f}"
        steps = play_round(running, trees)
        evaluated = [load(running, scenario) for scenario in EVALUATES]
        submitted = [load(running, scenario) for scenario in SUBMITS]
        many = [load(running, scenario) for scenario in MANY]
        memory = memory_under(running, HEAVIEST)
        busy += f" and {os.getloadavg()[0]:.1f}"
    return Report(
        title="Chaincode: this shim, fabric-chaincode-go 2.3.0 and fabric-shim 2.5.8 (Node)",
        ratios=_ratios([*submitted, *evaluated], many),
        figures={
            "load average of the machine before the first and after the last measurement": busy,
            **_figures([*submitted, *evaluated], many),
            **_spreads([*submitted, *evaluated]),
            **_processor_times(evaluated),
            **{
                f"memory under {HEAVIEST.label}, {LANGUAGES[name]} (MB)": value / 1e6
                for name, value in memory.items()
            },
            **{
                f"{step.function} of {NODES} nodes at once, most in one block": step.most_in_one_block
                for step in steps
            },
        },
        goals=_goals(submitted, evaluated, many, steps, share),
    )


def _goals(
    submitted: list[Outcome],
    evaluated: list[Outcome],
    many: list[Outcome],
    steps: list[RoundOutcome],
    share: float,
) -> list[Goal]:
    goals = []
    for outcome in submitted:
        name = f"{outcome.scenario.label}, rate relative to"
        goals.append(Goal(f"{name} Node's", 1.0, "at least", outcome.rate_ratio(NODE)))
        goals.append(Goal(f"{name} Go's", 0.95, "at least", outcome.rate_ratio(GO)))
    for outcome in evaluated:
        name = f"{outcome.scenario.label}, rate relative to Go's"
        goals.append(Goal(name, 0.9, "at least", outcome.rate_ratio(GO)))
    for outcome in many:
        name = f"{outcome.scenario.label}, time relative to Go's"
        goals.append(Goal(name, 1.2, "at most", outcome.time_ratio(GO)))
    goals.append(
        Goal(f"SHARE of {TREES} real trees in the chaincode alone, processor time (ms)", 15, "at most", share)
    )
    conflicts = sum(step.conflicts for step in steps)
    goals.append(Goal(f"conflicts when {NODES} nodes open, share and complete", 0, "at most", conflicts))
    return goals


def _ratios(rates: list[Outcome], many: list[Outcome]) -> dict[str, float]:
    """Give every comparison, those without a goal too."""
    found = {}
    for other in (GO, NODE):
        for outcome in rates:
            found[f"{outcome.scenario.label}, rate / {LANGUAGES[other]}'s"] = outcome.rate_ratio(other)
        for outcome in many:
            found[f"{outcome.scenario.label}, time / {LANGUAGES[other]}'s"] = outcome.time_ratio(other)
    return found


def _figures(rates: list[Outcome], many: list[Outcome]) -> dict[str, float]:
    found = {}
    for name, language in LANGUAGES.items():
        for outcome in rates:
            found[f"{outcome.scenario.label}, {language} (/s)"] = outcome.rate(name)
        for outcome in many:
            found[f"{outcome.scenario.label}, {language} (ms)"] = outcome.milliseconds(name)
    return found


def _spreads(rates: list[Outcome]) -> dict[str, str]:
    return {
        f"{outcome.scenario.label}, rate / Go's in single rounds": outcome.spread(GO) for outcome in rates
    }


def _processor_times(evaluated: list[Outcome]) -> dict[str, float]:
    """Give what tells the chaincodes apart when peer and client share the processors with them."""
    return {
        f"processor time of one {outcome.scenario.label}, {language} (ms)": outcome.processor_ms(name)
        for outcome in evaluated
        for name, language in LANGUAGES.items()
    }
