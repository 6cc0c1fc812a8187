/* archive.cpp - arrays in files; see archive.hpp. A program that was built without the component
 * formats knows .npy files alone. */
#include "archive.hpp"

#include "failure.hpp"
#include "interrupt.hpp"
#include "name.hpp"
#include "output.hpp"
#include "place.hpp"

#include <algorithm>
#include <sys/stat.h>
#include <umem/npy_c_array.hpp>

namespace umem::tool {

static bool is_file(std::string const &path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_folder(std::string const &path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::optional<ArrayName> parse_array_name(std::string const &text) {
  if (is_file(text)) return {};
  for (std::size_t at = text.find('#'); at != std::string::npos; at = text.find('#', at + 1))
    if (is_file(text.substr(0, at))) return ArrayName{text.substr(0, at), text.substr(at + 1)};
  return {};
}

bool names_file(std::string const &word) {
  return !word.empty() && (!parse_name(word) || parse_array_name(word));
}

static bool ends_with(std::string const &path, std::string const &end) {
  return path.size() >= end.size() && path.compare(path.size() - end.size(), end.npos, end) == 0;
}

/* ---- .npy files ---- */

static Json shape_json(int rank, std::int64_t const *shape) {
  Json extents = Json::array();
  for (int k = 0; k < rank; k++) extents.push_back(shape[k]);
  return extents;
}

static Json array_json(std::string const &name, umemElementType type, Json shape,
                       std::uint64_t nbytes, std::uint64_t offset) {
  std::string text(umem_element_name(type, nullptr, 0), '\0');
  umem_element_name(type, text.data(), text.size() + 1);
  Json json;
  json["name"] = name;
  json["type"] = text;
  json["shape"] = std::move(shape);
  json["bytes"] = nbytes;
  json["offset"] = offset;
  json["compressed"] = false;
  json["big_endian"] = false;
  json["problem"] = nullptr;
  return json;
}

/* Nothing if it does not begin as a .npy file. */
static std::optional<Json> npy_json(std::string const &path) {
  if (first_line(path).compare(0, 6, "\x93NUMPY") != 0) return {};
  Context const file("file:" + encoded(path) + "?mode=r");
  umemInfo info = UMEM_INFO_INIT;
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  header.big_endian = true; /* is shown, too */
  if (umem_get_info(file.get(), &info) ||
      umem_npy_read_header(file.get(), 0, info.capacity, &header))
    throw Failure(reason());
  if (!header.type) throw Failure(std::string("umem has no elements of its type ") + header.descr);
  Json json;
  json["format"] = "npy";
  json["metadata"] = Json::array();
  json["arrays"] = Json::array();
  Json array = array_json("", header.type, shape_json(header.rank, header.shape), header.nbytes,
                          header.offset);
  array["big_endian"] = header.big_endian;
  json["arrays"].push_back(array);
  return json;
}

/* ---- files of named arrays ---- */

#if defined(UMEM_WITH_FORMATS)

[[noreturn]] static void fail() {
  Interrupt::check();
  throw Failure(reason());
}

struct FileArray::Opened {
  explicit Opened(std::string const &path) : archive(umemArchive_open(path.c_str(), &status)) {
    if (!archive) fail();
  }
  Opened(Opened const &) = delete;
  Opened &operator=(Opened const &) = delete;
  ~Opened() { umemArchive_release(archive); }

  umemArchiveInfo info_at(std::size_t i) {
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    if (!umemArchive_info(archive, i, &info, &status)) fail();
    return info;
  }

  umemStatusType status = umemOK;
  umemArchive *archive;
  umemArchiveInfo chosen = UMEM_ARCHIVE_INFO_INIT;
};

FileArray::FileArray(ArrayName const &name) : opened_(std::make_unique<Opened>(name.path)) {
  std::size_t const i = umemArchive_find(opened_->archive, name.name.c_str(), &opened_->status);
  if (opened_->status != umemOK) throw Failure(name.path + ": " + reason());
  umemArchiveInfo const &info = opened_->chosen = opened_->info_at(i);
  if (info.problem) throw Failure(name.path + '#' + name.name + ": " + info.problem);
  file = info.file;
  offset = info.offset;
  nbytes = info.nbytes;
  compressed = info.compressed;
  big_endian = info.big_endian;
}

FileArray::~FileArray() = default;

std::string FileArray::npy_header() const {
  umemArchiveInfo const &info = opened_->chosen;
  std::int64_t const item = static_cast<std::int64_t>(umem_element_size(info.type));
  bool const fortran_order = info.rank > 1 && nbytes && info.strides[info.rank - 1] != item;
  try {
    return umem::detail::make_npy_header(umem::detail::npy_type_of(info.type),
                                         Shape(info.shape, info.shape + info.rank), fortran_order);
  } catch (type_error const &why) {
    throw Failure(why.what());
  }
}

void FileArray::load(void *ctx, std::uintptr_t adr,
                     bool (*go_on)(void *, std::uint64_t, std::uint64_t), void *user,
                     std::size_t step) const {
  umemArchiveInfo const &info = opened_->chosen;
  umemArchiveOptions options = UMEM_ARCHIVE_OPTIONS_INIT;
  options.progress = go_on;
  options.user = user;
  options.step = step;
  umemStatusType status = umemOK;
  umemArray *array =
      umemArray_borrow(ctx, adr, info.type, info.rank, info.shape, info.strides, &status);
  umemArchive_load_into(opened_->archive, 1, &info.name, &array, &options, &status);
  umemArray_release(array);
  if (status != umemOK) fail();
}

static bool opens(std::string const &path) {
  try {
    FileArray::Opened const opened(path);
    return true;
  } catch (Failure const &) {
    return false;
  }
}

static Json archive_json(std::string const &path, std::optional<std::string> const &name) {
  FileArray::Opened opened(path);
  Json json;
  json["format"] = first_line(path).compare(0, 2, "PK") == 0 ? "npz" : "safetensors";
  json["metadata"] = Json::array();
  char const *text = nullptr;
  for (std::size_t i = 0; char const *key = umemArchive_metadata(opened.archive, i, &text); i++) {
    Json pair;
    pair["key"] = key;
    pair["text"] = text;
    json["metadata"].push_back(pair);
  }
  json["arrays"] = Json::array();
  std::size_t const count = umemArchive_count(opened.archive);
  std::size_t const only =
      name ? umemArchive_find(opened.archive, name->c_str(), &opened.status) : 0;
  if (opened.status != umemOK) fail();
  for (std::size_t i = name ? only : 0; i < (name ? only + 1 : count); i++) {
    umemArchiveInfo const info = opened.info_at(i);
    Json array = array_json(info.name, info.type, shape_json(info.rank, info.shape), info.nbytes,
                            info.offset);
    if (info.problem) array["type"] = nullptr;
    array["compressed"] = info.compressed;
    array["big_endian"] = info.big_endian;
    array["problem"] = info.problem ? Json(info.problem) : Json(nullptr);
    json["arrays"].push_back(array);
  }
  return json;
}

#else

[[noreturn]] static void fail() {
  throw Failure("this umem was built without the component formats, which needs nlohmann-json");
}

struct FileArray::Opened {};
FileArray::FileArray(ArrayName const &) { fail(); }
FileArray::~FileArray() = default;
std::string FileArray::npy_header() const { fail(); }
void FileArray::load(void *, std::uintptr_t, bool (*)(void *, std::uint64_t, std::uint64_t), void *,
                     std::size_t) const {}
static bool opens(std::string const &) { return false; }
static Json archive_json(std::string const &, std::optional<std::string> const &) { fail(); }

#endif

bool is_named_archive(std::string const &path) {
  return ends_with(path, ".safetensors") || ends_with(path, ".npz") ||
         ends_with(path, ".safetensors.index.json");
}

bool has_named_arrays(std::string const &path) { return is_named_archive(path) || opens(path); }

Json file_json(std::string const &text) {
  std::optional<ArrayName> const array = parse_array_name(text);
  std::string const &path = array ? array->path : text;
  Json json;
  try {
    if (!is_file(path)) throw Failure(is_folder(path) ? "it is a folder" : "there is no such file");
    std::optional<Json> const npy = array ? std::nullopt : npy_json(path);
    Json const found =
        npy ? *npy : archive_json(path, array ? std::optional(array->name) : std::nullopt);
    json["name"] = text;
    json["opens"] = true;
    for (char const *key : {"format", "metadata", "arrays"}) json[key] = found[key];
  } catch (Failure const &why) {
    json["name"] = text;
    json["opens"] = false;
    json["reason"] = why.what();
  }
  return json;
}

} // namespace umem::tool
