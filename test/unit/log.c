/* log.c - umem/log.h: what becomes a record, and what is in it. */
#include "log_help.h"
#include "umem_log_file.h"

#include <sys/stat.h>
#include <sys/syscall.h>

static umemLog one, two;

/* The record at index i, of this kind. */
static umemLogRecord const *record(size_t i, umemLogKind kind) {
  assert_true(i < trace.count);
  umemLogRecord const *r = &trace.records[i];
  assert_int_equal(r->kind, kind);
  assert_int_equal(r->thread, syscall(SYS_gettid));
  assert_true(r->time >= trace.header.begun);
  return r;
}

#define EXPECT_RECORD(i, what, where, bytes)                                                       \
  do {                                                                                             \
    umemLogRecord const *r_ = record(i, what);                                                     \
    assert_true(r_->adr == (where) && r_->size == (bytes));                                        \
    assert_true(r_->ctx == 1 && r_->status == umemOK && !r_->other_ctx);                           \
  } while (0)

/* ---- records ---- */

static void each_event_is_a_record(void **state) {
  (void)state;
  void *const below[] = {&host, &fake, &offsets};
  for (int i = 0; i < 3; i++) {
    assert_ok(umemLog_ctor(&one, below[i], &options));
    assert_int_equal(umemLog_number(&one), 1);
    uintptr_t plain = umem_alloc(&one, 100);
    uintptr_t zeroed = umem_calloc(&one, 3, 70);
    uintptr_t aligned = umem_aligned_alloc(&one, 4096, 50);
    uintptr_t moved = umem_realloc(&one, plain, 100, 5000);
    umem_set(&one, moved + 1, 300, 40);
    umem_free(&one, zeroed);
    umem_aligned_free(&one, aligned);
    umem_free(&one, moved);
    end(&one);
    read_back();
    assert_int_equal(trace.count, 9);
    assert_true(trace.header.ended && !trace.incomplete && !trace.overwritten);
    EXPECT_RECORD(0, umemLogAlloc, plain, 100);
    EXPECT_RECORD(1, umemLogAlloc, zeroed, 210);
    EXPECT_RECORD(2, umemLogAlloc, aligned, 50);
    EXPECT_RECORD(3, umemLogResizeBegin, plain, 100);
    EXPECT_RECORD(4, umemLogResizeEnd, moved, 5000);
    EXPECT_RECORD(5, umemLogSet, moved + 1, 40);
    EXPECT_RECORD(6, umemLogFree, zeroed, 0);
    EXPECT_RECORD(7, umemLogFree, aligned, 0);
    EXPECT_RECORD(8, umemLogFree, moved, 0);
    assert_int_equal(trace.records[0].flags, 0);
    assert_int_equal(trace.records[1].flags, umemLogZeroed);
    assert_int_equal(trace.records[2].flags, umemLogAligned);
    assert_int_equal(trace.records[2].log2_alignment, 12);
    assert_true(trace.records[4].other_adr == plain);
    assert_int_equal(trace.records[5].value, 300 - 256);
    assert_int_equal(trace.records[7].flags, umemLogAligned);
    for (size_t k = 1; k < trace.count; k++)
      assert_true(trace.records[k].time >= trace.records[k - 1].time);
  }
}

static void the_contexts_are_named(void **state) {
  (void)state;
  umemPool pool;
  Backend const *row = backend_by_name("cuda-async");
  umemVirtual *cuda = row->open();
  assert_ok(umemPool_ctor(&pool, &host, NULL));
  assert_ok(umemLog_ctor(&one, &pool, &options));
  if (cuda) assert_ok(umemLog_ctor(&two, cuda, &options));
  uintptr_t stream = cuda ? umemCudaAsync_stream(cuda) : 0;
  read_back();
  assert_int_equal(trace.header.contexts, cuda ? 2 : 1);
  assert_int_equal(trace.header.process, getpid());
  assert_int_equal(trace.header.ended, 0);
  assert_string_equal(trace.contexts[1].name, "Pool over Host");
  assert_true(trace.contexts[1].begun && !trace.contexts[1].ended);
  assert_int_equal(trace.contexts[1].alignment, pool.super.alignment);
  assert_int_equal(trace.contexts[1].type, umemHostDevice);
  assert_int_equal(trace.contexts[1].stream, 0);
  if (cuda) {
    assert_string_equal(trace.contexts[2].name, umem_get_device_name(cuda));
    assert_true(trace.contexts[2].stream && trace.contexts[2].stream == stream);
    end(&two);
    row->close(cuda);
  }
  end(&one);
  umem_dtor(&pool);
  read_back();
  assert_true(trace.contexts[1].ended && trace.header.ended >= trace.contexts[1].ended);
}

