/* archive.hpp - arrays in files: of safetensors, .npz and .npy. */
#pragma once

#include "json.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <umem.h>
#include <vector>

#if defined(UMEM_WITH_FORMATS)
#include <umem/formats.h>
#endif

namespace umem::tool {

bool is_folder(std::string const &path);

/* "PATH#NAME": an array of a file of named arrays. */
struct ArrayName {
  std::string path, name;
};

/* Nothing if there is a file of the whole name, or none of any part before a "#". */
std::optional<ArrayName> parse_array_name(std::string const &text);

/* Whether the name of a file says that it has named arrays. */
bool is_named_archive(std::string const &path);

/* Whether a file has named arrays, or its name says that it should. */
bool has_named_arrays(std::string const &path);

/* What is in a file: "name", "opens", and either "reason", or "format", "metadata" and "arrays".
 * text: a path, or an array of a file. */
Json file_json(std::string const &text);

/* Whether a word names no context: a path, or an array of a file. */
bool names_file(std::string const &word);

/* An array of a file of named arrays. */
class FileArray {
public:
  /* Throws Failure if there is no such array, or umem has none of its type. */
  explicit FileArray(ArrayName const &name);
  ~FileArray();
  FileArray(FileArray const &) = delete;
  FileArray &operator=(FileArray const &) = delete;

  std::string file; /* where its bytes are: perhaps not the file that was named */
  std::uint64_t offset = 0, nbytes = 0;
  bool compressed = false; /* or big endian */
  bool big_endian = false;

  /* Before the elements, in a .npy file. Throws Failure if these have no such type. */
  std::string npy_header() const;

  /* Inflates all elements to a context. go_on: as progress of umemCopyOptions. */
  void load(void *ctx, std::uintptr_t adr, bool (*go_on)(void *, std::uint64_t, std::uint64_t),
            void *user, std::size_t step) const;

  struct Opened;

private:
  std::unique_ptr<Opened> opened_;
};

} // namespace umem::tool
