/* open.c - a name that umem_open cannot open changes no file: whichever layer refuses, for
 * whatever reason, and whichever call into the system fails on the way. */

#include "fault/trial.h"

static char folder[200], path[256], log_path[256];

static char const *const kinds[] = {"file", "mmap"};
static char const *const modes[] = {"w", "w+", "r+", "a", "a+"};
enum { kind_count = 2, mode_count = 5 };

/* ---- the file ---- */

static struct stat look(void) {
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  return st;
}

static void expect_untouched(char const *name, struct stat const *before) {
  static unsigned char bytes[old_size];
  struct stat now = look();
  bool same = now.st_ino == before->st_ino && now.st_size == before->st_size &&
              read_file(path, bytes, sizeof bytes) == old_size;
  for (size_t i = 0; same && i < old_size; i++) same = bytes[i] == old_byte(i);
  if (!same) fail_msg("%s: the file has changed, it has %lld bytes", name, (long long)now.st_size);
}

static void set_up(void **state UNUSED) {
  temporary_name(folder, sizeof folder);
  snprintf(path, sizeof path, "%s/file", folder);
  snprintf(log_path, sizeof log_path, "%s/log", folder);
  assert_int_equal(mkdir(folder, 0700), 0);
}

static void tear_down(void **state UNUSED) {
  inject_reset();
  unlink(path);
  unlink(log_path);
  assert_int_equal(rmdir(folder), 0);
}

/* ---- layers that refuse ---- */

/* layers over the file, and options beside its mode. */
typedef struct Refusal {
  char const *layers, *options;
  umemStatusType status;
} Refusal;

static Refusal const refusals[] = {
    {"log", "log.file=/nonexistent/log", umemIOError},
    {"log", "log.file=/nonexistent/log&max=0", umemValueError},
    {"pool", "max=0", umemValueError},
    {"pool", "growth=0", umemValueError},
    {"pool", "initial=4000T", umemMemoryError},
    {"pool", "initial=2M&max=1M", umemValueError},
    {"fixed", "block=8&max=0", umemValueError},
    {"fixed", "block=8&initial=4000T", umemMemoryError},
    {"track", "frames=33", umemValueError},
    {"debug", "guard=0", umemValueError},
    {"debug", "frames=33", umemValueError},
    {"cuda-prefetch", "", umemTypeError},
    {"log+pool", "initial=1M&log.file=/nonexistent/log", umemIOError},
    {"log+pool", "initial=30K&log.file=/nonexistent/log", umemIOError},
    {"debug+stats+fixed", "block=8&initial=64K&guard=0", umemValueError},
    {"track+pool+limit", "initial=1M&limit=64K", umemMemoryError},
    {"pool+log", "initial=4000T&log.file=", umemMemoryError},
};

static void compose(char *name, size_t size, Refusal const *refusal, int kind, int mode) {
  bool logs = strstr(refusal->options, "log.file=") &&
              refusal->options[strlen(refusal->options) - 1] == '=';
  snprintf(name, size, "%s+%s:%s?mode=%s%s%s%s", refusal->layers, kinds[kind], path, modes[mode],
           *refusal->options ? "&" : "", refusal->options, logs ? log_path : "");
}

