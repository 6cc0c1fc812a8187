/* log_read.c - the reader of umem-trace: files that are no logs, damaged ones, and what a replay
 * does. */
#include "log_help.h"

#include <umem/log.h>

/* A log as bytes. */
static unsigned char *bytes;
static size_t length;

static void load(void) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  length = (size_t)ftell(file);
  assert_int_equal(fseek(file, 0, SEEK_SET), 0);
  bytes = malloc(length);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, length, file), length);
  fclose(file);
}

/* A log with all kinds of records, in bytes. */
static void write_log(void **state) {
  umemLog one, two;
  umemLimit limit;
  set_up_log(state);
  umemLimit_ctor(&limit, &host, 1 << 20);
  open_small(&one, &limit);
  open_small(&two, &fake);
  for (size_t i = 0; i < 12; i++) {
    uintptr_t a = umem_calloc(&one, 1, 1000 + i), b = umem_aligned_alloc(&two, 64, 2000);
    umem_set(&two, b, 1, 2000);
    umem_copy_to(&two, b, &one, a, 500);
    a = umem_realloc(&one, a, 1000 + i, 3000);
    umem_alloc(&one, 1 << 21);
    umem_realloc(&one, a, 3000, 1 << 21);
    umem_copy_to(&one, a + 10, &two, b + 30, 100);
    umem_aligned_free(&two, b);
    umem_free(&one, a);
  }
  umem_clear_status(&one), umem_clear_status(&limit);
  umem_dtor(&two), umem_dtor(&one), umem_dtor(&limit);
  load();
}

static void forget_log(void **state) {
  free(bytes);
  tear_down_log(state);
}

static umemLogHeader *header(void) { return (umemLogHeader *)bytes; }

static void expect_refusal(size_t nbytes, char const *text) {
  assert_false(trace_parse(&trace, bytes, nbytes));
  if (!strstr(trace.why, text)) fail_msg("expected \"%s\", but got \"%s\"", text, trace.why);
  assert_null(trace.records);
}

#define READ_TEST(name) TEST_CASE_WITH(name, write_log, forget_log)

/* ---- what is refused ---- */

READ_TEST(what_is_no_log_is_told) {
  assert_true(trace_parse(&trace, bytes, length));
  assert_true(trace.count > 100 && !trace.incomplete);
  trace_close(&trace);
  expect_refusal(0, "it is no log of umem: 0 bytes");
  expect_refusal(100, "it is truncated: 100 bytes");
  expect_refusal(umemLog_ring_at - 1, "it is truncated");
  expect_refusal(length - 1, "it is truncated: 256 records do not fit");
  header()->version = 2;
  expect_refusal(length, "it is of version 2, and this program reads 1");
  header()->version = 1;
  header()->byte_order = 0x04030201;
  expect_refusal(length, "the other byte order");
  header()->byte_order = 7;
  expect_refusal(length, "its header is damaged");
  header()->byte_order = umemLog_byte_order;
  header()->capacity = 255;
  expect_refusal(length, "its header is damaged");
  header()->capacity = (uint64_t)1 << 63;
  expect_refusal(length, "it is truncated");
  header()->capacity = 256;
  header()->contexts = 256;
  expect_refusal(length, "its header is damaged");
  header()->contexts = 2;
  bytes[0] = 'U';
  expect_refusal(length, "it is no log of umem");
}

READ_TEST(files_that_cannot_be_read_are_told) {
  assert_false(trace_read(&trace, "/nonexistent/log"));
  assert_non_null(strstr(trace.why, "No such file"));
  assert_false(trace_read(&trace, "/tmp"));
  assert_non_null(strstr(trace.why, "no regular file"));
}

/* What is not complete is counted, and the rest is there. */
READ_TEST(incomplete_records_are_left_out) {
  umemLogRecord *ring = (umemLogRecord *)(bytes + umemLog_ring_at);
  assert_true(trace_parse(&trace, bytes, length));
  size_t count = trace.count;
  trace_close(&trace);
  ring[3].number = UMEM_LOG_BUSY;
  ring[5].number = 0;
  ring[7].kind = umemLog_kinds;
  ring[9].ctx = 3;
  header()->next += 2; /* handed out, but not written */
  assert_true(trace_parse(&trace, bytes, length));
  assert_int_equal(trace.count, count - 4);
  assert_int_equal(trace.incomplete, 6);
  assert_int_equal(trace.records[3].number, 5);
}

/* Of a log that is complete, or is not. */
static void expect_left_out(size_t count, size_t left_out) {
  uint64_t const ended = header()->ended;
  for (int i = 0; i < 2; i++) {
    header()->ended = i ? 0 : ended;
    assert_true(trace_parse(&trace, bytes, length));
    assert_int_equal(trace.count, count - left_out);
    assert_int_equal(trace.incomplete, left_out);
    trace_close(&trace);
  }
  header()->ended = ended;
}

