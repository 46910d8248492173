"""Files of rows: the user's own to experiment on, and one per node for a federation on the ledger."""

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from executor.data.csv import parse
from executor.data.source import read_file
from executor.errors import UsageError
from executor.user_files import parse_json
from experiments.data import LABEL, DataTable, Floats, Labels
from experiments.split import Split, split
from protocol.identifiers import parse_node

IMBALANCE = 0.4
"""How far the nodes' sizes stray from equal: less than in the paper, whose nodes are twenty."""
TEST = "test"
_NOTE = "split.json"


def read_table(path: Path, label: str, drop: Sequence[str] = ()) -> DataTable:
    """Read a data set to split, train and test on from CSV: several rows, both classes, no empty column."""
    values, labels, features = parse(path, read_file(path), label, drop)
    if labels is None:
        raise AssertionError("a label was asked for")
    return DataTable(values, labels, features, str(path))


def write_files(table: DataTable, names: Sequence[str], seed: int, out: Path) -> list[Path]:
    """Split a table over nodes and write NODE.csv for each and test.csv; files of the same split are left."""
    if len(set(names)) != len(names) or TEST in names:
        raise UsageError("SPLIT_NODES", f"{', '.join(names)} names a node twice, or {TEST}")
    for name in names:
        parse_node(name)
    wanted = {"source": table.source, "nodes": list(names), "seed": seed}
    return write_split(lambda: split(table, len(names), seed, IMBALANCE), table.features, wanted, out)


def write_split(
    parts: Callable[[], Split], features: Sequence[str], wanted: dict[str, Any], out: Path
) -> list[Path]:
    """Write the files of a split under the names that `wanted` has, unless what is there is just that."""
    names = wanted["nodes"]
    paths = [out / f"{name}.csv" for name in (*names, TEST)]
    if _note(out) == wanted and all(path.exists() for path in paths):
        return paths
    if out.exists() and _note(out) is None:
        raise UsageError("SPLIT_DIRECTORY", f"{out} is there and no earlier split made it")
    found = parts()
    out.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    for name, node in zip(names, found.nodes, strict=True):
        _write(work / f"{name}.csv", features, node.X, node.y)
    _write(work / f"{TEST}.csv", features, found.X_test, found.y_test)
    (work / _NOTE).write_text(json.dumps(wanted))
    shutil.rmtree(out, ignore_errors=True)
    work.replace(out)
    return paths


def _note(out: Path) -> object:
    try:
        return parse_json((out / _NOTE).read_bytes())
    except (OSError, ValueError):
        return None


def _write(path: Path, features: Sequence[str], X: Floats, y: Labels) -> None:
    columns = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(features)}
    csv.write_csv(pa.table({**columns, LABEL: y}), path)
