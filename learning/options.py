"""A node's parameters as the ledger commits to them: counts and limits in the step, the rest in its options.

Everything is optional and then as shipped; a name nobody knows is refused, because a misspelt option would
otherwise silently mean the default. Numbers with a fraction are text, as in every record.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from learning.errors import ParameterError
from learning.fit_options import DEFAULT_WAYS, FitOptions
from learning.kernel import KernelOptions
from learning.parameters import Defaults, Parameters
from learning.robust import HomeCheck
from protocol.agreement import step
from protocol.canonical import Record, float_text, parse_float
from protocol.errors import DataError
from protocol.trees.limits import BOOSTED


def to_options(parameters: Parameters) -> dict[str, Record]:
    """Return the options with every choice written out, so that a later default changes no old process."""
    fit, kernel, check = parameters.fit, parameters.kernel, parameters.home_check
    options: dict[str, Record] = {
        "fit": fit.kind,
        "min_leaf": fit.min_leaf,
        "normals": fit.normals,
        "fit_depth": fit.max_depth,
        "ranking": parameters.ranking,
        "decay": float_text(float(kernel.decay)),
        "normalise": kernel.normalise,
        "mu": [float_text(float(value)) for value in kernel.mu],
        "sigma": [float_text(float(value)) for value in kernel.sigma],
        "quota": _text(parameters.quota),
        "vote_cap": _text(parameters.vote_cap),
        "home_check": None if check is None else home_check_record(check),
        "threshold": float_text(float(parameters.threshold)),
        "vote": parameters.vote,
    }
    if fit.estimator_kind == BOOSTED:
        options |= {"rounds": fit.rounds, "leaves": fit.leaves, "rate": float_text(float(fit.rate))}
    # These came later: processes that do without them keep their digests.
    if fit.threshold_bits is not None:
        options["threshold_bits"] = fit.threshold_bits
    if parameters.held_out is not None:
        options["held_out"] = float_text(float(parameters.held_out))
    return options


def home_check_record(check: HomeCheck) -> dict[str, Record]:
    """Return a home check with every limit written out but `of_own` and `together`, which came later."""
    record: dict[str, Record] = {
        "max_alarms": float_text(float(check.max_alarms)),
        "min_found": float_text(float(check.min_found)),
        "enough_anomalies": check.enough_anomalies,
    }
    if check.of_own is not None:
        record["of_own"] = float_text(float(check.of_own))
    if check.together is not None:
        record["together"] = float_text(float(check.together))
    return record


def from_step(agreed: step.StepParameters) -> Parameters:
    """Return what a step of a process agreed on as the parameters of the algorithm, or refuse it."""
    options, kind = agreed.options, agreed.limits.kind
    later = {"threshold_bits": None, "held_out": None}
    shipped = {**later, **to_options(replace(Defaults, fit=FitOptions(DEFAULT_WAYS[kind])))}
    unknown = sorted(set(options) - set(shipped))
    if unknown:
        raise ParameterError(f"no option is called {unknown[0]!r}; there are {', '.join(shipped)}")
    read = _Reader({**shipped, **options})
    fit = _fit_options(read)
    if fit.estimator_kind != kind:
        raise ParameterError(f"option 'fit' is {fit.kind!r}, and the process has estimators of kind {kind!r}")
    return Parameters(
        n_new=agreed.n_new,
        n_max=agreed.n_max,
        n_share=agreed.n_share,
        fit=fit,
        ranking=read("ranking", _word),
        kernel=KernelOptions(
            read("decay", parse_float),
            read("normalise", _flag),
            read("mu", _numbers),
            read("sigma", _numbers),
        ),
        quota=read("quota", _maybe(parse_float)),
        vote_cap=read("vote_cap", _maybe(parse_float)),
        home_check=read("home_check", _maybe(_home_check)),
        threshold=read("threshold", parse_float),
        vote=read("vote", _word),
        max_internal=agreed.limits.max_internal,
        max_depth=agreed.limits.max_depth,
        estimator_format=agreed.limits.format,
        held_out=read("held_out", _maybe(parse_float)),
    )


def _fit_options(read: "_Reader") -> FitOptions:
    found = FitOptions(
        read("fit", _word),
        read("min_leaf", _whole),
        read("normals", _whole),
        read("fit_depth", _maybe(_whole)),
        threshold_bits=read("threshold_bits", _maybe(_whole)),
    )
    if found.estimator_kind != BOOSTED:
        return found
    rate = read("rate", parse_float)
    return replace(found, rounds=read("rounds", _whole), leaves=read("leaves", _whole), rate=rate)


class _Reader:
    """Reads one option at a time and names it when its value is not of its kind."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options

    def __call__(self, name: str, kind: Callable[[Any], Any]) -> Any:
        try:
            return kind(self.options[name])
        except (DataError, TypeError, KeyError) as error:
            raise ParameterError(
                f"option {name!r} is {str(self.options.get(name))[:60]!r}: {error}"
            ) from error


def _text(number: float | None) -> str | None:
    return None if number is None else float_text(float(number))


def _maybe(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else kind(value)


def _of_type(wanted: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not wanted:
            raise TypeError(f"not {wanted.__name__}")
        return value

    return read


_word, _whole, _flag = _of_type(str), _of_type(int), _of_type(bool)


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(parse_float(value) for value in _of_type(list)(values))


def _home_check(record: Any) -> HomeCheck:
    found = _of_type(dict)(record)
    if set(found) - {"of_own", "together"} != {"max_alarms", "min_found", "enough_anomalies"}:
        raise TypeError("not max_alarms, min_found and enough_anomalies, and of_own and together or not")
    enough = _whole(found["enough_anomalies"])
    of_own, together = (
        parse_float(found[name]) if name in found else None for name in ("of_own", "together")
    )
    return HomeCheck(
        parse_float(found["max_alarms"]), parse_float(found["min_found"]), enough, of_own, together
    )
