"""Whatever a file holds, it is a federation or a refusal with lines, never another exception."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from executor.process.document import parse
from executor.process.errors import FederationError
from executor.process.federation import from_document

EXAMPLE = (Path(__file__).parents[4] / "examples/federation.yaml").read_bytes()
CONTENT: dict[str, Any] = parse(EXAMPLE, "f.yaml").content

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["node01", "org1", "ring", "sha256:" + "0" * 64, "a:b", "latest", "1e999"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(
    [
        *CONTENT,
        "organisations",
        "topology_changes",
        "overrides",
        "limits",
        "schema_digest",
        "schema_from",
        "drop",
        "initial_model",
        "task_seconds",
        "synchronous",
        "steps",
        "version",
    ]
)


def read(raw: bytes, *, any_options: bool = False) -> None:
    refusal = None
    try:
        made = from_document(parse(raw, "f.yaml"), any_options=any_options)
    except FederationError as error:
        refusal = error
    if refusal is None:
        assert from_document(parse(made.specification.to_bytes(), "f.json"), any_options=any_options)
        return
    assert refusal.code.startswith("FEDERATION_")
    assert refusal.cause
    assert refusal.remedy
    assert all(fault.line >= 1 for fault in refusal.faults)


@given(field=fields, value=values, any_options=st.booleans())
def test_any_value_in_any_field(field: str, value: Any, any_options: bool) -> None:
    read(json.dumps({**CONTENT, field: value}).encode("utf-8", "surrogatepass"), any_options=any_options)


@given(
    name=st.sampled_from(
        [*CONTENT["options"], "home_check", "mu", "sigma", "decay", "fit_depth", "min_leaf"]
    ),
    value=values,
)
def test_any_value_in_any_option(name: str, value: Any) -> None:
    read(json.dumps({**CONTENT, "options": {name: value}}).encode("utf-8", "surrogatepass"))


@given(place=st.integers(0, len(EXAMPLE)), length=st.integers(0, 20), new=st.binary(max_size=20))
def test_any_bytes_anywhere(place: int, length: int, new: bytes) -> None:
    read(EXAMPLE[:place] + new + EXAMPLE[place + length :])


@given(raw=st.binary(max_size=200) | st.text("{}[],:&*!|>%@`'\"-? \n\tab1.", max_size=60).map(str.encode))
def test_any_bytes_alone(raw: bytes) -> None:
    read(raw)
