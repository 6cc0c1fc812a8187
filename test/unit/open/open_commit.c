/* open_commit.c - the last step of umem_open: layers carry out what they held back. */

#include "open_help.h"
#include "trace.h"

enum { old_length = 5000 };

static char calls[16]; /* a letter for each call */
static bool refuses;

static void note(char letter) {
  size_t length = strlen(calls);
  assert_true(length + 1 < sizeof calls);
  calls[length] = letter;
}

static void make_old_file(void) {
  char bytes[old_length];
  memset(bytes, 7, sizeof bytes);
  int fd = open(scratch, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0 && write(fd, bytes, sizeof bytes) == sizeof bytes);
  assert_int_equal(close(fd), 0);
}

static off_t length(void) {
  struct stat st;
  assert_int_equal(stat(scratch, &st), 0);
  return st.st_size;
}

/* Counts of the bytes of the file that are as make_old_file has made them. */
static int old_bytes(void) {
  char bytes[old_length] = {0};
  int count = 0, fd = open(scratch, O_RDONLY);
  assert_true(fd >= 0 && read(fd, bytes, sizeof bytes) >= 0);
  assert_int_equal(close(fd), 0);
  for (int i = 0; i < old_length; i++) count += bytes[i] == 7;
  return count;
}

/* ---- layers: a umemStats that notes its user, a letter ---- */

CONSTRUCTOR(construct) {
  note(*(char const *)user);
  return umemStats_ctor(ctx, upstream);
}

static umemStatusType commit(void *ctx, void *user) {
  assert_true(umem_is_ok(ctx));
  assert_int_equal(old_bytes(), old_length); /* the file comes last */
  note((char)(*(char const *)user - 'a' + 'A'));
  return refuses ? umemRuntimeError : umemOK;
}

static umemStatusType commit_and_tell(void *ctx UNUSED, void *user UNUSED) {
  umemVirtual_fail(ctx, umemIOError, "not today");
  return umemIOError;
}

/* Writes to a block of the file while the stack is built. */
CONSTRUCTOR(write_early) {
  char bytes[100] = "";
  umemHost ram;
  umemHost_ctor(&ram);
  uintptr_t adr = umem_alloc(upstream, 100);
  assert_int_equal(old_bytes(), old_length);
  assert_int_equal(umem_set(upstream, adr, 9, 100), umemOK);
  assert_int_equal(umem_copy_to(upstream, adr, &ram, (uintptr_t)bytes, 100), umemOK);
  assert_true(bytes[0] == 9 && bytes[99] == 9);
  assert_int_equal(length(), 100);
  umem_dtor(&ram);
  return umemStats_ctor(ctx, upstream);
}

static void complete(void *ctx, void *user) {
  assert_true(umem_is_ok(ctx));
  assert_int_equal(length(), 0);
  note((char)(*(char const *)user - 'a' + '1'));
}

#define SCHEME(variable, text, make, finish, letter)                                               \
  static umemScheme const variable = {                                                             \
      SCHEME_OF(text, umemStats, make), .decorates = true, .commit = finish,                       \
      .complete = (finish) == commit ? complete : NULL, .user = letter}
SCHEME(outer, "outer", construct, commit, "a");
SCHEME(inner, "inner", construct, commit, "b");
SCHEME(telling, "telling", construct, commit_and_tell, "c");
SCHEME(early, "early", write_early, NULL, "d");
static umemSchemeConstruct allocate_early, open_another;
SCHEME(allocating, "allocating", allocate_early, NULL, "f");
SCHEME(opening, "opening", open_another, NULL, "g");

static void *open_over(char const *layers, char const *kind) {
  memset(calls, 0, sizeof calls);
  make_old_file();
  return open_named("%s+%s:%s?mode=w+", layers, kind, scratch);
}

static char const *const kinds[] = {"file", "mmap"};

/* ---- the tests ---- */

TEST(all_are_constructed_before_any_commits) {
  for (int i = 0; i < 2; i++) {
    void *ctx = open_over("outer+stats+inner", kinds[i]);
    assert_non_null(ctx);
    assert_string_equal(calls, "baAB12");
    assert_int_equal(length(), 0);
    use_and_close(ctx);
  }
}

TEST(a_commit_that_fails_changes_no_file) {
  for (int i = 0; i < 2; i++) {
    refuses = true;
    expect_none(open_over("outer+inner", kinds[i]), umemRuntimeError,
                "umem_open: the scheme \"outer\" has not committed");
    refuses = false;
    assert_string_equal(calls, "baA");
    assert_int_equal(old_bytes(), old_length);
    expect_none(open_over("outer+telling+stats", kinds[i]), umemIOError,
                "umem_open: \"telling\": not today");
    assert_int_equal(old_bytes(), old_length);
  }
}

TEST(a_layer_may_write_while_it_is_constructed) {
  for (int i = 0; i < 2; i++) {
    void *ctx = open_over("early", kinds[i]);
    assert_non_null(ctx);
    assert_int_equal(length(), 100);
    use_and_close(ctx);
  }
}

static void expect_calls_of(umemScheme const *scheme, char const *expected) {
  assert_ok(umem_register_scheme(scheme));
  void *ctx = open_over(scheme->name, "file");
  assert_non_null(ctx);
  assert_string_equal(calls, expected);
  assert_int_equal(length(), 0);
  assert_ok(umem_close(ctx));
}

/* A program that was compiled before there was a commit. */
TEST(a_scheme_without_the_member_is_known) {
  static umemScheme older = {SCHEME_OF("older", umemStats, construct), .decorates = true,
                             .user = "e"};
  older.size = offsetof(umemScheme, commit);
  older.commit = commit_and_tell; /* behind its end: not looked at */
  expect_calls_of(&older, "e");
}

