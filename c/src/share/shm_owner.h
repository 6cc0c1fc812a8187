/* shm_owner.h - which process a block belongs to.
 *
 * Numbers of processes are used again. So an owner is the number together with the time at which the process has
 * started, in the ticks of /proc. The number holds in one PID namespace; of others nobody can say whether they live. */
#ifndef UMEM_SHM_OWNER_H
#define UMEM_SHM_OWNER_H

#include "share/segment_table.h"

/* This process; also in a child of fork. */
umemShmOwner umemShmOwner_self(void);

/* The number of the process. */
static inline uint32_t umemShmOwner_pid(umemShmOwner owner) {
  return (uint32_t)(owner.process & 0xffffff);
}
static inline uint64_t umemShmOwner_start(umemShmOwner owner) { return owner.process >> 24; }

/* Whether the process has surely ended. */
bool umemShmOwner_is_dead(umemShmOwner owner);

/* The owner in one word that is not 0, so that one instruction can write it: the lower bits of its number, its start and
 * its space. Two processes that live at the same time have the same mark only if they are in different spaces that share
 * their lower bits. shown: the process shows its mark (umemShmOwner_show). */
uint64_t umemShmOwner_mark(umemShmOwner owner, bool shown);

/* Shows the mark of the calling process to those of other spaces, by a lock on a byte of the file fd, which the kernel
 * ends with the process. Returns a descriptor, which is closed when the process does not use the mark any
 * more; -1 where the system does not permit it. A child of fork keeps a mark shown as long as it has the descriptor. */
int umemShmOwner_show(umemShmOwner owner, int fd);

/* Whether the process of a mark has surely ended. fd: a descriptor of the file on which marks are shown. */
bool umemShmOwner_is_mark_of_dead(uint64_t mark, int fd);

#endif
