"""Whose address is it: the block around an address, and how much each place has in use."""
from __future__ import annotations

from . import _core
from ._array import Array
from .places import OFFSETS, Place


class Found:
    """A live block: where it begins, its bytes, and the kind and the label of the place that has it."""

    __slots__ = ("address", "block_label", "kind", "label", "nbytes")
    kind: str
    label: str
    address: int
    nbytes: int
    block_label: str

    def __init__(self, kind: str, label: str, address: int, nbytes: int, block_label: str) -> None:
        self.kind = kind
        self.label = label
        self.address = address
        self.nbytes = nbytes
        self.block_label = block_label

    def __repr__(self) -> str:
        return f"Found({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def find(where: Array | int, place: Place | None = None) -> Found | None:
    """The live block that contains an address, or the first element of an array; None if umem has no record of it.

    Without a place, all places of the process are searched whose addresses are pointers: also for memory of a GPU, but
    not for offsets in files. In a stack, such as a pool over a `Track`, it is the block of the outermost place; to ask
    the others, give `place`. RAM of a `Host` has no records; a `Track` over it has.

    Parameters
    ----------
    where : Array or int
        An array, or an address.
    place : Place, optional
        The only place to ask; for an array that is in a file, by default, its place.

    Returns
    -------
    Found or None
        With `kind`, `label`, `address`, `nbytes` and `block_label`.
    """
    if isinstance(where, Array):
        if place is None and where.place.capabilities & OFFSETS:
            place = where.place
        where = where.address
    found = _core._find(where) if place is None else place._find(where)
    return None if found is None else Found(*found)


class Foreign:
    """Memory that another library or another process has allocated with CUDA.

    `kind` is "pinned", "gpu" or "managed". `address` and `nbytes` are those of the allocation, or 0 if the driver does not
    tell them. `device` is the number of its GPU, or None.
    """

    __slots__ = ("address", "device", "kind", "nbytes")
    kind: str
    address: int
    nbytes: int
    device: int | None

    def __init__(self, kind: str, address: int, nbytes: int, device: int | None) -> None:
        self.kind = kind
        self.address = address
        self.nbytes = nbytes
        self.device = device

    def __repr__(self) -> str:
        return f"Foreign({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def find_foreign(address: int) -> Foreign | None:
    """Describes the memory at an address that is in no block of umem, but that CUDA knows.

    None for all other addresses, and while there is no place for GPUs.

    Parameters
    ----------
    address : int

    Returns
    -------
    Foreign or None
        With `kind`, `address`, `nbytes` and `device`.
    """
    found = _core._find_foreign(address)
    return None if found is None else Foreign(*found)


def describe_places() -> str:
    """The places that count their bytes, the largest first: 'Pool "fields" 1048576 bytes (peak 2097152), ...'."""
    return str(_core._describe_places())


def list_when_out_of_memory(most: int = 8) -> None:
    """From now on the message of a `umem.MemoryError` ends with the `most` largest places; 0: it does not."""
    _core._list_when_out_of_memory(most)
