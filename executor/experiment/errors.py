"""The refusal of a data set: a stable code, the file and line at fault, and what to do about it."""

from protocol.errors import AttestreeError


class DatasetError(AttestreeError):
    """Rows that cannot be used, or cannot be had."""

    exit_code = 40

    def __init__(self, code: str, cause: str, remedy: str) -> None:
        super().__init__(code, cause, remedy + ".")