static void expect_refused(char const *name, Refusal const *refusal) {
  if (umem_open(name)) fail_msg("%s was opened", name);
  if (umem_thread_status() != refusal->status) fail_msg("%s: %s", name, umem_thread_message());
  umem_thread_clear();
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

TEST(a_layer_that_refuses_changes_no_file) {
  char name[1000];
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    for (int kind = 0; kind < kind_count; kind++)
      for (int mode = 0; mode < mode_count; mode++) {
        compose(name, sizeof name, &refusals[i], kind, mode);
        write_file(path, old_size);
        struct stat before = look();
        expect_refused(name, &refusals[i]);
        expect_untouched(name, &before);
        struct stat now = look();
        assert_memory_equal(&now.st_mtim, &before.st_mtim, sizeof now.st_mtim);
        if (access(log_path, F_OK) == 0) fail_msg("%s has left a log", name);
      }
}

TEST(a_file_created_in_vain_goes_again) {
  char name[1000];
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    for (int kind = 0; kind < kind_count; kind++)
      for (int mode = 0; mode < mode_count; mode++) {
        if (modes[mode][0] == 'r') continue;
        compose(name, sizeof name, &refusals[i], kind, mode);
        expect_refused(name, &refusals[i]);
        if (count_entries(folder, "")) fail_msg("%s has left something", name);
      }
}

static void the_default_context_changes_no_file(void *argument) {
  (void)argument;
  char name[600];
  write_file(path, old_size);
  struct stat before = look();
  for (int kind = 0; kind < kind_count; kind++) {
    snprintf(name, sizeof name, "pool+%s:%s?mode=w&initial=4000T", kinds[kind], path);
    EXPECT(setenv(UMEM_DEFAULT, name, 1) == 0);
    EXPECT(!umem_default());
    EXPECT(umem_thread_status() == umemMemoryError);
    EXPECT(file_length(path) == old_size && look().st_ino == before.st_ino);
  }
  snprintf(name, sizeof name, "pool+file:%s?mode=w&initial=64K", path);
  EXPECT(setenv(UMEM_DEFAULT, name, 1) == 0);
  EXPECT(umem_default());
  EXPECT(file_length(path) == 64 << 10);
}

TEST(default_contexts) {
  child_run(the_default_context_changes_no_file, NULL);
  write_file(path, old_size);
}

/* ---- another file gets the name ---- */

static char aside[256];

/* Renames the file that was created, puts another one in its place, and refuses. */
static umemStatusType swap(void *ctx, void *upstream, umemOptionValue const *place,
                           umemOptionValue const *options, void *user) {
  (void)place, (void)options, (void)user;
  umemStatusType status = umemStats_ctor(ctx, upstream);
  if (status != umemOK) return status;
  umem_dtor(ctx);
  assert_int_equal(rename(path, aside), 0);
  write_file(path, old_size);
  return umemRuntimeError;
}

static umemScheme const swap_scheme = {.size = sizeof(umemScheme),
                                       .name = "swap",
                                       .context_size = sizeof(umemStats),
                                       .decorates = true,
                                       .construct = swap};

TEST(a_file_of_others_is_not_removed) {
  char name[600];
  snprintf(aside, sizeof aside, "%s/aside", folder);
  assert_int_equal(umem_register_scheme(&swap_scheme), umemOK);
  for (int kind = 0; kind < kind_count; kind++) {
    snprintf(name, sizeof name, "swap+%s:%s?mode=w", kinds[kind], path);
    assert_null(umem_open(name));
    assert_int_equal(file_length(path), old_size);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(aside), 0);
    assert_int_equal(count_entries(folder, ""), 0);
  }
}

/* Finds the file that was created, opens it, and refuses; writes to it where user says so. */
static int visitor_fd;
static umemStatusType visit(void *ctx, void *upstream, umemOptionValue const *place,
                            umemOptionValue const *options, void *user) {
  (void)ctx, (void)upstream, (void)place, (void)options;
  visitor_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  assert_true(visitor_fd >= 0);
  if (user) {
    assert_int_equal(write(visitor_fd, user, 1), 1);
    assert_int_equal(close(visitor_fd), 0);
  }
  return umemRuntimeError;
}

static umemScheme const visit_schemes[] = {
    {.size = sizeof(umemScheme),
     .name = "visit",
     .context_size = sizeof(umemStats),
     .decorates = true,
     .construct = visit},
    {.size = sizeof(umemScheme),
     .name = "visit-and-write",
     .context_size = sizeof(umemStats),
     .decorates = true,
     .construct = visit,
     .user = "x"},
};

TEST(a_file_that_others_use_is_not_removed) {
  char name[600];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(umem_register_scheme(&visit_schemes[i]), umemOK);
    for (int kind = 0; kind < kind_count; kind++) {
      snprintf(name, sizeof name, "%s+%s:%s?mode=w", visit_schemes[i].name, kinds[kind], path);
      assert_null(umem_open(name));
      assert_int_equal(file_length(path), i);
      if (!i) assert_int_equal(close(visitor_fd), 0);
      assert_int_equal(unlink(path), 0);
      assert_int_equal(count_entries(folder, ""), 0);
    }
  }
}

/* ---- what can be opened ---- */

static void expect_zeros(size_t length) {
  static unsigned char bytes[1 << 20];
  assert_int_equal(read_file(path, bytes, sizeof bytes), length);
  for (size_t i = 0; i < length; i++)
    if (bytes[i]) fail_msg("byte %zu is left of the old file", i);
}

TEST(what_is_opened_is_emptied_and_holds_its_blocks) {
  static size_t const sizes[] = {4 << 10, 64 << 10, 1 << 20};
  char name[600];
  for (size_t i = 0; i < 3; i++)
    for (int kind = 0; kind < kind_count; kind++) {
      write_file(path, old_size);
      snprintf(name, sizeof name, "stats+pool+%s:%s?mode=w&initial=%zu", kinds[kind], path,
               sizes[i]);
      void *ctx = umem_open(name);
      if (!ctx) fail_msg("%s: %s", name, umem_thread_message());
      expect_zeros(sizes[i]);
      assert_true((size_t)look().st_blocks * 512 >= sizes[i]);
      uintptr_t adr = umem_calloc(ctx, 1, 100);
      assert_true(adr != umem_null(ctx));
      assert_int_equal(umem_set(ctx, adr, 1, 100), umemOK);
      if (kind) assert_int_equal(*(char *)adr, 1);
      umem_free(ctx, adr);
      assert_int_equal(umem_close(ctx), umemOK);
      assert_true(file_length(path) >= sizes[i]);
    }
}

