/* cp_end.cpp - the two ends of umem cp. */
#include "archive.hpp"
#include "cp.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "place.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace umem::tool {

[[noreturn]] static void fail_with_status() {
  Interrupt::check(); /* which may be why */
  throw Failure(reason());
}

/* ---- sizes and ranges ---- */

/* Where the size ends that begins at this place: digits, and perhaps K, M, G or T. The same place
 * if there is none. */
static std::size_t end_of_size(std::string const &text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') end++;
  bool const has_unit = end < text.size() && std::strchr("KMGT", text[end]);
  return end == begin ? begin : end + has_unit;
}

std::uint64_t parse_size(std::string const &text) {
  if (text.empty() || end_of_size(text, 0) != text.size())
    throw Failure("not a size: " + text, misuse);
  std::size_t const unit = std::string("KMGT").find(text.back());
  unsigned const shift = unit == std::string::npos ? 0 : 10 * (1 + static_cast<unsigned>(unit));
  std::uint64_t value = 0, digit = 0;
  std::uint64_t const most = std::numeric_limits<std::uint64_t>::max() >> shift;
  for (char const c : text.substr(0, text.size() - (shift != 0))) {
    digit = static_cast<std::uint64_t>(c - '0');
    if (value > (most - digit) / 10) throw Failure("too large: " + text, misuse);
    value = value * 10 + digit;
  }
  return value << shift;
}

Range parse_range(std::string const &text) {
  std::size_t const at = text.rfind('@');
  if (at == std::string::npos) return {text, 0, {}};
  std::size_t const end = end_of_size(text, at + 1);
  bool const has_length = end < text.size() && text[end] == ',';
  std::size_t const last = has_length ? end_of_size(text, end + 1) : end;
  if (end == at + 1 || last != text.size() || (has_length && last == end + 1)) return {text, 0, {}};
  Range range = {text.substr(0, at), parse_size(text.substr(at + 1, end - at - 1)), {}};
  if (has_length) range.length = parse_size(text.substr(end + 1));
  if (range.length && *range.length > std::numeric_limits<std::uint64_t>::max() - range.offset)
    throw Failure("too large: " + text, misuse);
  return range;
}

/* The name of what is a name or the path of a file. */
static Name name_of(std::string const &word) {
  if (word.empty()) throw Failure("an empty name", misuse);
  if (word == "-")
    throw Failure("bytes of the standard input or output are not copied: for a file of this name "
                  "write ./-",
                  misuse);
  std::optional<Name> const name = parse_name(word);
  if (!name) return {{"file"}, encoded(word), {}};
  std::string const unknown = name->unknown_layer();
  if (!unknown.empty())
    throw Failure("there is no scheme " + unknown + ": for a file write ./" + word);
  return *name;
}

/* ---- any context ---- */

/* Whether the bytes are in a file, with or without a name. */
static bool takes_files(Name const &name) {
  return name.storage() == "file" || name.storage() == "mmap";
}

/* Adds what --direct asks of files. */
static void add_direct(Name &name, bool direct) {
  if (direct && takes_files(name)) name.options.emplace_back(name.storage() + ".direct", "on");
}

struct Opened : End {
  explicit Opened(Name const &name) {
    ctx = umem_open(name.text().c_str());
    if (!ctx) fail_with_status();
    is_file = takes_files(name);
  }
  ~Opened() override {
    if (owns_block) umem_free(ctx, block);
    umem_close(ctx);
  }

  void take(std::uintptr_t address) {
    if (address == umem_null(ctx)) fail_with_status();
    adr = block = address;
    owns_block = true;
  }

  std::uintptr_t block = 0;
  bool owns_block = false;
};

/* ---- the source ---- */

static bool ends_with(std::string const &path, std::string const &end) {
  return path.size() >= end.size() && path.compare(path.size() - end.size(), end.npos, end) == 0;
}

/* A file as it is. */
struct WholeFile : Opened {
  using Opened::Opened;
  std::string npy_header() const override {
    if (!ends_with(path, ".npz") && !ends_with(path, ".safetensors")) return {};
    throw Failure(path + " has several arrays, and a .npy file one: copy " + path + "#NAME",
                  misuse);
  }
  std::string path;
};

/* The length that the range asks for, of what holds size bytes. */
static std::uint64_t length_in(Range const &range, std::uint64_t size) {
  std::uint64_t const end = range.length ? range.offset + *range.length : size;
  if (range.offset <= end && end <= size) return end - range.offset;
  throw Failure(shown(range.name) + " holds " + std::to_string(size) +
                " bytes: there is no range from " + std::to_string(range.offset) +
                (range.length ? " of " + std::to_string(*range.length) : ""));
}

