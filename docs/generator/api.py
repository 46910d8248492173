"""docs/api: what `protocol` and `learning` offer other programs, from signatures and docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

from .repository import ROOT, Module, modules

FOLDER = ROOT / "docs" / "api"
PACKAGES = ("protocol", "learning")
NOTE = """\
Made by `scripts/docs` from the sources; edit those, not this page. Examples are in [README.md](README.md)."""
LONGEST = 100
IMPLIED = ("self", "cls")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def pages() -> dict[Path, str]:
    """Return every page by its path."""
    return {FOLDER / f"{package}.md": page(package) for package in PACKAGES}


def page(package: str) -> str:
    """Return the page of a package: its modules in the order of docs/modules.md."""
    first, *rest = modules(package)
    parts = [f"# {package}", NOTE, *_prose(ast.get_docstring(first.tree))]
    for module in rest:
        parts += _module(module)
    return "\n\n".join(parts) + "\n"


def _module(module: Module) -> Iterator[str]:
    source = Path("../..") / module.path.relative_to(ROOT)
    yield f"## {module.name}" if module.is_package else f"### [{module.name}]({source})"
    yield from _prose(ast.get_docstring(module.tree))
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield from _class(node)
        elif isinstance(node, Function) and _is_public(node.name):
            yield from _function(node)


def _class(node: ast.ClassDef) -> Iterator[str]:
    bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    yield f"#### class {node.name}{bases}"
    arguments = _constructor(node)
    if arguments is not None:
        yield _code(_call(node.name, arguments))
    yield from _prose(ast.get_docstring(node))
    members = [part for part in node.body if isinstance(part, Function) and _is_public(part.name)]
    if members:
        yield "\n".join(_member(part) for part in members)


def _member(node: Function) -> str:
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    is_value = bool(marks & {"property", "cached_property"})
    shown = node.name if is_value else f"{_call(node.name, _arguments(node), longest=None)}{_returns(node)}"
    return f"- `{shown}`: {' '.join((ast.get_docstring(node) or '').split())}"


def _function(node: Function) -> Iterator[str]:
    yield f"#### {node.name}"
    yield _code(_call(node.name, _arguments(node)) + _returns(node))
    yield from _prose(ast.get_docstring(node))


def _constructor(node: ast.ClassDef) -> list[str] | None:
    """Return the arguments that make an instance: a data class's fields, or those of `__init__`."""
    if any(ast.unparse(mark).startswith("dataclass") for mark in node.decorator_list):
        return [_field(part) for part in node.body if isinstance(part, ast.AnnAssign) and _is_field(part)]
    for part in node.body:
        if isinstance(part, Function) and part.name == "__init__":
            return _arguments(part)
    return None


def _is_field(part: ast.AnnAssign) -> bool:
    return _is_public(ast.unparse(part.target)) and not ast.unparse(part.annotation).startswith("ClassVar")


def _field(part: ast.AnnAssign) -> str:
    return _argument(ast.unparse(part.target), part.annotation, part.value)


def _arguments(node: Function) -> list[str]:
    """Write the arguments of a function, each with its type and default."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    shown = [
        _argument(argument.arg, argument.annotation, default)
        for argument, default in zip(plain, [*missing, *given.defaults], strict=True)
        if argument.arg not in IMPLIED
    ]
    if given.vararg is not None:
        shown.append(_argument(f"*{given.vararg.arg}", given.vararg.annotation, None))
    elif given.kwonlyargs:
        shown.append("*")
    for argument, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        shown.append(_argument(argument.arg, argument.annotation, value))
    if given.kwarg is not None:
        shown.append(_argument(f"**{given.kwarg.arg}", given.kwarg.annotation, None))
    return shown


def _argument(name: str, annotation: ast.expr | None, default: ast.expr | None) -> str:
    typed = name if annotation is None else f"{name}: {_type(annotation)}"
    if default is None:
        return typed
    return f"{typed}{' = ' if annotation is not None else '='}{ast.unparse(default)}"


def _type(annotation: ast.expr) -> str:
    """Write a type without its remarks: the fields of ledger records carry their meaning beside it."""
    match annotation:
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([kind, *_])):
            return ast.unparse(kind)
    return ast.unparse(annotation)


def _returns(node: Function) -> str:
    return "" if node.returns is None else f" -> {ast.unparse(node.returns)}"


def _call(name: str, arguments: list[str], longest: int | None = LONGEST) -> str:
    """Write a call in one line, or with one argument to a line where it is too long."""
    line = f"{name}({', '.join(arguments)})"
    if longest is None or len(line) <= longest:
        return line
    return "\n".join((f"{name}(", *(f"    {argument}," for argument in arguments), ")"))


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _prose(docstring: str | None) -> Iterator[str]:
    """Part a docstring into paragraphs; one that was laid out by hand keeps its layout."""
    for paragraph in (docstring or "").split("\n\n"):
        lines = paragraph.strip("\n").splitlines()
        is_list = lines[:1] and lines[0].startswith("- ")
        by_hand = any("  " in line.strip() or line.startswith((" ", "├", "│", "└")) for line in lines)
        yield "\n".join(("```text", *lines, "```") if by_hand and not is_list else lines)


def _is_public(name: str) -> bool:
    return not name.startswith("_")
