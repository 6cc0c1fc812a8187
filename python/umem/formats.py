"""Files of named arrays that other programs write and read: safetensors, and NumPy's .npz.

::

    import umem.formats

    with umem.formats.open("model.safetensors") as model:
        table = model["embed.weight"]                       # no copy: the file is mapped
        layers = model.load("cuda:0", ["w.0", "w.1"])       # to a place, in one call
    weights = umem.formats.load("model.safetensors.index.json", "cuda:0")      # all of a set of files
    umem.formats.save("new.safetensors", {"w": array}, {"by": "me"})
    umem.formats.save("new.npz", {"w": array})                                 # which NumPy reads

The package must be built where nlohmann-json is, and zlib for .npz; wheels are.
"""
from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator, Mapping

from . import _core, _options, dtypes, exchange
from ._options import fail, size
from ._array import Array
from .errors import NotSupportedError
from .places import Path, Place
from .transfer import _as_function

__all__ = ["Archive", "ArrayInfo", "load", "open", "save"]


@dataclasses.dataclass(frozen=True)
class ArrayInfo:
    """What a file says of an array.

    Attributes
    ----------
    name, dtype, shape, strides, nbytes
        As of an Array.
    offset : int
        Of the first element, or of the first compressed byte, in bytes from the first byte of the file.
    file : str
        The path of the file that has the elements; "" if an array of bytes was opened.
    compressed : bool
        Or big endian: elements are inflated, or turned, when they are used, and `archive[name]` is a copy in RAM.
    problem : str or None
        Why umem has no array of it, such as text in a .npz file; dtype is then None.
    big_endian : bool
        The numbers in the file are.
    """

    name: str
    dtype: dtypes.DType | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    nbytes: int
    file: str
    compressed: bool
    problem: str | None
    big_endian: bool


def _check_built() -> None:
    if not _core._has_formats:
        raise NotSupportedError("this package was built without umem.formats: install nlohmann-json "
                                "(Debian: nlohmann-json3-dev), and build it again")


