/* Two processes work on one array of a GPU, without a copy. */
#define _GNU_SOURCE /* socketpair */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

enum { nbytes = 4 << 20 };

/* [receiver] */
static int work(int socket) {
  umemCudaAsync stream;
  if (umemCudaAsync_ctor(&stream, 0, UMEM_STREAM_NEW) != umemOK) return 1;
  uintptr_t x = umem_receive(socket, &stream, NULL);
  if (!x) return fprintf(stderr, "%s\n", umem_thread_message());
  umem_set(&stream, x, 7, nbytes); /* after the work of the other process */
  umem_detach(&stream, x);         /* waits for the work of this one */
  umem_dtor(&stream);
  return 0;
}
/* [/receiver] */

/* CUDA does not work in a child of a process that has used it: so fork first. */
int main(void) {
  int ends[2], failed = 1;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
  pid_t child = fork();
  if (!child) {
    close(ends[0]);
    _exit(work(ends[1]));
  }
  close(ends[1]);
  /* [sender] */
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  umemCudaAsync stream;
  options.share = 1;
  if (umemCudaAsync_ctor_with(&stream, 0, UMEM_STREAM_NEW, &options) == umemOK) {
    uintptr_t x = umem_alloc(&stream, nbytes);
    umem_set(&stream, x, 5, nbytes); /* is only queued */
    umem_send(ends[0], &stream, x, nbytes);
    umem_synchronize(&stream);
    waitpid(child, &failed, 0); /* the block must live until the other process has detached it */
    umem_free(&stream, x);
    umem_dtor(&stream);
  }
  /* [/sender] */
  else {
    fprintf(stderr, "%s\n", umem_thread_message());
    close(ends[0]);
    waitpid(child, NULL, 0);
    failed = 0; /* there is no GPU */
  }
  puts(failed ? "The other process has failed." : "Both processes are done.");
  return failed != 0;
}
