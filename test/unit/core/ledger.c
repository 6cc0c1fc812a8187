/* ledger.c - umem/ledger.h: what counts, what does not, and what is printed. */
#include "trace_help.h"
#include "wrap.h"

static void clear(void **state UNUSED) {
  umem_ledger_stop();
  umem_ledger_clear();
}

#define LEDGER_TEST(name) TEST_CASE_WITH(name, NULL, clear)

static size_t read_ledger(umemLedgerRecord *records, size_t room) {
  records[0].size = sizeof *records;
  assert_int_equal(umem_ledger_read(records, &room), umemOK);
  return room;
}

LEDGER_TEST(the_ledger_sums_up) {
  umemLedgerRecord records[4];
  uintptr_t a = block_of(&file, 100), b = block_of(&host, 100);
  umem_copy_to(&file, a, &host, b, 100);
  umem_ledger_clear();
  assert_int_equal(read_ledger(records, 4), 0);
  assert_false(umem_ledger_is_on());
  assert_int_equal(umem_ledger_start(), umemOK);
  assert_int_equal(umem_ledger_start(), umemOK);
  assert_true(umem_ledger_is_on());
  for (int i = 0; i < 5; i++) umem_copy_to(&file, a, &host, b, 100);
  umem_copy_to(&host, b, &file, a + (1 << 20), 50);
  umem_clear_status(&file);
  umemRoute route;
  assert_int_equal(copy(&file, a, &host, b, 10, &route), umemOK);
  umem_ledger_stop();
  umem_copy_to(&file, a, &host, b, 100);
  assert_int_equal(read_ledger(records, 4), 2);
  int k = records[0].calls == 6 ? 0 : 1;
  assert_int_equal(records[k].calls, 6);
  assert_int_equal(records[k].failed, 0);
  assert_int_equal(records[k].bytes, 510);
  assert_true(records[k].seconds > 0);
  assert_string_equal(records[k].src.kind, "file");
  assert_string_equal(records[k].dst.kind, "host");
  assert_string_equal(records[k].route, "file -> page cache -> host");
  assert_int_equal(records[1 - k].calls, 1);
  assert_int_equal(records[1 - k].failed, 1);
  assert_int_equal(records[1 - k].bytes, 0);
  assert_true(records[0].seconds >= records[1].seconds);
}

/* A transfer is one call. The items of each pair of contexts of a list are one. */
LEDGER_TEST(transfers_and_lists_are_summed_up) {
  umemLedgerRecord records[4];
  umemTransfer *transfer;
  uintptr_t a = block_of(&file, 100), b = block_of(&host, 100);
  umemCopyItem const items[] = {{&file, a + 50, &host, b + 50, 20},
                                {&host, b + 10, &file, a, 30},
                                {&file, a + 80, &host, b + 80, 10}};
  umem_ledger_clear();
  assert_int_equal(umem_ledger_start(), umemOK);
  assert_int_equal(umem_start(&file, a, &host, b, 100, NULL, &transfer), umemOK);
  assert_int_equal(umemTransfer_release(transfer), umemOK);
  assert_int_equal(umem_copy_many(items, 3, NULL), umemOK);
  assert_int_equal(umem_start_many(items, 3, NULL, &transfer), umemOK);
  assert_int_equal(umemTransfer_release(transfer), umemOK);
  umem_ledger_stop();
  uint64_t reads = 0, writes = 0, calls = 0;
  for (size_t k = read_ledger(records, 4); k-- > 0; calls += records[k].calls) {
    bool is_read = !strcmp(records[k].src.kind, "file");
    *(is_read ? &reads : &writes) += records[k].bytes;
    assert_string_equal(records[k].dst.kind, is_read ? "host" : "file");
    assert_int_equal(records[k].failed, 0);
  }
  assert_true(reads == 100 + 2 * 30 && writes == 2 * 30);
  assert_int_equal(calls, 5);
}

LEDGER_TEST(reading_checks_its_arguments) {
  umemLedgerRecord record = UMEM_LEDGER_RECORD_INIT;
  size_t count = 1;
  assert_int_equal(umem_ledger_read(&record, NULL), umemValueError);
  assert_int_equal(umem_ledger_read(NULL, &count), umemValueError);
  record.size = 12;
  assert_int_equal(umem_ledger_read(&record, &count), umemValueError);
  count = 0;
  assert_int_equal(umem_ledger_read(NULL, &count), umemOK);
  assert_int_equal(umem_ledger_print(-1), umemIOError);
}

LEDGER_TEST(the_table_is_printed) {
  int ends[2];
  char text[2000] = "";
  assert_int_equal(pipe(ends), 0);
  umem_ledger_start();
  copy_bytes(4, NULL);
  umem_ledger_stop();
  assert_int_equal(umem_ledger_print(ends[1]), umemOK);
  close(ends[1]);
  for (ssize_t n; (n = read(ends[0], text + strlen(text), 500)) > 0;)
    ;
  close(ends[0]);
  assert_non_null(strstr(text, "GB/s  route\n"));
  assert_non_null(strstr(text, "  host -> host\n"));
  assert_non_null(strstr(text, " 100.0 "));
}

enum { thread_copies = 2000, threads_most = 4 };

static void *copy_often(void *unused) {
  for (int i = 0; i < thread_copies; i++) copy_bytes(64, NULL);
  return unused;
}

