/* open.c - umem/open.h: contexts by name, of every scheme. CUDA's are over a double of the runtime.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=calloc. */
#include "open_help.h"
#include "failing_memory.h"

/* ---- every scheme ---- */

/* A name with which scheme can be opened over or with little. */
static void name_of(umemScheme const *scheme, char *text, size_t size) {
  char const *below = !strcmp(scheme->name, "cuda-prefetch") ? "+cuda-managed:" : "+host:";
  int used = snprintf(text, size, "%s%s", scheme->name, scheme->decorates ? below : ":");
  char const *before = "?";
  for (size_t i = 0; i < scheme->option_count; i++, before = "&") {
    if (!scheme->options[i].required) continue;
    char const *value = scheme->options[i].kind == umemPathOption ? scratch : "1M";
    used += snprintf(text + used, size - (size_t)used, "%s%s.%s=%s", before, scheme->name,
                     scheme->options[i].name, value);
  }
  if (!strcmp(scheme->name, "shm")) /* needs a size where it has no name of a segment that exists */
    snprintf(text + used, size - (size_t)used, "?size=1M");
}

TEST(each_scheme_is_opened) {
  umemScheme const *scheme;
  size_t count = 0;
  for (; (scheme = umem_scheme(count)); count++) {
    char text[300];
    /* Those of a URL need a server: unit/url/url.c. */
    if (scheme->place && scheme->place->kind == umemUrlOption) continue;
    name_of(scheme, text, sizeof text);
    void *ctx = umem_open(text);
    if (!ctx) fail_msg("%s: %s", text, umem_thread_message());
    use_and_close(ctx);
  }
  assert_in_range(count, 13, 100);
  assert_null(umem_scheme(SIZE_MAX));
}

TEST(inner_layers_can_be_asked) {
  umemPool *pool = umem_open("pool+stats+limit+host:?limit=8M");
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  umem_free(pool, umem_alloc(pool, 100));
  umemStats *stats = umem_get_upstream(pool);
  assert_ok(umemStats_get(stats, &figures));
  assert_in_range(figures.current_bytes, 100, 8 << 20);
  umemLimit *limit = umem_get_upstream(stats);
  assert_int_equal(umemLimit_used(limit), figures.current_bytes);
  umemHost *host = umem_get_upstream(limit);
  assert_string_equal(umem_get_device_name(host), "Host");
  assert_null(umem_get_upstream(host));
  assert_int_equal(umem_thread_status(), umemOK);
  assert_int_equal(umemStats_get((umemStats *)pool, &figures), umemTypeError); /* not this layer */
  FORGET(pool);
  assert_ok(umem_close(pool));
}

