/* log.c - writes down what is done with another context. */
#include "core/adaptor.h"
#include "adaptors/log/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <umem/log.h>
#include <unistd.h>

/* ---- records in the file ---- */

/* The ring is larger than the processor's caches. So each record fetches the line of a later one
 * in advance. */
enum { ahead = 8 };

/* The number of the calling thread. A child of fork, where it would be wrong, writes nothing
 * through the files of its parent; for its own it queries the number again. */
static uint32_t thread_number(umemLogFile const *file, umemThread *thread) {
  if (__builtin_expect(!thread->number || thread->number_forks != file->forks, 0)) {
    thread->number = (uint32_t)syscall(SYS_gettid);
    thread->number_forks = file->forks;
  }
  return thread->number;
}

/* All but the number, and then that: each store is seen after those before it, so that whoever
 * reads the number before and after the rest has read one record. Member by member: a processor
 * that reads a word of which it has just written parts waits for these. */
static inline void fill_slot(umemLogSlot *slot, umemLogRecord const *record) {
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

/* Makes slot, which held the number seen, that of a record that is being written. Without other
 * threads this, and the next number, need no locked instruction. */
static inline bool take_slot(umemLogSlot *slot, uint64_t seen, bool alone) {
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

/* Until the commit, which moves header, contexts and ring, they are written under the lock.
 * Whether it was taken. */
static inline bool lock_if_building(umemLogFile const *file) {
  if (__builtin_expect(!__atomic_load_n(&file->building, __ATOMIC_ACQUIRE), 1)) return false;
  umemLock_acquire(&umem_log_lock);
  return true;
}

static inline void unlock_if(bool held) {
  if (__builtin_expect(held, 0)) umemLock_release(&umem_log_lock);
}

/* A slot that holds a later record, or is being written by a thread that has slept for a whole
 * round of the ring, is left alone: this record is older than all that the ring holds. */
void umemLogFile_put(umemLogFile *file, umemThread *thread, umemLogRecord *record) {
  bool held = lock_if_building(file);
  record->time = umemClock_now(&thread->clock);
  bool alone = umem_is_single_threaded();
  uint64_t before = next_number(file->header, alone);
  umemLogSlot *slot = &file->ring[before & file->mask];
  __builtin_prefetch(&file->ring[(before + ahead) & file->mask], 1);
  record->number = before + 1;
  uint64_t seen = __atomic_load_n(&slot->words[0], __ATOMIC_RELAXED);
  record->thread = thread_number(file, thread);
  if (seen <= before && take_slot(slot, seen, alone)) fill_slot(slot, record);
  unlock_if(held);
}

void umemLogFile_amend(umemLogFile *file, umemLogRecord *record) {
  bool held = lock_if_building(file);
  umemLogSlot *slot = &file->ring[(record->number - 1) & file->mask];
  if (take_slot(slot, record->number, umem_is_single_threaded())) fill_slot(slot, record);
  unlock_if(held);
}

/* ---- contexts in the file ---- */

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

/* Enters a context. Its number; 0, with a status on ctx, when there are too many. */
static uint16_t enter_name(umemLogFile *file, umemVirtual *ctx, umemLogContext const *context) {
  bool held = lock_if_building(file);
  uint32_t number = take_number(file);
  if (number) file->contexts[number] = *context;
  unlock_if(held);
  if (!number)
    umemVirtual_fail(ctx, umemMemoryError, "the log has had its %d contexts",
                     umemLog_context_count - 1);
  return (uint16_t)number;
}

/* Writes the name of the context anew: all bytes that umemLogContext has for it. */
static void rename_layer(umemLogFile *file, uint16_t number, char const *name) {
  bool held = lock_if_building(file);
  memcpy(file->contexts[number].name, name, sizeof file->contexts[number].name);
  unlock_if(held);
}

/* Notes that the context of this number has ended. */
static void note_end(umemLogFile *file, uint16_t number) {
  bool held = lock_if_building(file);
  file->contexts[number].ended = umemLog_end();
  unlock_if(held);
}

/* ---- the context ---- */

enum { least_bytes = 1 << 16 };

typedef struct Log {
  umemAdaptor adaptor;
  umemLogFile *file; /* a share of it is owned */
  uint16_t number;
  bool finished; /* atomic: it writes no more */
  bool left;     /* and the file knows that */
} Log;

static Log *log_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- records ---- */

/* Whether ctx writes at all: not in a child of fork, and not after it has finished. */
static bool writes(umemVirtual *ctx) {
  Log *log = log_of(ctx);
  return umemLogFile_is_ours(log->file) && !__atomic_load_n(&log->finished, __ATOMIC_RELAXED);
}

static inline void put_record(umemVirtual *ctx, umemLogRecord *record) {
  umemLogFile_put(log_of(ctx)->file, &umem_thread, record);
}

/* What the calling thread has failed with since before, or umemOK. */
static uint8_t status_since(uint64_t before) { return (uint8_t)umem_result(before); }

static void amend_record(umemVirtual *ctx, umemLogRecord *record, uint64_t before) {
  record->status = status_since(before);
  umemLogFile_amend(log_of(ctx)->file, record);
}

/* A set or copy begins, and has ended. */
static void begin_record(umemVirtual *ctx, umemLogRecord *record) {
  record->flags = umemLogUnfinished;
  put_record(ctx, record);
}

static void end_record(umemVirtual *ctx, umemLogRecord *record, uint64_t before) {
  record->flags = 0;
  record->duration = umemLog_now() - record->time;
  amend_record(ctx, record, before);
}

/* ---- allocation: upstream is called here, and not by umemAdaptor_allocate, to be faster ---- */

static uintptr_t log_realloc(umemVirtual *ctx, umemRequest const *request) {
  if (!writes(ctx)) return umemAdaptor_allocate(ctx, request);
  uint64_t before = umem_thread.failures;
  uint16_t number = log_of(ctx)->number;
  umemLogRecord old = {
      .kind = umemLogResizeBegin, .ctx = number, .adr = request->adr, .size = request->old_size};
  put_record(ctx, &old);
  uintptr_t moved = umemAdaptor_allocate(ctx, request);
  umemLogRecord new = {.kind = umemLogResizeEnd,
                       .ctx = number,
                       .adr = moved,
                       .size = request->nbytes,
                       .other_adr = request->adr,
                       .status = status_since(before)};
  put_record(ctx, &new);
  return moved;
}

UMEM_ADAPTOR_INLINE uintptr_t log_allocate(umemVirtual *ctx, umemRequest const *request) {
  static uint8_t const flags[] = {[umemByCalloc] = umemLogZeroed, [umemByAligned] = umemLogAligned};
  if (request->how == umemByRealloc) return log_realloc(ctx, request);
  uint64_t before = umem_thread.failures;
  uintptr_t adr = umem_alloc_as(umemAdaptor_upstream(ctx), request);
  umemLogRecord record = {.kind = umemLogAlloc,
                          .ctx = log_of(ctx)->number,
                          .adr = adr,
                          .size = request->nbytes,
                          .flags = flags[request->how],
                          .log2_alignment = (uint8_t)__builtin_ctzll(request->alignment)};
  if (__builtin_expect(umemAdaptor_failed(ctx, before), 0)) record.status = status_since(before);
  if (writes(ctx)) put_record(ctx, &record);
  return adr;
}
UMEM_ADAPTOR_ALLOCATES(log_allocate)

/* The record is written before upstream gets the block. So it precedes that of the next block at
 * the same address, and it is there when a wrong address ends the program. */
UMEM_ADAPTOR_INLINE void log_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  umemLogRecord record = {.kind = umemLogFree,
                          .ctx = log_of(ctx)->number,
                          .adr = adr,
                          .flags = aligned ? umemLogAligned : 0};
  uint64_t before = umem_thread.failures;
  bool puts = writes(ctx);
  if (puts) put_record(ctx, &record);
  umem_free_as(umemAdaptor_upstream(ctx), adr, aligned);
  if (__builtin_expect(umemAdaptor_failed(ctx, before), 0) && puts)
    amend_record(ctx, &record, before);
}
UMEM_ADAPTOR_FREES(log_free)

/* ---- bytes ---- */

static void log_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  if (!writes(ctx)) {
    umemAdaptor_set(ctx, adr, c, nbytes);
    return;
  }
  umemLogRecord record = {.kind = umemLogSet,
                          .ctx = log_of(ctx)->number,
                          .adr = adr,
                          .size = nbytes,
                          .value = (uint8_t)c};
  uint64_t before = umem_thread.failures;
  begin_record(ctx, &record);
  umemAdaptor_set(ctx, adr, c, nbytes);
  end_record(ctx, &record, before);
}

