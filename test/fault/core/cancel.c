/* cancel.c - threads that are cancelled while umem runs leave contexts that go on. */

#include "child.h"
#include "temporary.h"

enum { rounds = 40, size = 20000 };

static char log_name[256];
static char const *const names[] = {
    "file:",       "mmap:",       "pool+file:",       "fixed+file:?block=20000",
    "debug+mmap:", "track+host:", "debug+pool+host:", "limit+stats+file:?limit=1G",
};

/* ---- a thread that works until it is cancelled ---- */

static void *work(void *ctx) {
  static unsigned char bytes[size];
  umemHost host;
  if (umemHost_ctor(&host) != umemOK) abort();
  for (;;) {
    uintptr_t adr = umem_alloc(ctx, size);
    umem_set(ctx, adr, 7, size);
    umem_copy_to(&host, (uintptr_t)bytes, ctx, adr, size);
    umem_flush(ctx);
    umem_free(ctx, adr);
    pthread_testcancel(); /* umem itself is never cancelled */
  }
  return NULL;
}

/* The end of a thread at any time leaves no lock held and no block allocated. */
static void survives(void *name) {
  void *ctx = umem_open(name);
  EXPECT(ctx);
  unsigned seed = 1;
  for (int i = 0; i < rounds; i++) {
    pthread_t thread;
    void *result;
    EXPECT(pthread_create(&thread, NULL, work, ctx) == 0);
    usleep((useconds_t)(rand_r(&seed) % 3000));
    EXPECT(pthread_cancel(thread) == 0);
    EXPECT(pthread_join(thread, &result) == 0);
    EXPECT(result == PTHREAD_CANCELED);
    uintptr_t adr = umem_alloc(ctx, size);
    EXPECT(adr != umem_null(ctx));
    EXPECT(umem_set(ctx, adr, 1, size) == umemOK);
    umem_free(ctx, adr);
  }
  EXPECT(umem_is_ok(ctx));
  EXPECT(umem_close(ctx) == umemOK);
}

TEST_CASE(every_context_survives) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    child_run(survives, (void *)(uintptr_t)names[i]);
}

TEST_CASE(a_log_survives) {
  char name[320];
  temporary_name(log_name, sizeof log_name);
  snprintf(name, sizeof name, "log+host:?log.file=%s", log_name);
  child_run(survives, name);
  unlink(log_name);
}

/* ---- opening and ending ---- */

static void *open_and_close(void *ignored UNUSED) {
  for (;;) {
    void *ctx = umem_open("pool+file:");
    uintptr_t adr = umem_alloc(ctx, size);
    umem_free(ctx, adr);
    umem_close(ctx);
    pthread_testcancel();
  }
  return NULL;
}

static int descriptors(void) {
  int count = 0;
  for (int fd = 0; fd < 256; fd++) count += lseek(fd, 0, SEEK_CUR) >= 0;
  return count;
}

static void opening_survives(void *ignored UNUSED) {
  unsigned seed = 2;
  int before = descriptors();
  for (int i = 0; i < rounds; i++) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, open_and_close, NULL) == 0);
    usleep((useconds_t)(rand_r(&seed) % 3000));
    EXPECT(pthread_cancel(thread) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
  }
  EXPECT(descriptors() == before);
  EXPECT(umem_default() && umem_open("host:"));
}

TEST_CASE(opening_leaves_no_descriptor) { child_run(opening_survives, NULL); }

/* ---- callbacks ---- */

static int reached;

static bool cancels_itself(void *user UNUSED, uint64_t done UNUSED, uint64_t total UNUSED) {
  pthread_cancel(pthread_self());
  pthread_testcancel();
  return true;
}

static bool cancels_once(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  (void)user, (void)ctx, (void)nbytes, (void)alignment;
  return cancels_itself(NULL, 0, 0) && attempt < 2;
}

static void hook_cancels(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  cancels_itself(NULL, 0, 0);
}

static void copy_with_progress(void) {
  umemHost host;
  char from[100] = "bytes", to[100];
  umemCopyOptions options = {.size = sizeof options, .progress = cancels_itself};
  umemHost_ctor(&host);
  umem_copy_to_with(&host, (uintptr_t)from, &host, (uintptr_t)to, sizeof from, &options);
  reached = !memcmp(from, to, sizeof from);
}

static void allocate_with_retry(void) {
  umemHost host;
  umemLimit limit;
  umemRetry retry;
  umemHost_ctor(&host);
  umemLimit_ctor(&limit, &host, 10);
  umemRetry_ctor(&retry, &limit, cancels_once, NULL);
  reached = umem_alloc(&retry, 100) == 0;
}

