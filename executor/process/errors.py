"""Why a federation file is refused: every fault with its line, all of them at once."""

from collections.abc import Iterable
from dataclasses import dataclass

from executor import codes
from protocol.errors import DataError, define

MAX_SHOWN = 20
DEFAULT_REMEDY = codes.FILE


@dataclass(frozen=True, order=True)
class Fault:
    """One fault of a file: the line, what is wrong and why, and what to write instead."""

    line: int
    cause: str
    remedy: str = DEFAULT_REMEDY


class FederationError(DataError):
    """A federation file that describes no process.

    `FEDERATION_FILE` it cannot be read, `FEDERATION_SYNTAX` it is no plain YAML, `FEDERATION_SCHEMA` its
    fields are not those of the schema, `FEDERATION_MEANING` they contradict each other.
    """

    faults: tuple[Fault, ...] = ()

    @classmethod
    def of(cls, code: str, file: str, faults: Iterable[Fault]) -> "FederationError":
        """Make one error of all faults, in the order of their lines."""
        found = sorted(set(faults))
        shown = [f"{file}, line {fault.line}: {fault.cause}" for fault in found[:MAX_SHOWN]]
        if len(found) > MAX_SHOWN:
            shown.append(f"{file}: {len(found) - MAX_SHOWN} more faults")
        remedies = list(dict.fromkeys(fault.remedy for fault in found[:MAX_SHOWN]))
        error = cls(code, "\n".join(shown), "\n".join(remedies))
        error.faults = tuple(found)
        return error


define(FederationError, codes.FEDERATION)
