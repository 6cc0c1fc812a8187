/* log_ring.c - the ring of a log, which many threads write and others may read. */
#include "log_help.h"
#include "adaptors/log/log.h"

static umemLog one;

LOG_TEST(the_oldest_are_overwritten) {
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

/* A record that is older than the ring, or whose slot is being written, is
 * dropped. Here the process has one thread. */
LOG_TEST(late_records_are_dropped) {
  umemLogFile *file = umemLogFile_open(&host.super, path, 1 << 16, true);
  assert_non_null(file);
  umemLogRecord old = {.kind = umemLogSet, .size = 1}, record = {.kind = umemLogSet, .size = 2};
  umemLogFile_put(file, &umem_thread, &old);
  assert_int_equal(old.number, 1);
  for (int i = 0; i < 255; i++) umemLogFile_put(file, &umem_thread, &record);
  file->ring[0].words[0] = UMEM_LOG_BUSY;
  file->ring[1].words[0] = 1000;
  for (int i = 0; i < 3; i++) umemLogFile_put(file, &umem_thread, &record);
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
  umemLogFile_close(file, false);
}

enum { rounds = 5000 };

/* The size of a block shows which thread made it, and when. */
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

LOG_TEST(threads_write_together) {
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

static uintptr_t take_only(umemVirtual *ctx UNUSED, size_t nbytes UNUSED) {
  while (__atomic_exchange_n(&taken, true, __ATOMIC_ACQUIRE)) sched_yield();
  return 4096;
}

static void give_only(umemVirtual *ctx UNUSED, uintptr_t adr UNUSED) {
  __atomic_store_n(&taken, false, __ATOMIC_RELEASE);
  sched_yield();
}

static void *take_turns(void *number) {
  for (size_t i = 0; i < rounds; i++) umem_free(&one, umem_alloc(&one, 10));
  return number;
}

/* In the order of the records no address has two blocks. */
LOG_TEST(a_free_stands_before_what_follows_it) {
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

/* Many threads go round a small ring at once: all records that remain are complete. */
LOG_TEST(threads_overwrite_each_other) {
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

TEST_CASE_AGAIN(late_records_are_dropped, after_threads, set_up_log, tear_down_log, NULL)

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

/* All records that are read of a log that is being written are complete. */
LOG_TEST(a_log_can_be_read_while_it_is_written) {
  pthread_t reader;
  bool over = false;
  open_small(&one, &host);
  assert_int_equal(pthread_create(&reader, NULL, read_all_the_time, &over), 0);
  for (size_t i = 0; i < 200000; i++) umem_free(&one, umem_alloc(&one, 1 + i % 1000));
  __atomic_store_n(&over, true, __ATOMIC_RELEASE);
  assert_int_equal(pthread_join(reader, NULL), 0);
  end(&one);
}

/* What is complete has all of its records: they are of the log that the header is of. */
static void *read_one_of_many(void *over) {
  Trace live;
  size_t whole = 0;
  while (!__atomic_load_n((bool *)over, __ATOMIC_ACQUIRE)) {
    if (!trace_read(&live, path)) {
      if (strcmp(live.why, "it was begun anew while it was read") != 0) abort();
      continue;
    }
    bool is_complete = live.header.ended != 0;
    if (is_complete && (live.count != 100 || live.incomplete)) abort();
    for (size_t i = 1; i < live.count; i++)
      if (is_complete && live.records[i].size && live.records[i].size != live.records[0].size)
        abort();
    whole += is_complete;
    trace_close(&live);
  }
  return (void *)whole;
}

/* Each is of another size, and its blocks are. */
LOG_TEST(a_log_can_be_read_while_others_are_begun) {
  pthread_t reader;
  bool over = false;
  void *whole;
  options.max_bytes = 1 << 16;
  assert_ok(umemLog_ctor(&one, &host, &options));
  for (int i = 0; i < 50; i++) umem_free(&one, umem_alloc(&one, 1));
  end(&one);
  assert_int_equal(pthread_create(&reader, NULL, read_one_of_many, &over), 0);
  for (size_t k = 1; k <= 300; k++) {
    options.max_bytes = (uint64_t)1 << (16 + k % 3);
    assert_ok(umemLog_ctor(&one, &host, &options));
    for (int i = 0; i < 50; i++) umem_free(&one, umem_alloc(&one, k));
    end(&one);
    usleep(200);
  }
  __atomic_store_n(&over, true, __ATOMIC_RELEASE);
  assert_int_equal(pthread_join(reader, &whole), 0);
  assert_true((size_t)whole > 10);
}
