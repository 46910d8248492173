"""What a cached function called when it was first asked, told again each time its cache answers.

Test kits prepare a ledger once and hand out copies. Without this, only the first of the tests that use it
would be known to call what prepared it, and a mutant of that would not be tried on the others.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any

_lru_cache = functools.lru_cache
Called = Callable[[], set[str] | None]
"""Gives the names of the functions that were called, None while nobody wants to know."""


def remember(called: Called) -> None:
    """Have every cache that is made from here on tell what it stands for."""

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return _remembering(maxsize, 128, typed, called)
        return lambda function: _remembering(function, maxsize, typed, called)

    functools.lru_cache = lru_cache
    functools.cache = lru_cache(maxsize=None)


def _remembering(function: Callable[..., Any], maxsize: int | None, typed: bool, called: Called) -> Any:
    """Cache a function, and what it calls by its arguments."""
    calls: dict[Hashable, frozenset[str]] = {}

    def first(*values: Any, **named: Any) -> Any:
        told = called()
        if told is None:
            return function(*values, **named)
        before = set(told)
        told.clear()
        try:
            return function(*values, **named)
        finally:
            calls[functools._make_key(values, named, typed)] = frozenset(told)
            told |= before

    kept = _lru_cache(maxsize, typed)(first)

    @functools.wraps(function)
    def asked(*values: Any, **named: Any) -> Any:
        answer = kept(*values, **named)
        told = called()
        if told is not None:
            told |= calls.get(functools._make_key(values, named, typed), frozenset())
        return answer

    asked.cache_info, asked.cache_clear = kept.cache_info, kept.cache_clear  # type: ignore[attr-defined]
    asked.cache_parameters = kept.cache_parameters  # type: ignore[attr-defined]
    return asked
