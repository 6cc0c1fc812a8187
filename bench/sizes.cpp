#include "sizes.h"

#include "place.h"

#include <sstream>
#include <stdexcept>

namespace bench {

std::string size_text(std::size_t size) {
  static char const *const units[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit < 3 && size >= 1024 && size % 1024 == 0) size /= 1024, unit++;
  return std::to_string(size) + " " + units[unit];
}

static std::size_t parse_size(std::string const &text) {
  std::size_t end = 0;
  unsigned long long number = std::stoull(text, &end);
  std::string unit = text.substr(end);
  unsigned shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 99;
  if (shift == 99 || !number || number > SIZE_MAX >> shift) throw std::invalid_argument(text);
  return static_cast<std::size_t>(number) << shift;
}

std::vector<std::size_t> parse_sizes(std::string const &list) {
  std::vector<std::size_t> sizes;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) sizes.push_back(parse_size(word));
  if (sizes.empty()) throw std::invalid_argument(list);
  return sizes;
}

/* Files are cached while they are copied, so that their bytes take RAM too. */
bool fits(std::size_t size) {
  return size <= available_memory() / 5 && size <= available_disk() / 3;
}

} // namespace bench
