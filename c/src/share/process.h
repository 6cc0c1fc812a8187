/* process.h - what this process has of shared memory: the mappings, and the blocks, whose owner a
 * process is. */
#ifndef UMEM_SHARE_PROCESS_H
#define UMEM_SHARE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "share/segment.h"

/* ==== mappings ====
 *
 * The files and pieces of shared memory that this process has mapped for contexts and handles. Each
 * is mapped once. So one byte has one address in the process, whether a context has opened it or a
 * handle was attached. The mapping ends when the last of these goes.
 *
 * Threads: any. The global lock protects the list. */

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

/* Makes bytes of a writable mapping zero. What has never been written is a hole of the file, and
 * zero: so only the rest is written. Where the kernel knows no holes, as in huge pages, all is. */
void umemMapped_zero(umemMapped const *mapped, uintptr_t adr, size_t nbytes);

/* ==== owners ====
 *
 * Numbers of processes are used again. So an owner is the number together with the time at which
 * the process has started, in the ticks of /proc. The number holds in one PID namespace; whether
 * processes of others live is unknown. */

/* This process; also in a child of fork. */
umemShmOwner umemShmOwner_self(void);

/* The number of the process. */
static inline uint32_t umemShmOwner_pid(umemShmOwner owner) {
  return (uint32_t)(owner.process & 0xffffff);
}
static inline uint64_t umemShmOwner_start(umemShmOwner owner) { return owner.process >> 24; }

/* Whether the process has surely ended. */
bool umemShmOwner_is_dead(umemShmOwner owner);

/* The owner in one word that is not 0, so that one instruction can write it: the lower bits of its
 * number, its start and its space. Two processes that live at the same time have the same mark only
 * if they are in different spaces that share their lower bits. shown: the process shows its mark
 * (umemShmOwner_show). */
uint64_t umemShmOwner_mark(umemShmOwner owner, bool shown);

/* Shows the mark of the calling process to those of other spaces, by a lock on a byte of the file
 * fd, which the kernel ends with the process. Returns a descriptor, which is closed when the
 * process does not use the mark any more; -1 where the system does not permit it. A child of fork
 * keeps a mark shown as long as it has the descriptor. */
int umemShmOwner_show(umemShmOwner owner, int fd);

/* Whether the process of a mark has surely ended. fd: a descriptor of the file on which marks are
 * shown. */
bool umemShmOwner_is_mark_of_dead(uint64_t mark, int fd);

#endif
