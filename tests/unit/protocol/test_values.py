"""Values are what the standard library's frozen dataclasses are; only their making differs."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from protocol import values

T = TypeVar("T")


def classes(dataclass: Callable[..., Any]) -> tuple[type[Any], ...]:
    """The same classes, made in either way."""

    @dataclass(frozen=True, slots=True)
    class Plain:
        """With defaults of each kind."""

        name: "str"
        count: int = 3
        parts: dict[str, int] = dataclasses.field(default_factory=dict)
        hidden: str = dataclasses.field(default="x", repr=False, compare=False)
        kind: ClassVar[str] = "plain"

    @dataclass(frozen=True)
    class More(Plain):
        """A subclass without slots, which works something out."""

        more: str = ""
        length: int = dataclasses.field(init=False, default=0)
        made: list[str] = dataclasses.field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            if self.count < 0:
                raise ValueError("less than nothing")
            object.__setattr__(self, "length", len(self.more))

    @dataclass(frozen=True, slots=True)
    class Own(Generic[T]):
        """It says itself what it is."""

        value: T

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True, eq=False)
    class Same:
        """Equal to itself alone."""

        value: int

    @dataclass(frozen=True, slots=True)
    class Nothing:
        """Without fields."""

    return Plain, More, Own, Same, Nothing


@dataclasses.dataclass(frozen=True)
class Two:
    """A class of each kind, made in both ways."""

    ours: type[Any]
    standard: type[Any]


BOTH = [Two(*pair) for pair in zip(classes(values.dataclass), classes(dataclasses.dataclass), strict=True)]
PLAIN, MORE, OWN, SAME, NOTHING = BOTH


def outcome(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (PLAIN, (("a",), {})),
        (PLAIN, (("a", 4, {"b": 1}), {"hidden": "y"})),
        (PLAIN, ((), {"name": "a", "count": 0})),
        (PLAIN, ((), {})),
        (PLAIN, (("a",), {"nobody": 1})),
        (PLAIN, (("a", 1, {}, "x", 5), {})),
        (MORE, (("a",), {"more": "abc"})),
        (MORE, (("a", -1), {})),
        (MORE, (("a",), {"length": 4})),
        (OWN, ((3,), {})),
        (SAME, ((3,), {})),
        (NOTHING, ((), {})),
        (NOTHING, ((1,), {})),
    ],
)
def test_a_value_is_made_shown_and_compared_as_the_standard_library_s(kind: Two, given: Any) -> None:
    arguments, named = given

    def facts(cls: type[Any]) -> Any:
        one, other = cls(*arguments, **named), cls(*arguments, **named)
        return repr(one), dataclasses.asdict(one), one == other, one == object(), one != other

    assert outcome(lambda: facts(kind.ours)) == outcome(lambda: facts(kind.standard))


@pytest.mark.parametrize("kind", BOTH)
def test_a_class_says_of_itself_what_the_standard_library_s_does(kind: Two) -> None:
    def facts(cls: type[Any]) -> Any:
        fields = [
            (each.name, each.type, each.init, each.repr, each.compare) for each in dataclasses.fields(cls)
        ]
        return fields, str(inspect.signature(cls)), cls.__match_args__, cls.__doc__, cls.__init__.__qualname__

    assert facts(kind.ours) == facts(kind.standard)
    assert inspect.get_annotations(kind.ours.__init__) == inspect.get_annotations(kind.standard.__init__)
    assert ("__slots__" in vars(kind.ours)) == ("__slots__" in vars(kind.standard))


@pytest.mark.parametrize("cls", [PLAIN.ours, MORE.ours])
def test_no_field_is_set_or_deleted_and_none_is_added(cls: type[Any]) -> None:
    value = cls("a")
    for change in (
        lambda: setattr(value, "name", "b"),
        lambda: delattr(value, "name"),
        lambda: setattr(value, "another", 1),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert value == cls("a")


def test_a_value_of_another_class_or_of_a_subclass_is_another_value() -> None:
    assert PLAIN.ours("a") != PLAIN.standard("a")
    assert PLAIN.ours("a") != MORE.ours("a")
    assert MORE.ours("a", more="b") != MORE.ours("a", more="c")


def test_what_equality_leaves_out_the_hash_leaves_out_too() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Pair:
        first: int
        second: int = dataclasses.field(default=0, compare=False)

    assert len({Pair(1, 1), Pair(1, 2), Pair(2, 2)}) == 2
    assert len({SAME.ours(1), SAME.ours(1)}) == 2
    assert hash(OWN.ours(1)) == 7


def test_a_default_that_is_made_is_made_for_each() -> None:
    first, second = PLAIN.ours("a"), PLAIN.ours("a")
    assert first.parts is not second.parts
    assert MORE.ours("a").made is not MORE.ours("a").made


@values.dataclass(frozen=True, slots=True)
class Kept:
    """Found by its name, as pickle needs it."""

    name: str
    parts: tuple[int, ...] = ()


def test_values_are_copied_replaced_and_matched() -> None:
    kept = Kept("a", (1, 2))
    assert copy.deepcopy(kept) == copy.copy(kept) == pickle.loads(pickle.dumps(kept)) == kept
    assert dataclasses.replace(kept, name="b") == Kept("b", (1, 2))
    match kept:
        case Kept(name, parts):
            assert (name, parts) == ("a", (1, 2))


def test_what_may_change_is_no_value() -> None:
    with pytest.raises(TypeError, match="frozen"):
        values.dataclass(frozen=False)  # type: ignore[call-overload]