READ_TEST(records_of_another_time_are_left_out) {
  umemLogRecord *ring = (umemLogRecord *)(bytes + umemLog_ring_at);
  assert_true(trace_parse(&trace, bytes, length));
  size_t count = trace.count;
  trace_close(&trace);
  assert_true(header()->ended > header()->begun);
  expect_left_out(count, 0);
  ring[3].time = 6365907626747261806;
  expect_left_out(count, 1);
  ring[4].time = header()->begun - 1;
  expect_left_out(count, 2);
  ring[5].time = UINT64_MAX;
  expect_left_out(count, 3);
  ring[6].duration = UINT64_MAX;
  expect_left_out(count, 4);
  ring[7].time = header()->begun;
  expect_left_out(count, 4);
  ring[7].time = header()->ended + 1; /* only in a complete log is this an error */
  assert_true(trace_parse(&trace, bytes, length));
  assert_int_equal(trace.incomplete, 5);
  trace_close(&trace);
  header()->ended = header()->begun - 1;
  expect_refusal(length, "its header is damaged");
}

READ_TEST(contexts_of_another_time_begin_with_the_log) {
  umemLogContext *contexts = (umemLogContext *)(bytes + umemLog_contexts_at);
  uint64_t right = contexts[1].begun;
  contexts[2].begun = UINT64_MAX / 2;
  assert_true(trace_parse(&trace, bytes, length));
  assert_true(trace.contexts[1].begun == right && right > header()->begun);
  assert_int_equal(trace.contexts[2].begun, header()->begun);
}

/* ---- damaged logs ---- */

static uint64_t seed = 1;
static uint64_t random_number(void) { /* xorshift64 */
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

/* All that can be made of it, but for running it. */
static void use(FILE *sink) {
  if (!trace_parse(&trace, bytes, length)) {
    assert_true(*trace.why);
    return;
  }
  assert_true(trace.count <= trace.header.capacity);
  assert_true(trace_write_chrome(&trace, sink, true));
  assert_true(trace_write_csv(&trace, sink));
  assert_true(trace_write_summary(&trace, sink));
  Replay *replay = replay_make(&trace);
  assert_non_null(replay);
  replay_free(replay);
  trace_close(&trace);
}

/* A few bytes, most of them where something is. */
static void damage(void) {
  static size_t const ranges[][2] = {
      {0, 144}, {4096, 4096 + 384}, {umemLog_ring_at, umemLog_ring_at + 64 * 160}};
  for (uint64_t n = 1 + random_number() % 8; n; n--) {
    size_t const *range = ranges[random_number() % 8 < 6 ? 2 : random_number() % 3];
    size_t at = range[0] + random_number() % (range[1] - range[0]);
    static unsigned char const special[] = {0, 1, 0x7f, 0x80, 0xff};
    bytes[at] = random_number() % 2 ? special[random_number() % 5] : (unsigned char)random_number();
  }
}

READ_TEST(damaged_logs_do_no_harm) {
  FILE *sink = fopen("/dev/null", "w");
  unsigned char *sound = malloc(length);
  assert_non_null(sink);
  assert_non_null(sound);
  memcpy(sound, bytes, length);
  for (int i = 0; i < 2000; i++) {
    if (i % 10 == 0) memcpy(bytes, sound, length); /* up to ten times eight bytes */
    damage();
    use(sink);
  }
  free(sound);
  fclose(sink);
}

/* ---- replay ---- */

static void replay_over(void *ctx, size_t failures) {
  FILE *sink = fopen("/dev/null", "w");
  assert_non_null(sink);
  assert_true(trace_parse(&trace, bytes, length));
  Replay *replay = replay_make(&trace);
  assert_non_null(replay);
  assert_int_equal(replay_run(replay, ctx, sink), failures);
  replay_free(replay);
  fclose(sink);
}

/* What was done is done again: as many blocks, and all of them freed. */
READ_TEST(a_replay_does_the_same) {
  void *const places[] = {&host, &fake, &offsets};
  for (int i = 0; i < 3; i++) {
    umemStats stats;
    umemTrack track;
    umemStatsFigures figures = {.size = sizeof figures};
    assert_ok(umemStats_ctor(&stats, places[i]));
    assert_ok(umemTrack_ctor(&track, &stats, NULL));
    replay_over(&track, 0);
    trace_close(&trace);
    assert_ok(umemStats_get(&stats, &figures));
    assert_int_equal(figures.current_count, 0);
    assert_int_equal(figures.peak_bytes, 5000);
    assert_int_equal(figures.total_count, 36); /* a resize makes a block */
    end(&track);
    end(&stats);
  }
}

/* What there is no room for is a failure; the rest goes on, and all is given back. */
READ_TEST(a_replay_tells_what_fails) {
  CLEAN_CONTEXT(umemLimit, limit, &host, 4000);
  replay_over(&limit, 12); /* blocks that do not grow to 3000 */
  assert_int_equal(umemLimit_used(&limit), 0);
  assert_int_equal(umem_get_status(&limit), umemMemoryError);
  FORGET(&limit);
}
