/* trace.c - the route that a copy writes down, and the ledger: umem/copy.h, umem/ledger.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

static umemHost host;
static umemFile file, other;

static int open_contexts(void **state) {
  (void)state;
  return umemHost_ctor(&host) || umemFile_ctor(&file, NULL, "w+") ||
         umemFile_ctor(&other, NULL, "w+");
}

static int close_contexts(void **state) {
  (void)state;
  umem_dtor(&other);
  umem_dtor(&file);
  umem_dtor(&host);
  return 0;
}

static umemStatusType copy(void *src, uintptr_t from, void *dst, uintptr_t to, size_t nbytes,
                           umemRoute *route) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = route;
  *route = (umemRoute)UMEM_ROUTE_INIT;
  return umem_copy_to_with(src, from, dst, to, nbytes, &options);
}

static void assert_text(umemRoute const *route, char const *expected) {
  char text[200];
  size_t length = umemRoute_text(route, text, sizeof text);
  assert_string_equal(text, expected);
  assert_int_equal(length, strlen(expected));
}

static uintptr_t block_of(void *ctx, size_t nbytes) {
  uintptr_t block = umem_calloc(ctx, nbytes, 1);
  assert_true(block != umem_null(ctx));
  return block;
}

/* ---- routes ---- */

static void a_route_names_its_legs(void **state) {
  (void)state;
  umemRoute route;
  uintptr_t a = block_of(&file, 100), b = block_of(&host, 100), c = block_of(&other, 100);
  assert_int_equal(copy(&host, b, &host, block_of(&host, 100), 100, &route), umemOK);
  assert_text(&route, "host -> host");
  assert_int_equal(copy(&file, a, &host, b, 100, &route), umemOK);
  assert_text(&route, "file -> page cache -> host");
  assert_int_equal(copy(&host, b, &file, a, 100, &route), umemOK);
  assert_text(&route, "host -> page cache -> file");
  assert_int_equal(copy(&file, a, &other, c, 100, &route), umemOK);
  assert_text(&route, "file -> page cache -> host -> page cache -> file");
  assert_int_equal(route.leg_count, 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(route.legs[i].bytes, 100);
    assert_int_equal(route.legs[i].calls, 1);
    assert_int_equal(route.legs[i].workers, 1);
    assert_true(route.legs[i].seconds > 0 && route.legs[i].seconds <= route.seconds);
  }
  assert_int_equal(route.bytes, 100);
}

/* One call writes the pages of one file from a mapping of the other. */
static void files_are_copied_through_the_cache(void **state) {
  (void)state;
  size_t const nbytes = 100 << 10;
  umemRoute route;
  uintptr_t a = block_of(&file, nbytes), b = block_of(&other, nbytes);
  umem_set(&file, a, 1, nbytes);
  assert_int_equal(copy(&file, a, &other, b, nbytes, &route), umemOK);
  assert_text(&route, "file -> page cache -> file");
  assert_int_equal(route.leg_count, 1);
  assert_int_equal(route.legs[0].bytes, nbytes);
  umem_free(&other, b);
  umem_free(&file, a);
}

/* A file in the memory of a tmpfs has nothing beside the page cache, whatever O_DIRECT says. */
static void check_in_memory(umemDirect direct) {
  size_t const nbytes = 2 << 20;
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  umemFile shared;
  umemRoute route;
  int fd = memfd_create("umem-trace", MFD_CLOEXEC);
  assert_true(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0); /* a hole: nothing of it is cached */
  options.direct = direct;
  if (umemFile_adopt_with(&shared, fd, &options) !=
      umemOK) { /* an older kernel has no O_DIRECT there */
    assert_int_equal(umem_thread_status(), umemNotSupportedError);
    assert_int_equal(direct, umemDirectOn);
    umem_thread_clear();
    close(fd);
    return;
  }
  uintptr_t block = block_of(&host, nbytes), written = umem_alloc(&shared, nbytes);
  assert_true(written != umem_null(&shared));
  assert_int_equal(copy(&shared, 0, &host, block, nbytes, &route), umemOK);
  assert_text(&route, "file -> page cache -> host");
  assert_int_equal(route.legs[0].bytes, nbytes);
  assert_int_equal(copy(&host, block, &shared, written, nbytes, &route), umemOK);
  assert_text(&route, "host -> page cache -> file");
  assert_int_equal(route.legs[0].bytes, nbytes);
  umem_free(&host, block);
  umem_dtor(&shared);
}

static void files_in_memory_name_the_page_cache(void **state) {
  (void)state;
  umem_set_threads(1);
  check_in_memory(umemDirectAuto);
  check_in_memory(umemDirectOn);
  check_in_memory(umemDirectOff);
  umem_set_threads(0);
}

