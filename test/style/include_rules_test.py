#!/usr/bin/env python3
"""Shows that include_rules.py fails: in a small good tree each rule is broken in turn."""
import sys
import tempfile
from pathlib import Path

import include_rules
from report import Report

ROWS = ["| room | what it holds | may include headers of |", "|---|---|---|"] + [
    f"| `{room}` | files | {', '.join(f'`{other}`' for other in sorted(others))} |"
    for room, others in include_rules.ENTERS.items()
]

GOOD = {
    "CONTRIBUTING.md": "\n".join(["# Rooms", "", *ROWS, "", "The end."]),
    "c/include/umem.h": "#include <umem/base.h>\n#include <umem/disk.h>\n#include <umem/host.h>\n",
    "c/include/umem/base.h": "#include <umem/context.h>\n#include <umem/status.h>\n"
                             "typedef enum { umemNoDevice, umemHostDevice } umemDeviceType;\n",
    "c/include/umem/context.h": "#include <stdint.h>\n/* not a cudaStream_t */\nint umem_null(void);\n",
    "c/include/umem/status.h": "#include <stdint.h>\n",
    "c/include/umem/disk.h": "#include <umem/base.h>\ntypedef struct { int x; } umemDisk;\n",
    "c/include/umem/host.h": "#include <umem/base.h>\ntypedef struct { int x; } umemHost;\n",
    "c/src/base/lock.h": "#include <pthread.h>\n#include <umem/status.h>\n",
    "c/src/core/core.h": '#include <umem/base.h>\n#include "base/lock.h"\n',
    "c/src/core/copy.c": '#include "core/core.h"\n#include <pthread.h>\n#include <sys/disk.h>\n',
    "c/src/cuda/cuda_rt.c": "#include <cuda_runtime_api.h>\nint f(void) { return cudaFree(0); }\n",
    "c/src/cuda/cuda_driver.c": "#include <dlfcn.h>\nvoid *f(void *p) { return dlsym(p, \"cuFileRead\"); }\n",
    "c/src/pool/pool_chunk.h": '#include "core/core.h"\n#include "pool/pool_span.h"\n',
    "c/src/pool/pool_span.c": '#include "pool/pool_span.h"\n',
    "c/src/pool/pool_span.h": '#include "core/core.h"\n',
    "c/src/stores/disk.c": '#include "core/core.h"\n#include "stores/store.h"\n#include <umem/disk.h>\n'
                           "#include <umem/host.h>\nstruct umemVtbl const disk_vtbl = {UMEM_STORE_METHODS};\n",
    "c/src/stores/store.h": '#include "stores/store_open.h"\n#define UMEM_STORE_METHODS .alloc = f\n',
    "c/src/stores/store_open.h": '#include "core/core.h"\n#include <umem/disk.h>\n',
    "c/src/stores/disk_table.h": '#include "core/core.h"\n',
    "c/src/stores/host.c": '#include "core/core.h"\nint f(int t) { return t = umemHostDevice; }\n'
                         'int g(int error) { return error == umemInvalidDevice; }\n',
    "cxx/include/umem.hpp": "#include <umem.h>\n#include <umem/array.hpp>\n",
    "cxx/include/umem/array.hpp": "#include <umem/disk.h>\n#include <umem/detail/loop.hpp>\n"
                                  "#include <vector>\n/* a cudaStream_t */\n",
    "cxx/include/umem/mdspan.hpp": "#if __has_include(<cuda/std/mdspan>) && (defined(A) || defined(B))\n"
                                   "#include <cuda/std/mdspan>\n#endif\n"
                                   "#ifdef UMEM_NVTX\n#include <nvtx3/nvToolsExt.h>\n#endif\n",
    "cxx/include/umem/with/eigen.hpp": "#include <umem/array.hpp>\n#include <Eigen/Core>\ncudaStream_t stream;\n",
    "cxx/include/umem/detail/kernel.cuh": "#include <cub/cub.cuh>\n#include <cuda_runtime.h>\n"
                                          "#include <umem/array.hpp>\nvoid f(cudaStream_t stream);\n",
    "cxx/include/umem/detail/loop.hpp": "#ifndef LOOP\n#define LOOP\n"
                                        "#if defined(__CUDACC__) && X > 1\n"
                                        "#include <umem/detail/kernel.cuh>\n#endif\n"
                                        "#if !defined(__CUDACC__)\n#include <thread>\n"
                                        "#else\n#include <umem/detail/kernel.cuh>\n#endif\n"
                                        "#ifdef __CUDACC__\n#include <cuda_runtime.h>\n#endif\n#endif\n",
    "test/contract/copy.c": '#include "../backends.h"\n/* on a umemDisk, too */\n',
    "test/cxx/kernel.cu": "#include <umem/detail/kernel.cuh>\n",
}