static std::unique_ptr<End> open_file(Name name, Range const &range, bool direct) {
  std::string const mode = name.option("mode").value_or("r");
  if (mode != "r") throw Failure("a source is only read: mode=" + mode + " is not allowed", misuse);
  if (!name.option("mode")) name.options.emplace_back(name.storage() + ".mode", "r");
  add_direct(name, direct);
  auto file = std::make_unique<WholeFile>(name);
  file->path = decoded(name.place);
  umemInfo info = UMEM_INFO_INIT;
  if (umem_get_info(file->ctx, &info) != umemOK) fail_with_status();
  file->nbytes = length_in(range, info.capacity);
  if (!file->nbytes) return file;
  file->take(umem_alloc(file->ctx, static_cast<std::size_t>(range.offset + file->nbytes)));
  file->adr += static_cast<std::uintptr_t>(range.offset);
  return file;
}

static umemShm *shm_of(Opened const &segment) {
  auto *const shm = static_cast<umemShm *>(umem_find_layer(segment.ctx, "shm"));
  if (!shm) fail_with_status();
  return shm;
}

/* An object of a web server. */
static std::unique_ptr<End> open_url(Name const &name, Range const &range) {
  auto object = std::make_unique<WholeFile>(name);
  object->path = name.place;
  umemInfo info = UMEM_INFO_INIT;
  if (umem_get_info(object->ctx, &info) != umemOK) fail_with_status();
  object->nbytes = length_in(range, info.capacity);
  object->adr = static_cast<std::uintptr_t>(range.offset);
  return object;
}

/* A segment with one array in it. */
static std::unique_ptr<End> open_segment(Name name, Range const &range) {
  if (!name.option("how")) name.options.emplace_back("shm.how", "open");
  auto segment = std::make_unique<Opened>(name);
  umemShm *const shm = shm_of(*segment);
  umemShmBlock block = {};
  std::size_t const count = umemShm_blocks(shm, &block, 1);
  if (count != 1)
    throw Failure(range.name + " holds " + std::to_string(count) + " blocks, but one is copied");
  if (!umemShm_is_complete(shm, block.address))
    throw Failure(range.name + " holds an incomplete block: process " + std::to_string(block.pid) +
                  (block.dead ? " has ended before it had written all" : " is still writing it"));
  segment->nbytes = length_in(range, block.nbytes);
  segment->adr = block.address + static_cast<std::uintptr_t>(range.offset);
  return segment;
}

/* An array of a file of named arrays, or a part of its bytes. */
struct ArrayEnd : End {
  ArrayEnd(ArrayName const &name, std::optional<Range> const &part, bool direct) : array_(name) {
    is_array = true;
    is_packed = array_.compressed;
    is_turned = array_.big_endian;
    is_part_ = part.has_value();
    if (is_packed && (is_part_ || direct))
      throw Failure(name.name +
                        " is compressed, or big endian: there is no part of it, and no --direct",
                    misuse);
    nbytes = array_.nbytes;
    if (is_packed) return;
    Range range = {array_.file, 0, nbytes};
    if (part)
      range = {array_.file, part->offset,
               length_in({name.path + '#' + name.name, part->offset, part->length}, nbytes)};
    range.offset += array_.offset;
    file_ = open_file({{"file"}, encoded(array_.file), {}}, range, direct);
    ctx = file_->ctx;
    adr = file_->adr;
    nbytes = file_->nbytes;
    is_file = true;
  }
  void unpack(End const &dst, bool (*go_on)(void *, std::uint64_t, std::uint64_t), void *user,
              std::size_t step) const override {
    array_.load(dst.ctx, dst.adr, go_on, user, step);
  }
  std::string npy_header() const override {
    if (is_part_) throw Failure("a part of an array makes no .npy file", misuse);
    return array_.npy_header();
  }

private:
  FileArray array_;
  bool is_part_ = false;
  std::unique_ptr<End> file_; /* that has it stored */
};

void End::unpack(End const &, bool (*)(void *, std::uint64_t, std::uint64_t), void *,
                 std::size_t) const {}

/* An array of this name, or of the name before a range. */
static std::unique_ptr<End> open_array(ArrayName const &name, bool direct) {
  try {
    return std::make_unique<ArrayEnd>(name, std::nullopt, direct);
  } catch (Failure const &) {
    Range const range = parse_range(name.name);
    if (range.name == name.name) throw;
    return std::make_unique<ArrayEnd>(ArrayName{name.path, range.name}, range, direct);
  }
}

