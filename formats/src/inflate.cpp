/* inflate.cpp - compressed bytes and checksums by zlib. A build without zlib refuses what needs
 * it. */
#include "inflate.hpp"
#include "archive.hpp"

#include <algorithm>
#include <array>
#include <new>

#if defined(UMEM_WITH_ZLIB)
#include <zlib.h>

namespace umem_formats {

void need_zlib() {}

std::uint32_t checksum_of(std::uint32_t before, void const *bytes, std::size_t nbytes) {
  return static_cast<std::uint32_t>(crc32_z(before, static_cast<Bytef const *>(bytes), nbytes));
}

std::uint32_t joined_checksums(std::uint32_t first, std::uint32_t second, std::uint64_t nbytes) {
  return static_cast<std::uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(nbytes)));
}

struct Inflater::State {
  Source const &source;
  Packed const &packed;
  z_stream stream = {};
  std::uint64_t taken = 0;  /* compressed bytes that were read from the source */
  std::uint64_t made = 0;   /* bytes of the array */
  std::uint32_t sum = 0;    /* their checksum */
  bool ended = false;       /* the stream says so */
  std::size_t block = 1024; /* bytes to read next: the header of an array needs few */
  std::array<Bytef, std::size_t(256) << 10> bytes;

  State(Source const &from, Packed const &what) : source(from), packed(what) {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc(); /* no header of zlib */
  }
  State(State const &) = delete;
  State &operator=(State const &) = delete;
  ~State() { inflateEnd(&stream); }

  void fill() {
    auto const count =
        static_cast<std::size_t>(std::min<std::uint64_t>(block, packed.nbytes - taken));
    block = std::min(2 * block, bytes.size());
    source.read(packed.offset + taken, bytes.data(), count);
    taken += count;
    stream.next_in = bytes.data();
    stream.avail_in = static_cast<uInt>(count);
  }

  /* Inflates at most count bytes, and returns how many: 0 at the end. */
  std::size_t step(void *to, std::size_t count) {
    stream.next_out = static_cast<Bytef *>(to);
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(count, 1 << 30));
    uInt const room = stream.avail_out;
    while (!ended && stream.avail_out == room) {
      bool const is_last = taken == packed.nbytes; /* zlib may still have bytes to give */
      if (!stream.avail_in && !is_last) fill();
      int const result = inflate(&stream, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result == Z_BUF_ERROR && is_last) refuse("its compressed bytes end too early");
      if (result != Z_OK && result != Z_STREAM_END)
        refuse("its compressed bytes are damaged: %s", stream.msg ? stream.msg : "they make none");
      ended = result == Z_STREAM_END;
    }
    std::size_t const count_made = room - stream.avail_out;
    sum = checksum_of(sum, to, count_made);
    made += count_made;
    return count_made;
  }
};

Inflater::Inflater(Source const &source, Packed const &packed)
    : state_(std::make_unique<State>(source, packed)) {}

void Inflater::read(void *to, std::size_t count) {
  for (auto *at = static_cast<char *>(to); count > 0;) {
    std::size_t const made = state_->step(at, count);
    if (!made) refuse("its compressed bytes end too early");
    at += made;
    count -= made;
  }
}

void Inflater::finish() {
  Packed const &packed = state_->packed;
  std::array<char, 4096> rest;
  while (state_->step(rest.data(), rest.size()) > 0)
    if (state_->made > packed.size) break;
  if (state_->made != packed.size)
    refuse("its compressed bytes make %s than the %llu bytes that its header says",
           state_->made > packed.size ? "more" : "less",
           static_cast<unsigned long long>(packed.size));
  if (state_->taken != packed.nbytes || state_->stream.avail_in)
    refuse("there are bytes behind its compressed ones");
  if (state_->sum != packed.checksum) refuse("its checksum (CRC-32) is wrong");
}

} // namespace umem_formats

#else

namespace umem_formats {

void need_zlib() {
  fail(umemNotSupportedError, "umem-formats was built without zlib (Debian: zlib1g-dev), which "
                              "compressed arrays and checksums need");
}

std::uint32_t checksum_of(std::uint32_t, void const *, std::size_t) { return need_zlib(), 0; }
std::uint32_t joined_checksums(std::uint32_t, std::uint32_t, std::uint64_t) {
  return need_zlib(), 0;
}

struct Inflater::State {};
Inflater::Inflater(Source const &, Packed const &) { need_zlib(); }
void Inflater::read(void *, std::size_t) {}
void Inflater::finish() {}

} // namespace umem_formats

#endif

namespace umem_formats {
Inflater::~Inflater() = default;
} // namespace umem_formats
