#include "kvikio.h"

#include <stdexcept>

#include <kvikio/defaults.hpp>
#include <kvikio/file_handle.hpp>

namespace kvikio_side {

void set_threads(unsigned threads) { kvikio::defaults::set_thread_pool_nthreads(threads); }

void load(char const *path, std::uintptr_t far, std::size_t size) {
  kvikio::FileHandle file(path, "r");
  if (file.pread(reinterpret_cast<void *>(far), size).get() != size)
    throw std::runtime_error("kvikIO has read fewer bytes");
}

void store(char const *path, std::uintptr_t far, std::size_t size) {
  kvikio::FileHandle file(path, "r+");
  if (file.pwrite(reinterpret_cast<void *>(far), size).get() != size)
    throw std::runtime_error("kvikIO has written fewer bytes");
}

} // namespace kvikio_side
