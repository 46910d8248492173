"""The report every benchmark writes: goals judged the right way round, its section replaced and no other."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def report():
    path = Path(__file__).parents[3] / "bench" / "report.py"
    spec = importlib.util.spec_from_file_location("bench_report_under_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_goals_know_their_direction(report):
    assert report.Goal("speed", 15, "at least", 15.0).met
    assert not report.Goal("speed", 15, "at least", 14.9).met
    assert report.Goal("memory", 8, "at most", 8.0).met
    assert not report.Goal("memory", 8, "at most", 8.1).met
    assert not report.Goal("speed", 15, "at least", float("nan")).met


def test_json_holds_all_and_the_verdict(report):
    made = report.Report("T", {"r": 2.0}, {"f": "x"}, [report.Goal("g", 1, "at least", 0.5)])
    read = json.loads(made.to_json())
    assert read["goals"] == [{"name": "g", "limit": 1, "direction": "at least", "value": 0.5, "met": False}]
    assert (read["ratios"], read["figures"], read["met"]) == ({"r": 2.0}, {"f": "x"}, False)


def test_a_section_is_replaced_in_place_and_others_stay(report, tmp_path):
    page = tmp_path / "docs" / "benchmarks.md"
    report.Report("One", {"old": 1.0}).write_section(page, "one")
    report.Report("Two", {"two": 2.0}).write_section(page, "two")
    report.Report("One", {"new": 3.0}).write_section(page, "one")
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.index("new") < text.index("## Two")
    assert text.count("<!-- one: begin -->") == 1


@pytest.mark.parametrize(
    ("value", "shown"), [(1234, "1,234"), (12345.6, "12,346"), (0.01234, "0.0123"), (True, "True")]
)
def test_numbers_show_the_digits_they_deserve(report, value, shown):
    assert report.show(value) == shown
