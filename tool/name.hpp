/* name.hpp - the parts of a name of umem_open, as they stand in it. The library checks and decodes
 * them. */
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace umem::tool {

struct Name {
  std::vector<std::string> layers; /* outermost first, never empty; the last one is the storage */
  std::string place;
  std::vector<std::pair<std::string, std::string>> options; /* key, value */

  std::string const &storage() const { return layers.back(); }
  bool is_file() const { return (storage() == "file" || storage() == "mmap") && !place.empty(); }

  bool is_url() const;
  char before_options() const { return is_url() ? '#' : '?'; }

  /* The name without what may be secret: layers, user, password, query and options of a URL. */
  std::string shown() const;

  /* The value of an option, with or without its layer in front. */
  std::optional<std::string> option(std::string const &key) const;

  /* Puts a layer over all. Options that would then be of two layers get the name of theirs. */
  void put_over(std::string const &layer);

  /* Gives a new segment of shared memory room for so many blocks of nbytes and for what umem adds,
   * unless the name says how large it is. Throws Failure for too many bytes. */
  void size_segment(std::uint64_t nbytes, unsigned blocks = 1);

  /* The first layer that is no scheme of umem_open; "" if all are. */
  std::string unknown_layer() const;

  /* What of the name no scheme has: "scheme what" or "option x"; "" if all is known. */
  std::string unknown_part() const;

  /* Paths of files that layers over the storage write, such as that of a log. */
  std::vector<std::string> paths_of_layers() const;

  std::string text() const;
};

/* Nothing for what cannot be a name, such as the path of a file. */
std::optional<Name> parse_name(std::string const &text);

/* What of a word may be shown, that is a name or not. */
std::string shown(std::string const &word);

/* Makes a path the place or a value in a name, and back. Throws Failure for a bad %XX. */
std::string encoded(std::string const &path);
std::string decoded(std::string const &text);

} // namespace umem::tool
