"""Where a node's private data is: as the options say, as the last launch said, or in the usual place."""

import json
from dataclasses import asdict
from pathlib import Path

from executor.data import Dataset
from executor.errors import DatasetError, UsageError
from executor.launch.rows import KnownRows
from executor.launch.store import NodeStore, write_whole
from executor.user_files import parse_json
from protocol.errors import RecordError
from protocol.values import dataclass

DEFAULT_LABEL = "Class"
SUFFIXES = ("csv", "parquet")


@dataclass(frozen=True)
class DataSource:
    """A file of labelled rows; `{node}` in the path stands for the node's name."""

    path: str
    label: str = DEFAULT_LABEL
    drop: tuple[str, ...] = ()

    def load(self, node: str, known: KnownRows | None = None) -> Dataset:
        """Read the node's rows; what the same bytes came to before is not parsed again."""
        try:
            path = Path(self.path.format(node=node))
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise UsageError("DATA_PATH", f"{self.path!r} has a field other than {{node}}") from error
        # Made absolute without asking the disk: a loop of links is for whoever opens the file to refuse.
        return (known or KnownRows()).load(path.absolute(), self.label, self.drop)


def source_of(given: DataSource | None, store: NodeStore, places: Path, node: str) -> DataSource:
    """Return the source to use: the one given, the one that was remembered, or the usual place."""
    if given is not None:
        return given
    remembered = _remembered(store)
    if remembered.exists():
        return _read(remembered)
    for suffix in SUFFIXES:
        path = places / f"{node}.{suffix}"
        if path.exists():
            return DataSource(str(path))
    raise DatasetError(
        "DATA_FILE",
        f"there is no {places / node}.csv or .parquet, and no --data was ever given for this process",
        case="unnamed",
    )


def remember(given: DataSource | None, store: NodeStore) -> None:
    """Keep a source for the next tasks of the process, once its rows have been read without a fault."""
    if given is not None:
        write_whole(_remembered(store), json.dumps(asdict(given)).encode())


def _remembered(store: NodeStore) -> Path:
    return store.directory / "data.json"


def _read(path: Path) -> DataSource:
    try:
        found = parse_json(path.read_bytes())
        return DataSource(found["path"], found["label"], tuple(found["drop"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError("RECORD_VALUE", f"{path} is damaged: {type(error).__name__}") from error