/* ---- copies ---- */

static void expect_copy(size_t i, unsigned from, uintptr_t src, unsigned to, uintptr_t dst,
                        uint64_t nbytes) {
  umemLogRecord const *r = record(i, umemLogCopy);
  assert_int_equal(r->ctx, from);
  assert_int_equal(r->other_ctx, to);
  assert_true(r->adr == src && r->other_adr == dst && r->size == nbytes);
  assert_int_equal(r->status, umemOK);
  assert_int_equal(r->flags, 0);
  assert_true(r->duration > 0);
}

static void a_copy_is_one_record_with_both_sides(void **state) {
  (void)state;
  umemLimit limit;
  assert_ok(umemLog_ctor(&one, &host, &options));
  assert_ok(umemLog_ctor(&two, &fake, &options));
  assert_ok(umemLimit_ctor(&limit, &two, 1000));
  assert_int_equal(umemLog_number(&two), 2);
  uintptr_t a = umem_calloc(&one, 1, 100), b = umem_calloc(&two, 1, 100);
  uintptr_t elsewhere = umem_calloc(&fake, 1, 100);
  assert_ok(umem_copy_to(&one, a, &two, b, 10));
  assert_ok(umem_copy_to(&two, b, &one, a, 11));
  assert_ok(umem_copy_to(&one, a, &limit, b, 12)); /* which decorates two */
  assert_ok(umem_copy_from(&one, a, &limit, b, 13));
  assert_ok(umem_copy_to(&one, a, &one, a + 50, 14));
  assert_ok(umem_copy_to(&one, a, &fake, elsewhere, 15));
  assert_ok(umem_copy_from(&two, b, &fake, elsewhere, 16));
  size_t const extents[] = {3, 4};
  ptrdiff_t const strides[] = {20, 4};
  umemLayout const layout = {.size = sizeof layout,
                             .item_size = 2,
                             .rank = 2,
                             .extents = extents,
                             .src_strides = strides,
                             .dst_strides = strides};
  assert_ok(umem_copy_strided(&two, b, &one, a, &layout));
  umem_free(&one, a);
  umem_free(&two, b);
  umem_free(&fake, elsewhere);
  end(&limit);
  end(&two);
  end(&one);
  read_back();
  assert_int_equal(trace.count, 2 + 8 + 2);
  expect_copy(2, 1, a, 2, b, 10);
  expect_copy(3, 2, b, 1, a, 11);
  expect_copy(4, 1, a, 2, b, 12);
  expect_copy(5, 2, b, 1, a, 13);
  expect_copy(6, 1, a, 1, a + 50, 14);
  expect_copy(7, 1, a, 0, elsewhere, 15);
  expect_copy(8, 0, elsewhere, 2, b, 16);
  expect_copy(9, 2, b, 1, a, 24);
}

/* Of two files each has its own record. */
static void another_file_knows_one_side(void **state) {
  (void)state;
  char first[BACKEND_PATH_SIZE];
  memcpy(first, path, sizeof first);
  assert_ok(umemLog_ctor(&one, &host, &options));
  assert_true(backend_temp_file(path));
  assert_ok(umemLog_ctor(&two, &fake, &options));
  uintptr_t a = umem_calloc(&one, 1, 100), b = umem_calloc(&two, 1, 100);
  assert_ok(umem_copy_to(&one, a, &two, b, 10));
  umem_free(&one, a);
  umem_free(&two, b);
  end(&two);
  end(&one);
  read_back();
  assert_int_equal(trace.count, 3);
  expect_copy(1, 0, a, 1, b, 10);
  unlink(path);
  memcpy(path, first, sizeof first);
  read_back();
  expect_copy(1, 1, a, 0, b, 10);
}

/* ---- failures ---- */

