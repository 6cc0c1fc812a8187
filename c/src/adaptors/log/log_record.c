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

/* All but the first word, and then that: each store is seen after those before it, so that whoever
 * reads the number before and after the rest has read one record. */
static void fill(umemLogSlot *slot, umemLogRecord const *record) {
  for (size_t i = 1; i < sizeof slot->words / sizeof *slot->words; i++) {
    uint64_t word;
    memcpy(&word, (char const *)record + i * sizeof word, sizeof word);
    __atomic_store_n(&slot->words[i], word, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&slot->words[0], record->number, __ATOMIC_RELEASE);
}

static bool take(umemLogSlot *slot, uint64_t seen) {
  return __atomic_compare_exchange_n(&slot->words[0], &seen, UMEM_LOG_BUSY, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
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
  record->time = umemLog_now();
  uint64_t before = __atomic_fetch_add(&file->header->next, 1, __ATOMIC_RELAXED);
  umemLogSlot *slot = &file->ring[before & file->mask];
  __builtin_prefetch(&file->ring[(before + ahead) & file->mask], 1);
  record->number = before + 1;
  uint64_t seen = __atomic_load_n(&slot->words[0], __ATOMIC_RELAXED);
  record->thread = thread_number(file, thread);
  if (seen <= before && take(slot, seen)) fill(slot, record);
  release(held);
}

void umemLogFile_amend(umemLogFile *file, umemLogRecord *record) {
  bool held = hold(file);
  umemLogSlot *slot = &file->ring[(record->number - 1) & file->mask];
  if (take(slot, record->number)) fill(slot, record);
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

void umemLogFile_note_end(umemLogFile *file, uint16_t number) {
  bool held = hold(file);
  file->contexts[number].ended = umemLog_now();
  release(held);
}
