"""The learner's options as people write them, turned into the ones the ledger keeps.

Numbers with a fraction become text in its one spelling, since records have no floats, and what was left out
is written out, so that a later default changes no old process.
"""

import math
from collections.abc import Sequence
from typing import Any

from learning.errors import ParameterError
from learning.options import from_step, home_check_record, to_options
from learning.robust import HomeCheck
from protocol.agreement.step import StepParameters
from protocol.agreement.step_kind import HELD_OUT, RANGES, StepKind
from protocol.canonical import float_text

FRACTIONS = ("decay", "quota", "vote_cap", "threshold", "rate", HELD_OUT)
LISTS = ("mu", "sigma")


def readable(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of the shipped learner with numbers as text and `home_check: true` spelled out."""
    found = dict(options)
    for name in FRACTIONS:
        if name in found:
            found[name] = _text(name, found[name])
    for name in LISTS:
        if name in found:
            found[name] = [_text(name, value) for value in found[name]]
    if "home_check" in found:
        found["home_check"] = _home_check(found["home_check"])
    if isinstance(found.get(RANGES), list):
        found[RANGES] = [_range(pair) for pair in found[RANGES]]
    return found


def ranges_by_name(options: dict[str, Any], features: Sequence[str]) -> dict[str, Any]:
    """Return options with ranges in the order of the features, where they are given by name."""
    given = options.get(RANGES)
    if not isinstance(given, dict):
        return options
    unknown = sorted(set(given) - set(features))
    if unknown:
        raise ParameterError(f"option 'ranges' names {unknown[0][:60]!r}, which is not a feature")
    return options | {RANGES: [given.get(name) for name in features]}


def without_floats(value: Any) -> Any:
    """Return any options with floats as text, for an image that is not the shipped one."""
    if isinstance(value, dict):
        return {name: without_floats(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_floats(item) for item in value]
    return float_text(value) if type(value) is float else value


def written_out(parameters: StepParameters, kind: str, step_kind: StepKind) -> dict[str, Any]:
    """Return the options with every default of the kind, or refuse what the learner would refuse."""
    if step_kind is StepKind.PREPARE:
        unknown = sorted(set(parameters.options) - {RANGES})
        if unknown:
            raise ParameterError(f"a prepare step has no option {unknown[0][:60]!r}; it has ranges alone")
        return dict(parameters.options)
    agreed = from_step(parameters.in_format(parameters.limits.format, kind))
    features, given = parameters.limits.n_features, len(agreed.kernel.mu)
    if given not in (0, features):
        raise ParameterError(f"option 'mu' has {given} values for {features} features")
    return dict(to_options(agreed))


def _home_check(value: Any) -> Any:
    if value is None or value is False:
        return None
    shipped = home_check_record(HomeCheck())
    if value is True:
        return shipped
    given = {name: item for name, item in value.items() if item is not None}
    # A limit that is null is none where that can be.
    none = [name for name in ("of_own", "together") if name in value and name not in given]
    found = {name: item for name, item in {**shipped, **given}.items() if name not in none}
    return {name: item if name == "enough_anomalies" else _text(name, item) for name, item in found.items()}


def _range(pair: Any) -> Any:
    return [_text(RANGES, value) for value in pair] if isinstance(pair, list) else pair


def _text(name: str, value: Any) -> Any:
    """Return a number as text; text is left as it is, and refused later if it is not the one spelling."""
    if type(value) not in (int, float):
        return value
    if not math.isfinite(value):
        raise ParameterError(f"option {name!r} is beyond what a number can hold")
    return float_text(float(value))