static struct umemVtbl const log_vtbl;

/* The other side of the copy that this thread makes, if its record names both: that side writes
 * no record of its own. */
static _Thread_local umemVirtual *partner;

/* The outermost context of the stack of ctx that writes to this file; NULL where there is none. */
static umemVirtual *same_file(umemVirtual *ctx, umemLogFile const *file) {
  for (; ctx; ctx = umem_below(ctx))
    if (ctx->vptr == &log_vtbl && log_of(ctx)->file == file) return ctx;
  return NULL;
}

/* A copy that ctx, a side of it, passes on. */
typedef struct Copy {
  umemLogRecord record;
  umemVirtual *partner; /* before this copy */
  uint64_t before;
  bool put;
} Copy;

static uint16_t number_of(umemVirtual *log) { return log ? log_of(log)->number : 0; }

static Copy begin_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                       uintptr_t dst_adr, uint64_t nbytes) {
  Copy copy = {.partner = partner, .before = umem_thread.failures};
  copy.put = writes(ctx) && partner != ctx;
  if (!copy.put) return copy;
  umemLogFile const *file = log_of(ctx)->file;
  umemVirtual *from = same_file(src, file), *to = same_file(dst, file);
  copy.record = (umemLogRecord){.kind = umemLogCopy,
                                .ctx = number_of(from),
                                .other_ctx = number_of(to),
                                .adr = src_adr,
                                .other_adr = dst_adr,
                                .size = nbytes};
  partner = src == ctx ? to : from;
  begin_record(ctx, &copy.record);
  return copy;
}

