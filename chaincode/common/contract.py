"""A contract of the ledger: CamelCase functions, each open to declared roles, refusals with stable codes."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, TypeVar

from chaincode.common.caller import Role, caller_of
from chaincode.shim import Context, Contract
from chaincode.shim.contract import Function
from protocol import canonical
from protocol.errors import AccessError, AttestreeError
from protocol.ledger.common import History, Page
from protocol.ledger.record import LedgerRecord

Method = TypeVar("Method", bound=Callable[..., Any])
MARK = "_contract_function_roles"
THROUGH = "_contract_function_through"
READERS = tuple(Role)


def allow(*roles: Role, through: str = "") -> Callable[[Method], Method]:
    """Open a function that writes to these roles; reading is open to every role.

    With `through`, it is for that chaincode to call in a transaction addressed to it, and for no client.
    """

    def mark(method: Method) -> Method:
        setattr(method, MARK, roles)
        setattr(method, THROUGH, through)
        return method

    return mark


class LedgerContract(Contract):
    """The base of the four chaincodes.

    A method `open_task` is the function `OpenTask`. `events` and `values` document what a subclass
    announces and stores; docs/ledger.md is generated from them.
    """

    cooperative = True
    refusals: ClassVar[tuple[type[Exception], ...]] = (AttestreeError,)
    # Event name -> when it is announced and with which fields.
    events: ClassVar[dict[str, str]] = {}
    # Kind of key -> the record stored under it.
    values: ClassVar[dict[str, type[LedgerRecord]]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.roles: dict[str, tuple[Role, ...]] = {}
        found = [self._published(function) for function in self.functions.values()]
        self.functions = {function.name: function for function in found}

    def describe(self, error: Exception) -> tuple[str, str]:
        """Give the code, and cause and remedy in one text."""
        assert isinstance(error, AttestreeError)  # noqa: S101
        return error.code, f"{error.cause}. {error.remedy}"

    def announce(self, ctx: Context, event: str, payload: dict[str, canonical.Record]) -> None:
        """Set the transaction's event, one of those the contract documents."""
        if event not in self.events:
            raise KeyError(event)
        ctx.set_event(event, canonical.encode(payload))

    def _published(self, function: Function) -> Function:
        """Rename a function for the ledger and guard it by its roles."""
        if function.name == "metadata":
            return function
        roles = getattr(function.call, MARK, READERS if function.kind == "evaluate" else ())
        if not roles:
            raise TypeError(f"{self.name}: {function.name} writes and names no roles")
        name = "".join(word.capitalize() for word in function.name.split("_"))
        self.roles[name] = roles
        addressed = getattr(function.call, THROUGH, "") or self.name if function.kind == "submit" else ""
        return replace(function, name=name, call=guard(function.call, roles, addressed))


def guard(call: Callable[..., Any], roles: tuple[Role, ...], addressed: str = "") -> Callable[..., Any]:
    """Let only these roles call, and only in a transaction addressed to one chaincode where it is named.

    A relay drops the events of what it calls, and its users sign for something else than what is written.
    """

    @wraps(call)
    def guarded(ctx: Context, *values: Any) -> Any:
        caller_of(ctx).need_role(roles)
        if addressed and ctx.addressed != addressed:
            raise AccessError(
                "ACCESS_CHAINCODE",
                f"the transaction is addressed to {ctx.addressed[:64]}, not to {addressed}",
            )
        answer = call(ctx, *values)
        return answer.to_dict() if isinstance(answer, LedgerRecord | Page | History) else answer

    return guarded
