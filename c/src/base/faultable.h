/* faultable.h - plain copying of bytes in mapped files, which another process can cut.
 *
 * A page that the file no longer reaches raises SIGBUS when it is touched; so does a page for which
 * a full disk has no room, and one that the disk cannot read. umem_access_faultable turns that
 * signal into a result.
 *
 * The library's handler of SIGBUS is installed only while protected functions run. It ends the
 * protected function of the thread that the signal came to, if the address is in one of its ranges.
 * It hands every other SIGBUS to the handler that the program had installed before. */
#ifndef UMEM_FAULTABLE_H
#define UMEM_FAULTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The addresses first ... first + size - 1; size 0 for none. */
typedef struct umemFaultableRange {
  uintptr_t first;
  size_t size;
} umemFaultableRange;

/* Only reads and writes memory: it is left wherever the signal comes, so it holds no lock,
 * allocates nothing, and makes no system call. */
typedef void umemFaultableWork(void *data);

/* Calls work(data) with two ranges protected. Returns true when work has returned. Returns false
 * when an access to one of the ranges raised SIGBUS, which has ended work somewhere; and, without a
 * call of work, when more threads are in protected functions than there is room for, or when the
 * program has replaced the library's handler before. Costs some five system calls. A SIGBUS that
 * another process or thread has sent, and that the calling thread blocks, remains pending until the
 * end. */
bool umem_access_faultable(umemFaultableRange const ranges[2], umemFaultableWork *work, void *data);

#endif