/* ---- the n-th call fails ---- */

static char const *const sweeps[] = {
    "%s:%s?mode=w",
    "stats+track+pool+%s:%s?mode=w&initial=64K",
    "stats+track+pool+%s:%s?mode=r+&initial=64K",
    "debug+fixed+%s:%s?mode=a+&block=64&initial=8K",
};

static struct {
  InjectCall call;
  int error;
} const strikes[] = {
    {callHeap, ENOMEM},    {callMap, ENOMEM},       {callOpen, EMFILE},        {callOpen, EACCES},
    {callRead, EIO},       {callPeek, EIO},         {callWrite, EIO},          {callWrite, ENOSPC},
    {callReserve, ENOSPC}, {callReserve, EIO},      {callReserve, EOPNOTSUPP}, {callLength, EIO},
    {callLength, EFBIG},   {callLock, EWOULDBLOCK}, {callStat, EIO},
};

/* Whether the fault was met. */
static bool meets(char const *name, size_t strike, unsigned long nth, bool lasting) {
  write_file(path, old_size);
  struct stat before = look();
  inject_fail(strikes[strike].call, nth, strikes[strike].error, lasting);
  void *ctx = umem_open(name);
  bool met = inject_off() > 0;
  if (ctx) {
    umem_thread_clear();
    assert_int_equal(umem_close(ctx), umemOK);
  } else {
    char story[700];
    assert_true(met && umem_thread_status() != umemOK);
    snprintf(story, sizeof story, "%s, %s %lu%s", name, inject_call_name(strikes[strike].call), nth,
             lasting ? " and later" : "");
    expect_untouched(story, &before);
  }
  umem_thread_clear();
  return met;
}

TEST(a_call_that_fails_changes_no_file) {
  char name[600];
  unsigned long count = 0;
  for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++)
    for (int kind = 0; kind < kind_count; kind++) {
      snprintf(name, sizeof name, sweeps[i], kinds[kind], path); /* NOLINT: the formats are above */
      for (size_t strike = 0; strike < sizeof strikes / sizeof *strikes; strike++)
        for (int lasting = 0; lasting < 2; lasting++)
          for (unsigned long nth = 1; meets(name, strike, nth, lasting); nth++) count++;
    }
  assert_true(count > 200);
}

/* ---- a log over a file ---- */

enum { log_bytes = 1 << 16 };
static unsigned char old_log[log_bytes];
static size_t log_length;

static void make_old_log(void) {
  umemHost host;
  umemLog log;
  umemLogOptions options = {.size = sizeof options, .filename = log_path, .max_bytes = log_bytes};
  assert_int_equal(umemHost_ctor(&host), umemOK);
  assert_int_equal(umemLog_ctor(&log, &host, &options), umemOK);
  umem_free(&log, umem_alloc(&log, 100));
  DESTRUCT(&log, &host);
  log_length = read_file(log_path, old_log, sizeof old_log);
}

/* The log may have become longer where what it needs could not be given back. */
static bool is_old_log(void) {
  static unsigned char now[2 << 20];
  size_t length = read_file(log_path, now, sizeof now);
  return log_length && length >= log_length && !memcmp(now, old_log, log_length);
}

/* Where the name could not be opened, the log is as it was; or there is none where there was none.
 * A new log is removed by calls that have to succeed: there only one call fails. */
static bool log_meets(char const *name, size_t strike, unsigned long nth, bool is_there) {
  unlink(log_path);
  if (is_there) make_old_log();
  write_file(path, old_size);
  struct stat before = look();
  inject_fail(strikes[strike].call, nth, strikes[strike].error, is_there);
  void *ctx = umem_open(name);
  bool met = inject_off() > 0;
  if (ctx) {
    umem_thread_clear();
    assert_int_equal(umem_close(ctx), umemOK);
    return met;
  }
  expect_untouched(name, &before);
  if (is_there ? !is_old_log() : count_entries(folder, "") != 1)
    fail_msg("%s: %s", name, umem_thread_message());
  umem_thread_clear();
  return met;
}

TEST(a_call_that_fails_changes_no_log) {
  static struct {
    char const *most;
    bool is_there;
  } const logs[] = {{"64K", true}, {"1M", true}, {"32K", true}, {"64K", false}};
  char name[900];
  unsigned long count = 0;
  for (int kind = 0; kind < kind_count; kind++)
    for (size_t strike = 0; strike < sizeof strikes / sizeof *strikes; strike++)
      for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        snprintf(name, sizeof name,
                 "stats+pool+log+%s:%s?mode=w&initial=64K&log.file=%s&log.max=%s", kinds[kind],
                 path, log_path, logs[i].most);
        for (unsigned long nth = 1; log_meets(name, strike, nth, logs[i].is_there); nth++) count++;
      }
  assert_true(count > 200);
  unlink(log_path);
}
