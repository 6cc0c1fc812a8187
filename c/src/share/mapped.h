/* mapped.h - the files and pieces of shared memory that this process has mapped for contexts and
 * handles.
 *
 * Each is mapped once. So one byte has one address in the process, whether a context has opened it
 * or a handle was attached. The mapping ends when the last of these goes.
 *
 * Threads: any. The global lock protects the list. */
#ifndef UMEM_MAPPED_H
#define UMEM_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct umemMapped {
  struct umemMapped *next;
  uint64_t device, inode; /* of what is mapped */
  int fd;                 /* owned */
  bool writable;
  char *base;
  size_t size;
  size_t alignment; /* of base */
  size_t users;     /* contexts */
  size_t attached;  /* handles */
} umemMapped;

typedef enum umemMappedUse { umemMappedByContext, umemMappedByHandle } umemMappedUse;

/* Maps the first size bytes of fd, which it takes over, or finds them mapped already: then fd is
 * closed. alignment: the least that is needed. Returns NULL with errno set after a failure; fd is
 * closed then, too. */
umemMapped *umemMapped_open(int fd, size_t size, size_t alignment, bool writable,
                            umemMappedUse use);

/* One that is mapped already with all of the first size bytes. NULL if there is none. */
umemMapped *umemMapped_find(uint64_t device, uint64_t inode, size_t size, bool writable,
                            umemMappedUse use);

/* Ends one use. */
void umemMapped_close(umemMapped *mapped, umemMappedUse use);

/* Ends one use by a handle of the mapping that contains adr. False if no handle is attached
 * there. */
bool umemMapped_detach(uintptr_t adr);

#endif
