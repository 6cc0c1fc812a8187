/* umem/detail/extents_functions.hpp - what extents.hpp declares. */
#ifndef UMEM_DETAIL_EXTENTS_FUNCTIONS_HPP
#define UMEM_DETAIL_EXTENTS_FUNCTIONS_HPP

#include <umem/extents.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace umem {
namespace detail {

UMEM_INLINE InWords::InWords(index_t const *begin, index_t const *end) noexcept {
  char *at = text, *last = text + sizeof text - 40; /* a number and the end of the text */
  *at++ = '(';
  for (index_t const *value = begin; value != end; ++value) {
    if (at > last) {
      at += std::snprintf(at, 8, "...");
      break;
    }
    at += std::snprintf(at, 32, value + 1 == end ? "%td" : "%td, ", *value);
  }
  std::snprintf(at, 4, end - begin == 1 ? ",)" : ")");
}

UMEM_INLINE InWords &InWords::add(char const *word) noexcept {
  std::size_t length = std::strlen(text);
  std::snprintf(text + length, sizeof text - length, "%s", word);
  return *this;
}

} // namespace detail
} // namespace umem

#endif
