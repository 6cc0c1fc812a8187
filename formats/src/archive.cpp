/* archive.cpp - umem/formats.h: archives, whatever their format.
 *
 * C++ inside, C outside: what throws is caught where a public function ends, and recorded. */
#include "archive.hpp"
#include "json.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <set>
#include <stdexcept>

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

void read_file(umemArchive &archive, Source const &source) {
  if (is_npz(source))
    read_npz(source, archive.members);
  else
    read_safetensors(source, archive.members, archive.metadata);
  number_members(archive);
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

using Strides = std::array<std::int64_t, UMEM_MAX_RANK>; /* of which a member has its rank */

Strides strides_of(Member const &member) {
  std::size_t const rank = member.shape.size();
  std::int64_t const item = static_cast<std::int64_t>(umem_element_size(member.type));
  Strides strides = {};
  std::int64_t stride = item;
  for (std::size_t k = 0; k < rank; k++) {
    std::size_t const dim = member.fortran_order ? k : rank - 1 - k;
    strides[dim] = stride;
    stride = member.nbytes ? stride * member.shape[dim] : item; /* as a umemArray of no elements */
  }
  return strides;
}

/* A member that umem has an array of. */
Member const &checked(Member const &member) {
  if (!member.problem.empty())
    fail(umemTypeError, "%s: %s", quoted(member.name).c_str(), member.problem.c_str());
  return member;
}

/* A new array for a member, in its order. */
ArrayHandle create(Member const &member, void *ctx) {
  Strides const strides = strides_of(checked(member));
  return ArrayHandle(call(umemArray_create, ctx, member.type, static_cast<int>(member.shape.size()),
                          member.shape.data(), member.fortran_order ? strides.data() : nullptr));
}

/* What an array keeps: its archive and, if that has no bytes of it, the array of these. */
struct Kept {
  ArchiveHandle archive;
  ArrayHandle bytes; /* ends first */
};

/* The array where its bytes are, or a new one in RAM. As long as it lives, so does the archive. */
ArrayHandle get(umemArchive *archive, Member const &member) {
  Strides const strides = strides_of(checked(member));
  auto kept = std::make_unique<Kept>(Kept{ArchiveHandle(umemArchive_retain(archive)), nullptr});
  void *ctx = member.source->ctx;
  std::uintptr_t adr = member.source->begin + member.offset;
  if (!member.is_used_in_place()) {
    ctx = archive->ram.get();
    kept->bytes = create(member, ctx);
    umemArray *const bytes = kept->bytes.get();
    Progress none(nullptr, nullptr, 0);
    copy_members({&member}, &bytes, none);
    adr = umemArray_address(bytes);
  }
  ArrayHandle array(call(
      umemArray_take, ctx, adr, member.type, static_cast<int>(member.shape.size()),
      member.shape.data(), strides.data(), [](void *user) { delete static_cast<Kept *>(user); },
      kept.get()));
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
    members.emplace_back();
    members.back().name = names[k];
    members.back().array = arrays[k];
  }
  return members;
}

/* Decides on the order of the numbers in the file. */
void choose_orders(std::vector<NewMember> &members, bool npz,
                   umemArchiveSaveOptions const &options) {
  umemByteOrder const order = options.order;
  if (!npz && order == umemOrderBig) refuse("safetensors files are little endian");
  for (std::size_t k = 0; k < members.size(); k++) {
    bool const is_big = options.big_endian && options.big_endian[k];
    members[k].file_is_big = npz && (order == umemOrderOfArray ? is_big : order == umemOrderBig);
    members[k].turned = members[k].file_is_big != is_big;
  }
}

Metadata metadata_of(umemArchiveSaveOptions const &options) {
  Metadata metadata;
  for (std::size_t i = 0; i < options.metadata_count; i++)
    if (!metadata.emplace(options.metadata_keys[i], options.metadata_values[i]).second)
      refuse("the metadata have %s twice", quoted(options.metadata_keys[i]).c_str());
  return metadata;
}

/* Writes texts to a file: first is where each begins. */
void write_texts(umemFile *file, std::vector<std::pair<std::uintptr_t, std::string_view>> texts) {
  Host host;
  std::vector<umemCopyItem> items;
  for (auto const &[adr, text] : texts)
    items.push_back(
        {host.get(), reinterpret_cast<std::uintptr_t>(text.data()), file, adr, text.size()});
  check(umem_copy_many(items.data(), items.size(), nullptr));
}

std::uint64_t bytes_of(std::vector<NewMember> const &members) {
  std::uint64_t nbytes = 0;
  for (NewMember const &member : members) nbytes += umemArray_nbytes(member.array);
  return nbytes;
}

std::uintptr_t allocate(umemFile *file, std::uint64_t size) {
  std::uintptr_t const base = umem_alloc(file, size);
  if (base == umem_null(file)) throw Recorded{umem_thread_status()};
  return base;
}

void save_safetensors(char const *path, std::vector<NewMember> &members, Metadata const &metadata,
                      umemFileOptions const *options, Progress &progress) {
  std::string const header = make_safetensors(members, metadata);
  std::uint64_t const nbytes = bytes_of(members);
  NewFile file(path, options);
  std::uintptr_t const base = allocate(file.get(), header.size() + nbytes);
  std::uint64_t turned = 0;
  for (NewMember const &member : members)
    if (member.turned) turned += umemArray_nbytes(member.array);
  progress.begin(nbytes + turned);
  write_texts(file.get(), {{base, header}});
  write_elements(file.get(), base, members, false, progress);
  check(umemFile_commit(file.get()));
}

