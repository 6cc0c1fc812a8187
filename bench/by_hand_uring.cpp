/* Only in builds that have found liburing. */
#include "by_hand_uring.h"

#include "place.h"

#include <liburing.h>

namespace by_hand {
namespace {

class Ring {
public:
  explicit Ring(unsigned depth) {
    bench::check_system(io_uring_queue_init(depth, &ring_, 0) == 0, "io_uring_queue_init");
  }
  Ring(Ring const &) = delete;
  Ring &operator=(Ring const &) = delete;
  ~Ring() { io_uring_queue_exit(&ring_); }
  io_uring *get() { return &ring_; }

private:
  io_uring ring_;
};

void start(io_uring *ring, int fd, Piece const &piece) {
  io_uring_sqe *entry = io_uring_get_sqe(ring);
  bench::check_system(entry != nullptr, "io_uring_get_sqe");
  io_uring_prep_read(entry, fd, piece.bytes, static_cast<unsigned>(piece.size),
                     static_cast<__u64>(piece.offset));
  io_uring_sqe_set_data(entry, const_cast<Piece *>(&piece));
}

/* Takes what has ended. Returns how many. */
unsigned take(io_uring *ring) {
  unsigned head, count = 0;
  io_uring_cqe *entry;
  io_uring_for_each_cqe(ring, head, entry) {
    auto const *piece = static_cast<Piece const *>(io_uring_cqe_get_data(entry));
    bench::check_system(entry->res == static_cast<int>(piece->size), "io_uring read");
    count++;
  }
  io_uring_cq_advance(ring, count);
  return count;
}

} // namespace

void read_by_ring(int fd, std::vector<Piece> const &pieces, unsigned depth) {
  Ring ring(depth);
  std::size_t next = 0, done = 0;
  while (done < pieces.size()) {
    for (; next < pieces.size() && next - done < depth; next++) start(ring.get(), fd, pieces[next]);
    bench::check_system(io_uring_submit_and_wait(ring.get(), 1) >= 0, "io_uring_submit_and_wait");
    done += take(ring.get());
  }
}

} // namespace by_hand
