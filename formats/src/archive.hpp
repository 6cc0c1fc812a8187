/* archive.hpp - what the parts of the component share.
 *
 *   archive.cpp      the functions of umem/formats.h
 *   elements.cpp     copies between arrays and files, with progress
 *   safetensors.cpp  that format: headers, indices of sets, new files
 *   npz.cpp          NumPy's: directories of zip files, headers of arrays, new files
 *   inflate.cpp      compressed bytes and checksums, by zlib
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
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

/* Calls a function of umem that has a status. */
template <class Function, class... Arguments>
auto call(Function *function, Arguments... arguments) {
  umemStatusType status = umemOK;
  if constexpr (std::is_void_v<decltype(function(arguments..., &status))>) {
    function(arguments..., &status);
    check(status);
  } else {
    auto result = function(arguments..., &status);
    check(status);
    return result;
  }
}

struct Release {
  void operator()(umemArray *array) const { umemArray_release(array); }
  void operator()(umemArchive *archive) const { umemArchive_release(archive); }
};
using ArrayHandle = std::unique_ptr<umemArray, Release>;
using ArchiveHandle = std::unique_ptr<umemArchive, Release>;

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

  std::string read_text(std::uint64_t offset, std::uint64_t length) const {
    std::string text(length, '\0');
    read(offset, text.data(), length);
    return text;
  }

  std::string path; /* "": borrowed */
  void *ctx;
  std::uintptr_t begin; /* of the first byte, on ctx */
  std::uint64_t size;   /* bytes */

private:
  umemMMap map_ = {};
};

/* ---- arrays in a file ---- */

using Shape = std::vector<std::int64_t>;

/* Bytes of a file that has checksums: the header of an array and its elements. */
struct Packed {
  bool compressed = false;
  std::uint64_t offset = 0; /* in the source */
  std::uint64_t nbytes = 0; /* in the source; those of the array: size */
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;     /* of all size bytes */
  std::uint64_t header_bytes = 0; /* before the elements */
};

struct Member {
  std::string name;
  Source const *source = nullptr; /* one of the archive */
  umemElementType type = 0;
  Shape shape;              /* without gaps, in C order, or */
  std::uint64_t offset = 0; /* of its first byte in the source */
  std::uint64_t nbytes = 0;
  bool fortran_order = false; /* in this one */
  bool big_endian = false;
  std::optional<Packed> packed; /* nothing: the format has no checksums */
  std::string problem;          /* why umem has no array of it; "": it has */

  bool is_compressed() const { return packed && packed->compressed; }
  bool is_used_in_place() const { return !is_compressed() && !big_endian; }
};

using Metadata = std::map<std::string, std::string>;

/* An array to be written. */
struct NewMember {
  std::string name;
  umemArray *array = nullptr; /* borrowed */
  std::uint64_t offset = 0;   /* of its first byte in the file */
  /* Of a format with checksums: */
  std::string header;         /* before this byte */
  std::uint64_t size = 0;     /* bytes of the .npy file, which has a part of the header */
  std::uint32_t checksum = 0; /* of this file; first, of this part */
  bool file_is_big = false;   /* the numbers in the file are big endian */
  bool turned = false;        /* those of the array are not, or they alone are */
};

/* ---- elements ---- */

/* How far a call is. */
class Progress {
public:
  using Function = bool (*)(void *user, std::uint64_t done, std::uint64_t total);

  /* function: NULL for none. step: bytes between two calls, 0: as umem chooses. */
  Progress(Function function, void *user, std::size_t step)
      : function_(function), user_(user), step_(step) {}

  /* So many bytes will be added; each function throws a Failure when the user cancels. */
  void begin(std::uint64_t total);
  void add(std::uint64_t nbytes);

  /* Bytes between two calls that the user wants; 0: as umem chooses. */
  std::size_t step() const { return function_ ? step_ : 0; }

  /* Copies items in one call, and adds their bytes. */
  void copy(std::vector<umemCopyItem> const &items);

private:
  static bool part(void *user, std::uint64_t done, std::uint64_t total);
  [[noreturn]] void cancel() const;

  Function function_;
  void *user_; /* borrowed */
  std::size_t step_;
  std::uint64_t done_ = 0, reported_ = 0, total_ = 0;
};

/* Waits for what is queued on a context. */
void finish(void *ctx);

/* Copies members to arrays of their types and shapes: stored ones without gaps in one call. */
void copy_members(std::vector<Member const *> const &members, umemArray *const *arrays,
                  Progress &progress);

/* Reads all bytes of members that have checksums. Throws a Failure if one is wrong. */
void check_members(std::vector<Member const *> const &members, Progress &progress);

/* Writes the elements of members to a file, whose first byte is at base: turns those that must be,
 * and adds to the checksums, if the format has them. */
void write_elements(umemFile *file, std::uintptr_t base, std::vector<NewMember> &members,
                    bool has_checksums, Progress &progress);

/* ---- safetensors ---- */

/* Most bytes of a header or an index. */
constexpr std::uint64_t most_header = 100000000;

/* Appends what the header of source describes, in the order of its bytes. Throws a Failure if the
 * file is none of this format. */
void read_safetensors(Source const &source, std::vector<Member> &members, Metadata &metadata);

/* The file that an index names for each array. */
std::map<std::string, std::string> read_index(Source const &index);

/* The bytes of a new file before its elements. Puts members in the order of their elements. */
std::string make_safetensors(std::vector<NewMember> &members, Metadata const &metadata);

/* ---- .npz ---- */

/* Whether the file begins as a zip file does, and cannot be of safetensors. */
bool is_npz(Source const &source);

/* Appends the arrays of source in the order of their bytes. Throws a Failure if it is no zip file,
 * or one that contradicts itself; what is wrong with an array is its problem. */
void read_npz(Source const &source, std::vector<Member> &members);

/* Lays a new file out, with members in their order. Returns where its directory will begin. */
std::uint64_t lay_out_npz(std::vector<NewMember> &members);

/* Writes the checksums into the headers of the members, and returns the directory, which begins at
 * this byte. Its length does not depend on the checksums. */
std::string finish_npz(std::vector<NewMember> &members, std::uint64_t begin);

} // namespace umem_formats

struct umemArchive {
  std::atomic<std::size_t> users{1};
  umem_formats::Host ram;                   /* of what umemArchive_get has inflated */
  std::deque<umem_formats::Source> sources; /* a deque never moves them */
  std::vector<umem_formats::Member> members;
  std::unordered_map<std::string_view, std::size_t> numbers; /* of members, by their names */
  umem_formats::Metadata metadata;
};

#endif
