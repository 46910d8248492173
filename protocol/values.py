"""Frozen dataclasses whose classes are made in a third of the time.

A program that loads this package makes more than a hundred of them before it does anything, and the standard
library compiles six methods for each: that was a third of what a command took to start. Here one is compiled,
and the others are shared.
"""

from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard_dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen, slots=False, eq=True):
        """Make a class a frozen dataclass, as `dataclasses.dataclass` does; it knows no other options."""
        if not frozen:
            raise TypeError("values are frozen; take dataclasses.dataclass for what changes")
        return lambda cls: _value(cls, slots=slots, eq=eq)


def _value(cls: type[Any], *, slots: bool, eq: bool) -> type[Any]:
    own = {name for name, found in vars(cls).items() if found is not None}
    made: Any = standard_dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    listed = fields(made)
    if "__init__" not in own:
        made.__init__ = _init(made, listed)
    for name, method in {**FROZEN, **(EQUAL if eq else {}), **(STATE if slots else {})}.items():
        if name not in own:
            setattr(made, name, method)
    if eq:
        made._compared = _compared([field.name for field in listed if field.compare])
    return made  # type: ignore[no-any-return]


class _Factory:
    """Stands in a signature for a value that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = _Factory()


def _init(cls: type[Any], listed: "tuple[Field[Any], ...]") -> Any:
    """Compile the method that sets the fields, which is the one that has to be quick."""
    given: dict[str, Any] = {"put": object.__setattr__, "FACTORY": FACTORY}
    parameters, lines, annotations = ["self"], [], {}
    for field in listed:
        name = value = field.name
        made = field.default_factory is not MISSING
        if made or field.default is not MISSING:
            given[f"default_{name}"] = field.default_factory if made else field.default
        if field.init:
            annotations[name] = field.type
            default = "FACTORY" if made else f"default_{name}"
            parameters.append(f"{name}={default}" if f"default_{name}" in given else name)
            value = f"default_{name}() if {name} is FACTORY else {name}" if made else name
        elif made:
            value = f"default_{name}()"
        else:
            continue
        lines.append(f"put(self, '{name}', {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    found: dict[str, Any] = {}
    text = f"def make({', '.join(given)}):\n def __init__({', '.join(parameters)}):\n  " + "\n  ".join(
        lines or ["pass"]
    )
    exec(f"{text}\n return __init__", {}, found)  # noqa: S102 - of names of fields alone
    method = found["make"](**given)
    method.__qualname__ = f"{cls.__qualname__}.__init__"
    method.__annotations__ = {**annotations, "return": None}
    return method


def _compared(names: list[str]) -> Any:
    """Return what gives the fields that make two objects equal, as one value."""
    # Neither is bound to the object that it is found by.
    return attrgetter(*names) if names else staticmethod(lambda _: ())


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def _setattr(self: Any, name: str, value: object) -> NoReturn:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> NoReturn:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


FROZEN = {"__repr__": _repr, "__setattr__": _setattr, "__delattr__": _delattr}
EQUAL = {"__eq__": _eq, "__hash__": _hash}
STATE = {"__getstate__": _getstate, "__setstate__": _setstate}
"""Without these, what has slots and cannot be set could not be copied."""