static std::unique_ptr<End> open_range(Range const &range, bool direct) {
  Name name = name_of(range.name);
  if (name.is_file()) return open_file(name, range, direct);
  if (name.is_url()) return open_url(name, range);
  if (name.storage() == "shm" && !name.place.empty()) return open_segment(name, range);
  if (std::size_t const at = range.name.find('@'); !range.length && at != std::string::npos)
    throw Failure("not a range: " + range.name.substr(at) +
                      " (@OFFSET,LENGTH in bytes, or with K, M, G or T)",
                  misuse);
  if (!range.length)
    throw Failure(range.name + " holds nothing yet: say how many zeros to copy, as in " +
                      range.name + "@0,1G",
                  misuse);
  add_direct(name, direct);
  if (name.storage() == "shm") name.size_segment(*range.length);
  auto memory = std::make_unique<Opened>(name);
  memory->nbytes = *range.length;
  if (!memory->nbytes) return memory;
  memory->take(umem_calloc(memory->ctx, static_cast<std::size_t>(memory->nbytes), 1));
  return memory;
}

std::unique_ptr<End> open_source(std::string const &word, bool direct) {
  Range const range = parse_range(word);
  bool const is_array = parse_array_name(range.name).has_value(); /* no file with a range behind */
  return is_array ? open_array(*parse_array_name(word), direct) : open_range(range, direct);
}

/* ---- the destination ---- */

/* A new file, which has no name until it is complete. */
struct NewFile : End {
  NewFile(std::string const &path, umemFileOptions const &options) {
    if (umemFile_replace_with(&file, path.c_str(), &options) != umemOK) fail_with_status();
    ctx = &file;
    is_file = true;
  }
  ~NewFile() override { umem_dtor(&file); }
  void finish() override {
    if (umemFile_commit(&file) != umemOK) fail_with_status();
  }

  umemFile file = {};
};

