"""Whether an export scores like the model it was made from, tried before it is kept."""

import numpy as np
from numpy.typing import NDArray

from executor.model.content import Model
from executor.model.errors import ModelError
from executor.model.npz import trees_of_npz
from protocol.task.result import ensemble_digest

ROWS = 2_048
TOLERANCE = 1e-12
_LARGEST = float(np.finfo(np.float32).max)


def probes(model: Model, count: int = ROWS) -> NDArray[np.float32]:
    """Make rows that sit on the model's thresholds, right next to them, and on missing values."""
    rng = np.random.default_rng(list(model.digest.raw))
    rows = np.empty((count, model.n_features), dtype=np.float32)
    tests: list[list[float]] = [[0.0] for _ in range(model.n_features)]
    for estimator in model.ensemble:
        tree = estimator.tree
        for feature, threshold in zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True):
            if feature >= 0:
                tests[feature].append(threshold)
    for feature, thresholds in enumerate(tests):
        chosen = np.clip(rng.choice(thresholds, count), -_LARGEST, _LARGEST).astype(np.float32)
        beside = np.nextafter(chosen, rng.choice([-_LARGEST, _LARGEST], count).astype(np.float32))
        column = np.where(rng.random(count) < 0.5, chosen, beside)
        rows[:, feature] = np.where(rng.random(count) < 0.1, np.nan, column)
    return rows


def check_onnx(raw: bytes, model: Model) -> float:
    """Run the graph on the probes; return the greatest difference of scores, or refuse the graph."""
    import onnxruntime  # noqa: PLC0415 - takes a second to load

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
    rows = probes(model)
    scores, anomalous = session.run(None, {"features": rows})
    expected = model.scores(rows)
    difference = float(np.abs(scores - expected).max())
    clear = np.abs(expected - model.voting.threshold) > TOLERANCE
    wrong = int((anomalous[clear] != (model.decide(expected)[clear] == 1)).sum())
    if not difference <= TOLERANCE or wrong:
        raise ModelError(
            "MODEL_EXPORT",
            f"ONNX Runtime scores {len(rows)} rows up to {difference:g} apart and decides {wrong} otherwise",
        )
    return difference


def check_npz(raw: bytes, model: Model) -> None:
    """Refuse an npz whose trees do not give the model's digest."""
    found = ensemble_digest([(id_, tree.digest) for id_, tree in trees_of_npz(raw)])
    if found != model.digest:
        raise ModelError(
            "MODEL_EXPORT",
            f"the npz gives the digest {found}, not {model.digest}",
            case="digest",
        )
