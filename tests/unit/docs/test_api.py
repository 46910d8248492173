"""The API pages: the examples run, and what is public is on the page."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

from docs.generator import api
from docs.generator.repository import ROOT, Module, modules

EXAMPLES = ROOT / "docs/api/README.md"


def test_the_examples_run_one_after_the_other(capsys: pytest.CaptureFixture[str]):
    blocks = re.findall(r"^```python\n(.*?)^```", EXAMPLES.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, EXAMPLES.name, "exec"), names)
    search, origins, model, share, refusal, record = capsys.readouterr().out.splitlines()
    assert "threshold" in search
    assert float(search.split()[-1]) > 0.7
    assert set(ast.literal_eval(origins)) == {"node01", "node02"}
    assert float(model) > 0.9
    assert "node01/" in share
    assert refusal.startswith("SHARE_")
    assert record.startswith('{"iteration":0,')


@pytest.mark.parametrize("package", api.PACKAGES)
def test_every_public_module_class_and_function_is_on_the_page(package: str):
    page = api.page(package)
    for module in modules(package)[1:]:
        assert module.name in page
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                kind = "class " if isinstance(node, ast.ClassDef) else ""
                assert re.search(rf"^#### {kind}{node.name}\b", page, re.MULTILINE)


def test_signatures_are_written_as_they_are_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = '''
    """A module.

    one  laid out
    two  by hand
    """

    @dataclass(frozen=True)
    class Point:
        """A place."""

        version: ClassVar[int] = 1
        x: Annotated[int, "to the right"]
        name: str = "origin"
        _hidden: int = 0

        @property
        def far(self) -> bool:
            """Whether it is far."""

        def move(self, by: int, *, twice: bool = False) -> Self:
            """Move it."""

    def both(first, *rest: int, last=None, **others: str) -> None:
        """Take anything."""

    def _internal() -> None: ...
    '''
    path = tmp_path / "points.py"
    path.write_text(textwrap.dedent(text))
    monkeypatch.setattr(api, "ROOT", tmp_path)
    shown = "\n\n".join(api._module(Module("plane.points", path)))
    assert "```text\none  laid out\ntwo  by hand\n```" in shown
    assert "Point(x: int, name: str = 'origin')" in shown
    assert "- `far`: Whether it is far." in shown
    assert "- `move(by: int, *, twice: bool = False) -> Self`: Move it." in shown
    assert "both(first, *rest: int, last=None, **others: str) -> None" in shown
    assert "_internal" not in shown
