#!/usr/bin/env python3
"""Exchanges arrays of umem with NumPy, and with PyTorch and JAX where they are installed: by DLPack, without copies.

Usage: python.py SHARED_LIBRARY_OF_UMEM
Exit status: 0 all passed, 1 something failed, 77 NumPy is not installed.
"""
import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "style"))
from report import Report

import capsules

try:
    import numpy
except ImportError:
    print("skipped - NumPy is not installed")
    sys.exit(77)


def differ(**pairs):
    """What is not as expected: NAME=(found, expected)."""
    return [f"{name}: {found}, expected {expected}" for name, (found, expected) in pairs.items() if found != expected]


def address(array):
    return array.__array_interface__["data"][0]


def refuses(exception, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except exception:
        return []
    return [f"{function.__name__} did not raise {exception.__name__}"]


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64", "complex64", "complex128"]


# ---- NumPy ----

def numpy_uses_the_memory_of_umem(umem):
    problems = []
    for dtype in TYPES:
        array = umem.zeros((3, 4), dtype)
        found = numpy.from_dlpack(array)
        found[1, 2] = 1
        again = numpy.from_dlpack(array)
        problems += differ(
            address=(address(found), array.address), dtype=(str(found.dtype), dtype), shape=(found.shape, (3, 4)),
            value=(again[1, 2], 1), read_only=(found.flags.writeable, True),
        )
    return problems


def numpy_sees_views(umem):
    array = umem.zeros((4, 6), "int32")
    numpy.from_dlpack(array)[...] = numpy.arange(24).reshape(4, 6)
    view = numpy.from_dlpack(array.slice(1, 5, 3, -2).slice(0, 1, 2, 2))
    expected = numpy.arange(24).reshape(4, 6)[1::2, 5::-2]
    point = numpy.from_dlpack(umem.zeros((), "float64"))
    empty = numpy.from_dlpack(umem.zeros((0, 3), "float64"))
    return differ(
        values=(view.tolist(), expected.tolist()), strides=(view.strides, (48, -8)), rank_0=(point.shape, ()),
        empty=(empty.shape, (0, 3)),
    )


def numpy_sees_read_only_arrays(umem):
    array = umem.zeros((3,), "int32")
    array.set_read_only()
    found = numpy.from_dlpack(array)
    return differ(writable=(found.flags.writeable, False)) + refuses(BufferError, array.__dlpack__)


def the_memory_lives_as_long_as_its_last_user(umem):
    array = umem.zeros((1000,), "float64")
    found = numpy.from_dlpack(array)
    view = found[10:20]
    del array, found
    gc.collect()
    during = umem.used()
    view[...] = 1
    del view
    gc.collect()
    return differ(during=(during >= 8000, True), after=(umem.used(), 0))


def a_capsule_that_nobody_takes_is_ended(umem):
    for version in (None, (1, 1)):
        umem.zeros((1000,), "float64").__dlpack__(max_version=version)
    gc.collect()
    return differ(used=(umem.used(), 0))


def numpy_gets_a_copy_if_it_asks(umem):
    array = umem.zeros((5,), "int32")
    copied = numpy.from_dlpack(array, copy=True)
    copied[0] = 1
    return differ(other=(address(copied) != array.address, True), value=(numpy.from_dlpack(array)[0], 0))


def umem_uses_the_memory_of_numpy(umem):
    problems = []
    whole = numpy.arange(24.0).reshape(4, 6)
    for name, array in {
        "whole": whole, "columns": whole[:, ::2], "backwards": whole[::-1], "transposed": whole.T,
        "point": numpy.array(3.0), "empty": numpy.zeros((0, 3)),
    }.items():
        for version in (None, (1, 1)):
            taken = umem.take(array.__dlpack__(max_version=version))
            back = numpy.from_dlpack(taken)
            problems += differ(
                **{f"{name} values": (back.tolist(), array.tolist()), f"{name} shape": (taken.shape, array.shape)}
            )
            if array.size:
                problems += differ(**{f"{name} address": (taken.address, address(array))})
            if array.size > 1:
                problems += differ(**{f"{name} strides": (taken.strides, array.strides)})
    return problems


def umem_keeps_arrays_of_numpy_alive(umem):
    array = numpy.arange(1000.0)
    count = sys.getrefcount(array)
    taken = umem.take(array.__dlpack__(max_version=(1, 1)))
    view = taken.slice(0, 10, 5, 1)
    del taken
    during = sys.getrefcount(array)
    del view
    return differ(during=(during, count + 1), after=(sys.getrefcount(array), count))


def umem_does_not_write_to_read_only_arrays(umem):
    array = numpy.arange(3)
    array.flags.writeable = False
    taken = umem.take(array.__dlpack__(max_version=(1, 1)))
    return differ(read_only=(taken.is_read_only, True))


def umem_leaves_tensors_that_it_refuses(umem):
    array = numpy.zeros((1,) * 33)  # one dimension too many
    count = sys.getrefcount(array)
    capsule = array.__dlpack__(max_version=(1, 1))
    problems = refuses(BufferError, umem.take, capsule)
    problems += differ(name=(capsules.is_valid(capsule, capsules.VERSIONED), 1))
    del capsule
    return problems + differ(references=(sys.getrefcount(array), count))


# ---- PyTorch ----

def torch_uses_the_memory_of_umem(umem, torch):
    array = umem.zeros((4, 6), "float32")
    found = torch.from_dlpack(array.slice(1, 0, 3, 2))
    found[1, 2] = 5
    seen = numpy.from_dlpack(array)[1, 4]
    problems = differ(address=(found.data_ptr(), array.address), stride=(found.stride(), (6, 2)), value=(seen, 5))
    del found, array
    gc.collect()
    return problems + differ(used=(umem.used(), 0))


def umem_uses_the_memory_of_torch(umem, torch):
    tensor = torch.arange(12, dtype=torch.int64).reshape(3, 4).T
    problems = []
    for make in (tensor.__dlpack__, lambda: torch.utils.dlpack.to_dlpack(tensor)):
        taken = umem.take(make())
        problems += differ(
            address=(taken.address, tensor.data_ptr()), shape=(taken.shape, (4, 3)), strides=(taken.strides, (8, 32)),
            dtype=(taken.dtype, "int64"), values=(numpy.from_dlpack(taken).tolist(), tensor.tolist()),
        )
    half = umem.take(torch.zeros(3, dtype=torch.bfloat16).__dlpack__())
    return problems + differ(bfloat16=(half.dtype, "bfloat16"))


# ---- JAX ----

def jax_uses_the_memory_of_umem(umem, jax):
    array = umem.zeros((4, 6), "float32")
    numpy.from_dlpack(array)[...] = numpy.arange(24).reshape(4, 6)
    found = jax.dlpack.from_dlpack(array)
    problems = differ(
        address=(found.unsafe_buffer_pointer(), array.address),
        values=(found.tolist(), numpy.arange(24).reshape(4, 6).tolist()),
    )
    del found, array
    gc.collect()
    return problems + differ(used=(umem.used(), 0))


def umem_uses_the_memory_of_jax(umem, jax):
    array = jax.numpy.arange(12, dtype="int32").reshape(3, 4)
    taken = umem.take(array.__dlpack__())
    return differ(
        address=(taken.address, array.unsafe_buffer_pointer()), shape=(taken.shape, (3, 4)),
        values=(numpy.from_dlpack(taken).tolist(), array.tolist()),
    )


# ---- all ----

OF_NUMPY = [
    numpy_uses_the_memory_of_umem, numpy_sees_views, numpy_sees_read_only_arrays,
    the_memory_lives_as_long_as_its_last_user, a_capsule_that_nobody_takes_is_ended, numpy_gets_a_copy_if_it_asks,
    umem_uses_the_memory_of_numpy, umem_keeps_arrays_of_numpy_alive, umem_does_not_write_to_read_only_arrays,
    umem_leaves_tensors_that_it_refuses,
]
OF_OTHERS = {
    "torch": [torch_uses_the_memory_of_umem, umem_uses_the_memory_of_torch],
    "jax": [jax_uses_the_memory_of_umem, umem_uses_the_memory_of_jax],
}


def main():
    umem, report = capsules.Umem(sys.argv[1]), Report()
    for test in OF_NUMPY:
        report.check(test.__name__.replace("_", " "), test(umem))
    for name, tests in OF_OTHERS.items():
        try:
            module = __import__(name)
            __import__(f"{name}.numpy" if name == "jax" else f"{name}.utils.dlpack")
        except ImportError as error:
            print(f"skipped - {name}: {error}")
            continue
        for test in tests:
            report.check(test.__name__.replace("_", " "), test(umem, module))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