static void end_copy(umemVirtual *ctx, Copy *copy) {
  if (!copy->put) return;
  partner = copy->partner;
  end_record(ctx, &copy->record, copy->before);
}

static bool log_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                            uintptr_t dst_adr, umemLayout const *layout) {
  uint64_t nbytes = layout->item_size;
  for (int i = 0; i < layout->rank; i++) nbytes *= layout->extents[i];
  Copy copy = begin_copy(ctx, src, src_adr, dst, dst_adr, nbytes);
  umemAdaptor_copy_direct(ctx, src, src_adr, dst, dst_adr, layout);
  end_copy(ctx, &copy);
  return true;
}

/* ---- construction and end ---- */

/* Appends to name, which has used bytes. False when there is no more room. */
static bool append_text(char *name, size_t size, size_t *used, char const *format,
                        char const *text) {
  int length = snprintf(name + *used, size - *used, format, text);
  if (length < 0 || (size_t)length >= size - *used) return false;
  *used += (size_t)length;
  return true;
}

/* "\"solver\": Pool \"fields\" over Host", with the labels of the log and of the layers below. */
static void name_chain(umemVirtual *log, char *name, size_t size) {
  size_t used = 0;
  bool fits = true;
  char label[UMEM_LABEL_SIZE];
  memset(name, 0, size);
  umemExtra_label(log, label);
  if (*label) fits = append_text(name, size, &used, "\"%s\": ", label);
  char const *between = "%s";
  for (umemVirtual *ctx = umemAdaptor_upstream(log); fits && ctx && ctx->vptr;
       ctx = umem_below(ctx), between = " over %s") {
    fits = append_text(name, size, &used, between, umem_get_device_name(ctx));
    umemExtra_label(ctx, label);
    if (fits && *label) fits = append_text(name, size, &used, " \"%s\"", label);
  }
}

/* The stream of CUDA on which the work is queued; 0 where there is none, or where it is unknown. */
static uint64_t stream_of(umemVirtual *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  UMEM_FORGETTING(); /* the log is complete without it */
  umem_get_info(umemAdaptor_upstream(ctx), &info);
  return info.stream == UMEM_UNKNOWN ? 0 : info.stream;
}

static uint16_t enter_context(umemVirtual *ctx, umemLogFile *file) {
  umemLogContext context = {.begun = umemLog_now(),
                            .alignment = ctx->alignment,
                            .type = (uint32_t)ctx->type,
                            .capabilities = ctx->capabilities};
  context.stream = stream_of(ctx);
  name_chain(ctx, context.name, sizeof context.name);
  return enter_name(file, ctx, &context);
}

/* Labels may have come since the log was constructed. */
static void log_labelled(umemVirtual *ctx) {
  Log *log = log_of(ctx);
  char name[sizeof((umemLogContext *)0)->name];
  if (!writes(ctx)) return;
  name_chain(ctx, name, sizeof name);
  rename_layer(log->file, log->number, name);
}

static void stop_log(umemVirtual *ctx) {
  Log *log = log_of(ctx);
  if (!writes(ctx)) return;
  log_labelled(ctx);
  __atomic_store_n(&log->finished, true, __ATOMIC_RELAXED);
  note_end(log->file, log->number);
}

/* Threads that still run write no records after this, except those that they have begun. */
static void log_finish(umemVirtual *ctx) {
  Log *log = log_of(ctx);
  stop_log(ctx);
  if (!log->left) log->left = umemLogFile_leave(log->file);
}

static void log_dtor(umemVirtual *ctx) {
  Log *log = log_of(ctx);
  stop_log(ctx);
  umemLogFile_close(log->file, log->left);
  umemAdaptor_dtor(ctx);
}

/* What a log is constructed with; commits: the file is begun now. */
typedef struct Wish {
  umemLogOptions const *options;
  bool commits;
} Wish;

