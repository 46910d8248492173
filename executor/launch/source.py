"""Where a node's private data is: as the options say, as the last launch said, or in the usual place."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from executor.data import Dataset, load
from executor.errors import DatasetError, UsageError
from executor.launch.store import NodeStore, write_whole

DEFAULT_LABEL = "Class"
SUFFIXES = ("csv", "parquet")


@dataclass(frozen=True)
class DataSource:
    """A file of labelled rows; `{node}` in the path stands for the node's name."""

    path: str
    label: str = DEFAULT_LABEL
    drop: tuple[str, ...] = ()

    def load(self, node: str) -> Dataset:
        """Read the node's rows."""
        try:
            path = Path(self.path.format(node=node))
        except (KeyError, IndexError, ValueError) as error:
            raise UsageError("DATA_PATH", f"{self.path!r} has a field other than {{node}}") from error
        return load(path.resolve(), self.label, self.drop)


def source_of(given: DataSource | None, store: NodeStore, places: Path, node: str) -> DataSource:
    """Return the source to use; one that was given is remembered for the next tasks of the process."""
    remembered = store.directory / "data.json"
    if given is not None:
        write_whole(remembered, json.dumps(asdict(given)).encode())
        return given
    if remembered.exists():
        found = json.loads(remembered.read_bytes())
        return DataSource(found["path"], found["label"], tuple(found["drop"]))
    for suffix in SUFFIXES:
        path = places / f"{node}.{suffix}"
        if path.exists():
            return DataSource(str(path))
    raise DatasetError(
        "DATA_FILE",
        f"there is no {places / node}.csv or .parquet, and no --data was ever given for this process",
        case="unnamed",
    )
