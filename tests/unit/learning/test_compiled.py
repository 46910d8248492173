"""Without the extension everything runs in numpy, by itself and with the same result."""

import numpy as np
import pytest

from learning import compiled
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.kernel import gram
from learning.predict import Predictor
from learning.ranking import KernelRanking


def test_a_missing_extension_changes_no_result(monkeypatch, random_trees, estimators):
    trees = random_trees(30)
    ensemble = Ensemble.of(estimators(trees))
    X = np.random.default_rng(0).normal(size=(50, 4))

    def results():
        top = ensemble.get_top(10, KernelRanking())
        return gram(trees).tobytes(), top, Predictor.of(trees).scores(X).tobytes()

    before = results()
    monkeypatch.setattr(compiled, "_module", None)
    assert compiled.implementation() == "numpy"
    assert results() == before


def test_asking_for_a_missing_extension_is_refused(monkeypatch, random_trees):
    monkeypatch.setattr(compiled, "_module", None)
    with pytest.raises(ParameterError, match="not built"):
        gram(random_trees(2), form="compiled")


def test_an_extension_that_cannot_be_imported_counts_as_missing(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(compiled, "import_module", refuse)
    assert compiled._load() is None


@pytest.mark.skipif(compiled.implementation() != "compiled", reason="the extension is not built here")
def test_the_extension_refuses_trees_that_are_not_in_preorder(random_trees):
    tree = random_trees(1)[0]
    offsets = np.array([0, tree.n_nodes])
    scale = (np.zeros(4), np.ones(4))
    out = np.empty((1, 1))
    module = compiled.choose("compiled")
    arguments = (1, tree.n_nodes, 4, offsets, tree.feature, tree.threshold)
    module.gram(*arguments, tree.right, *scale, 1.0, out)
    with pytest.raises(ValueError, match="preorder"):
        module.gram(*arguments, np.zeros_like(tree.right), *scale, 1.0, out)
    with pytest.raises(ValueError, match="partition"):
        module.gram(1, tree.n_nodes, 4, offsets[::-1].copy(), *arguments[4:], tree.right, *scale, 1.0, out)
    wrong = np.where(tree.feature >= 0, 99, -1).astype(np.int32)
    with pytest.raises(ValueError, match="feature"):
        module.gram(1, tree.n_nodes, 4, offsets, wrong, tree.threshold, tree.right, *scale, 1.0, out)
    with pytest.raises(ValueError, match="bytes"):
        module.gram(*arguments, tree.right, *scale, 1.0, np.empty((2, 2)))