static void workers_share_a_leg(void **state) {
  (void)state;
  size_t const nbytes = 24 << 20;
  umemRoute route;
  uintptr_t a = block_of(&file, nbytes), b = block_of(&host, nbytes);
  umem_set(&file, a, 1, nbytes);
  umem_set_threads(3);
  assert_int_equal(copy(&file, a, &host, b, nbytes, &route), umemOK);
  umem_set_threads(0);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < route.leg_count; i++) bytes += route.legs[i].bytes;
  assert_int_equal(bytes, nbytes);
  assert_true(route.legs[0].workers >= 2 && route.legs[0].workers <= 3);
  umem_free(&host, b);
  umem_free(&file, a);
}

static void an_adaptor_adds_nothing(void **state) {
  (void)state;
  umemLimit limit;
  umemStats stats;
  umemRoute route;
  assert_int_equal(umemLimit_ctor(&limit, &file, 1 << 20), umemOK);
  assert_int_equal(umemStats_ctor(&stats, &limit), umemOK);
  uintptr_t a = block_of(&stats, 100), b = block_of(&host, 100);
  assert_int_equal(copy(&stats, a, &host, b, 100, &route), umemOK);
  assert_text(&route, "file -> page cache -> host");
  assert_int_equal(route.legs[0].bytes, 100);
  assert_int_equal(copy(&host, b, &stats, a, 100, &route), umemOK);
  assert_text(&route, "host -> page cache -> file");
  umem_free(&stats, a);
  umem_dtor(&stats);
  umem_dtor(&limit);
}

static void strided_copies_have_a_route(void **state) {
  (void)state;
  size_t const extents[] = {16, 16};
  ptrdiff_t const across[] = {8, 128};
  umemLayout layout = {.size = sizeof layout, .item_size = 8, .rank = 2, .extents = extents};
  layout.src_strides = across;
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = &route;
  uintptr_t a = block_of(&host, 2048), b = block_of(&host, 2048), c = block_of(&file, 2048);
  assert_int_equal(umem_copy_strided_with(&host, a, &host, b, &layout, &options), umemOK);
  assert_text(&route, "host -> items -> host");
  assert_int_equal(route.legs[0].bytes, 2048);
  assert_int_equal(umem_copy_strided_with(&host, a, &file, c, &layout, &options), umemOK);
  assert_text(&route, "host -> window -> file");
  assert_int_equal(route.legs[0].bytes, 2048);
}

typedef struct Steps {
  uint64_t last, total;
  int calls;
  bool go;
} Steps;

static bool step(void *user, uint64_t done, uint64_t total) {
  Steps *steps = user;
  steps->calls++;
  steps->last = done;
  steps->total = total;
  char byte = 1;
  umem_copy_to(&host, (uintptr_t)&byte, &host, (uintptr_t)&byte + 0, 0);
  return steps->go;
}

static void strided_copies_report_and_cancel(void **state) {
  (void)state;
  size_t const extents[] = {4};
  ptrdiff_t const every_other[] = {2};
  umemLayout layout = {.size = sizeof layout, .item_size = 1, .rank = 1, .extents = extents};
  layout.src_strides = every_other;
  char from[8] = "a.b.c.d", to[5] = "";
  Steps steps = {.go = true};
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = step;
  options.user = &steps;
  assert_int_equal(
      umem_copy_strided_with(&host, (uintptr_t)from, &host, (uintptr_t)to, &layout, &options),
      umemOK);
  assert_string_equal(to, "abcd");
  assert_true(steps.calls == 2 && steps.last == 4 && steps.total == 4);
  steps = (Steps){.go = false};
  memset(to, 0, sizeof to);
  assert_int_equal(
      umem_copy_strided_with(&host, (uintptr_t)from, &host, (uintptr_t)to, &layout, &options),
      umemCancelledError);
  assert_string_equal(to, "");
  layout.rank = -1;
  assert_int_equal(
      umem_copy_strided_with(&host, (uintptr_t)from, &host, (uintptr_t)to, &layout, &options),
      umemValueError);
  assert_int_equal(steps.calls, 1);
  umem_clear_status(&host);
}

static void a_failed_copy_says_what_was_done(void **state) {
  (void)state;
  umemRoute route;
  uintptr_t a = block_of(&file, 100), b = block_of(&host, 100);
  assert_int_equal(copy(&host, b, &file, a + (1 << 20), 50, &route), umemIndexError);
  assert_text(&route, "host -> method -> file");
  assert_int_equal(route.legs[0].bytes, 0);
  assert_int_equal(route.bytes, 50);
  assert_int_equal(copy(&host, 0, &file, a, 50, &route), umemValueError);
  assert_text(&route, "");
  umem_clear_status(&file);
  umem_clear_status(&host);
}

