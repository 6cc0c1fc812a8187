__prefix__:
    import collections.abc
    import typing
    from umem.array import Array as ArrayType
    from umem.dtypes import DType
    from umem.places import Host as HostType, Place as PlaceType
