/* A process is killed while it has blocks. Another one finds them. */
#define _GNU_SOURCE /* kill */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

int main(void) {
  umemShm shm;
  if (umemShm_ctor(&shm, NULL, 1 << 20) != umemOK) return puts(umem_thread_message()), 1;
  pid_t child = fork();
  if (!child) {
    strcpy((char *)umem_alloc(&shm, 100), "half of the work");
    umem_alloc(&shm, 200);
    kill(getpid(), SIGKILL);
  }
  waitpid(child, NULL, 0);

  /* [reclaim] */
  umemShmBlock blocks[10];
  size_t count = umemShm_blocks(&shm, blocks, 10);
  for (size_t i = 0; i < count && i < 10; i++)
    if (blocks[i].dead)
      printf("%zu bytes are left: %.16s\n", blocks[i].nbytes, (char *)blocks[i].address);
  printf("%zu blocks are freed\n", umemShm_reclaim(&shm, child));
  /* [/reclaim] */
  umem_dtor(&shm);
  return 0;
}
