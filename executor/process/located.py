"""Faults of a document with their lines, those included that protocol/ and learning/ find."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from executor.process.document import Document, Path_
from executor.process.errors import Fault, FederationError
from protocol.errors import AttestreeError

# Where in the file a contradiction stands that only the whole specification shows.
_PLACES: Mapping[str, Path_] = {
    "PROCESS_CONSORTIUM": ("organisations",),
    "PROCESS_NODES": ("nodes",),
    "PROCESS_STEPS": ("steps",),
    "TOPOLOGY_KIND": ("topology",),
    "TOPOLOGY_EDGE": ("topology",),
    "TOPOLOGY_CHANGE": ("topology_changes",),
}


@contextmanager
def located(document: Document, path: Path_) -> Iterator[None]:
    """Turn a refusal of the value at a path into one with the line of the file."""
    try:
        yield
    except FederationError:
        raise
    except AttestreeError as error:
        place = _named_in(error, path or _PLACES.get(error.code, path), document)
        raise fault(document, place, f"{error.cause} ({error.code})", error.remedy) from error


def fault(document: Document, path: Path_, cause: str, remedy: str) -> FederationError:
    """Make the refusal of what stands at a path."""
    found = Fault(document.line(path), cause, remedy)
    return FederationError.of("FEDERATION_MEANING", document.file, [found])


def _named_in(error: AttestreeError, place: Path_, document: Document) -> Path_:
    """Return the field that a cause names, such as n_share or option 'decay', if the file has it there."""
    for word in error.cause.replace("'", " ").replace(",", " ").split():
        if (*place, word) in document.lines:
            return (*place, word)
    return place