/* The caller's options in full; false, and a status on ctx, when they cannot be. */
static bool read_options(umemVirtual *ctx, umemLogOptions const *given, umemLogOptions *options) {
  *options = (umemLogOptions)UMEM_LOG_OPTIONS_INIT;
  if (!umem_read_sized(ctx, options, sizeof *options, given, "umemLogOptions")) return false;
  if (!given) return UMEM_FAIL(ctx, umemValueError, "the options are NULL");
  if (!options->filename || !*options->filename)
    return UMEM_FAIL(ctx, umemValueError, "the log has no file name");
  if (options->max_bytes && options->max_bytes < least_bytes)
    return UMEM_FAIL(ctx, umemValueError, "%" PRIu64 " bytes are too few for a log: at least %d",
                     options->max_bytes, least_bytes);
  if (options->max_bytes > INT64_MAX || options->max_bytes > SIZE_MAX / 2)
    return UMEM_FAIL(ctx, umemValueError, "%" PRIu64 " bytes are more than a log can have",
                     options->max_bytes);
  return true;
}

/* The name of the file that this process writes, which may be in text; NULL, and a status on
 * ctx, if it is too long. */
static char const *file_of(umemVirtual *ctx, umemLogOptions const *options, char *text,
                           size_t size) {
  if (!options->each_process) return options->filename;
  int length = snprintf(text, size, "%s.%ld", options->filename, (long)getpid());
  if (length > 0 && (size_t)length < size) return text;
  return UMEM_FAIL_NULL(ctx, umemValueError, "the name of the log is too long: at most %zu bytes",
                        size - 1);
}

static bool log_start(umemVirtual *ctx, void const *given) {
  Wish const *wish = given;
  umemLogOptions options;
  Log *log = log_of(ctx);
  ctx->capabilities &= ~(uint32_t)umemPrompt; /* it writes to a file */
  ctx->capabilities |= umemPromptBlocks;      /* which is mapped: a record is a few stores */
  if (!read_options(ctx, wish->options, &options)) return false;
  uint64_t max_bytes = options.max_bytes ? options.max_bytes : UMEM_LOG_BYTES;
  char text[4096]; /* PATH_MAX of Linux */
  char const *filename = file_of(ctx, &options, text, sizeof text);
  if (!filename) return false;
  log->file = umemLogFile_open(ctx, filename, max_bytes, wish->commits);
  if (!log->file) return false;
  log->number = enter_context(ctx, log->file);
  if (!log->number) umemLogFile_close(log->file, false);
  return log->number;
}

static struct umemVtbl const log_vtbl = {
    .dtor = log_dtor,
    .finish = log_finish,
    UMEM_ADAPTOR_ALLOCATION_BY(log_allocate),
    UMEM_ADAPTOR_FREE_BY(log_free),
    .set = log_set,
    .labelled = log_labelled,
    UMEM_ADAPTOR_COPIES_BY(log_copy_direct),
    UMEM_ADAPTOR_ORDER,
    UMEM_ADAPTOR_ALWAYS,
};

/* ---- by name: "log+host:?file=run.umem" ---- */

static umemLogOptions const defaults = UMEM_LOG_OPTIONS_INIT;

static umemOption const named_options[] = {
    {.name = "file",
     .kind = umemPathOption,
     .required = true,
     .help = "its name",
     .reserved = {offsetof(umemLogOptions, filename), sizeof(char *)}},
    UMEM_OPTION_NOT_0(umemLogOptions, max_bytes, "max", umemSizeOption,
                      "bytes of the file, at most; default: 16 MiB of records"),
    UMEM_OPTION_WORD(umemLogOptions, each_process, "each-process", "no yes",
                     "a file for each process: its number goes behind the name; default: no"),
};

static umemStatusType open_log(void *ctx, void *upstream, umemOptionValue const *place,
                               umemOptionValue const *given, void *user) {
  (void)place;
  umemLogOptions options;
  if (!umemKind_read(user, given, &options)) return umemValueError;
  return umemAdaptor_construct(ctx, upstream, false, user, &(Wish){&options, false});
}

static umemStatusType commit_log(void *ctx, void *user) {
  (void)user;
  uint64_t before = umem_thread.failures;
  umemLogFile_commit(log_of(ctx)->file, ctx);
  return umem_result(before);
}

static void complete_log(void *ctx, void *user) {
  (void)user;
  umemLogFile_begin(log_of(ctx)->file);
}

umemKind const umem_log_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemLog, "log", &log_vtbl), UMEM_OPTIONS(named_options),
               .construct = open_log, .commit = commit_log, .complete = complete_log,
               .user = (void *)&umem_log_kind, .help = "writes what is done into a file"},
    .label = "Log",
    .impl_size = sizeof(Log),
    .options_size = sizeof defaults,
    .defaults = &defaults,
    .start = log_start,
};

/* ---- the calls ---- */

UMEM_ADAPTOR_CTORS(umemLog, umem_log_kind, (&(Wish){options, true}), void *upstream,
                   umemLogOptions const *options)

unsigned umemLog_number(umemLog *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_log_kind);
  return self ? log_of(self)->number : 0;
}
