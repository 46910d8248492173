"""What a model is worth to people who look into alerts: its order, a day's budget of alerts, and money."""

from dataclasses import astuple, fields

import numpy as np

from experiments.data import Floats
from experiments.metrics import Levels, Weighting, measure
from experiments.windows import AlertTest
from protocol.values import dataclass

BUDGET = 50
"""Alerts that can be looked into in a day; in the last window about as many transactions a day are frauds."""
REVIEW = 5.0
"""What it costs to look into one, in the currency of the amounts: an assumption, as is the budget."""
SURE = 0.5
"""At which precision recall is read off: one alert in two is right."""


@dataclass(frozen=True)
class AlertScores:
    """AP; precision of each day's highest scores; recall at one half precision; money lost a day."""

    ap: float
    precision_at_budget: float
    recall_at_precision: float
    cost: float


ALERT_METRICS = tuple(field.name for field in fields(AlertScores))


def measure_alerts(test: AlertTest, scores: Floats, budget: int = BUDGET) -> AlertScores:
    """Measure one model on the rows of the test."""
    alerted = daily_alerts(test.day, scores, budget)
    days = len(np.unique(test.day))
    missed = float(test.amount[(test.y == 1) & ~alerted].sum(dtype=np.float64))
    count = int(alerted.sum())
    return AlertScores(
        ap=measure(test.y, scores).ap,
        precision_at_budget=float(test.y[alerted].sum() / count) if count else 0.0,
        recall_at_precision=recall_at(test, scores),
        cost=(missed + REVIEW * count) / days,
    )


def cost_of_none(test: AlertTest) -> float:
    """What a day's frauds take where nobody looks."""
    return float(test.amount[test.y == 1].sum(dtype=np.float64) / len(np.unique(test.day)))


def daily_alerts(day: np.ndarray, scores: Floats, budget: int) -> np.ndarray:
    """Which rows are among the highest of their day; of equal scores the earlier ones, and none that is 0."""
    order = np.lexsort((np.arange(len(scores)), -scores, day))
    starts = np.flatnonzero(np.diff(day[order], prepend=day[order[:1]] - 1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[order[rank < budget]] = True
    return chosen & (scores > 0)


def recall_at(test: AlertTest, scores: Floats, precision: float = SURE) -> float:
    """The most frauds that any threshold finds with that precision, as a share of all; 0 if none does."""
    true, false = Levels(scores).counts(Weighting.once(test.y))
    good = true >= precision * (true + false)
    return float((true * good).max() / max(int(test.y.sum()), 1))


def as_alert_row(scores: AlertScores) -> Floats:
    """The metrics in the order of ALERT_METRICS."""
    return np.array(astuple(scores))
