/* Two processes work on one array, without a copy. */
#define _GNU_SOURCE /* socketpair */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

enum { n = 1000 };

/* [receiver] */
static int sum(int socket) {
  umemHost host;
  umemHandle handle;
  umemHost_ctor(&host);
  double *x = (double *)umem_receive(socket, &host, &handle);
  if (!x) return puts(umem_thread_message()), 1;
  for (uint64_t i = 1; i < handle.length / sizeof *x; i++) x[0] += x[i];
  umem_detach(&host, (uintptr_t)x);
  umem_dtor(&host);
  return 0;
}
/* [/receiver] */

int main(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
  pid_t child = fork();
  if (!child) _exit(sum(ends[1]));
  /* [sender] */
  umemShm shm;
  if (umemShm_ctor(&shm, NULL, 1 << 20) != umemOK) return puts(umem_thread_message()), 1;
  double *x = (double *)umem_alloc(&shm, n * sizeof *x);
  for (int i = 0; i < n; i++) x[i] = i;
  umem_send(ends[0], &shm, (uintptr_t)x, n * sizeof *x);
  waitpid(child, NULL, 0); /* the block must live until the receiver has ended */
  printf("The sum is %g.\n", x[0]);
  umem_free(&shm, (uintptr_t)x);
  umem_dtor(&shm);
  /* [/sender] */
  return 0;
}
