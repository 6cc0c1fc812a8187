/* log_help.h - what the tests of umem/log.h share: a file of a new name, and what was written to
 * it. */
#pragma once

#include "unit/adaptors/adaptor_help.h"
#include "backends.h"
#include "trace.h"

/* The log of each test, and how it read when read_back was called last. */
static char path[BACKEND_PATH_SIZE];
static umemLogOptions options;
static Trace trace;

static inline void set_up_log(void **state) {
  memset(&trace, 0, sizeof trace);
  options = (umemLogOptions)UMEM_LOG_OPTIONS_INIT;
  options.filename = path;
  set_up(state);
  assert_true(backend_temp_file(path));
}

static inline void tear_down_log(void **state) {
  trace_close(&trace);
  unlink(path);
  tear_down(state);
}

#define LOG_TEST(name) TEST_CASE_WITH(name, set_up_log, tear_down_log)

/* Reads the log as it is now. */
static inline void read_back(void) {
  trace_close(&trace);
  if (!trace_read(&trace, path)) fail_msg("%s", trace.why);
}

/* Of the smallest size: 256 records. */
static inline void open_small(umemLog *log, void *upstream) {
  options.max_bytes = 1 << 16;
  assert_ok(umemLog_ctor(log, upstream, &options));
}