static void sizes_of_structs_are_respected(void **state) {
  (void)state;
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  char a[4] = "abc", b[4];
  options.route = &route;
  route.size = sizeof(size_t);
  assert_int_equal(umem_copy_to_with(&host, (uintptr_t)a, &host, (uintptr_t)b, 4, &options),
                   umemValueError);
  umem_clear_status(&host);
  route.size = offsetof(umemRoute, legs);
  route.legs[0].bytes = 77;
  assert_int_equal(umem_copy_to_with(&host, (uintptr_t)a, &host, (uintptr_t)b, 4, &options),
                   umemOK);
  assert_int_equal(route.size, offsetof(umemRoute, legs));
  assert_int_equal(route.leg_count, 1);
  assert_int_equal(route.legs[0].bytes, 77);
  assert_text(&route, "");
  options.size = offsetof(umemCopyOptions, route); /* of an earlier version */
  options.route = (umemRoute *)1;
  assert_int_equal(umem_copy_to_with(&host, (uintptr_t)a, &host, (uintptr_t)b, 4, &options),
                   umemOK);
}

static void texts_are_bounded(void **state) {
  (void)state;
  umemRoute route;
  char a[4] = "abc", b[4], text[8];
  assert_int_equal(copy(&host, (uintptr_t)a, &host, (uintptr_t)b, 4, &route), umemOK);
  assert_int_equal(umemRoute_text(&route, text, sizeof text), strlen("host -> host"));
  assert_string_equal(text, "host ->");
  assert_int_equal(umemRoute_text(&route, NULL, 0), strlen("host -> host"));
  assert_int_equal(umemRoute_text(NULL, text, sizeof text), 0);
  assert_string_equal(text, "");
  route.leg_count = 3;
  snprintf(route.legs[0].src.kind, sizeof route.legs[0].src.kind, "file");
  snprintf(route.legs[0].dst.kind, sizeof route.legs[0].dst.kind, "pinned");
  snprintf(route.legs[0].way, sizeof route.legs[0].way, "page cache");
  route.legs[0].workers = 16;
  route.legs[1] = route.legs[0];
  snprintf(route.legs[1].way, sizeof route.legs[1].way, "direct I/O");
  route.legs[1].workers = 1;
  route.legs[2] = route.legs[0];
  route.legs[2].src = route.legs[0].dst;
  route.legs[2].dst = (umemRoutePlace){"cuda", 0, 0};
  route.legs[2].workers = 1;
  snprintf(route.legs[2].way, sizeof route.legs[2].way, "dma");
  assert_text(&route, "file -> 16 workers, page cache + direct I/O -> pinned -> cuda:0");
}

/* ---- the ledger ---- */

static size_t read_ledger(umemLedgerRecord *records, size_t room) {
  records[0].size = sizeof *records;
  assert_int_equal(umem_ledger_read(records, &room), umemOK);
  return room;
}

static void the_ledger_sums_up(void **state) {
  (void)state;
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
  umem_ledger_clear();
}

static void reading_checks_its_arguments(void **state) {
  (void)state;
  umemLedgerRecord record = UMEM_LEDGER_RECORD_INIT;
  size_t count = 1;
  assert_int_equal(umem_ledger_read(&record, NULL), umemValueError);
  assert_int_equal(umem_ledger_read(NULL, &count), umemValueError);
  record.size = 12;
  assert_int_equal(umem_ledger_read(&record, &count), umemValueError);
  count = 0;
  assert_int_equal(umem_ledger_read(NULL, &count), umemOK);
  assert_int_equal(umem_ledger_print(-1), umemIOError);
  umem_thread_clear();
}

static void the_table_is_printed(void **state) {
  (void)state;
  int ends[2];
  char text[2000] = "";
  char a[4] = "abc", b[4];
  assert_int_equal(pipe(ends), 0);
  umem_ledger_start();
  umem_copy_to(&host, (uintptr_t)a, &host, (uintptr_t)b, 4);
  umem_ledger_stop();
  assert_int_equal(umem_ledger_print(ends[1]), umemOK);
  close(ends[1]);
  for (ssize_t n; (n = read(ends[0], text + strlen(text), 500)) > 0;)
    ;
  close(ends[0]);
  assert_non_null(strstr(text, "GB/s  route\n"));
  assert_non_null(strstr(text, "  host -> host\n"));
  assert_non_null(strstr(text, " 100.0 "));
  umem_ledger_clear();
}

enum { thread_copies = 2000, threads_most = 4 };

static void *copy_often(void *unused) {
  (void)unused;
  char a[64] = "", b[64];
  for (int i = 0; i < thread_copies; i++)
    umem_copy_to(&host, (uintptr_t)a, &host, (uintptr_t)b, 64);
  return NULL;
}

