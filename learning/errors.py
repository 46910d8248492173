"""What this package refuses, each with a stable code, its cause in this case and the remedy.

DataError
├── EnsembleError     estimators that cannot be joined
├── KernelError       a tree that cannot be ranked
├── ParameterError    a parameter outside its range
└── RowsError         rows that no tree can be fitted to or asked about
"""

from protocol.errors import DataError


class EnsembleError(DataError):
    """Estimators contradict each other."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            "ENSEMBLE_CONFLICT",
            cause,
            "Compare both with the bytes on the ledger; one of the senders altered a tree.",
        )


class KernelError(DataError):
    """A tree is too large, or its thresholds too extreme, to be compared with others."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            "KERNEL_OVERFLOW", cause, "Refuse this tree; trees fitted to standardised data stay far below."
        )


class ParameterError(DataError):
    """A parameter of the algorithm is outside its range."""

    def __init__(self, cause: str) -> None:
        super().__init__("PARAMETER_RANGE", cause, "Correct the parameter in the process definition.")


class RowsError(DataError):
    """A node's rows or labels cannot be used as they are."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__("ROWS_INVALID", cause, remedy)