static void failures_are_in_their_records(void **state) {
  (void)state;
  umemLimit limit;
  assert_ok(umemLimit_ctor(&limit, &fake, 1000));
  assert_ok(umemLog_ctor(&one, &limit, &options));
  uintptr_t adr = umem_alloc(&one, 100);
  assert_true(umem_alloc(&one, 2000) == 0);
  expect_both(&one, &limit, umemMemoryError, "2000");
  assert_true(umem_realloc(&one, adr, 100, 3000) == 0);
  expect_both(&one, &limit, umemMemoryError, "2900");
  assert_int_equal(umem_set(&one, adr + 90, 1, 20), umemIndexError);
  umem_clear_status(&one), umem_clear_status(&limit), umem_clear_status(&fake);
  umem_free(&one, adr + 16);
  assert_int_equal(umem_get_status(&one), umemValueError);
  umem_clear_status(&one), umem_clear_status(&limit), umem_clear_status(&fake);
  umem_free(&one, adr);
  end(&one);
  end(&limit);
  read_back();
  assert_int_equal(trace.count, 7);
  umemStatusType const expected[] = {umemOK,         umemMemoryError, umemOK, umemMemoryError,
                                     umemIndexError, umemValueError,  umemOK};
  for (size_t i = 0; i < 7; i++) assert_int_equal(trace.records[i].status, expected[i]);
  assert_true(trace.records[1].size == 2000 && trace.records[1].adr == 0);
  assert_int_equal(trace.records[4].kind, umemLogSet);
  assert_true(trace.records[5].kind == umemLogFree && trace.records[5].adr == adr + 16);
}

/* ---- the ring ---- */

static void the_oldest_are_overwritten(void **state) {
  (void)state;
  struct stat about;
  enum { allocations = 500 };
  open_small(&one, &host);
  for (size_t i = 1; i <= allocations; i++) umem_free(&one, umem_alloc(&one, i));
  end(&one);
  assert_int_equal(stat(path, &about), 0);
  assert_true(about.st_size <= 1 << 16);
  read_back();
  assert_int_equal(trace.header.capacity, 256);
  assert_int_equal(trace.count, 256);
  assert_int_equal(trace.overwritten, 2 * allocations - 256);
  assert_int_equal(trace.incomplete, 0);
  for (size_t i = 0; i < trace.count; i++) {
    assert_int_equal(trace.records[i].number, trace.overwritten + i + 1);
    assert_int_equal(trace.records[i].size, i % 2 ? 0 : (trace.overwritten + i) / 2 + 1);
  }
}

enum { rounds = 5000 };

/* Sizes tell who it was and when. */
static void *work(void *number) {
  size_t base = ((size_t)number + 1) << 16;
  for (size_t i = 0; i < rounds; i++) {
    uintptr_t adr = umem_alloc(&one, base + i);
    if (!adr || umem_set(&one, adr, 1, 1 + i % 100)) abort();
    umem_free(&one, adr);
  }
  return number;
}

typedef struct Seen {
  size_t next[worker_count]; /* how many allocations of each */
  uint64_t live;
} Seen;

/* Whether each allocation of each thread is there, in its order. */
static bool see(void *user, TraceStep const *step) {
  Seen *seen = user;
  umemLogRecord const *r = step->record;
  if (r->kind == umemLogAlloc) {
    size_t who = (r->size >> 16) - 1;
    assert_true(who < worker_count);
    assert_int_equal(r->size & 0xffff, seen->next[who]++);
    assert_int_equal(step->all, seen->live + r->size);
  } else {
    assert_non_null(step->block);
  }
  seen->live = step->all;
  return true;
}

static void threads_write_together(void **state) {
  (void)state;
  Seen seen = {.live = 0};
  assert_ok(umemLog_ctor(&one, &host, &options));
  in_threads(work);
  end(&one);
  read_back();
  assert_int_equal(trace.count, 3 * rounds * worker_count);
  assert_int_equal(trace.incomplete, 0);
  assert_true(trace_walk(&trace, see, &seen));
  for (int i = 0; i < worker_count; i++) assert_int_equal(seen.next[i], rounds);
  assert_int_equal(seen.live, 0);
}

/* A context with one address, which goes from thread to thread: who gives it back lets another one
 * have it before going on. */
static bool taken; /* atomic */

static uintptr_t take_only(umemVirtual *ctx, size_t nbytes) {
  (void)ctx, (void)nbytes;
  while (__atomic_exchange_n(&taken, true, __ATOMIC_ACQUIRE)) sched_yield();
  return 4096;
}

static void give_only(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx, (void)adr;
  __atomic_store_n(&taken, false, __ATOMIC_RELEASE);
  sched_yield();
}

static void *take_turns(void *number) {
  for (size_t i = 0; i < rounds; i++) umem_free(&one, umem_alloc(&one, 10));
  return number;
}

