"""The probe contract as one identity sees it, and what it refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.gateway import VALID, Committed, Gateway, GatewayError


class Probe:
    """The probe's functions, through one client of a peer's Gateway."""

    def __init__(self, client: Gateway) -> None:
        self.client = client

    def evaluate(self, *arguments: Any, **more: Any) -> bytes:
        """Read; returns the raw answer."""
        return bytes(self.client.evaluate("probe", *arguments, **more))

    def submit(self, *arguments: Any, **more: Any) -> Committed:
        """Write; returns once the transaction is valid in a block."""
        committed = self.client.submit("probe", *arguments, **more)
        assert committed.code == VALID
        return committed

    def json(self, *arguments: Any, **more: Any) -> Any:
        """Read; returns the parsed answer."""
        return json.loads(self.evaluate(*arguments, **more))


def refusal(call: Callable[..., Any], *arguments: Any, **more: Any) -> GatewayError:
    """Make a call that must fail; returns its error."""
    with pytest.raises(GatewayError) as caught:
        call(*arguments, **more)
    return caught.value