/* The capabilities, names and bounds that the constructors give. */
TEST(options_reach_the_constructors) {
  umemLimit *limit = umem_open("limit+host:?limit=1K");
  assert_string_equal(umem_get_device_name(limit), "Limit");
  uintptr_t adr = umem_alloc(limit, 1024);
  assert_int_equal(umemLimit_used(limit), 1024);
  assert_true(umem_alloc(limit, 1) == 0);
  umem_free(limit, adr);
  FORGET(limit);
  assert_ok(umem_close(limit));

  umemPool *pool = umem_open("pool+host:?initial=64K&max=1M&growth=128K");
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  assert_ok(umemPool_stats(pool, &stats));
  assert_int_equal(stats.reserved, 64 << 10);
  umem_free(pool, umem_alloc(pool, 100 << 10));
  assert_ok(umemPool_stats(pool, &stats));
  assert_in_range(stats.reserved, (64 + 128) << 10, (64 + 256) << 10);
  assert_true(umem_alloc(pool, 2 << 20) == 0);
  umem_thread_clear();
  assert_ok(umem_close(pool));

  umemFixed *fixed = umem_open("fixed+host:?block=1K&alignment=128&initial=32K&growth=16K&max=64K");
  umemFixedStats blocks = UMEM_FIXED_STATS_INIT;
  assert_ok(umemFixed_stats(fixed, &blocks));
  assert_int_equal(blocks.block_size, 1024);
  assert_in_range(blocks.reserved, 32 << 10, 64 << 10);
  assert_int_equal(fixed->super.alignment, 128);
  assert_true(umem_alloc(fixed, 1025) == 0);
  umem_thread_clear();
  assert_ok(umem_close(fixed));

  umemTrack *track = umem_open("track+host:?frames=4");
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  adr = umem_alloc(track, 10);
  assert_true(umemTrack_find(track, adr, &block));
  assert_in_range(block.frames, 1, 4);
  umem_free(track, adr);
  assert_ok(umem_close(track));

  umemDebug *debug = umem_open("debug+host:?guard=100&kept=1K&blocks=2&frames=4");
  umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
  umemDebugFault wrong = UMEM_DEBUG_FAULT_INIT;
  adr = umem_alloc(debug, 10);
  ((unsigned char *)adr)[109] = 1; /* the last byte of its guard */
  assert_int_equal(umemDebug_check(debug), umemIndexError);
  assert_true(umemDebug_first(debug, &wrong) && wrong.offset == 109);
  assert_in_range(wrong.allocated_frames, 1, 4);
  umem_free(debug, adr);
  umem_free(debug, umem_alloc(debug, 1000));
  for (int i = 0; i < 3; i++) {
    assert_ok(umemDebug_get(debug, &figures));
    assert_int_equal(figures.kept_blocks, i < 1 ? 1 : 2);
    umem_free(debug, umem_alloc(debug, 10));
  }
  umem_thread_clear();
  assert_ok(umem_close(debug));

  umemFault *fault = umem_open("fault+host:?nth=2&times=2&calls=set,free&status=IOError");
  adr = umem_alloc(fault, 10);
  assert_ok(umem_set(fault, adr, 0, 10));
  assert_int_equal(umem_set(fault, adr, 0, 10), umemIOError);
  umem_free(fault, adr);
  assert_int_equal(umemFault_failures(fault), 2);
  umem_free(fault, adr);
  assert_int_equal(umemFault_failures(fault), 2);
  umem_thread_clear();
  assert_ok(umem_close(fault));

  void *fresh = umem_open("cuda-async:1"), *legacy = umem_open("cuda-async:1?stream=legacy");
  assert_true(umemCudaAsync_stream(fresh) && !umemCudaAsync_stream(legacy));
  umemInfo info = info_of(fresh);
  assert_int_equal(info.ordinal, 1);
  assert_ok(umem_close(fresh));
  assert_ok(umem_close(legacy));
}

TEST(fault_knows_groups_of_calls) {
  static struct {
    char const *words;
    unsigned calls;
  } const groups[] = {{"allocations", umemFaultAllocations},
                      {"copies", umemFaultCopies},
                      {"all", umemFaultAll},
                      {"trim", umemFaultTrim},
                      {"alloc,copies,flush", umemFaultAlloc | umemFaultCopies | umemFaultFlush}};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    umemFault *fault = open_named("fault+host:?share=1&calls=%s", groups[i].words);
    umemHost ram;
    assert_ok(umemHost_ctor(&ram));
    char byte = 0;
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    umem_free(&ram, umem_alloc(fault, 1));
    umem_copy_to(fault, (uintptr_t)&byte, &ram, (uintptr_t)&byte, 1);
    umem_flush(fault);
    umem_trim(fault, 0);
    umemAttempt_end(&attempt);
    int expected = 0;
    unsigned const called[] = {umemFaultAlloc, umemFaultCopyTo, umemFaultFlush, umemFaultTrim};
    for (size_t k = 0; k < 4; k++) expected += (groups[i].calls & called[k]) != 0;
    assert_int_equal(umemFault_failures(fault), expected);
    assert_ok(umem_close(fault));
  }
}

