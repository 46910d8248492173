"""Parameters survive the way through a process definition, and nothing misspelt gets through."""

import pytest

from learning.errors import ParameterError
from learning.fit import FitOptions
from learning.kernel import KernelOptions
from learning.options import from_step, to_options
from learning.parameters import Defaults, Parameters
from learning.robust import HomeCheck
from protocol import canonical
from protocol.agreement import step
from protocol.digest import Digest
from protocol.trees.limits import TreeLimits


def agreed(options, **changes) -> step.StepParameters:
    given = {
        "n_new": 10,
        "n_max": 50,
        "n_share": 10,
        "seed": 1,
        "limits": TreeLimits(29, format=2),
        "schema_digest": Digest.of(b"schema"),
    }
    return step.StepParameters(**(given | changes), options=options)


@pytest.mark.parametrize(
    "parameters",
    [
        Defaults,
        Parameters.paper(),
        Parameters(
            fit=FitOptions("undersampled", 5, 30, 7),
            ranking="size",
            kernel=KernelOptions(0.5, True, (0.1, 2.0), (1.0, 3.5)),
            quota=None,
            vote_cap=None,
            home_check=HomeCheck(0.02, 0.25, 5, 0.6),
            threshold=0.55,
            vote="majority",
        ),
        Parameters(fit=FitOptions("balanced", threshold_bits=8)),
    ],
    ids=["shipped", "paper", "all-changed", "rounded"],
)
def test_parameters_round_trip_through_canonical_bytes(parameters):
    options = canonical.decode(canonical.encode(to_options(parameters)))
    assert from_step(agreed(options)) == parameters


def test_a_home_check_agreed_on_before_of_own_keeps_its_rule_and_its_bytes():
    older = {"max_alarms": "0.01", "min_found": "0.5", "enough_anomalies": 8}
    read = from_step(agreed({"home_check": older}))
    assert read.home_check == HomeCheck(0.01, 0.5, 8, of_own=None, together=None)
    assert to_options(read)["home_check"] == older


def test_what_is_not_said_is_as_shipped_and_counts_and_limits_come_from_the_step():
    limits = TreeLimits(29, max_internal=99, max_depth=12)
    read = from_step(agreed({"ranking": "random"}, n_new=3, n_max=9, n_share=2, limits=limits))
    assert (read.n_new, read.n_max, read.n_share) == (3, 9, 2)
    assert (read.max_internal, read.max_depth) == (99, 12)
    assert read.ranking == "random"
    assert read.fit == Defaults.fit


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rankng": "kernel"}, "rankng"),
        ({"ranking": "best"}, "best"),
        ({"decay": 1}, "decay"),
        ({"decay": "1"}, "decay"),
        ({"decay": "nan"}, "decay"),
        ({"quota": "0.5"}, "quota"),
        ({"normalise": 1}, "normalise"),
        ({"mu": "0.0"}, "mu"),
        ({"mu": ["0.0"]}, "sigma"),
        ({"min_leaf": True}, "min_leaf"),
        ({"fit_depth": "3"}, "fit_depth"),
        ({"home_check": {}}, "home_check"),
        (
            {"home_check": {"max_alarms": "0.1", "min_found": "0.2", "enough_anomalies": 8, "own": "1.0"}},
            "home_check",
        ),
        (
            {"home_check": {"max_alarms": "0.1", "min_found": "0.2", "enough_anomalies": 8, "of_own": "0.0"}},
            "of_own",
        ),
        ({"home_check": {"max_alarms": "0.1", "min_found": "2.0", "enough_anomalies": 8}}, "min_found"),
        ({"threshold": None}, "threshold"),
    ],
    ids=str,
)
def test_c10_options_that_mean_nothing_are_refused_by_name(options, words):
    with pytest.raises(ParameterError, match=words):
        from_step(agreed(options))