LEDGER_TEST(many_threads_count) {
  pthread_t threads[threads_most];
  umemLedgerRecord records[2];
  umem_ledger_start();
  for (int i = 0; i < threads_most; i++) threads[i] = start_thread(copy_often, NULL);
  for (int i = 0; i < 50; i++) read_ledger(records, 2);
  for (int i = 0; i < threads_most; i++) join_thread(threads[i]);
  umem_ledger_stop();
  assert_int_equal(read_ledger(records, 2), 1);
  assert_int_equal(records[0].calls, threads_most * thread_copies);
  assert_int_equal(records[0].bytes, threads_most * thread_copies * 64);
}

/* Each copy of another thread counts once, or not at all. */
typedef struct Copier {
  pthread_t thread;
  umemFile file;
  bool stops; /* atomic */
  uint64_t copies;
} Copier;

static void *copy_files(void *argument) {
  Copier *copier = argument;
  char bytes[64] = "";
  uintptr_t block = umem_alloc(&copier->file, 64);
  umemRoute route;
  for (; !__atomic_load_n(&copier->stops, __ATOMIC_RELAXED); copier->copies += 2) {
    if (copy(&host, (uintptr_t)bytes, &copier->file, block, 64, &route) != umemOK) return NULL;
    umem_copy_to(&copier->file, block, &host, (uintptr_t)bytes, 64);
  }
  return copier;
}

LEDGER_TEST(the_ledger_is_switched_while_others_copy) {
  Copier copiers[threads_most] = {0};
  umemLedgerRecord records[4];
  uint64_t copies = 0;
  for (int i = 0; i < threads_most; i++) {
    assert_int_equal(umemFile_ctor(&copiers[i].file, NULL, "w+"), umemOK);
    copiers[i].thread = start_thread(copy_files, &copiers[i]);
  }
  for (int i = 0; i < 300; i++) {
    assert_int_equal(umem_ledger_start(), umemOK);
    assert_true(read_ledger(records, 4) <= 2);
    if (i % 3 == 0) umem_ledger_clear();
    if (i % 2 == 0) umem_ledger_stop();
  }
  for (int i = 0; i < threads_most; i++)
    __atomic_store_n(&copiers[i].stops, true, __ATOMIC_RELAXED);
  for (int i = 0; i < threads_most; i++) {
    assert_ptr_equal(join_thread(copiers[i].thread), &copiers[i]);
    copies += copiers[i].copies;
    umem_dtor(&copiers[i].file);
  }
  umem_ledger_stop();
  size_t count = read_ledger(records, 4);
  for (size_t i = 0; i < count; i++) {
    assert_true(records[i].calls <= copies);
    assert_int_equal(records[i].bytes, 64 * records[i].calls);
    assert_int_equal(records[i].failed, 0);
  }
}

LEDGER_TEST(further_routes_are_summed_up) {
  enum { kinds = UMEM_LEDGER_RECORDS + 10 };
  static umemLedgerRecord records[UMEM_LEDGER_RECORDS + 1];
  umemHost named;
  char name[16], a[4] = "abc", b[4];
  uint64_t calls = 0, others = 0;
  assert_int_equal(umemHost_ctor(&named), umemOK);
  umem_ledger_start();
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < kinds; i++) {
      snprintf(name, sizeof name, "kind%d", i);
      named.super.name = name;
      umem_copy_to(&named, (uintptr_t)a, &host, (uintptr_t)b, 4);
    }
  umem_ledger_stop();
  umem_dtor(&named);
  size_t count = read_ledger(records, UMEM_LEDGER_RECORDS + 1);
  assert_int_equal(count, UMEM_LEDGER_RECORDS + 1);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(records[i].bytes, 4 * records[i].calls);
    calls += records[i].calls;
    if (!strcmp(records[i].route, "other")) others += records[i].calls;
  }
  assert_int_equal(calls, 2 * kinds);
  assert_int_equal(others, 2 * 10);
}

/* ---- no memory ---- */

static _Thread_local bool malloc_fails; /* workers allocate, too */

WRAP(malloc_fails, NULL, void *, malloc, (size_t nbytes), (nbytes))

LEDGER_TEST(failures_without_memory_change_nothing) {
  umemLedgerRecord record = UMEM_LEDGER_RECORD_INIT;
  size_t count = 1;
  malloc_fails = true;
  umemStatusType started = umem_ledger_start();
  bool on = umem_ledger_is_on();
  malloc_fails = false;
  assert_int_equal(started, umemMemoryError);
  assert_false(on);
  assert_int_equal(umem_ledger_start(), umemOK);
  copy_bytes(4, NULL);
  umem_ledger_stop();
  malloc_fails = true;
  umemStatusType read = umem_ledger_read(&record, &count), printed = umem_ledger_print(-1);
  malloc_fails = false;
  assert_int_equal(read, umemMemoryError);
  assert_int_equal(printed, umemMemoryError);
  assert_true(count == 1 && record.calls == 0);
  umem_thread_clear();
  assert_int_equal(read_ledger(&record, 1), 1);
  assert_int_equal(record.calls, 1);
}

/* A device without room for a byte. */
LEDGER_TEST(a_table_that_cannot_be_written_is_an_error) {
  SCOPED(close_fd) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(umem_ledger_print(fd), umemIOError);
  assert_non_null(strstr(umem_thread_message(), "No space left"));
}

LEDGER_TEST(a_child_goes_on_with_the_records) {
  umemLedgerRecord records[2];
  umem_ledger_start();
  copy_bytes(4, NULL);
  IN_CHILD {
    copy_bytes(4, NULL);
    EXPECT(read_ledger(records, 2) == 1 && records[0].calls == 2);
  }
  umem_ledger_stop();
  assert_int_equal(read_ledger(records, 2), 1);
  assert_int_equal(records[0].calls, 1);
}

int main(void) { return run_cases(open_contexts, close_contexts); }
