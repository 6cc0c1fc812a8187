/* umem/detail/printed.hpp - the text of one array, for print.hpp: which of its elements it shows, and where. */
#ifndef UMEM_DETAIL_PRINTED_HPP
#define UMEM_DETAIL_PRINTED_HPP

#include <umem/config.hpp>
#include <umem/detail/decimal.hpp>
#include <umem/extents.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace umem {
namespace detail {

/* Numbers as words of equal width: at most 8 digits after the point, fewer if fewer distinguish a number from its
 * neighbours; all in scientific form if one number, or the ratio of two, requires it. plus: numbers that are not
 * negative get a sign. */
std::vector<std::string> words_of(std::vector<Decimal> const &numbers, FloatKind kind,
                                  bool plus = false);

/* A single number, with all its digits. */
std::string scalar_text(Decimal const &number, FloatKind kind);
std::string scalar_text(Decimal const &real, Decimal const &imag, FloatKind kind);

/* The elements of an array that are shown: their offsets from the first in elements, in the order of the text; the
 * caller gives each to add. Then text() is that of the array. A rank of 0 is that of one element without brackets. */
class Printed {
public:
  std::vector<index_t> const offsets;

  Printed(int rank, index_t const *extents, index_t const *strides);

  void add(std::string const &word);
  void add(Decimal const &number);
  void add(Decimal const &real, Decimal const &imag);

  /* Of words, which it makes equally wide: at least width. */
  std::string text(std::size_t width);
  /* Of numbers. */
  std::string text(FloatKind kind);

private:
  struct Rows; /* what is printed so far */

  int rank_;
  index_t const *extents_;
  bool is_summary_;
  std::vector<std::string> words_;
  std::vector<Decimal> real_, imag_;

  std::string in_brackets() const;
};

} // namespace detail
} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/print_functions.hpp>
#endif

#endif
