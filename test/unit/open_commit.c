/* open_commit.c - the last step of umem_open: layers carry out what they held back. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "open_help.h"

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

static umemStatusType construct(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *options, void *user) {
  (void)place, (void)options;
  note(*(char const *)user);
  return umemStats_ctor(ctx, upstream);
}

static umemStatusType commit(void *ctx, void *user) {
  assert_true(umem_is_ok(ctx));
  assert_int_equal(old_bytes(), old_length); /* the file comes last */
  note((char)(*(char const *)user - 'a' + 'A'));
  return refuses ? umemRuntimeError : umemOK;
}

static umemStatusType commit_and_tell(void *ctx, void *user) {
  (void)ctx, (void)user;
  umemVirtual_fail(ctx, umemIOError, "not today");
  return umemIOError;
}

/* Writes to a block of the file while the stack is built. */
static umemStatusType write_early(void *ctx, void *upstream, umemOptionValue const *place,
                                  umemOptionValue const *options, void *user) {
  (void)place, (void)options, (void)user;
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

#define SCHEME(variable, text, make, finish, letter)                                               \
  static umemScheme const variable = {.size = sizeof(umemScheme),                                  \
                                      .name = text,                                                \
                                      .context_size = sizeof(umemStats),                           \
                                      .decorates = true,                                           \
                                      .construct = make,                                           \
                                      .commit = finish,                                            \
                                      .user = letter}
SCHEME(outer, "outer", construct, commit, "a");
SCHEME(inner, "inner", construct, commit, "b");
SCHEME(telling, "telling", construct, commit_and_tell, "c");
SCHEME(early, "early", write_early, NULL, "d");

static void *open_over(char const *layers, char const *kind) {
  char name[BACKEND_PATH_SIZE + 80];
  snprintf(name, sizeof name, "%s+%s:%s?mode=w+", layers, kind, scratch);
  memset(calls, 0, sizeof calls);
  make_old_file();
  return umem_open(name);
}

static char const *const kinds[] = {"file", "mmap"};

/* ---- the tests ---- */

static void all_are_constructed_before_any_commits(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    void *ctx = open_over("outer+stats+inner", kinds[i]);
    assert_non_null(ctx);
    assert_string_equal(calls, "baAB");
    assert_int_equal(length(), 0);
    use(ctx);
    assert_ok(umem_close(ctx));
  }
}

static void a_commit_that_fails_changes_no_file(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    refuses = true;
    assert_null(open_over("outer+inner", kinds[i]));
    refuses = false;
    assert_string_equal(calls, "baA");
    assert_int_equal(old_bytes(), old_length);
    assert_int_equal(umem_thread_status(), umemRuntimeError);
    assert_string_equal(umem_thread_message(), "umem_open: the scheme \"outer\" has not committed");
    assert_null(open_over("outer+telling+stats", kinds[i]));
    assert_int_equal(old_bytes(), old_length);
    assert_int_equal(umem_thread_status(), umemIOError);
    assert_string_equal(umem_thread_message(), "umem_open: \"telling\": not today");
  }
  umem_thread_clear();
}

static void a_layer_may_write_while_it_is_constructed(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    void *ctx = open_over("early", kinds[i]);
    assert_non_null(ctx);
    assert_int_equal(length(), 100);
    use(ctx);
    assert_ok(umem_close(ctx));
  }
}

/* A program that was compiled before there was a commit. */
static void a_scheme_without_the_member_is_known(void **state) {
  (void)state;
  static umemScheme older = {.name = "older",
                             .size = offsetof(umemScheme, commit),
                             .context_size = sizeof(umemStats),
                             .decorates = true,
                             .construct = construct,
                             .user = "e"};
  older.commit = commit_and_tell; /* behind its end: not looked at */
  assert_ok(umem_register_scheme(&older));
  void *ctx = open_over("older", "file");
  assert_non_null(ctx);
  assert_string_equal(calls, "e");
  assert_int_equal(length(), 0);
  assert_ok(umem_close(ctx));
}

int main(void) {
  static struct CMUnitTest const tests[] = {
      TEST(all_are_constructed_before_any_commits),
      TEST(a_commit_that_fails_changes_no_file),
      TEST(a_layer_may_write_while_it_is_constructed),
      TEST(a_scheme_without_the_member_is_known),
  };
  umemScheme const *const schemes[] = {&outer, &inner, &telling, &early};
  for (int i = 0; i < 4; i++)
    if (umem_register_scheme(schemes[i]) != umemOK) return 1;
  return cmocka_run_group_tests_name("open_commit", tests, NULL, NULL);
}
