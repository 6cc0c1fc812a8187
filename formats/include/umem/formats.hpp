/* umem/formats.hpp - files of named arrays: umem/formats.h for C++.
 *
 *     umem::Archive const model("model.safetensors");
 *     for (std::string const &name : model.names()) std::cout << name << '\n';
 *     umem::CArray table = model["embed.weight"];                  // any type, any rank; no copy
 *     auto w = model.get<float, 2>("w");                           // umem::Array<float const, 2>
 *     auto v = model.load<float, 2>("w", umem::Cuda());            // a copy on the GPU
 *     std::vector<umem::CArray> all = model.load(model.names(), umem::Cuda());   // in one call
 *     umem::save_archive("new.safetensors", {{"w", umem::c_array(u)}, {"v", all[0]}});
 *     model.load(model.names(), umem::Cuda(),                                    // with a bar
 *                [](std::uint64_t done, std::uint64_t total) { return show(done, total); });
 *
 * Arrays keep what they need of the archive. Functions throw as umem/formats.h says.
 * A progress that returns false ends the call with umem::cancelled_error, one that throws with its
 * exception. */
#ifndef UMEM_FORMATS_HPP
#define UMEM_FORMATS_HPP

#include <umem/array.hpp>
#include <umem/c_array.hpp>
#include <umem/formats.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace umem {

/* Called with how far a call is, in bytes of elements. */
using ArchiveProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

namespace detail {

/* body(options), a call of C with this progress, if it is one; throws what it has thrown. */
template <class Options, class Body>
void with_progress(Options options, ArchiveProgress const &progress, std::size_t step, Body body) {
  ProgressCall<ArchiveProgress const> call{progress, nullptr};
  if (progress) call.write(options, step);
  try {
    body(&options);
  } catch (cancelled_error const &) {
    call.rethrow();
    throw;
  }
  call.rethrow(); /* in the last call, after which nothing could be cancelled */
}

} // namespace detail

/* A file, or a set of files, of named arrays: a handle of a umemArchive. */
class Archive {
public:
  /* umemArchive_open. */
  explicit Archive(std::string const &path)
      : archive_(detail::status_call(umemArchive_open, path.c_str()), umemArchive_release) {}

  /* umemArchive_read: the file has nbytes bytes at adr of context, of which the archive keeps a
   * handle. The bytes must live, and not change, as long as its arrays. */
  Archive(Context const &context, address adr, std::uint64_t nbytes)
      : archive_(detail::status_call(umemArchive_read, context.c_context(), adr, nbytes),
                 [context](umemArchive *archive) { umemArchive_release(archive); }) {}

  std::size_t size() const noexcept { return umemArchive_count(c_archive()); }

