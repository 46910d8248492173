"""The registry of images: which code may run, who registered it, and when."""

from chaincode.image.contract import ImageContract

__all__ = ["ImageContract"]
