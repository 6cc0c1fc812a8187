/* bw_bytes.cpp - the bytes of a block, and caches that are empty, for umem bw. */
#include "bw.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "place.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <umem.h>
#include <unistd.h>

namespace umem::tool {

/* ---- the pattern ---- */

static constexpr std::size_t chunk_words = std::size_t(1) << 17; /* of a chunk: 1 MiB */

/* Each word has its number in the block, mixed so that all of its bytes change (a multiplication by
 * 2^64 over the golden ratio, as in Knuth's multiplicative hashing). */
static void write_pattern(std::vector<std::uint64_t> &chunk, std::uint64_t first) {
  for (std::size_t i = 0; i < chunk.size(); i++)
    chunk[i] = (first + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

namespace {
/* RAM of the program as a context. */
struct Ram {
  Ram() {
    if (umemHost_ctor(&host) != umemOK) throw Failure(reason());
  }
  ~Ram() { umem_dtor(&host); }
  Ram(Ram const &) = delete;
  Ram &operator=(Ram const &) = delete;
  umemHost host;
};
} // namespace

static std::uintptr_t address(std::vector<std::uint64_t> const &chunk) {
  return reinterpret_cast<std::uintptr_t>(chunk.data());
}

void fill_pattern(void *ctx, std::uintptr_t adr, std::uint64_t nbytes) {
  Ram ram;
  std::vector<std::uint64_t> chunk(chunk_words);
  for (std::uint64_t done = 0; done < nbytes; done += 8 * chunk_words) {
    Interrupt::check();
    write_pattern(chunk, done / 8);
    auto const part =
        static_cast<std::size_t>(std::min<std::uint64_t>(8 * chunk_words, nbytes - done));
    if (umem_copy_to(&ram.host, address(chunk), ctx, adr + static_cast<std::uintptr_t>(done),
                     part) != umemOK ||
        umem_synchronize(ctx) != umemOK)
      throw Failure(reason());
  }
}

std::optional<std::uint64_t> wrong_byte(void *ctx, std::uintptr_t adr, std::uint64_t nbytes) {
  Ram ram;
  std::vector<std::uint64_t> expected(chunk_words), found(chunk_words);
  for (std::uint64_t done = 0; done < nbytes; done += 8 * chunk_words) {
    Interrupt::check();
    write_pattern(expected, done / 8);
    auto const part =
        static_cast<std::size_t>(std::min<std::uint64_t>(8 * chunk_words, nbytes - done));
    if (umem_copy_to(ctx, adr + static_cast<std::uintptr_t>(done), &ram.host, address(found),
                     part) != umemOK ||
        umem_synchronize(ctx) != umemOK)
      throw Failure(reason());
    if (std::memcmp(expected.data(), found.data(), part) == 0) continue;
    auto const *one = reinterpret_cast<unsigned char const *>(expected.data());
    auto const *other = reinterpret_cast<unsigned char const *>(found.data());
    return done + static_cast<std::uint64_t>(std::mismatch(one, one + part, other).first - one);
  }
  return {};
}

/* ---- caches ---- */

/* A little more than the last cache of the CPU. */
std::size_t ColdCaches::room() {
  long const cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  auto const nbytes = static_cast<std::size_t>(cache > 0 ? cache : 64L << 20);
  return nbytes + nbytes / 4;
}

/* Other files than those of the measurement lose their cached pages, too; they are read again. */
static void drop_pages_of_open_files() {
  std::unique_ptr<DIR, int (*)(DIR *)> const folder(opendir("/proc/self/fd"), closedir);
  if (!folder) return;
  while (dirent const *entry = readdir(folder.get())) {
    int const descriptor = std::atoi(entry->d_name);
    struct stat status = {};
    if (entry->d_name[0] == '.' || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    fdatasync(descriptor); /* only written pages can go */
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  }
}

void ColdCaches::empty() {
  drop_pages_of_open_files();
  for (std::size_t i = 0; i < bytes_.size(); i += 64) bytes_[i]++;
}

} // namespace umem::tool