static void fail_with_hook(void) {
  umemHost host;
  umemHost_ctor(&host);
  umem_set_failure_hook(hook_cancels, NULL);
  reached = umem_set(&host, 0, 0, 1) == umemValueError;
}

/* ---- a context of the program's that says that it is prompt ---- */

static char arena[200];

static uintptr_t arena_alloc(umemVirtual *ctx UNUSED, size_t nbytes) {
  return (uintptr_t)arena + (nbytes > 100 ? 0 : 100);
}

static void arena_free(umemVirtual *ctx, uintptr_t adr) { (void)ctx, (void)adr; }

static void arena_copy(umemVirtual *ctx UNUSED, uintptr_t adr, umemVirtual *that UNUSED,
                       uintptr_t other, size_t nbytes) {
  memmove((void *)other, (void const *)adr, nbytes);
}

/* The request is pending already: nothing that umem does for the default is cancelled either. */
static void resize_by_default(void) {
  static struct umemVtbl const vtbl = {
      .alloc = arena_alloc, .free = arena_free, .copy_to = arena_copy};
  umemHost host;
  umemVirtual ctx;
  umemHost_ctor(&host);
  umemVirtual_ctor(&ctx, &host);
  ctx.vptr = &vtbl;
  ctx.capabilities |= umemCpuReadable | umemCpuWritable | umemPrompt;
  uintptr_t adr = umem_alloc(&ctx, 10);
  pthread_cancel(pthread_self());
  reached = umem_realloc(&ctx, adr, 10, 150) == (uintptr_t)arena;
}

static void reach_a_point(umemVirtual *ctx UNUSED) { pthread_testcancel(); }

static void info_reaches_a_point(umemVirtual *ctx, umemInfo *info) {
  reach_a_point(ctx);
  info->capacity = sizeof arena;
}

/* The two methods that may reach one. */
static void ask_and_end(void) {
  static struct umemVtbl const vtbl = {.alloc = arena_alloc,
                                       .free = arena_free,
                                       .dtor = reach_a_point,
                                       .info = info_reaches_a_point};
  umemHost host;
  umemVirtual ctx;
  umemInfo info = UMEM_INFO_INIT;
  umemHost_ctor(&host);
  umemVirtual_ctor(&ctx, &host);
  ctx.vptr = &vtbl;
  ctx.capabilities |= umemPrompt;
  pthread_cancel(pthread_self());
  umem_get_info(&ctx, &info);
  umem_dtor(&ctx);
  reached = info.capacity == sizeof arena;
}

static void commit_a_file(void) {
  SCOPED(unlink_path) char path[256];
  SCOPED(umem_dtor) umemFile file;
  temporary_name(path, sizeof path);
  umemFile_replace(&file, path);
  pthread_cancel(pthread_self());
  reached = umemFile_commit(&file) == umemOK;
}

static void *call(void *function) {
  (*(void (**)(void))function)();
  pthread_testcancel();
  reached = 2;
  return NULL;
}

/* It acts after the call that runs the callback, not in the callback. */
static void callback_puts_it_off(void *function) {
  pthread_t thread;
  void *result;
  EXPECT(pthread_create(&thread, NULL, call, function) == 0);
  EXPECT(pthread_join(thread, &result) == 0);
  EXPECT(result == PTHREAD_CANCELED);
  EXPECT(reached == 1);
  umem_set_failure_hook(NULL, NULL);
}

TEST_CASE(callbacks_put_it_off) {
  void (*calls[])(void) = {copy_with_progress, allocate_with_retry, fail_with_hook,
                           resize_by_default,  ask_and_end,         commit_a_file};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    child_run(callback_puts_it_off, &calls[i]);
}

/* ---- the thread's setting ---- */

static void expect_setting(int expected) {
  int now, ignored;
  assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &now), 0);
  pthread_setcancelstate(now, &ignored);
  assert_int_equal(now, expected);
}

TEST_CASE(calls_leave_the_setting) {
  int const settings[] = {PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ENABLE};
  for (size_t i = 0; i < 2; i++) {
    int ignored;
    pthread_setcancelstate(settings[i], &ignored);
    void *ctx = umem_open("pool+file:");
    expect_setting(settings[i]);
    umem_free(ctx, umem_alloc(ctx, size));
    expect_setting(settings[i]);
    assert_int_equal(umem_set(ctx, UINTPTR_MAX, 0, 1), umemValueError);
    expect_setting(settings[i]);
    umem_close(ctx);
    expect_setting(settings[i]);
    assert_null(umem_open("file:/nonexistent/x"));
    expect_setting(settings[i]);
    umem_thread_clear();
  }
}