/* In the order of the records no address has two blocks. */
static void a_free_stands_before_what_follows_it(void **state) {
  (void)state;
  static struct umemVtbl const methods = {.alloc = take_only, .free = give_only};
  umemVirtual single;
  umemVirtual_ctor(&single, &host);
  single.vptr = &methods;
  single.capabilities |= umemConcurrent;
  assert_ok(umemLog_ctor(&one, &single, &options));
  in_threads(take_turns);
  end(&one);
  umem_dtor(&single);
  read_back();
  assert_int_equal(trace.count, 2 * rounds * worker_count);
  for (size_t i = 0; i < trace.count; i++)
    assert_int_equal(trace.records[i].kind, i % 2 ? umemLogFree : umemLogAlloc);
}

/* Many rounds of a small ring at once: what remains is whole. */
static void threads_overwrite_each_other(void **state) {
  (void)state;
  open_small(&one, &host);
  in_threads(work);
  end(&one);
  read_back();
  assert_int_equal(trace.header.next, 3 * rounds * worker_count);
  assert_int_equal(trace.count + trace.incomplete, 256);
  for (size_t i = 0; i < trace.count; i++) {
    umemLogRecord const *r = &trace.records[i];
    size_t who = (size_t)(r->size >> 16);
    if (r->kind == umemLogAlloc) assert_true(who >= 1 && who <= worker_count);
    if (r->kind == umemLogSet) assert_true(r->size <= 100 && r->value == 1);
    if (r->kind == umemLogFree) assert_true(r->size == 0 && r->duration == 0);
  }
}

/* A record that is older than the ring, or whose place is being written, is dropped. */
static void late_records_are_dropped(void **state) {
  (void)state;
  umemLogFile *file = umemLogFile_open(&host.super, path, 1 << 16);
  assert_non_null(file);
  umemLogRecord old = {.kind = umemLogSet, .size = 1}, record = {.kind = umemLogSet, .size = 2};
  umemLogFile_put(file, &old);
  assert_int_equal(old.number, 1);
  for (int i = 0; i < 255; i++) umemLogFile_put(file, &record);
  file->ring[0].words[0] = UMEM_LOG_BUSY;
  file->ring[1].words[0] = 1000;
  for (int i = 0; i < 3; i++) umemLogFile_put(file, &record);
  assert_true(file->ring[0].words[0] == UMEM_LOG_BUSY && file->ring[0].words[3] == 1);
  assert_int_equal(file->ring[1].words[0], 1000);
  assert_int_equal(file->ring[2].words[0], 259);
  file->ring[0].words[0] = 257;
  old.size = 3;
  umemLogFile_amend(file, &old);
  assert_int_equal(file->ring[0].words[3], 1);
  record.size = 4;
  umemLogFile_amend(file, &record);
  assert_int_equal(file->ring[2].words[3], 4);
  umemLogFile_close(file);
}

static void *read_all_the_time(void *over) {
  Trace live;
  while (!__atomic_load_n((bool *)over, __ATOMIC_ACQUIRE)) {
    if (!trace_read(&live, path)) abort();
    for (size_t i = 0; i < live.count; i++) {
      umemLogRecord const *r = &live.records[i];
      uint64_t before = r->number - 1; /* records */
      bool sound = before % 2 ? r->kind == umemLogFree && r->size == 0
                              : r->kind == umemLogAlloc && r->size == 1 + before / 2 % 1000;
      if (!sound || (i && r->number <= r[-1].number)) abort();
    }
    trace_close(&live);
  }
  return NULL;
}

/* What is read of a log that is being written is whole. */
static void a_log_can_be_read_while_it_is_written(void **state) {
  (void)state;
  pthread_t reader;
  bool over = false;
  open_small(&one, &host);
  assert_int_equal(pthread_create(&reader, NULL, read_all_the_time, &over), 0);
  for (size_t i = 0; i < 200000; i++) umem_free(&one, umem_alloc(&one, 1 + i % 1000));
  __atomic_store_n(&over, true, __ATOMIC_RELEASE);
  assert_int_equal(pthread_join(reader, NULL), 0);
  end(&one);
}

/* ---- files ---- */

