/* sizes.h - sizes in bytes as people write them, and whether there is room for them. */
#ifndef UMEM_BENCH_SIZES_H
#define UMEM_BENCH_SIZES_H

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

/* "256 MiB"; "100 B" for what is no whole number of a unit. */
std::string size_text(std::size_t size);

/* The numbers of a list like "64,4K,1M,1G" (1024 B to a K). Throws std::invalid_argument. */
std::vector<std::size_t> parse_sizes(std::string const &list);

/* Whether two arrays of size bytes, and what it takes to copy them, fit into RAM and disk with room
 * to spare. */
bool fits(std::size_t size);

} // namespace bench

#endif
