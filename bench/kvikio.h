/* kvikio.h - copies between files and GPUs by kvikIO, where CMake has found it. */
#ifndef UMEM_BENCH_KVIKIO_H
#define UMEM_BENCH_KVIKIO_H

#include <cstddef>
#include <cstdint>

namespace kvikio_side {

/* The number of kvikIO's threads from now on. */
void set_threads(unsigned threads);

/* Opens the file at path each time, as umem's side does. */
void load(char const *path, std::uintptr_t far, std::size_t size);
void store(char const *path, std::uintptr_t far, std::size_t size);

} // namespace kvikio_side

#endif