/* The same file by another name. */
static void a_file_is_shared_and_then_begun_anew(void **state) {
  (void)state;
  char other[BACKEND_PATH_SIZE + 8];
  snprintf(other, sizeof other, "%s-link", path);
  assert_ok(umemLog_ctor(&one, &host, &options));
  assert_int_equal(link(path, other), 0);
  options.filename = other;
  options.max_bytes = 1 << 16; /* not looked at */
  assert_ok(umemLog_ctor(&two, &host, &options));
  umem_free(&two, umem_alloc(&two, 1));
  end(&one);
  umem_free(&two, umem_alloc(&two, 2));
  end(&two);
  read_back();
  assert_int_equal(trace.count, 4);
  assert_int_equal(trace.records[3].ctx, 2);
  assert_int_equal(trace.header.capacity, 1 << 18);
  open_small(&one, &host);
  end(&one);
  read_back();
  assert_int_equal(trace.count, 0);
  unlink(other);
}

static void expect_refusal(umemStatusType type, char const *text) {
  umemLog log;
  assert_int_equal(umemLog_ctor(&log, &host, &options), type);
  expect_failure(&log, type, text);
  assert_int_equal(umemLog_number(&log), 0);
  umem_thread_clear();
}

static void bad_options_are_refused(void **state) {
  (void)state;
  umemLog log;
  assert_int_equal(umemLog_ctor(&log, &host, NULL), umemValueError);
  expect_failure(&log, umemValueError, "the options are NULL");
  options.size = 8;
  expect_refusal(umemValueError, "too small");
  options.size = sizeof options;
  options.max_bytes = 65535;
  expect_refusal(umemValueError, "65535 bytes are too few");
  options.max_bytes = UINT64_MAX;
  expect_refusal(umemValueError, "more than a log can have");
  options.max_bytes = 0;
  options.filename = NULL;
  expect_refusal(umemValueError, "no file name");
  options.filename = "";
  expect_refusal(umemValueError, "no file name");
  options.filename = "/nonexistent/log";
  expect_refusal(umemIOError, "cannot open the log '/nonexistent/log': No such file");
  options.filename = "/dev/null";
  expect_refusal(umemIOError, "no regular file");
}

/* A name given by mistake costs no data. */
static void other_files_are_left_alone(void **state) {
  (void)state;
  char text[32] = "";
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs("important", file) >= 0 && !fclose(file));
  expect_refusal(umemValueError, "is no log: it is not overwritten");
  file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "important");
}

static void a_log_is_opened_by_name(void **state) {
  (void)state;
  char name[BACKEND_PATH_SIZE + 64];
  snprintf(name, sizeof name, "log+limit+host:?limit=1M&log.file=%s&max=64K", path);
  void *log = umem_open(name);
  assert_non_null(log);
  assert_int_equal(umemLog_number(log), 1);
  umem_free(log, umem_alloc(log, 10));
  assert_ok(umem_close(log));
  read_back();
  assert_int_equal(trace.count, 2);
  assert_int_equal(trace.header.capacity, 256);
  assert_string_equal(trace.contexts[1].name, "Limit over Host");
  assert_null(umem_open("log+host:")); /* the file must be named */
  umem_thread_clear();
}

static void a_log_has_room_for_255_contexts(void **state) {
  (void)state;
  open_small(&one, &host);
  for (unsigned i = 2; i < 256; i++) {
    assert_ok(umemLog_ctor(&two, &host, &options));
    assert_int_equal(umemLog_number(&two), i);
    end(&two);
  }
  expect_refusal(umemMemoryError, "the log has had its 255 contexts");
  end(&one);
  read_back();
  assert_int_equal(trace.header.contexts, 255);
}

int main(void) {
  static struct CMUnitTest const tests[] = {
      LOG_TEST(each_event_is_a_record),
      LOG_TEST(the_contexts_are_named),
      LOG_TEST(a_copy_is_one_record_with_both_sides),
      LOG_TEST(another_file_knows_one_side),
      LOG_TEST(failures_are_in_their_records),
      LOG_TEST(the_oldest_are_overwritten),
      LOG_TEST(threads_write_together),
      LOG_TEST(a_free_stands_before_what_follows_it),
      LOG_TEST(threads_overwrite_each_other),
      LOG_TEST(late_records_are_dropped),
      LOG_TEST(a_log_can_be_read_while_it_is_written),
      LOG_TEST(a_file_is_shared_and_then_begun_anew),
      LOG_TEST(bad_options_are_refused),
      LOG_TEST(other_files_are_left_alone),
      LOG_TEST(a_log_is_opened_by_name),
      LOG_TEST(a_log_has_room_for_255_contexts),
  };
  return cmocka_run_group_tests_name("Log", tests, NULL, NULL);
}