TEST(files_in_their_modes) {
  void *ctx = open_named("file:%s?mode=w+", scratch);
  use(ctx);
  assert_int_equal(umem_set(ctx, umem_alloc(ctx, 4096), 1, 4096), umemOK);
  assert_ok(umem_close(ctx));
  struct stat st;
  assert_int_equal(stat(scratch, &st), 0);
  assert_int_equal(st.st_size, 4096);

  ctx = open_named("mmap:%s", scratch); /* r+: what is there stays */
  char const *bytes = (char const *)umem_alloc(ctx, 4096);
  assert_true(bytes[0] == 1 && bytes[4095] == 1);
  assert_ok(umem_close(ctx));

  ctx = open_named("file:%s?mode=r", scratch);
  assert_int_equal(umem_set(ctx, umem_alloc(ctx, 1), 0, 1), umemNotSupportedError);
  umem_thread_clear();
  assert_ok(umem_close(ctx));

  unlink(scratch);
  expect_none(open_named("file:%s", scratch), umemIOError, "");
}

/* Of a limit of 1 MiB: what is left of RAM changes. */
TEST(sizes_in_percent_are_of_what_is_free_below) {
  void *ctx = umem_open("limit+limit+host:?limit.1.limit=50%&limit.2.limit=1M");
  assert_non_null(ctx);
  umemInfo info = info_of(ctx);
  assert_int_equal(info.available, 512 << 10);
  uintptr_t adr = umem_alloc(ctx, 500 << 10);
  assert_int_equal(umem_get_available_share(ctx, 0.5), 6 << 10);
  assert_int_equal(umem_get_available_share(ctx, 0.51), (6 << 10)); /* 256 bytes are a unit */
  umem_free(ctx, adr);
  assert_ok(umem_close(ctx));

  static char const *const wrong[] = {"0%", "101%", "%", "1.5%", "50%%", "50%M"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char name[100];
    snprintf(name, sizeof name, "limit+host:?limit=%s", wrong[i]);
    assert_null(umem_open(name));
    expect_failure(NULL, umemValueError, "limit");
  }
  assert_null(umem_open("shm:?size=50%"));
  expect_failure(NULL, umemValueError,
                 "\"size\" is 50% of what is free below \"shm\", which goes over nothing");
  CONTEXT(umemHost, ram);
  assert_int_equal(umem_get_available_share(&ram, 1.5), 0);
  expect_failure(&ram, umemValueError, "1.5 is not from 0 to 1");
}

TEST(percent_signs_reach_the_file) {
  char path[BACKEND_PATH_SIZE + 10];
  snprintf(path, sizeof path, "%s?a&b+%% c", scratch);
  assert_ok(umem_close(open_named("file:%s%%3Fa%%26b+%%25 c?mode=w", scratch)));
  assert_int_equal(unlink(path), 0);
}

/* ---- failures ---- */

