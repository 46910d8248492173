"""Settings of every test: how long it may take, how Hypothesis searches, and where its outcome is written."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from runner import processes

E2E = Path(__file__).parent / "e2e"
E2E_SECONDS = 300
# Many small values are made and few are garbage that only the collector finds: every 700, as is usual, it
# takes a twentieth of the time of all tests.
OBJECTS_BETWEEN_COLLECTIONS = 300_000

# No deadline: a busy machine is slow, not wrong. The same examples every time, so that a change that broke
# nothing fails nothing; scripts/flaky asks for others, and more of them, by a seed that it prints.
settings.register_profile("steady", deadline=None, max_examples=12, derandomize=True, print_blob=True)
settings.register_profile("searching", deadline=None, max_examples=60, database=None, print_blob=True)
settings.load_profile(os.environ.get("ATTESTREE_HYPOTHESIS", "steady"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options of the end-to-end tests, whichever tests are run."""
    parser.addoption(
        "--engines", default="", help="second engines, 26/containerd,moby/classic or all; with long tests"
    )
    parser.addoption("--large", action="store_true", help="also tests with as many nodes as the paper has")


def pytest_configure(config: pytest.Config) -> None:
    """Write results where the test command asks for them, in the one process that hears of all."""
    path = os.environ.get("ATTESTREE_RESULTS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(Path(path)), "attestree-results")


def pytest_collection(session: pytest.Session) -> None:
    """Leave garbage alone while thousands of tests are collected: all of it stays in use."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect garbage again, but look no more at what stays to the end, and rarely at what tests share."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests on a live network the time they need; a test that says otherwise is left alone."""
    for item in items:
        if E2E in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(E2E_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show with a test that took too long what it may have waited for: the stack names no process."""
    report = yield
    if call.excinfo is not None and str(call.excinfo.value).startswith("Timeout "):
        report.sections.append(("Processes", "\n".join(processes.related())))
    return report


class Results:
    """One line of JSON for every test that starts and every part of it that ends, written at once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(id=nodeid, when="start")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # At once, because pytest shows failures at its end, which a run that is killed never has.
        why = {"why": report.longreprtext} if report.failed else {}
        self._write(
            id=report.nodeid, when=report.when, outcome=report.outcome, seconds=report.duration, **why
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(
                id=report.nodeid, when="collect", outcome="failed", seconds=0.0, why=report.longreprtext
            )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say of which group each test is, where that is all that was asked."""
        if session.config.option.collectonly:
            for item in session.items:
                self._write(
                    id=item.nodeid, when="collected", alone=item.get_closest_marker("alone") is not None
                )

    def pytest_sessionfinish(self) -> None:
        """Say that it came to its end: otherwise nobody would miss the tests that were still to come."""
        self._write(when="end")

    def pytest_unconfigure(self) -> None:
        self._file.close()

    def _write(self, **fields: object) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()
