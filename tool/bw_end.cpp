/* bw_end.cpp - the ends of the copies that umem bw measures. */
#include "archive.hpp"
#include "bw.hpp"
#include "failure.hpp"
#include "name.hpp"
#include "place.hpp"

#include <cerrno>
#include <cstring>
#include <umem.h>
#include <unistd.h>

namespace umem::tool {

/* ---- names ---- */

static void check_new(std::string const &path) {
  if (access(path.c_str(), F_OK) == 0)
    throw Failure("umem bw writes only files that it makes, and " + path + " exists");
}

/* Makes a place of a new file of the place, and returns its path. A folder gets a file. */
static std::string name_file(Name &name) {
  static unsigned count = 0;
  std::string path = decoded(name.place);
  if (is_folder(path))
    path += "/umem-bw-" + std::to_string(getpid()) + '-' + std::to_string(count++);
  check_new(path);
  name.place = encoded(path);
  if (!name.option("mode")) name.options.emplace_back(name.storage() + ".mode", "w+");
  return path;
}

static void check_segment(Name const &name) {
  if (!name.place.empty())
    throw Failure("umem bw writes only segments that it makes: name it shm:");
}

/* ---- RAM ---- */

static bool is_file_in_ram(Name const &name) {
  if (name.place.empty()) return is_in_ram(scratch_folder());
  std::string const path = decoded(name.place);
  if (is_folder(path)) return is_in_ram(path);
  std::size_t const slash = path.find_last_of('/');
  return is_in_ram(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

std::uint64_t ram_of(std::string const &name, std::uint64_t nbytes) {
  std::optional<Name> const parts = parse_name(name);
  if (!parts) return 0;
  std::string const &storage = parts->storage();
  bool const takes = storage == "host" || storage == "shm" || storage == "cuda-host" ||
                     storage == "cuda-managed" ||
                     ((storage == "file" || storage == "mmap") && is_file_in_ram(*parts));
  return takes ? nbytes : 0;
}

/* ---- blocks ---- */

BwEnd::BwEnd(std::string const &name, std::uint64_t nbytes, unsigned blocks)
    : nbytes_(static_cast<std::size_t>(nbytes)) {
  std::string opened = name, path;
  if (std::optional<Name> parts = parse_name(name)) {
    for (std::string const &log : parts->paths_of_layers()) check_new(log);
    if (parts->is_file()) path = name_file(*parts);
    if (parts->storage() == "shm") {
      check_segment(*parts);
      parts->size_segment(nbytes, blocks);
    }
    opened = parts->text();
  }
  blocks_.reserve(blocks);
  ctx_ = umem_open(opened.c_str());
  if (!ctx_) throw Failure(reason());
  /* It lives as long as it is open, and stays nowhere. */
  if (!path.empty() && unlink(path.c_str()) != 0) {
    std::string const why = std::strerror(errno);
    umem_close(ctx_);
    throw Failure("cannot remove the name of " + path + ": " + why);
  }
}

BwEnd::~BwEnd() {
  for (std::uintptr_t const block : blocks_) umem_free(ctx_, block);
  umem_close(ctx_);
}

std::uintptr_t BwEnd::add_block() {
  std::uintptr_t const block = umem_alloc(ctx_, nbytes_);
  if (block == umem_null(ctx_)) throw Failure(reason());
  blocks_.push_back(block);
  return block;
}

} // namespace umem::tool