TEST(a_failure_leaves_nothing_behind) {
  static struct {
    char const *name;
    umemStatusType status;
    char const *message;
  } const bad[] = {
      {"pool+hosst:", umemValueError, "umem_open: \"hosst\" is no scheme; there are host, file, "},
      {NULL, umemValueError, "umem_open: the name is NULL"},
      {"pool+track+cuda:99", umemValueError, "umem_open: \"cuda\": there is no GPU 99"},
      {"cuda:99", umemValueError, "umem_open: there is no GPU 99"},
      {"file:/nonexistent/file?mode=r", umemIOError,
       "umem_open: cannot open \"/nonexistent/file\": No such file or directory"},
      {"file:?mode=r", umemValueError, "umem_open: "},
      {"stats+pool+cuda:1?initial=2M&max=1M", umemValueError, "umem_open: \"pool\": "},
      {"pool+host:?max=0", umemValueError,
       "umem_open: \"pool\": max=0 is of no use: without max it is the default"},
      {"pool+host:?growth=0K", umemValueError, "umem_open: \"pool\": growth=0"},
      {"fixed+host:?block=8&max=0", umemValueError, "umem_open: \"fixed\": max=0"},
      {"fixed+host:?block=8&growth=0", umemValueError, "umem_open: \"fixed\": growth=0"},
      {"fixed+host:?block=8&alignment=0", umemValueError, "umem_open: \"fixed\": alignment=0"},
      {"cuda-async:0?max=0", umemValueError, "umem_open: max=0"},
      {"log+host:?file=/nonexistent/log&max=0", umemValueError, "umem_open: \"log\": max=0"},
      {"stats+cuda-prefetch+cuda:0", umemTypeError,
       "umem_open: \"cuda-prefetch\": below is Cuda memory, not managed"},
      {"track+cuda-async:0?frames=33", umemValueError, "umem_open: "},
      {"debug+host:?frames=33", umemValueError, "umem_open: \"debug\": 33 frames are more than 32"},
      {"track+debug+track+host:?debug.frames=0&track.2.frames=33", umemValueError,
       "umem_open: \"track.2\": 33 frames are more than 32"},
      {"debug+host:?frames=4294967297", umemValueError, "umem_open: "},
      {"debug+host:?guard=0", umemValueError, "umem_open: \"debug\": a guard of 0 bytes"},
      {"debug+host:?guard=1M", umemValueError, "umem_open: \"debug\": a guard of 1048576 bytes"},
      {"track+host:?frames=4294967297", umemValueError, "umem_open: "},
  };
  umem_set_failure_hook(count_failures, NULL);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    umem_thread_clear();
    failures = 0;
    assert_null(umem_open(bad[i].name));
    if (umem_thread_status() != bad[i].status ||
        strncmp(umem_thread_message(), bad[i].message, strlen(bad[i].message)))
      fail_msg("%s: %s \"%s\"", bad[i].name, umem_get_status_name(umem_thread_status()),
               umem_thread_message());
    assert_int_equal(failures, 1);
  }
  umem_set_failure_hook(NULL, NULL);
}

/* A failure that is held names no context that is freed by then. */
TEST(failures_can_be_held) {
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  assert_null(umem_open("stats+track+file:/nonexistent/file?mode=r"));
  umemAttempt_end(&attempt);
  assert_null(attempt.ctx);
  assert_null(attempt.adopter);
  assert_int_equal(umem_thread_status(), umemOK);
  assert_int_equal(umemAttempt_record(&attempt), umemIOError);
  assert_int_equal(umem_thread_status(), umemIOError);
}

TEST(memory_runs_out) {
  static char const name[] = "stats+track+pool+limit+cuda-async:0?limit=1G&initial=1M&frames=2";
  unsigned refused = 0;
  void *ctx = NULL;
  assert_ok(umem_close(umem_open(name))); /* what is made once in a process is there now */
  for (unsigned i = 0; !ctx && i < 1000; i++) {
    umem_thread_clear();
    fail_memory(i, 1);
    ctx = umem_open(name);
    end_failing();
    if (ctx) break;
    refused++;
    assert_int_equal(umem_thread_status(), umemMemoryError);
  }
  assert_in_range(refused, 6, 999);
  use_and_close(ctx);
}

TEST(close_refuses_what_is_not_its_own) {
  static char const message[] =
      "umem_close: the context is none of umem_open, or was closed before";
  CONTEXT(umemHost, ram);
  assert_ok(umem_close(NULL));
  assert_int_equal(umem_close(&ram), umemValueError);
  assert_string_equal(umem_thread_message(), message);
  use(&ram);
  void *ctx = umem_open("stats+host:");
  assert_ok(umem_close(ctx));
  assert_int_equal(umem_close(ctx), umemValueError);
  ctx = umem_open("stats+cuda-async:0");
  umem_dtor(ctx);
  umem_thread_clear();
  assert_ok(umem_close(ctx)); /* the layers below */
}

/* A failure at the end is reported although the context has ended. */
TEST(close_tells_what_the_end_reveals) {
  void *ctx = umem_open("stats+track+track+pool+host:");
  assert_true(umem_alloc(ctx, 100) != 0);
  uint64_t before = umem_thread_failures();
  assert_int_equal(umem_close(ctx), umemRuntimeError);
  assert_int_equal(umem_thread_failures(), before + 2); /* both */
  assert_non_null(strstr(umem_thread_message(), "umem_close: "));
  assert_non_null(strstr(umem_thread_message(), "100"));
}