/* One of the time when there was a commit, and no step after it. */
TEST(a_scheme_without_the_last_member_is_known) {
  static umemScheme newer = {SCHEME_OF("newer", umemStats, construct), .decorates = true,
                             .commit = commit, .complete = complete, .user = "h"};
  newer.size = offsetof(umemScheme, complete);
  expect_calls_of(&newer, "hH");
}

/* ---- logs ---- */

static char log_path[BACKEND_PATH_SIZE + 8];

static void *open_log(char const *pattern) {
  char name[3 * BACKEND_PATH_SIZE];
  snprintf(log_path, sizeof log_path, "%s.log", scratch);
  snprintf(name, sizeof name, pattern, log_path);
  return umem_open(name);
}

static size_t read_log(char **bytes) {
  struct stat st;
  int fd = open(log_path, O_RDONLY);
  assert_true(fd >= 0 && fstat(fd, &st) == 0);
  *bytes = malloc((size_t)st.st_size + 1);
  assert_true(*bytes && read(fd, *bytes, (size_t)st.st_size) == st.st_size);
  assert_int_equal(close(fd), 0);
  return (size_t)st.st_size;
}

static void expect_log(size_t records, uint32_t contexts) {
  Trace trace;
  assert_true(trace_read(&trace, log_path));
  assert_true(trace.header.ended != 0);
  assert_int_equal(trace.count, records);
  assert_int_equal(trace.header.contexts, contexts);
  trace_close(&trace);
}

/* The log, and new files of this process that have a hidden name. */
static int names_beside(void) {
  char command[3 * BACKEND_PATH_SIZE];
  int count = -1;
  snprintf(command, sizeof command, "ls -d '%s'* \"$(dirname '%s')\"/.umem-%ld-* 2>&- | wc -l",
           log_path, log_path, (long)getpid());
  FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): files of this test */
  assert_true(pipe && fscanf(pipe, "%d", &count) == 1 && pclose(pipe) == 0);
  return count;
}

static char const *const refused[] = {
    "pool+log+host:?log.file=%s&pool.max=0",
    "telling+log+host:?log.file=%s&log.max=1M",
    "telling+pool+log+host:?log.file=%s&log.max=64K&pool.initial=1M",
    "telling+log+log+host:?log.1.file=%1$s&log.2.file=%1$s",
};
enum { refused_count = sizeof refused / sizeof *refused };

TEST(a_name_that_fails_leaves_the_log_that_was_there) {
  char *old, *now;
  void *ctx = open_log("log+host:?log.file=%s&log.max=256K");
  use_and_close(ctx);
  size_t size = read_log(&old);
  for (int i = 0; i < refused_count; i++) {
    assert_null(open_log(refused[i]));
    assert_int_equal(read_log(&now), size);
    assert_memory_equal(now, old, size);
    free(now);
    umem_thread_clear();
  }
  expect_log(3, 1);
  ctx = open_log("log+host:?log.file=%s"); /* nobody has it locked */
  assert_non_null(ctx);
  assert_ok(umem_close(ctx));
  expect_log(0, 1);
  free(old);
  assert_int_equal(unlink(log_path), 0);
}

TEST(a_name_that_fails_makes_no_log) {
  for (int i = 0; i < refused_count; i++) {
    assert_null(open_log(refused[i]));
    assert_int_equal(names_beside(), 0);
    umem_thread_clear();
  }
}

/* Allocates while the stack is built. */
CONSTRUCTOR(allocate_early) {
  uintptr_t adr = umem_alloc(upstream, 100);
  assert_ok(umem_set(upstream, adr, 9, 100));
  umem_free(upstream, adr);
  return umemStats_ctor(ctx, upstream);
}

TEST(what_was_done_before_the_commit_is_recorded) {
  for (int i = 0; i < 3; i++) { /* new, then begun anew */
    void *ctx = open_log("allocating+log+host:?log.file=%s");
    assert_non_null(ctx);
    assert_int_equal(access(log_path, F_OK), 0);
    use_and_close(ctx);
    expect_log(6, 1);
  }
  assert_int_equal(unlink(log_path), 0);
}

/* Two layers, and another context of the program, write one log. */
static void *other;
static umemLog by_hand;
static umemHost ram;

CONSTRUCTOR(open_another) {
  use(upstream);
  other = open_log("log+host:?log.file=%s");
  if (!other) return umem_thread_status();
  use(other);
  umemLogOptions with = {.size = sizeof with, .filename = log_path};
  umemHost_ctor(&ram);
  assert_ok(umemLog_ctor(&by_hand, &ram, &with));
  return umemStats_ctor(ctx, upstream);
}

TEST(several_share_a_log_that_is_not_committed) {
  for (int i = 0; i < 3; i++) {
    void *ctx = open_log("opening+log+log+host:?log.1.file=%1$s&log.2.file=%1$s");
    assert_non_null(ctx);
    use(&by_hand);
    umem_dtor(&by_hand);
    assert_ok(umem_close(other));
    use(ctx);
    assert_ok(umem_close(ctx));
    expect_log(2 * 6 + 3 + 3, 4);
    umem_dtor(&ram);
  }
  assert_int_equal(names_beside(), 1);
  assert_int_equal(unlink(log_path), 0);
}

int main(void) {
  umemScheme const *const schemes[] = {&outer, &inner, &telling, &early, &allocating, &opening};
  for (int i = 0; i < 6; i++)
    if (umem_register_scheme(schemes[i]) != umemOK) return 1;
  return run_cases(NULL, NULL);
}