/* Whether there is a segment of this name, as far as the system tells. */
static bool has_segment(std::string const &place) {
  int const descriptor =
      shm_open((place[0] == '/' ? place : '/' + place).c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (descriptor < 0) return errno != ENOENT;
  close(descriptor);
  return true;
}

/* A new block in a segment with a name, which stays when it is complete. Until then it is freed,
 * and a segment that was made for it is removed; if this process is killed, the block stays, and
 * others see that it is incomplete. */
struct NewBlock : End {
  NewBlock(Name name, std::uint64_t size) : place(decoded(name.place)) {
    creates = !has_segment(place) && name.option("how").value_or("create") != "open";
    if (creates) name.size_segment(size);
    if (!name.option("how")) name.options.emplace_back("shm.how", creates ? "create" : "open");
    if (!name.option("incomplete")) name.options.emplace_back("shm.incomplete", "yes");
    segment = std::make_unique<Opened>(name);
    ctx = segment->ctx;
    shm = shm_of(*segment);
  }
  ~NewBlock() override {
    segment.reset();
    if (creates) umemShm_remove(place.c_str());
  }
  void take(std::size_t size) {
    free_what_the_killed_have_left();
    segment->take(umem_alloc(ctx, size));
    adr = segment->adr;
    reserve(size);
  }
  void finish() override {
    if (nbytes && umemShm_complete(shm, adr) != umemOK) fail_with_status();
    segment->owns_block = creates = false;
  }

  std::string place;
  bool creates; /* and has not finished */
  std::unique_ptr<Opened> segment;
  umemShm *shm;

private:
  /* Nobody completes these blocks any more. */
  void free_what_the_killed_have_left() const {
    std::vector<umemShmBlock> blocks(umemShm_blocks(shm, nullptr, 0));
    blocks.resize(std::min(umemShm_blocks(shm, blocks.data(), blocks.size()), blocks.size()));
    for (umemShmBlock const &block : blocks)
      if (block.dead && !umemShm_is_complete(shm, block.address)) umem_free(shm, block.address);
  }

  /* All of it will be written: in a sparse segment a page without memory would raise SIGBUS. */
  void reserve(std::size_t size) const {
    auto const offset = static_cast<off_t>(umemShm_offset(shm, adr));
    while (fallocate(umemShm_descriptor(shm), 0, offset, static_cast<off_t>(size)) != 0)
      if (errno != EINTR)
        throw Failure("shm:" + place + " has no room for " + std::to_string(size) +
                      " bytes: " + std::strerror(errno));
  }
};

static umemFileOptions file_options(Name const &name, bool direct) {
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  for (auto const &[key, value] : name.options) {
    std::string const bare = key.substr(key.find('.') + 1);
    if (bare == "reserve" && (value == "auto" || value == "none"))
      options.reserve = value == "none" ? umemReserveNone : umemReserveAuto;
    else if (bare == "direct" && (value == "auto" || value == "on" || value == "off"))
      options.direct = value == "on"    ? umemDirectOn
                       : value == "off" ? umemDirectOff
                                        : umemDirectAuto;
    else
      throw Failure(
          std::string("a new file has the options reserve=auto,none and direct=auto,on,off, not ")
              .append(key)
              .append(1, '=')
              .append(value),
          misuse);
  }
  if (direct) options.direct = umemDirectOn;
  return options;
}

/* Writes the header of an array to a new file, behind which its elements go. */
static void write_header(End &file, std::string const &header) {
  umemHost host;
  umemHost_ctor(&host);
  bool const failed = umem_copy_to(&host, reinterpret_cast<std::uintptr_t>(header.data()), file.ctx,
                                   file.adr, header.size()) != umemOK;
  umem_dtor(&host);
  if (failed) fail_with_status();
  file.adr += header.size();
}

static std::unique_ptr<End> make_file(Name const &name, End const &src, bool direct) {
  std::string const path = decoded(name.place),
                    header = ends_with(path, ".npy") ? src.npy_header() : "";
  if (src.is_array && is_named_archive(path))
    throw Failure("the elements of one array make no file of named arrays: write " + path +
                      ".npy, or another name for its bytes alone",
                  misuse);
  if (auto const array = parse_array_name(path);
      array && array->name.find('/') == std::string::npos && has_named_arrays(array->path))
    throw Failure("arrays of " + array->path + " are only read: no new file has this name", misuse);
  auto file = std::make_unique<NewFile>(path, file_options(name, direct));
  file->nbytes = src.nbytes;
  auto const size = static_cast<std::size_t>(src.nbytes) + header.size();
  if (size && (file->adr = umem_alloc(file->ctx, size)) == umem_null(file->ctx)) fail_with_status();
  if (!header.empty()) write_header(*file, header);
  return file;
}

/* A new object of a bucket, which only finish makes: what failed before leaves the old one. */
struct NewObject : Opened {
  using Opened::Opened;
  ~NewObject() override {
    void *const s3 = umem_find_layer(ctx, "s3");
    if (!finished && s3) umemS3_abandon(static_cast<umemS3 *>(s3));
  }
  void finish() override {
    if (umem_flush(ctx) != umemOK) fail_with_status();
    finished = true;
  }
  bool finished = false;
};

static std::unique_ptr<End> make_object(Name name, std::uint64_t nbytes) {
  if (name.storage() != "s3") throw Failure(name.shown() + " is only read", misuse);
  if (name.option("mode").value_or("w") != "w")
    throw Failure("a destination is written: mode=r is not allowed", misuse);
  if (!name.option("mode")) name.options.emplace_back("s3.mode", "w");
  if (nbytes && !name.option("length"))
    name.options.emplace_back("s3.length", std::to_string(nbytes));
  auto object = std::make_unique<NewObject>(name);
  object->nbytes = nbytes;
  if (nbytes && (object->adr = umem_alloc(object->ctx, static_cast<std::size_t>(nbytes))) ==
                    umem_null(object->ctx))
    fail_with_status();
  return object;
}

std::unique_ptr<End> open_destination(std::string const &word, End const &src, bool direct) {
  std::uint64_t const nbytes = src.nbytes;
  Name name = name_of(word);
  if (name.is_url() && ends_with(name.place, ".npy") && !src.npy_header().empty())
    throw Failure("an array becomes a .npy file only on a disk, not " + name.shown(), misuse);
  if (name.is_url()) return make_object(name, nbytes);
  if (name.is_file() && name.layers.size() > 1)
    throw Failure("a new file has no layers over it: write file:" + name.place, misuse);
  auto const size = static_cast<std::size_t>(nbytes);
  if (name.is_file()) return make_file(name, src, direct);
  if (name.storage() == "shm" && !name.place.empty()) {
    auto end = std::make_unique<NewBlock>(name, nbytes);
    end->nbytes = nbytes;
    if (size) end->take(size);
    return end;
  }
  if (name.storage() == "shm") name.size_segment(nbytes);
  add_direct(name, direct);
  auto memory = std::make_unique<Opened>(name);
  memory->nbytes = nbytes;
  if (size) memory->take(umem_alloc(memory->ctx, size));
  return memory;
}

} // namespace umem::tool
