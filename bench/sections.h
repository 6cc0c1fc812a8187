/* sections.h - the parts of arrays that programs copy: faces, columns, transposed and reversed
 * arrays, blocks. */
#ifndef UMEM_BENCH_SECTIONS_H
#define UMEM_BENCH_SECTIONS_H

#include <cstddef>
#include <string>
#include <vector>

#include <umem.h>

namespace bench {

struct Section {
  std::string name;
  std::size_t item_size;
  std::vector<std::size_t> extents;
  std::vector<std::ptrdiff_t> src, dst;     /* strides in bytes */
  std::size_t src_size, dst_size;           /* bytes of the arrays */
  std::size_t src_first = 0, dst_first = 0; /* bytes before the first item */

  std::size_t count() const;
  std::size_t bytes() const { return count() * item_size; }

  /* Borrows the vectors. */
  umemLayout layout() const;

  /* The loops that a program writes: the last dimension is the innermost. */
  void copy_by_hand(char const *from, char *to) const;
};

/* Twenty-two patterns on arrays of edge * edge items, in any rank. */
std::vector<Section> all_sections(std::size_t edge);

} // namespace bench

#endif
