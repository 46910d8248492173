"""Trees grown through scikit-learn's compiled modules alone are those of its classes, byte for byte."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from learning import growth, sklearn_modules
from learning.fit_options import WAYS, FitOptions
from learning.fit_tree import fit_tree
from learning.rows import Rows
from protocol.trees.tree import TreeLimits

ROOT = Path(__file__).parents[3]


def cases(make_rows):
    """Return rows of every sort that FIT meets."""
    plain = make_rows(n=300)
    far = plain.X.copy()
    far[::7, 0], far[3::7, 0], far[:, 2] = 3e38, -3e38, 1.5
    return {
        "whole": plain,
        "gaps": make_rows(n=300, missing=0.2),
        "normal only": Rows.of(plain.X, np.zeros(len(plain))),
        "anomalous only": Rows.of(plain.X, np.ones(len(plain))),
        "few": Rows.of(plain.X[:3], [0, 1, 0]),
        "far": Rows.of(far, plain.y),
        "one column": Rows.of(plain.X[:, :1], plain.y),
    }


@pytest.mark.parametrize("kind", [way for way, kind in WAYS.items() if kind == "tree"])
@pytest.mark.parametrize("bounded", [False, True])
def test_both_ways_give_the_same_bytes(make_rows, monkeypatch, kind, bounded):
    for name, rows in cases(make_rows).items():
        limits = TreeLimits(rows.n_features, max_internal=5) if bounded else TreeLimits(rows.n_features)
        for seed, options in ((1, FitOptions(kind)), (2**63, FitOptions(kind, min_leaf=4, max_depth=6))):
            trees = []
            for way in (growth.through_classes, growth.through_modules):
                monkeypatch.setattr("learning.fit_tree.grow", way)
                rows_of_its_own = Rows(rows.X.copy(), rows.y)
                trees.append(fit_tree(rows_of_its_own, seed, options, limits).to_bytes())
            assert trees[0] == trees[1], (name, seed)


PROGRAM = """
import json, sys
import numpy as np
from learning.fit_options import FitOptions
from learning.fit_tree import fit_tree
from learning.rows import Rows
from protocol.trees.tree import TreeLimits

rng = np.random.default_rng(3)
X = rng.normal(size=(200, 4)).astype(np.float32)
X[::9, 1] = np.nan
rows = Rows.of(X, (np.nan_to_num(X).sum(axis=1) > 1).astype(int))

def tree():
    return fit_tree(rows, 5, FitOptions("balanced"), TreeLimits(4)).to_bytes().hex()

alone = tree()
from learning import growth
loaded = sorted(m for m in sys.modules if m.partition(".")[0] in ("sklearn", "scipy"))
import scipy.sparse, sklearn.ensemble, sklearn.linear_model, sklearn.tree
later = tree()
growth.load_modules = lambda: False
through_classes = tree()
dense = np.nan_to_num(X)
sparse = scipy.sparse.csr_array(dense)
forests = [sklearn.ensemble.RandomForestClassifier(5, random_state=0).fit(x, rows.y) for x in (dense, sparse)]
scores = [forest.predict_proba(x) for forest, x in zip(forests, (dense, sparse))]
paths = forests[0].estimators_[0].decision_path(dense).sum()
same = alone == later == through_classes
print(json.dumps([same, loaded, bool((scores[0] == scores[1]).all()), int(paths)]))
"""


def test_a_process_of_its_own_loads_the_modules_alone_and_the_packages_later():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=150, check=True
    )
    same, loaded, sparse_works, paths = json.loads(ran.stdout)
    assert same
    assert "sklearn.tree._tree" in loaded
    assert not {"sklearn", "sklearn.tree", "sklearn.utils", "scipy.sparse", "scipy.stats"} & set(loaded)
    assert sparse_works
    assert paths > 200


def test_the_tested_versions_are_those_of_the_learner_image():
    locked = {
        line.split()[0]
        for line in (ROOT / "requirements/learner.txt").read_text().splitlines()
        if "==" in line
    }
    for tested in sklearn_modules.TESTED.values():
        name, version = tested.removesuffix(".dist-info").rsplit("-", 1)
        assert f"{name.replace('_', '-')}=={version}" in locked


@pytest.mark.parametrize("before", [False, True])
def test_other_versions_are_used_through_their_classes(monkeypatch, before):
    if before:
        monkeypatch.setitem(sys.modules, sklearn_modules.TREE, ModuleType(sklearn_modules.TREE))
    else:
        monkeypatch.delitem(sys.modules, sklearn_modules.TREE, raising=False)
    monkeypatch.setattr(sklearn_modules, "EMPTY", {"sklearn.stands_for_nothing": ()})
    monkeypatch.setitem(sklearn_modules.TESTED, "sklearn", "scikit_learn-0.1.dist-info")
    assert not sklearn_modules.load_modules()