KERNEL = "#include <umem/detail/kernel.cuh>\n"

# (the rule, the file that breaks it, its contents)
BAD = [
    ("the_tree_is_there", "test/contract/copy.c", None),
    ("public_headers_include_the_base", "c/include/umem/disk.h",
     "#include <umem/context.h>\ntypedef struct { int x; } umemDisk;\n"),
    ("public_headers_include_the_base", "c/include/umem/disk.h",
     "#include <umem/base.h>\n#include <umem/host.h>\ntypedef struct { int x; } umemDisk;\n"),
    ("public_headers_include_the_base", "c/include/umem/context.h", "#include <stdio.h>\n"),
    ("public_headers_include_the_base", "c/include/umem/context.h", "#include <umem/disk.h>\n"),
    ("public_headers_are_reachable", "c/include/umem/extra.h", "#include <umem/base.h>\n"),
    ("public_headers_are_plain", "c/include/umem/context.h", "typedef cudaStream_t umemStream;\n"),
    ("public_headers_are_plain", "c/include/umem/context.h", "#ifdef HAVE_CUDA\n#endif\n"),
    ("public_headers_are_plain", "c/include/umem/context.h", "extern _Atomic int n;\n"),
    ("public_headers_are_plain", "c/include/umem/context.h", "extern pthread_mutex_t m;\n"),
    ("public_headers_are_plain", "c/include/umem/context.h", "extern MPI_Comm c;\n"),
    ("nothing_decides_by_kind", "c/src/core/copy.c",
     "int f(int t) { switch (t) { case umemHostDevice: return 1; } return 0; }\n"),
    ("nothing_decides_by_kind", "c/src/core/copy.c", "int f(int t) { return t == umemHostDevice; }\n"),
    ("nothing_decides_by_kind", "c/src/core/copy.c", "int f(int t) { return umemNoDevice != t; }\n"),
    ("sources_include_their_own", "c/src/core/copy.c", "#include <umem/host.h>\n"),
    ("sources_include_their_own", "c/src/core/copy.c", "#include <umem.h>\n"),
    ("sources_include_their_own", "c/src/core/core.h", '#include "stores/disk_table.h"\n'),
    ("sources_include_their_own", "c/src/stores/host.c", "#include <umem/disk.h>\n"),
    ("sources_include_their_own", "c/src/stores/host.c", '#include "stores/disk_table.h"\n'),
    ("sources_include_their_own", "c/src/stores/host.c", '#include "stores/store.h"\n/* UMEM_STORE_METHODS */\n'),
    ("sources_include_their_own", "c/src/stores/store_open.h", "#include <umem/host_nodes.h>\n"),
    ("sources_include_their_own", "c/src/stores/disk.c", '#include "stores/store.h"\n#include <umem/disk.h>\n'),
    ("sources_include_their_own", "c/src/core/copy.c", '#include "stores/other.h"\n'),
    ("sources_include_their_own", "c/src/cuda/cuda_rt.c", '#include "stores/other.h"\n'),
    ("sources_include_their_own", "c/src/base/lock.h", "#include <umem/context.h>\n"),
    ("sources_include_their_own", "c/src/base/lock.h", '#include "core/core.h"\n'),
    ("sources_stand_in_rooms", "c/src/plain.c", "int f(void);\n"),
    ("sources_stand_in_rooms", "c/src/attic/plain.c", "int f(void);\n"),
    ("layers_have_no_circle", "c/src/pool/pool_span.h", '#include "pool/pool_chunk.h"\n'),
    ("layers_have_no_circle", "c/src/pool/pool_span.c", '#include "pool/pool_chunk.h"\n'),
    ("cuda_is_called_through_the_table", "c/src/core/copy.c", "#include <cuda_runtime_api.h>\n"),
    ("cuda_is_called_through_the_table", "c/src/stores/host.c", "#include <cuda.h>\n"),
    ("cuda_is_called_through_the_table", "c/src/stores/host.c", "int f(void) { return cudaFree(0); }\n"),
    ("cuda_is_called_through_the_table", "c/src/stores/host.c", "int f(void) { return cuInit(0); }\n"),
    ("cuda_is_called_through_the_table", "c/src/core/copy.c", "static cudaStream_t stream;\n"),
    ("cuda_is_called_through_the_table", "c/src/core/copy.c", "static CUcontext context;\n"),
    ("cuda_is_called_through_the_table", "c/src/core/copy.c",
     "void *f(void *p) { return dlsym(p, \"cudaFree\"); }\n"),
    ("cuda_is_called_through_the_table", "c/src/cuda/cuda_driver.c", "int f(void) { return cuFileDriverOpen(); }\n"),
    ("cuda_is_called_through_the_table", "c/src/cuda/cuda_driver.c", "#include <cufile.h>\n"),
    ("sources_include_their_own", "c/src/core/copy.c", "#include <umem/array.hpp>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <umem/absent.hpp>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <umem.hpp>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", '#include "detail/loop.hpp"\n'),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", '#include "core/core.h"\n'),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <core/core.h>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <gtest/gtest.h>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <unistd.h>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <cuda_runtime.h>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/mdspan.hpp", "#include <cuda/std/mdspan>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <Eigen/Core>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp", "#include <umem/with/eigen.hpp>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/with/eigen.hpp", "#include <umem.hpp>\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/with/eigen.hpp", '#include "Eigen/Core"\n'),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/array.hpp",
     "#ifndef UMEM_NVTX\n#include <nvtx3/nvToolsExt.h>\n#endif\n"),
    ("cxx_headers_include_what_is_public", "cxx/include/umem/detail/kernel.cuh", '#include "../fake.h"\n'),
    ("cuh_is_for_nvcc", "cxx/include/umem/detail/loop.hpp", KERNEL),
    ("cuh_is_for_nvcc", "cxx/include/umem/detail/loop.hpp",
     f"#if defined(__CUDACC__)\n#else\n{KERNEL}#endif\n"),
    ("cuh_is_for_nvcc", "cxx/include/umem/detail/loop.hpp",
     f"#if defined(__CUDACC__)\n#elif defined(X)\n{KERNEL}#endif\n"),
    ("cuh_is_for_nvcc", "cxx/include/umem/detail/loop.hpp",
     f"#if defined(__CUDACC__) || defined(X)\n{KERNEL}#endif\n"),
    ("cuh_is_for_nvcc", "cxx/include/umem/detail/loop.hpp",
     f"#if defined(__CUDACC__)\n#endif\n{KERNEL}"),
    ("cuh_is_for_nvcc", "test/cxx/array.cpp", KERNEL),
    ("cuh_is_for_nvcc", "examples/cxx/array.hpp", '#include "kernel.cuh"\n'),
    ("cxx_headers_name_no_cuda", "cxx/include/umem/array.hpp", "void f(cudaStream_t stream);\n"),
    ("cxx_headers_name_no_cuda", "cxx/include/umem/array.hpp", "int f() { return cuInit(0); }\n"),
    ("contract_names_no_context", "test/contract/copy.c", "static umemDisk disk;\n"),
    ("contract_names_no_context", "test/contract/copy.c", "void f(void *p) { umemDisk_ctor(p); }\n"),
    ("contract_names_no_context", "test/contract/copy.c", "#include <umem/disk.h>\n"),
    ("contributing_shows_the_rooms", "CONTRIBUTING.md", None),
    ("contributing_shows_the_rooms", "CONTRIBUTING.md", "\n".join(["# Rooms", "", *ROWS[:-1], ""])),
    ("contributing_shows_the_rooms", "CONTRIBUTING.md",
     "\n".join(["# Rooms", "", *ROWS, "| `cellar` | wine | `base` |", ""])),
    ("contributing_shows_the_rooms", "CONTRIBUTING.md",
     "\n".join(["# Rooms", "", *ROWS, ""]).replace("`base`, `core`", "`base`")),
]


def broken_rules(files):
    """The names of the rules that a tree of these files breaks."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(text)
        tree = include_rules.Tree(Path(folder))
        return {rule.__name__ for rule in include_rules.RULES if rule(tree)}


def main():
    report = Report()
    report.check("the good tree passes", sorted(broken_rules(GOOD)))
    for rule, name, text in BAD:
        broken = broken_rules({**GOOD, name: text})
        first = (text or "nothing").splitlines()[0]
        report.check(f"{rule.replace('_', ' ')}: fails for {name} with {first!r}",
                     [] if broken == {rule} else [f"broken are {sorted(broken)}"])
    untested = {rule.__name__ for rule in include_rules.RULES} - {rule for rule, _, _ in BAD}
    report.check("every rule was broken", sorted(untested))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
