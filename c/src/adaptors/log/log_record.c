/* log_record.c - writes contexts and records into a umemLogFile. */
#include "adaptors/log/log_file.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The ring is larger than the processor's caches. So a record asks for the line of a later one, which is there when
 * that is written. */
enum { ahead = 8 };

/* The number of the calling thread. A child of fork, where it would be wrong, writes nothing
 * through the files of its parent; its own ask again. */
static uint32_t thread_number(umemLogFile const *file, umemThread *thread) {
  if (__builtin_expect(!thread->number || thread->number_forks != file->forks, 0)) {
    thread->number = (uint32_t)syscall(SYS_gettid);
    thread->number_forks = file->forks;
  }
  return thread->number;
}

/* All but the number, and then that: each store is seen after those before it, so that whoever reads the
 * number before and after the rest has read one record. Member by member: a processor that reads a word of which it has
 * just written parts waits for these. */
static inline void fill(umemLogSlot *slot, umemLogRecord const *record) {
  umemLogRecord *to = (umemLogRecord *)(void *)slot;
#define FILL(member) __atomic_store_n(&to->member, record->member, __ATOMIC_RELEASE)
  FILL(time);
  FILL(adr);
  FILL(size);
  FILL(other_adr);
  FILL(duration);
  FILL(thread);
  FILL(ctx);
  FILL(other_ctx);
  FILL(kind);
  FILL(flags);
  FILL(status);
  FILL(log2_alignment);
  FILL(value);
  FILL(number);
#undef FILL
}

/* Makes slot, which held the number seen, that of a record that is being written. Without other threads this, and the
 * next number, need no locked instruction. */
static inline bool take(umemLogSlot *slot, uint64_t seen, bool alone) {
  if (alone) {
    bool same = __atomic_load_n(&slot->words[0], __ATOMIC_RELAXED) == seen;
    if (same) __atomic_store_n(&slot->words[0], UMEM_LOG_BUSY, __ATOMIC_RELEASE);
    return same;
  }
  return __atomic_compare_exchange_n(&slot->words[0], &seen, UMEM_LOG_BUSY, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* The records that have got a slot before this one. */
static inline uint64_t next_number(umemLogHeader *header, bool alone) {
  if (!alone) return __atomic_fetch_add(&header->next, 1, __ATOMIC_RELAXED);
  uint64_t before = __atomic_load_n(&header->next, __ATOMIC_RELAXED);
  __atomic_store_n(&header->next, before + 1, __ATOMIC_RELAXED);
  return before;
}

/* Until the commit, which moves header, contexts and ring, they are written under the lock. Whether it was
 * taken. */
static inline bool hold(umemLogFile const *file) {
  if (__builtin_expect(!__atomic_load_n(&file->building, __ATOMIC_ACQUIRE), 1)) return false;
  umemLock_acquire(&umem_log_lock);
  return true;
}

static inline void release(bool held) {
  if (__builtin_expect(held, 0)) umemLock_release(&umem_log_lock);
}

/* A slot that holds a later record, or is being written by a thread that has slept for a whole
 * round of the ring, is left alone: this record is older than all that the ring holds. */
void umemLogFile_put(umemLogFile *file, umemThread *thread, umemLogRecord *record) {
  bool held = hold(file);
  record->time = umemClock_now(&thread->clock);
  bool alone = umem_is_single_threaded();
  uint64_t before = next_number(file->header, alone);
  umemLogSlot *slot = &file->ring[before & file->mask];
  __builtin_prefetch(&file->ring[(before + ahead) & file->mask], 1);
  record->number = before + 1;
  uint64_t seen = __atomic_load_n(&slot->words[0], __ATOMIC_RELAXED);
  record->thread = thread_number(file, thread);
  if (seen <= before && take(slot, seen, alone)) fill(slot, record);
  release(held);
}

void umemLogFile_amend(umemLogFile *file, umemLogRecord *record) {
  bool held = hold(file);
  umemLogSlot *slot = &file->ring[(record->number - 1) & file->mask];
  if (take(slot, record->number, umem_is_single_threaded())) fill(slot, record);
  release(held);
}

/* ---- contexts ---- */

/* The number of a new context; 0 when there are too many. */
static uint32_t take_number(umemLogFile *file) {
  uint32_t *count = &file->header->contexts;
  uint32_t before = __atomic_load_n(count, __ATOMIC_RELAXED);
  do
    if (before + 1 >= umemLog_context_count) return 0;
  while (!__atomic_compare_exchange_n(count, &before, before + 1, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
  return before + 1;
}

uint16_t umemLogFile_enter(umemLogFile *file, umemVirtual *ctx, umemLogContext const *context) {
  bool held = hold(file);
  uint32_t number = take_number(file);
  if (number) file->contexts[number] = *context;
  release(held);
  if (!number)
    umemVirtual_fail(ctx, umemMemoryError, "the log has had its %d contexts",
                     umemLog_context_count - 1);
  return (uint16_t)number;
}

void umemLogFile_rename(umemLogFile *file, uint16_t number, char const *name) {
  bool held = hold(file);
  memcpy(file->contexts[number].name, name, sizeof file->contexts[number].name);
  release(held);
}

void umemLogFile_note_end(umemLogFile *file, uint16_t number) {
  bool held = hold(file);
  file->contexts[number].ended = umemLog_end();
  release(held);
}