class Archive(Mapping[str, Array]):
    """A file, or a set of files, of named arrays, opened by `formats.open`: a mapping from names to arrays.

    An array is where its bytes are: nothing is copied or read before it is used. One that is compressed is inflated into RAM,
    and one that is big endian is turned there.
    Arrays live on after `close`.

    Attributes
    ----------
    metadata : dict of str to str
        The texts about the whole file.
    """

    _core: typing.Any
    _names: dict[str, None]
    metadata: dict[str, str]

    def __init__(self, opened: typing.Any) -> None:
        self._core = opened
        self._names = opened.names()
        self.metadata = opened.metadata()

    def _opened(self, *names: str) -> typing.Any:
        for name in names:
            if name not in self._names:
                raise KeyError(name)
        return self._core if self._core is not None else fail("the archive was closed")

    def __getitem__(self, name: str) -> Array:
        return typing.cast(Array, self._opened(name).array(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __repr__(self) -> str:
        return f"<umem.formats.Archive of {len(self)} arrays{'' if self._core is not None else ', closed'}>"

    def info(self, name: str) -> ArrayInfo:
        """What the file says of an array. Raises KeyError if there is none of that name."""
        number, *rest = self._opened(name).info(name)
        return ArrayInfo(name, dtypes._make(number) if number else None, *rest)

    def load(self, place: Place | str | None = None, names: Iterable[str] | None = None, *, progress: typing.Any = None,
             step: int | str = 0) -> dict[str, Array]:
        """New arrays on a place with the elements of these, or of all; copied in one call. Ctrl-C ends it.

        Parameters
        ----------
        place : Place or str, optional
            Default: umem.host().
        names : iterable of str, optional
        progress, step
            As of `umem.copy`: `progress(done, total)` in bytes of elements.

        Raises
        ------
        umem.TypeError
            umem has no elements of the type of an array.
        umem.ValueError
            Compressed elements are damaged.
        """
        where = _core._find_new_place("host:" if place is None else place)
        chosen = list(self._names if names is None else dict.fromkeys(names))
        return dict(zip(chosen, self._opened(*chosen).load(chosen, where, _as_function(progress), size(step, "step"))))

    def load_into(self, arrays: Mapping[str, Array], *, progress: typing.Any = None, step: int | str = 0) -> None:
        """Copies elements to arrays that exist, of the same types and shapes, wherever they are; in one call.

        progress and step are those of `load`.

        Raises
        ------
        umem.TypeError, umem.ValueError
            The type or the shape is another one. Then nothing is copied.
        """
        self._opened(*arrays).load_into(list(arrays), list(arrays.values()), _as_function(progress), size(step, "step"))

    def check(self, names: Iterable[str] | None = None, *, progress: typing.Any = None, step: int | str = 0) -> None:
        """Reads all bytes of these arrays, or of all, and compares them with the checksums that .npz files have.

        Compressed arrays are checked whenever they are inflated, stored ones only here. progress and step are those of
        `load`.

        Raises
        ------
        umem.ValueError
            A checksum is wrong.
        """
        chosen = list(self if names is None else names)
        self._opened(*chosen).check(chosen, _as_function(progress), size(step, "step"))

    def close(self) -> None:
        """Lets the file go when no array uses it any more."""
        self._core = None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(source: Path | Array) -> Archive:
    """Opens a file of named arrays to read; only headers are read.

    Parameters
    ----------
    source : str, os.PathLike or Array
        The path of a .safetensors file, of the index of a set of them, *.safetensors.index.json, or of a .npz file: the
        bytes of the file say which. An array in C order: its bytes are those of a file, such as
        `umem.at(place, 0, nbytes, "uint8")`.

    Raises
    ------
    umem.ValueError
        It is no such file, or one that contradicts itself.
    """
    _check_built()
    if not isinstance(source, Array):
        return Archive(_core._open_archive(_options.path(source)))
    if not source.is_contiguous:
        fail("an array whose bytes are a file must be in C order without gaps")
    return Archive(_core._read_archive(source))


def load(path: Path, place: Place | str | None = None, names: Iterable[str] | None = None, *, progress: typing.Any = None,
         step: int | str = 0) -> dict[str, Array]:
    """New arrays with elements of a file, as by `formats.Archive.load`."""
    with open(path) as archive:
        return archive.load(place, names, progress=progress, step=step)


def _in_machine_order(array: Array) -> tuple[Array, bool]:
    """An array of numbers as if they were in this machine's order of bytes, and whether they are big endian."""
    if array.dtype.byteorder != ">" or array.dtype.kind not in "iufc":
        return array, False
    return array.view(array.dtype.newbyteorder("=")), True


_FORMATS = (None, "safetensors", "npz")  # the numbers of umemArchiveFormat


def save(path: Path, arrays: Mapping[str, typing.Any], metadata: Mapping[str, str] | None = None, *,
         format: str | None = None, durable: bool = False, reserve: str | None = None, direct: str | None = None,
         progress: typing.Any = None, step: int | str = 0) -> None:
    """Writes arrays of any places to a .safetensors or .npz file.

    The file appears, or replaces an old one, when it is complete: whatever fails or interrupts the call leaves the old
    one as it was. Elements go to the file from where they are. In a .npz file they are stored, each array at a multiple of
    64 bytes. Big-endian numbers are big endian in a .npz file, as numpy.savez writes them; a safetensors file is little
    endian.

    Parameters
    ----------
    path : str or os.PathLike
    arrays : mapping of str to Array, or what umem.asarray takes
    metadata : mapping of str to str, optional
        Texts about the whole file, which .npz files do not have.
    format : {"safetensors", "npz"}, optional
        Default: npz if the path ends in ".npz".
    durable, reserve, direct
        As of `umem.save`.
    progress, step
        As of `umem.copy`: `progress(done, total)` in bytes of elements; of a .npz file each counts twice, as it is read for
        the checksum, as do big-endian numbers in a .safetensors file.

    Raises
    ------
    umem.OSError
        The file cannot be written, or the disk is full.
    umem.TypeError
        The format has no elements of this type.
    """
    _check_built()
    if format not in _FORMATS:
        fail(f"format is {format!r}; known are 'safetensors', 'npz'")
    reserves, directs = _options.words("file", {"reserve": reserve, "direct": direct})
    given, texts = [_in_machine_order(exchange.find(array)[0]) for array in arrays.values()], dict(metadata or {})
    _core._save_archive(_options.path(path), list(arrays), [array for array, _ in given], [big for _, big in given],
                        list(texts), list(texts.values()), _FORMATS.index(format), reserves, directs, durable,
                        _as_function(progress), size(step, "step"))
