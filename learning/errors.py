"""What this package refuses, with the code and the remedy of each.

DataError
├── EnsembleError     estimators that cannot be joined
├── KernelError       a tree that cannot be ranked
├── ParameterError    a parameter outside its range
└── RowsError         rows that no tree can be fitted to or asked about
"""

from protocol.errors import DataError, define


class EnsembleError(DataError):
    """Estimators contradict each other."""

    def __init__(self, cause: str) -> None:
        super().__init__("ENSEMBLE_CONFLICT", cause)


class KernelError(DataError):
    """A tree is too large, or its thresholds too extreme, to be compared with others."""

    def __init__(self, cause: str) -> None:
        super().__init__("KERNEL_OVERFLOW", cause)


class ParameterError(DataError):
    """A parameter of the algorithm is outside its range."""

    def __init__(self, cause: str, *, case: str = "") -> None:
        super().__init__("PARAMETER_RANGE", cause, case=case)


class RowsError(DataError):
    """A node's rows or labels cannot be used as they are; the case says what is wrong with them."""

    def __init__(self, cause: str, case: str) -> None:
        super().__init__("ROWS_INVALID", cause, case=case)


define(
    EnsembleError,
    {"ENSEMBLE_CONFLICT": "Compare both with the bytes on the ledger; one of the senders altered a tree."},
)
define(
    KernelError,
    {"KERNEL_OVERFLOW": "Refuse this tree; trees fitted to standardised data stay far below."},
)
define(ParameterError, {"PARAMETER_RANGE": "Correct the parameter in the process definition."})
define(
    RowsError,
    {
        "ROWS_INVALID": {
            "columns": "Give the columns of the process's feature schema, in its order.",
            "count": "Give exactly one label per row.",
            "empty": "Give the node at least one row.",
            "infinite": "Leave the value empty (NaN) if it is unknown, or scale the column.",
            "label": "Label normal rows 0, anomalous rows 1.",
            "shape": "Give a table with one line per row.",
            "text": "Encode text columns as numbers.",
        }
    },
)