static void many_threads_count(void **state) {
  (void)state;
  pthread_t threads[threads_most];
  umemLedgerRecord records[2];
  umem_ledger_start();
  for (int i = 0; i < threads_most; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, copy_often, NULL), 0);
  for (int i = 0; i < 50; i++) read_ledger(records, 2);
  for (int i = 0; i < threads_most; i++) pthread_join(threads[i], NULL);
  umem_ledger_stop();
  assert_int_equal(read_ledger(records, 2), 1);
  assert_int_equal(records[0].calls, threads_most * thread_copies);
  assert_int_equal(records[0].bytes, threads_most * thread_copies * 64);
  umem_ledger_clear();
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

static void the_ledger_is_switched_while_others_copy(void **state) {
  (void)state;
  Copier copiers[threads_most] = {0};
  umemLedgerRecord records[4];
  uint64_t copies = 0;
  void *good;
  for (int i = 0; i < threads_most; i++) {
    assert_int_equal(umemFile_ctor(&copiers[i].file, NULL, "w+"), umemOK);
    assert_int_equal(pthread_create(&copiers[i].thread, NULL, copy_files, &copiers[i]), 0);
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
    assert_int_equal(pthread_join(copiers[i].thread, &good), 0);
    assert_ptr_equal(good, &copiers[i]);
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
  umem_ledger_clear();
}

static void further_routes_are_summed_up(void **state) {
  (void)state;
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
  umem_ledger_clear();
}

/* ---- no memory ---- */

static bool malloc_fails;

void *__real_malloc(size_t nbytes);
void *__wrap_malloc(size_t nbytes);
void *__wrap_malloc(size_t nbytes) { return malloc_fails ? NULL : __real_malloc(nbytes); }

static void failures_without_memory_change_nothing(void **state) {
  (void)state;
  umemLedgerRecord record = UMEM_LEDGER_RECORD_INIT;
  size_t count = 1;
  char a[4] = "abc", b[4];
  malloc_fails = true;
  umemStatusType started = umem_ledger_start();
  bool on = umem_ledger_is_on();
  malloc_fails = false;
  assert_int_equal(started, umemMemoryError);
  assert_false(on);
  assert_int_equal(umem_ledger_start(), umemOK);
  umem_copy_to(&host, (uintptr_t)a, &host, (uintptr_t)b, 4);
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
  umem_ledger_clear();
}

/* A device without room for a byte. */
static void a_table_that_cannot_be_written_is_an_error(void **state) {
  (void)state;
  int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(umem_ledger_print(fd), umemIOError);
  assert_non_null(strstr(umem_thread_message(), "No space left"));
  umem_thread_clear();
  close(fd);
}

static void a_child_goes_on_with_the_records(void **state) {
  (void)state;
  umemLedgerRecord records[2];
  char a[4] = "abc", b[4];
  int status;
  umem_ledger_start();
  umem_copy_to(&host, (uintptr_t)a, &host, (uintptr_t)b, 4);
  pid_t child = fork();
  if (child == 0) {
    umem_copy_to(&host, (uintptr_t)a, &host, (uintptr_t)b, 4);
    _exit(read_ledger(records, 2) == 1 && records[0].calls == 2 ? 0 : 1);
  }
  assert_true(child > 0);
  assert_true(waitpid(child, &status, 0) == child);
  assert_int_equal(status, 0);
  umem_ledger_stop();
  assert_int_equal(read_ledger(records, 2), 1);
  assert_int_equal(records[0].calls, 1);
  umem_ledger_clear();
}

int main(void) {
  struct CMUnitTest const tests[] = {
      cmocka_unit_test(a_route_names_its_legs),
      cmocka_unit_test(files_are_copied_through_the_cache),
      cmocka_unit_test(files_in_memory_name_the_page_cache),
      cmocka_unit_test(workers_share_a_leg),
      cmocka_unit_test(an_adaptor_adds_nothing),
      cmocka_unit_test(strided_copies_have_a_route),
      cmocka_unit_test(strided_copies_report_and_cancel),
      cmocka_unit_test(a_failed_copy_says_what_was_done),
      cmocka_unit_test(sizes_of_structs_are_respected),
      cmocka_unit_test(texts_are_bounded),
      cmocka_unit_test(the_ledger_sums_up),
      cmocka_unit_test(reading_checks_its_arguments),
      cmocka_unit_test(the_table_is_printed),
      cmocka_unit_test(many_threads_count),
      cmocka_unit_test(the_ledger_is_switched_while_others_copy),
      cmocka_unit_test(further_routes_are_summed_up),
      cmocka_unit_test(failures_without_memory_change_nothing),
      cmocka_unit_test(a_table_that_cannot_be_written_is_an_error),
      cmocka_unit_test(a_child_goes_on_with_the_records),
  };
  return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
