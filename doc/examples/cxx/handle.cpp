/* A block that two processes use at the same time. */
#include <cstdio>
#include <sys/socket.h>
#include <sys/wait.h>
#include <umem.hpp>
#include <unistd.h>

/* [receiver] */
static void add_one(int socket) {
  umem::Attachment block = umem::receive(socket);
  auto *x = static_cast<double *>(block.data());
  for (std::size_t i = 0; i < block.size() / sizeof *x; i++) x[i] += 1;
} /* the destructor detaches the block */
/* [/receiver] */

int main() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
  pid_t child = fork();
  if (!child) {
    add_one(ends[1]);
    _exit(0);
  }
  /* [sender] */
  umem::Shm shm(1 << 20);
  auto block = umem::Buffer::zeroed(shm, 3 * sizeof(double));
  umem::send(ends[0], shm, block.adr(), block.size());
  waitpid(child, nullptr, 0); /* the block must live until the receiver has ended */
  auto const *x = static_cast<double const *>(block.data());
  std::printf("%g %g %g\n", x[0], x[1], x[2]);
  /* [/sender] */
}
