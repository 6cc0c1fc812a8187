/* archive.hpp - what the parts of the component share.
 *
 *   archive.cpp      the functions of umem/formats.h
 *   safetensors.cpp  that format: headers, indices of sets, new files
 *   json.cpp         JSON */
#ifndef UMEM_FORMATS_ARCHIVE_HPP
#define UMEM_FORMATS_ARCHIVE_HPP

#include <umem/file.h>
#include <umem/formats.h>
#include <umem/host.h>
#include <umem/mmap.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace umem_formats {

/* ---- failures ---- */

/* Thrown for what umem has not recorded yet. */
struct Failure {
  umemStatusType type;
  std::string text;
};

/* Thrown for what umem has recorded. */
struct Recorded {
  umemStatusType type;
};

[[noreturn]] void fail(umemStatusType type, char const *format, ...) UMEM_PRINTF(2, 3);

/* fail with umemValueError. */
[[noreturn]] void refuse(char const *format, ...) UMEM_PRINTF(1, 2);

/* Throws Recorded unless a call of umem has returned umemOK. */
inline void check(umemStatusType status) {
  if (status != umemOK) throw Recorded{status};
}

/* ---- bytes ---- */

/* RAM of this process, for the time of a call. */
class Host {
public:
  Host() { umemHost_ctor(&host_); }
  Host(Host const &) = delete;
  Host &operator=(Host const &) = delete;
  ~Host() { umem_dtor(&host_); }
  umemHost *get() { return &host_; }

private:
  umemHost host_ = {};
};

/* Where the bytes of one file are. */
class Source {
public:
  /* Maps a file, and unmaps it at the end. */
  explicit Source(std::string file);
  /* Borrows the context. */
  Source(void *context, std::uintptr_t adr, std::uint64_t length)
      : ctx(context), begin(adr), size(length) {}
  Source(Source const &) = delete;
  Source &operator=(Source const &) = delete;
  ~Source() {
    if (ctx == &map_) umem_dtor(&map_);
  }

  /* Copies count bytes at offset, which the file has, to to. */
  void read(std::uint64_t offset, void *to, std::size_t count) const;

  std::string path; /* "": borrowed */
  void *ctx;
  std::uintptr_t begin; /* of the first byte, on ctx */
  std::uint64_t size;   /* bytes */

private:
  umemMMap map_ = {};
};

/* ---- arrays in a file ---- */

using Shape = std::vector<std::int64_t>;

struct Member {
  std::string name;
  Source const *source = nullptr; /* one of the archive */
  umemElementType type = 0;
  Shape shape;              /* in C order without gaps */
  std::uint64_t offset = 0; /* of its first byte in the source */
  std::uint64_t nbytes = 0;
};

using Metadata = std::map<std::string, std::string>;

/* ---- safetensors ---- */

/* Most bytes of a header or an index. */
constexpr std::uint64_t most_header = 100000000;

/* Appends what the header of source describes, in the order of its bytes. Throws a Failure if the
 * file is none of this format. */
void read_safetensors(Source const &source, std::vector<Member> &members, Metadata &metadata);

/* The file that an index names for each array. */
std::map<std::string, std::string> read_index(Source const &index);

/* An array to be written. */
struct NewMember {
  std::string name;
  umemArray *array = nullptr; /* borrowed */
  std::uint64_t offset = 0;   /* of its first byte in the file */
};

/* The bytes of a new file before its elements. Puts members in the order of their elements. */
std::string make_safetensors(std::vector<NewMember> &members, Metadata const &metadata);

} // namespace umem_formats

struct umemArchive {
  std::atomic<std::size_t> users{1};
  std::deque<umem_formats::Source> sources; /* a deque never moves them */
  std::vector<umem_formats::Member> members;
  std::unordered_map<std::string_view, std::size_t> numbers; /* of members, by their names */
  umem_formats::Metadata metadata;
};

#endif
