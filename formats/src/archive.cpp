/* archive.cpp - umem/formats.h: archives, whatever their format.
 *
 * C++ inside, C outside: what throws is caught where a public function ends, and recorded. */
#include "archive.hpp"
#include "json.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <type_traits>

namespace umem_formats {

/* ---- failures ---- */

static std::string printed(char const *format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  return text;
}

void fail(umemStatusType type, char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Failure failure{type, printed(format, arguments)};
  va_end(arguments);
  throw failure;
}

void refuse(char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Failure failure{umemValueError, printed(format, arguments)};
  va_end(arguments);
  throw failure;
}

namespace {

/* What body() returns; Result() if it throws, or a call of this sequence has failed before. status:
 * of the sequence, or NULL. ctx: which also gets failures that umem has not recorded; or NULL. */
template <class Result, class Body>
Result attempt(void *ctx, char const *function, umemStatusType *status, Body const &body) {
  if (status && *status != umemOK) return Result();
  umemStatusType type;
  try {
    return body();
  } catch (Failure const &failure) {
    type = umemVirtual_fail(ctx, failure.type, "%s: %s", function, failure.text.c_str());
  } catch (Recorded const &failure) {
    type = failure.type;
  } catch (std::bad_alloc const &) {
    type = umemVirtual_fail(ctx, umemMemoryError, "%s: out of memory", function);
  } catch (std::length_error const &) {
    type = umemVirtual_fail(ctx, umemMemoryError, "%s: out of memory", function);
  }
  if (status) *status = type;
  return Result();
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

/* Runs body; what it refuses names the file. */
template <class Body> void of_file(std::string const &path, Body const &body) {
  try {
    body();
  } catch (Failure &failure) {
    if (!path.empty()) failure.text.insert(0, quoted(path) + ": ");
    throw;
  }
}

umemArchive const &given(umemArchive const *archive) {
  if (!archive) refuse("the archive is NULL");
  return *archive;
}

} // namespace

/* ---- bytes ---- */

/* Waits for what is queued on a context. */
static void finish(void *ctx) {
  if (static_cast<umemVirtual *>(ctx)->capabilities & umemOrdered) check(umem_synchronize(ctx));
}

Source::Source(std::string file) : path(std::move(file)), ctx(&map_) {
  check(umemMMap_ctor(&map_, path.c_str(), "r"));
  umemInfo info = UMEM_INFO_INIT;
  umemStatusType status = umem_get_info(&map_, &info);
  size = info.capacity;
  begin = 0;
  if (status == umemOK && size > 0) {
    begin = umemMMap_address(&map_, 0);
    if (!begin) status = umem_thread_status();
  }
  if (status == umemOK) return;
  umem_dtor(&map_);
  throw Recorded{status};
}

void Source::read(std::uint64_t offset, void *to, std::size_t count) const {
  Host host;
  check(umem_copy_to(ctx, begin + offset, host.get(), reinterpret_cast<std::uintptr_t>(to), count));
  finish(ctx);
}

namespace {

/* ---- open ---- */

/* Numbers the arrays of a new archive by their names. */
void number_members(umemArchive &archive) {
  archive.numbers.reserve(archive.members.size());
  for (std::size_t i = 0; i < archive.members.size(); i++) {
    std::string const &name = archive.members[i].name;
    if (name.find('\0') != name.npos) refuse("the name %s has a zero byte", quoted(name).c_str());
    if (!archive.numbers.emplace(name, i).second)
      refuse("two arrays have the name %s", quoted(name).c_str());
  }
}

void open_file(umemArchive &archive, std::string const &path) {
  Source const &source = archive.sources.emplace_back(path);
  of_file(path, [&] {
    read_safetensors(source, archive.members, archive.metadata);
    number_members(archive);
  });
}

/* Opens the files of a set, and keeps the arrays that its index names. */
void open_set(umemArchive &archive, std::string const &path) {
  std::map<std::string, std::string> index;
  of_file(path, [&] { index = read_index(Source(path)); });
  std::set<std::string> files;
  for (auto const &entry : index) files.insert(entry.second);
  std::string const folder = path.substr(0, path.rfind('/') + 1);
  for (std::string const &file : files) {
    Source const &source = archive.sources.emplace_back(folder + file);
    std::vector<Member> members;
    Metadata metadata;
    of_file(source.path, [&] { read_safetensors(source, members, metadata); });
    if (archive.sources.size() == 1) archive.metadata.swap(metadata);
    for (Member &member : members) {
      auto const entry = index.find(member.name);
      if (entry != index.end() && entry->second == file)
        archive.members.push_back(std::move(member));
    }
  }
  number_members(archive);
  for (auto const &[name, file] : index)
    if (!archive.numbers.count(name))
      refuse("%s: there is no array %s in %s", quoted(path).c_str(), quoted(name).c_str(),
             quoted(file).c_str());
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

Member const &member_named(umemArchive const &archive, char const *name) {
  auto const found = name ? archive.numbers.find(name) : archive.numbers.end();
  if (found == archive.numbers.end())
    fail(umemIndexError, "there is no array %s", name ? quoted(name).c_str() : "without a name");
  return archive.members[found->second];
}

/* ---- arrays ---- */

/* The array where its bytes are. As long as it lives, so does the archive. */
ArrayHandle get(umemArchive *archive, Member const &member) {
  Source const &source = *member.source;
  ArchiveHandle kept(umemArchive_retain(archive));
  ArrayHandle array(call(
      umemArray_take, source.ctx, source.begin + member.offset, member.type,
      static_cast<int>(member.shape.size()), member.shape.data(), nullptr,
      [](void *user) { umemArchive_release(static_cast<umemArchive *>(user)); }, kept.get()));
  static_cast<void>(kept.release());
  return array;
}

/* The members with these names; names NULL: all. */
std::vector<Member const *> chosen(umemArchive const &archive, std::size_t count,
                                   char const *const *names) {
  std::vector<Member const *> members;
  if (!names && count != archive.members.size())
    refuse("there are %zu arrays, not %zu", archive.members.size(), count);
  for (std::size_t k = 0; k < count; k++)
    members.push_back(names ? &member_named(archive, names[k]) : &archive.members[k]);
  return members;
}

void check_matching(umemArray *array, Member const &member) {
  if (!array) refuse("the array for %s is NULL", quoted(member.name).c_str());
  if (umemArray_type(array) != member.type)
    fail(umemTypeError, "%s has elements of another type than the array for it",
         quoted(member.name).c_str());
  int const rank = umemArray_rank(array);
  if (Shape(umemArray_shape(array), umemArray_shape(array) + rank) != member.shape)
    refuse("%s has another shape than the array for it", quoted(member.name).c_str());
  if (umemArray_is_read_only(array))
    fail(umemNotSupportedError, "the array for %s is read-only", quoted(member.name).c_str());
}

/* Copies members to arrays of their types and shapes: those without gaps in one call. */
void copy_members(umemArchive *archive, std::vector<Member const *> const &members,
                  umemArray *const *arrays) {
  std::vector<umemCopyItem> items;
  for (std::size_t k = 0; k < members.size(); k++) {
    check_matching(arrays[k], *members[k]);
    Source const &source = *members[k]->source;
    if (members[k]->nbytes > 0 && umemArray_is_c_contiguous(arrays[k]))
      items.push_back({source.ctx, source.begin + members[k]->offset, umemArray_context(arrays[k]),
                       umemArray_address(arrays[k]), members[k]->nbytes});
  }
  check(umem_copy_many(items.data(), items.size(), nullptr));
  for (std::size_t k = 0; k < members.size(); k++)
    if (members[k]->nbytes > 0 && !umemArray_is_c_contiguous(arrays[k]))
      call(umemArray_assign, arrays[k], get(archive, *members[k]).get());
}

/* ---- new files ---- */

/* A file that has its name only when it is complete. */
class NewFile {
public:
  NewFile(char const *path, umemFileOptions const *options) {
    check(umemFile_replace_with(&file_, path, options));
  }
  NewFile(NewFile const &) = delete;
  NewFile &operator=(NewFile const &) = delete;
  ~NewFile() { umem_dtor(&file_); }
  umemFile *get() { return &file_; }

private:
  umemFile file_ = {};
};

std::vector<NewMember> members_of(std::size_t count, char const *const *names,
                                  umemArray *const *arrays) {
  std::vector<NewMember> members;
  std::set<std::string_view> seen;
  if (count > 0 && (!names || !arrays)) refuse("the names or the arrays are NULL");
  for (std::size_t k = 0; k < count; k++) {
    if (!names[k] || !arrays[k]) refuse("name or array %zu is NULL", k);
    if (!seen.insert(names[k]).second)
      refuse("two arrays have the name %s", quoted(names[k]).c_str());
    members.push_back({names[k], arrays[k], 0});
  }
  return members;
}

Metadata metadata_of(umemArchiveSaveOptions const &options) {
  Metadata metadata;
  for (std::size_t i = 0; i < options.metadata_count; i++)
    if (!metadata.emplace(options.metadata_keys[i], options.metadata_values[i]).second)
      refuse("the metadata have %s twice", quoted(options.metadata_keys[i]).c_str());
  return metadata;
}

/* Copies elements to the file, those without gaps in one call. base: of the file's first byte. */
void write_elements(umemFile *file, std::uintptr_t base, std::vector<NewMember> const &members) {
  std::vector<umemCopyItem> items;
  for (NewMember const &member : members)
    if (umemArray_elements(member.array) > 0 && umemArray_is_c_contiguous(member.array))
      items.push_back({umemArray_context(member.array), umemArray_address(member.array), file,
                       base + member.offset, umemArray_nbytes(member.array)});
  check(umem_copy_many(items.data(), items.size(), nullptr));
  for (NewMember const &member : members) {
    umemArray *const array = member.array;
    if (umemArray_elements(array) > 0 && !umemArray_is_c_contiguous(array)) {
      ArrayHandle const to(call(umemArray_borrow, static_cast<void *>(file), base + member.offset,
                                umemArray_type(array), umemArray_rank(array),
                                umemArray_shape(array), nullptr));
      call(umemArray_assign, to.get(), array);
    }
    finish(umemArray_context(array));
  }
}

void save(char const *path, std::vector<NewMember> &members, Metadata const &metadata,
          umemFileOptions const *options) {
  std::string const header = make_safetensors(members, metadata);
  std::uint64_t size = header.size();
  for (NewMember const &member : members) size += umemArray_nbytes(member.array);
  NewFile file(path, options);
  std::uintptr_t const base = umem_alloc(file.get(), size);
  if (base == umem_null(file.get())) throw Recorded{umem_thread_status()};
  Host host;
  check(umem_copy_to(host.get(), reinterpret_cast<std::uintptr_t>(header.data()), file.get(), base,
                     header.size()));
  write_elements(file.get(), base, members);
  check(umemFile_commit(file.get()));
}

} // namespace
} // namespace umem_formats

using namespace umem_formats;

/* ---- open and end ---- */

umemArchive *umemArchive_open(char const *path, umemStatusType *status) {
  return attempt<umemArchive *>(nullptr, "umemArchive_open", status, [&] {
    if (!path) refuse("the path is NULL");
    ArchiveHandle archive(new umemArchive);
    if (ends_with(path, ".index.json"))
      open_set(*archive, path);
    else
      open_file(*archive, path);
    return archive.release();
  });
}

umemArchive *umemArchive_read(void *ctx, uintptr_t adr, uint64_t size, umemStatusType *status) {
  return attempt<umemArchive *>(ctx, "umemArchive_read", status, [&] {
    ArchiveHandle archive(new umemArchive);
    Source const &source = archive->sources.emplace_back(ctx, adr, size);
    read_safetensors(source, archive->members, archive->metadata);
    number_members(*archive);
    return archive.release();
  });
}

umemArchive *umemArchive_retain(umemArchive *archive) {
  if (archive) archive->users.fetch_add(1, std::memory_order_relaxed);
  return archive;
}

void umemArchive_release(umemArchive *archive) {
  if (archive && archive->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete archive;
}

/* ---- what it holds ---- */

size_t umemArchive_count(umemArchive const *archive) {
  return archive ? archive->members.size() : 0;
}

size_t umemArchive_find(umemArchive const *archive, char const *name, umemStatusType *status) {
  Member const *found = attempt<Member const *>(
      nullptr, "umemArchive_find", status, [&] { return &member_named(given(archive), name); });
  return found ? static_cast<size_t>(found - archive->members.data()) : SIZE_MAX;
}

bool umemArchive_info(umemArchive const *archive, size_t i, umemArchiveInfo *info,
                      umemStatusType *status) {
  return attempt<bool>(nullptr, "umemArchive_info", status, [&] {
    if (i >= given(archive).members.size())
      fail(umemIndexError, "there is no array %zu: there are %zu", i, archive->members.size());
    if (!info || info->size < sizeof *info) refuse("the info is NULL, or its size is not set");
    Member const &member = archive->members[i];
    info->name = member.name.c_str();
    info->type = member.type;
    info->rank = static_cast<int>(member.shape.size());
    int64_t const item = static_cast<int64_t>(umem_element_size(member.type));
    int64_t stride = item;
    for (int k = info->rank - 1; k >= 0; k--) {
      info->shape[k] = member.shape[static_cast<size_t>(k)];
      info->strides[k] = stride;
      stride = member.nbytes ? stride * info->shape[k] : item; /* as a umemArray of no elements */
    }
    info->offset = member.offset;
    info->nbytes = member.nbytes;
    info->file = member.source->path.c_str();
    return true;
  });
}

char const *umemArchive_metadata(umemArchive const *archive, size_t i, char const **value) {
  if (!archive || i >= archive->metadata.size()) return nullptr;
  auto const text = std::next(archive->metadata.begin(), static_cast<std::ptrdiff_t>(i));
  if (value) *value = text->second.c_str();
  return text->first.c_str();
}

/* ---- arrays ---- */

umemArray *umemArchive_get(umemArchive *archive, char const *name, umemStatusType *status) {
  return attempt<umemArray *>(nullptr, "umemArchive_get", status, [&] {
    return get(archive, member_named(given(archive), name)).release();
  });
}

void umemArchive_load(umemArchive *archive, size_t count, char const *const *names, void *ctx,
                      umemArray **arrays, umemStatusType *status) {
  for (size_t k = 0; arrays && k < count; k++) arrays[k] = nullptr;
  attempt<bool>(ctx, "umemArchive_load", status, [&] {
    std::vector<Member const *> const members = chosen(given(archive), count, names);
    if (!arrays && count > 0) refuse("the arrays are NULL");
    std::vector<ArrayHandle> made;
    std::vector<umemArray *> handles;
    made.reserve(count); /* so that no array is lost when memory is */
    handles.reserve(count);
    for (Member const *member : members) {
      made.emplace_back(call(umemArray_create, ctx, member->type,
                             static_cast<int>(member->shape.size()), member->shape.data(),
                             nullptr));
      handles.push_back(made.back().get());
    }
    copy_members(archive, members, handles.data());
    for (size_t k = 0; k < count; k++) arrays[k] = made[k].release();
    return true;
  });
}

void umemArchive_load_into(umemArchive *archive, size_t count, char const *const *names,
                           umemArray *const *arrays, umemStatusType *status) {
  attempt<bool>(nullptr, "umemArchive_load_into", status, [&] {
    std::vector<Member const *> const members = chosen(given(archive), count, names);
    if (!arrays && count > 0) refuse("the arrays are NULL");
    copy_members(archive, members, arrays);
    return true;
  });
}

/* ---- write ---- */

void umemArchive_save(char const *path, size_t count, char const *const *names,
                      umemArray *const *arrays, umemArchiveSaveOptions const *options,
                      umemStatusType *status) {
  attempt<bool>(nullptr, "umemArchive_save", status, [&] {
    if (!path) refuse("the path is NULL");
    umemArchiveSaveOptions chosen = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
    if (options && options->size < sizeof chosen) refuse("the size of the options is not set");
    if (options) chosen = *options;
    std::vector<NewMember> members = members_of(count, names, arrays);
    save(path, members, metadata_of(chosen), chosen.file);
    return true;
  });
}
