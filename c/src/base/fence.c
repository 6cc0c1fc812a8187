/* fence.c - see fence.h. */
#include "base/fence.h"
#include "base/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_membarrier

/* MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED */
enum { fence_command = 1 << 3, register_command = 1 << 4 };

static bool command(int which) { return syscall(SYS_membarrier, which, 0, 0) == 0; }

bool umem_fence_threads(void) {
  if (umem_is_single_threaded()) return true;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return command(fence_command) || (command(register_command) && command(fence_command));
}

#else

bool umem_fence_threads(void) { return umem_is_single_threaded(); }

#endif
