"""What a plan asks the engine: about itself once, and about the image no more than its comparison needs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.memory.launches import Engine, Host, at_host, fresh
from support.memory.scenario import DIGESTS

from executor.exits import SANDBOX_REFUSED

ENVIRONMENT = ["PATH=/opt/venv/bin", "PYTHONHASHSEED=0"]


class Asked(Engine):
    """Writes down what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.images[DIGESTS[2]]["Config"] = {"Env": ENVIRONMENT}
        self.calls: list[str] = []

    def info(self) -> dict[str, Any]:
        self.calls.append("info")
        return super().info()

    def inspect_image(self, reference: str) -> dict[str, Any]:
        self.calls.append("inspect")
        return super().inspect_image(reference)


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh(), Asked()), monkeypatch) as found:
        yield found


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_plan_asks_the_engine_about_itself_once_and_about_the_image_twice(
    host: Host, options: tuple[str, ...]
) -> None:
    assert host.launch("--node", "node01", *host.data, *options).exit_code == 0
    calls = host.engine.calls  # type: ignore[attr-defined]
    assert calls == ["info", "inspect", "inspect"]


def test_what_the_compared_image_declares_is_in_the_profile(host: Host) -> None:
    shown = host.launch("--node", "node01", *host.data, "--dry-run").stdout
    assert all(f'"{variable}"' in shown for variable in ENVIRONMENT)


def test_an_engine_that_lost_a_limit_between_two_tasks_of_a_launch_is_refused(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = host.engine.info()
    answers = iter([described, {**described, "PidsLimit": False}])
    monkeypatch.setattr(host.engine, "info", lambda: next(answers))
    ran = host.launch("--node", "node01", "--iterations", 2, *host.data)
    assert ran.exit_code == SANDBOX_REFUSED
    assert host.ledger().execution.standing(host.process, "node01").iteration == 0
