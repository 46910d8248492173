"""The contracts this package can serve, by name; each is imported only when it is served."""

from importlib import import_module

from chaincode.shim import Contract

CONTRACTS = {
    "probe": "chaincode.probe:Probe",
}


def contract(name: str) -> Contract:
    """Make the contract of that name; raises KeyError when there is none."""
    module, _, attribute = CONTRACTS[name].partition(":")
    made = getattr(import_module(module), attribute)()
    if not isinstance(made, Contract):
        raise TypeError(f"{CONTRACTS[name]} is not a contract")
    return made
