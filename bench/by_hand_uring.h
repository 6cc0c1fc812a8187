/* by_hand_uring.h - pieces of a file read by io_uring, as a program does it that has no umem. */
#ifndef UMEM_BENCH_BY_HAND_URING_H
#define UMEM_BENCH_BY_HAND_URING_H

#include <cstddef>
#include <vector>

#include <sys/types.h>

namespace by_hand {

struct Piece {
  void *bytes;
  std::size_t size;
  off_t offset;
};

/* Reads the pieces in their order, with at most depth of them in flight. Throws if the system
 * refuses a ring, and without liburing. */
void read_by_ring(int fd, std::vector<Piece> const &pieces, unsigned depth);

} // namespace by_hand

#endif