/* The checksums are in the headers: these are written at last. */
void save_npz(char const *path, std::vector<NewMember> &members, Metadata const &metadata,
              umemFileOptions const *options, Progress &progress) {
  if (!metadata.empty()) refuse("files of .npz have no metadata");
  std::uint64_t const end = lay_out_npz(members);
  std::size_t const directory_size = finish_npz(members, end).size();
  NewFile file(path, options);
  std::uintptr_t const base = allocate(file.get(), end + directory_size);
  progress.begin(2 * bytes_of(members));
  write_elements(file.get(), base, members, true, progress);
  std::string const directory = finish_npz(members, end);
  std::vector<std::pair<std::uintptr_t, std::string_view>> texts = {{base + end, directory}};
  for (NewMember const &member : members)
    texts.emplace_back(base + member.offset - member.header.size(), member.header);
  write_texts(file.get(), std::move(texts));
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
      of_file(path, [&] { read_file(*archive, archive->sources.emplace_back(path)); });
    return archive.release();
  });
}

umemArchive *umemArchive_read(void *ctx, uintptr_t adr, uint64_t size, umemStatusType *status) {
  return attempt<umemArchive *>(ctx, "umemArchive_read", status, [&] {
    ArchiveHandle archive(new umemArchive);
    read_file(*archive, archive->sources.emplace_back(ctx, adr, size));
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
    Strides const strides = strides_of(member);
    info->name = member.name.c_str();
    info->type = member.type;
    info->rank = static_cast<int>(member.shape.size());
    std::copy(member.shape.begin(), member.shape.end(), info->shape);
    std::copy_n(strides.begin(), info->rank, info->strides);
    info->offset = member.offset;
    info->nbytes = member.nbytes;
    info->compressed = !member.is_used_in_place();
    info->big_endian = member.big_endian;
    info->problem = member.problem.empty() ? nullptr : member.problem.c_str();
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

/* Options that the caller gives, or the defaults. */
template <class Options>
static Options options_of(Options const *given, Options options, std::size_t least) {
  if (given && given->size < least) refuse("the size of the options is not set");
  if (given) std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

/* Throws unless a number is one of an enumeration that ends with last: C may have any there, C++
 * must not load others than it has. */
template <class Enumeration>
static void check_enumeration(Enumeration const &given, Enumeration last, char const *what) {
  int number;
  std::memcpy(&number, &given, sizeof number);
  if (number < 0 || number > last) refuse("there is no %s %d", what, number);
}

static Progress progress_of(umemArchiveOptions const *given) {
  umemArchiveOptions const defaults = UMEM_ARCHIVE_OPTIONS_INIT,
                           options = options_of(given, defaults, sizeof defaults);
  return Progress(options.progress, options.user, options.step);
}

void umemArchive_load(umemArchive *archive, size_t count, char const *const *names, void *ctx,
                      umemArray **arrays, umemArchiveOptions const *options,
                      umemStatusType *status) {
  for (size_t k = 0; arrays && k < count; k++) arrays[k] = nullptr;
  attempt<bool>(ctx, "umemArchive_load", status, [&] {
    std::vector<Member const *> const members = chosen(given(archive), count, names);
    Progress progress = progress_of(options);
    if (!arrays && count > 0) refuse("the arrays are NULL");
    std::vector<ArrayHandle> made;
    std::vector<umemArray *> handles;
    made.reserve(count); /* so that no array is lost when memory is */
    handles.reserve(count);
    for (Member const *member : members) {
      made.push_back(create(*member, ctx));
      handles.push_back(made.back().get());
    }
    copy_members(members, handles.data(), progress);
    for (size_t k = 0; k < count; k++) arrays[k] = made[k].release();
    return true;
  });
}

void umemArchive_load_into(umemArchive *archive, size_t count, char const *const *names,
                           umemArray *const *arrays, umemArchiveOptions const *options,
                           umemStatusType *status) {
  attempt<bool>(nullptr, "umemArchive_load_into", status, [&] {
    std::vector<Member const *> const members = chosen(given(archive), count, names);
    Progress progress = progress_of(options);
    if (!arrays && count > 0) refuse("the arrays are NULL");
    for (Member const *member : members) checked(*member);
    copy_members(members, arrays, progress);
    return true;
  });
}

void umemArchive_check(umemArchive *archive, size_t count, char const *const *names,
                       umemArchiveOptions const *options, umemStatusType *status) {
  attempt<bool>(nullptr, "umemArchive_check", status, [&] {
    std::vector<Member const *> const members = chosen(given(archive), count, names);
    Progress progress = progress_of(options);
    check_members(members, progress);
    return true;
  });
}

/* ---- write ---- */

void umemArchive_save(char const *path, size_t count, char const *const *names,
                      umemArray *const *arrays, umemArchiveSaveOptions const *options,
                      umemStatusType *status) {
  attempt<bool>(nullptr, "umemArchive_save", status, [&] {
    if (!path) refuse("the path is NULL");
    umemArchiveSaveOptions const chosen =
        options_of(options, umemArchiveSaveOptions UMEM_ARCHIVE_SAVE_OPTIONS_INIT,
                   offsetof(umemArchiveSaveOptions, big_endian));
    check_enumeration(chosen.format, umemArchiveNpz, "format");
    check_enumeration(chosen.order, umemOrderBig, "order of bytes");
    std::vector<NewMember> members = members_of(count, names, arrays);
    Metadata const metadata = metadata_of(chosen);
    Progress progress(chosen.progress, chosen.user, chosen.step);
    bool const by_name = chosen.format == umemArchiveByName;
    bool const npz = chosen.format == umemArchiveNpz || (by_name && ends_with(path, ".npz"));
    choose_orders(members, npz, chosen);
    (npz ? save_npz : save_safetensors)(path, members, metadata, chosen.file, progress);
    return true;
  });
}
