"""What `executor simulate` does once its options are read."""

import json
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from executor.data.csv import Table, read_csv
from executor.experiment.batch import pieces, run_cases
from executor.experiment.data import SOURCE, is_fraud, load_fraud
from executor.experiment.engine import Case, make_topology
from executor.experiment.progress import progress, say, versions
from executor.experiment.split import IMBALANCE, PAPER_SEED, Split, split
from executor.experiment.synthetic import synthetic
from executor.experiment.variant import Choices, Variant, paper_variant
from executor.simulate.comparison import compare
from executor.simulate.report import as_json, print_comparison, write_comparison

SAFE_IMBALANCE = 0.4  # below one half cut points never cross, so every node gets rows of both classes


def perform(
    *,
    topology: tuple[str, ...],
    attack: tuple[str, ...],
    hostile: int,
    asynchronous: bool,
    iterations: int,
    nodes: int,
    imbalance: float | None,
    seeds: int,
    split_seed: tuple[int, ...],
    jobs: int,
    out: Path | None,
    docs: Path | None,
    **chosen: Any,
) -> None:
    """Run every variant on every split; print the comparison, and write what was asked for."""
    printed_json = chosen.pop("as_json")
    table = _table(chosen)
    variants = _variants(chosen)
    if imbalance is None:
        imbalance = IMBALANCE if table.source == SOURCE else SAFE_IMBALANCE
    splits = [split(table, nodes, seed, imbalance) for seed in _split_seeds(split_seed, len(variants))]
    for name in topology:
        make_topology(
            name, [node.name for node in splits[0].nodes], 0
        )  # a wrong name fails before hours of FIT
    schedule = "asynchronous" if asynchronous else "synchronous"
    cases = [
        Case(variant, name, kind, hostile if kind else None, iterations, schedule)
        for name in dict.fromkeys(topology)
        for kind in (None, *attack)
        for variant in variants
    ]
    results = _run(splits, seeds, cases, jobs)
    comparison = compare(table.source, splits, seeds, cases, results)
    write_comparison(comparison, out, docs, " ".join(["executor", *_command()]))
    if printed_json:
        click.echo(json.dumps(as_json(comparison) | {"versions": versions()}, indent=2))
    else:
        print_comparison(comparison)


def _run(splits: list[Split], seeds: int, cases: list[Case], jobs: int) -> list[Any]:
    with progress(sum(pieces(part, seeds, cases) for part in splits)) as advance:
        return [
            run_cases(
                part,
                range(seeds),
                cases,
                advance,
                jobs=jobs,
                train=False,
                keep=lambda case: case.attack is None,
            )
            for part in splits
        ]


def _table(chosen: dict[str, Any]) -> Table:
    data, label, drop, made_up = (chosen.pop(name) for name in ("data", "label", "drop", "synthetic"))
    if made_up and data is not None:
        raise click.UsageError("--synthetic and --data exclude each other")
    if made_up:
        return synthetic()
    if data is None or (not drop and is_fraud(data)):
        return load_fraud(data, say)
    return read_csv(data, label, drop)


def _variants(chosen: dict[str, Any]) -> list[Variant]:
    """The paper's algorithm if asked for, then every combination of what was given; else the default."""
    paper = chosen.pop("paper")
    names = {field.name for field in fields(Choices)}
    given = {
        name: tuple(dict.fromkeys(values)) for name, values in chosen.items() if name in names and values
    }
    sizes = {name: given[name][0] for name in ("n_new", "n_max", "n_share") if name in given}
    first = [paper_variant(**sizes)] if paper else []
    own = set(given) - set(sizes)
    if paper and not own and all(len(given[name]) == 1 for name in sizes):
        return first
    variants = Choices(**given).variants()
    if paper and len(variants) == 1:
        variants = [replace(variants[0], name="variant")]
    return first + variants


def _split_seeds(given: tuple[int, ...], variants: int) -> tuple[int, ...]:
    """One split to look, two to compare: no verdict rests on a single split."""
    if given:
        return tuple(dict.fromkeys(given))
    return (PAPER_SEED,) if variants == 1 else (PAPER_SEED, PAPER_SEED + 1)


def _command() -> list[str]:
    """The command line as typed, without where results go."""
    words, skip = [], False
    for word in sys.argv[1:]:
        if skip:
            skip = False
        elif word in {"--out", "--write-docs", "--jobs"}:
            skip = True
        elif word != "--json":
            words.append(word)
    return words