  /* In the order of the bytes. */
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < size(); i++) names.emplace_back(info_at(i).name);
    return names;
  }

  /* What the file says of an array: its texts are borrowed. */
  umemArchiveInfo info(std::string const &name) const {
    return info_at(detail::status_call(umemArchive_find, c_archive(), name.c_str()));
  }

  /* The texts about the whole file. */
  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> texts;
    char const *value = nullptr;
    for (std::size_t i = 0; char const *key = umemArchive_metadata(c_archive(), i, &value); i++)
      texts.emplace(key, value);
    return texts;
  }

  /* The array where its bytes are: umemArchive_get. */
  CArray operator[](std::string const &name) const {
    return CArray(detail::status_call(umemArchive_get, c_archive(), name.c_str()));
  }

  /* These elements as an Array. Throws, besides, as to_array: umem::type_error for another type,
   * umem::value_error for another rank, and for elements that are not aligned. */
  template <class Type, int Rank> Array<Type const, Rank> get(std::string const &name) const {
    CArray array = (*this)[name];
    auto *const context = static_cast<umemVirtual *>(umemArray_context(array.get()));
    return to_array<Type const, Rank>(std::move(array),
                                      Context(std::shared_ptr<umemVirtual>(archive_, context)));
  }

  /* A copy of the elements on a context. Throws as get. */
  template <class Type, int Rank>
  Array<Type, Rank> load(std::string const &name, Context context = default_context()) const {
    Array<Type const, Rank> const from = get<Type, Rank>(name);
    Array<Type, Rank> array(from.extents(), std::move(context));
    copy(from.part(), array.part());
    return array;
  }

  /* Copies of several arrays on a context, in one call: umemArchive_load. The context must live as
   * long as they do. Calls progress, if it is one, after each step bytes (0: umem chooses). */
  std::vector<CArray> load(std::vector<std::string> const &names, Context const &context,
                           ArchiveProgress const &progress = {}, std::size_t step = 0) const {
    std::vector<char const *> const texts = pointers_to(names);
    std::vector<umemArray *> made(names.size());
    std::vector<CArray> arrays;
    arrays.reserve(names.size());
    detail::with_progress(
        umemArchiveOptions(UMEM_ARCHIVE_OPTIONS_INIT), progress, step, [&](auto *options) {
          detail::status_call(umemArchive_load, c_archive(), made.size(), texts.data(),
                              context.c_context(), made.data(), options);
          for (umemArray *array : made) arrays.emplace_back(array);
        });
    return arrays;
  }

  /* Copies arrays into arrays that exist, on any contexts: umemArchive_load_into.
   * arrays: one for each name, of the same type and shape.
   * progress and step: as of load. Throws umem::value_error for another number of arrays. */
  void load_into(std::vector<std::string> const &names, std::vector<CArray> const &arrays,
                 ArchiveProgress const &progress = {}, std::size_t step = 0) const {
    if (names.size() != arrays.size())
      throw value_error(std::to_string(names.size()) + " names and " +
                        std::to_string(arrays.size()) + " arrays");
    std::vector<char const *> const texts = pointers_to(names);
    std::vector<umemArray *> handles;
    for (CArray const &array : arrays) handles.push_back(array.get());
    detail::with_progress(umemArchiveOptions(UMEM_ARCHIVE_OPTIONS_INIT), progress, step,
                          [&](auto *options) {
                            detail::status_call(umemArchive_load_into, c_archive(), handles.size(),
                                                texts.data(), handles.data(), options);
                          });
  }

  /* Compares arrays with their checksums: umemArchive_check. progress and step: as of load. */
  void check(std::vector<std::string> const &names, ArchiveProgress const &progress = {},
             std::size_t step = 0) const {
    std::vector<char const *> const texts = pointers_to(names);
    detail::with_progress(
        umemArchiveOptions(UMEM_ARCHIVE_OPTIONS_INIT), progress, step, [&](auto *options) {
          detail::status_call(umemArchive_check, c_archive(), texts.size(), texts.data(), options);
        });
  }

  /* Borrowed. */
  umemArchive *c_archive() const noexcept { return archive_.get(); }

private:
  static std::vector<char const *> pointers_to(std::vector<std::string> const &names) {
    std::vector<char const *> texts;
    for (std::string const &name : names) texts.push_back(name.c_str());
    return texts;
  }

  umemArchiveInfo info_at(std::size_t i) const {
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    detail::status_call(umemArchive_info, c_archive(), i, &info);
    return info;
  }

  std::shared_ptr<umemArchive> archive_;
};

/* Writes arrays to a new file, which replaces the one at path when it is complete: to one of .npz
 * if path ends so, else to one of safetensors (umemArchive_save). metadata: texts about the whole
 * file, which .npz does not have. progress and step: as of Archive::load. order: of the bytes of
 * numbers in a .npz file. */
inline void save_archive(std::string const &path,
                         std::vector<std::pair<std::string, CArray>> const &arrays,
                         std::map<std::string, std::string> const &metadata = {},
                         ArchiveProgress const &progress = {}, std::size_t step = 0,
                         umemByteOrder order = umemOrderOfArray) {
  std::vector<char const *> names, keys, values;
  std::vector<umemArray *> handles;
  for (auto const &[name, array] : arrays) {
    names.push_back(name.c_str());
    handles.push_back(array.get());
  }
  for (auto const &[key, value] : metadata) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  options.metadata_count = keys.size();
  options.metadata_keys = keys.data();
  options.metadata_values = values.data();
  options.order = order;
  detail::with_progress(options, progress, step, [&](auto *given) {
    detail::status_call(umemArchive_save, path.c_str(), names.size(), names.data(), handles.data(),
                        given);
  });
}

} // namespace umem

#endif
