"""What a check found."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from executor.network import Network, NetworkError
from protocol.values import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis; whatever is wrong comes with a remedy."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, str | bool]:
        """Give the line as JSON has it."""
        return asdict(self)


def guarded(
    name: str, remedy: str, check: Callable[[Network], Iterable[Finding]], network: Network
) -> Iterator[Finding]:
    """Run a check and turn a network that does not answer into a finding of its own."""
    try:
        yield from check(network)
    except NetworkError as error:
        yield Finding(name, False, str(error), remedy)
