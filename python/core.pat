__prefix__:
    import collections.abc
    import typing
    import typing_extensions
    from contextlib import AbstractContextManager
    from umem._typing import Element, NumpyArray
    from umem._array import Array as ArrayType
    from umem.dtypes import DType
    from umem.places import Host as HostType, Place as PlaceType

Array\.__dlpack__$:
    def __dlpack__(self, *, stream: object | None = None, max_version: object | None = None, dl_device: object | None = None, copy: object | None = None) -> typing_extensions.CapsuleType:
        \doc

from_dlpack$:
    def from_dlpack(object: object, place: PlaceType | str | None = None, *, copy: bool = False) -> ArrayType:
        \doc

Array\.__dlpack_device__$:
    def __dlpack_device__(self) -> tuple[int, int]:
        \doc

Array\.__buffer__$:
    def __buffer__(self, flags: int, /) -> memoryview:
        \doc

Array\.__release_buffer__$:
    def __release_buffer__(self, buffer: memoryview, /) -> None:
        \doc

Array\.__dlpack_c_exchange_api__$:
    __dlpack_c_exchange_api__: typing_extensions.CapsuleType

_extension$:
    _extension: typing_extensions.CapsuleType

Array\.__getitem__$:
    def __getitem__(self, key: object, /) -> ArrayType[Element]:
        \doc

Array\.__setitem__$:
    def __setitem__(self, key: object, value: object, /) -> None:
        \doc

Array\.__delitem__$:

Array\.__len__$:
    def __len__(self) -> int:
        \doc

Array\.host$:
    def host(self, mode: typing.Literal["r", "w", "rw"] = "rw") -> AbstractContextManager[NumpyArray[Element]]:
        \doc

_core\.copy$:
    def copy(dst: object, src: object, *, progress: typing.Any = None, step: int | str = 0) -> Route:
        \doc
