/* ends.c - what objects that end do with their blocks: umem_end_block, and the umemArrays that call
 * it.
 *
 * A child of fork has the objects of its parent, and on some places also their memory: it must not
 * free that. In a named file, what an array has written may stay after the array. */

#include "temporary.h"
#include "workers.h"

enum { nbytes = 8000, elements = nbytes / 8, name_size = 512 };

/* Names of contexts over memory that a child has together with its parent; %s is the path of a
 * file. */
static char const *const shared_names[] = {
    "shm:?size=4M",
    "limit+shm:?size=4M&limit=4M",
    "track+shm:?size=4M",
    "stats+track+shm:?size=4M",
    "debug+shm:?size=4M",
    "guarded+shm:?size=4M",
    "pool+shm:?size=4M",
    "fixed+shm:?size=4M&block=64K",
    "limit+pool+track+shm:?size=4M&limit=4M",
    "file:%s?mode=w+",
    "file:%s?mode=a+",
    "mmap:%s?mode=w+",
    "track+mmap:%s?mode=w+",
    "pool+mmap:%s?mode=w+",
    "debug+file:%s?mode=w+",
    "file:",
    "mmap:",
};
enum { shared_count = sizeof shared_names / sizeof *shared_names };

static void *open_name(char const *name, char *path) {
  char text[name_size];
  temporary_name(path, name_size / 2);
  snprintf(text, sizeof text, name, path);
  void *ctx = umem_open(text);
  if (!ctx) fail_msg("%s: %s", text, umem_thread_message());
  return ctx;
}

static umemArray *make_array(void *ctx, double value) {
  umemArray *array =
      umemArray_full(ctx, umemFloat64, 1, (int64_t const[]){elements}, NULL, &value, NULL);
  if (!array) fail_msg("%s", umem_thread_message());
  return array;
}

/* Whether every element is value. Records a failure if it cannot read. */
static bool holds(umemArray *array, double value) {
  static double found[elements];
  umemHost host;
  umemHost_ctor(&host);
  umem_copy_to(umemArray_context(array), umemArray_address(array), &host, (uintptr_t)found, nbytes);
  umem_dtor(&host);
  for (int i = 0; i < elements; i++)
    if (found[i] != value) return false;
  return true;
}

/* Ends the objects of the parent. What the child has allocated itself it frees, but what Debug
 * keeps. */
static void end_all_in_child(void *ctx, umemArray *array, umemArray *view) {
  uint64_t before = umem_thread_failures();
  umemArray_release(view);
  umemArray_release(array);
  umemArray *own = make_array(ctx, 2);
  if (own) EXPECT(umemArray_address(own) != umem_null(ctx));
  uintptr_t adr = umemArray_address(own);
  umemArray_release(own);
  own = make_array(ctx, 3);
  EXPECT(umemArray_address(own) == adr || umem_find_layer(ctx, "debug"));
  umemArray_release(own);
  EXPECT(umem_thread_failures() == before);
  EXPECT(umem_close(ctx) == umemOK);
  _exit(0);
}

TEST_CASE(a_child_frees_nothing_of_its_parent) {
  for (size_t i = 0; i < shared_count; i++) {
    char path[name_size];
    void *ctx = open_name(shared_names[i], path);
    umemArray *array = make_array(ctx, 1);
    umemArray *view = umemArray_alias(array, NULL);
    struct stat before, after;
    bool named = stat(path, &before) == 0;
    pid_t child = fork();
    if (!child) end_all_in_child(ctx, array, view);
    int status = child_wait(child);
    if (status) fail_msg("%s: the child has ended with %#x", shared_names[i], (unsigned)status);
    if (named) {
      assert_int_equal(stat(path, &after), 0);
      assert_true(after.st_size >= before.st_size && after.st_ino == before.st_ino);
    }
    umemArray *next = make_array(ctx, 3);
    if (umemArray_address(next) == umemArray_address(array) || !holds(array, 1))
      fail_msg("%s: two live arrays share their bytes", shared_names[i]);
    umemArray_release(next);
    umemArray_release(view);
    umemArray_release(array);
    assert_int_equal(umem_thread_status(), umemOK);
    assert_int_equal(umem_close(ctx), umemOK);
    unlink(path);
  }
}

/* Whether nbytes at one address and at another have bytes in common. */
static bool meet(uintptr_t one, uintptr_t other) {
  return one < other + nbytes && other < one + nbytes;
}

/* What a child does to a context of its parent gives no memory back that the parent's context
 * has. */
TEST_CASE(a_child_gives_back_nothing_that_a_context_has) {
  static char const *const names[] = {
      "pool+shm:?size=4M",    "fixed+shm:?size=4M&block=64K",
      "debug+shm:?size=4M",   "limit+pool+track+shm:?size=4M&limit=4M",
      "guarded+shm:?size=4M",
  };
  for (size_t i = 0; i < 2 * (sizeof names / sizeof *names); i++) {
    void *ctx = umem_open(names[i / 2]), *shm = umem_find_layer(ctx, "shm");
    assert_non_null(shm);
    uintptr_t live = i % 2 ? umem_alloc(ctx, nbytes) : 0, freed = umem_alloc(ctx, nbytes);
    umem_free(ctx, freed);
    uintptr_t probe = umem_alloc(shm, nbytes);
    bool kept = !meet(probe, freed);
    umem_free(shm, probe);
    IN_CHILD {
      umem_trim(ctx, 0);
      umem_close(ctx);
    }
    for (int k = 0; k < 20; k++) {
      probe = umem_alloc(shm, nbytes);
      if ((live && meet(probe, live)) || (kept && meet(probe, freed)))
        fail_msg("%s: a child has given memory back", names[i / 2]);
    }
    umem_free(ctx, live);
    umem_close(ctx);
    umem_thread_clear();
  }
}

/* Debug looks at a block that stays when its owner ends. */
TEST_CASE(a_write_behind_a_block_that_is_kept_is_found) {
  SCOPED(unlink_path) char path[name_size];
  void *ctx = open_name("debug+mmap:%s?mode=w+", path);
  umemArray *array = make_array(ctx, 1);
  umemArray_set_keeps(array, true);
  ((unsigned char *)umemArray_address(array))[nbytes] ^= 255;
  uint64_t before = umem_thread_failures();
  umemArray_release(array);
  assert_true(umem_thread_failures() > before);
  umem_close(ctx);
}

/* In its own copy of the RAM a child frees as always: otherwise a long series of children would
 * leak. */
TEST_CASE(a_child_frees_its_copy_of_ram) {
  void *ctx = umem_open("track+limit+host:?limit=9000");
  umemArray *array = make_array(ctx, 1);
  IN_CHILD {
    size_t left = 0;
    umemArray_release(array);
    EXPECT(umemTrack_count(ctx, &left) == 0 && left == 0);
    EXPECT(umem_alloc(ctx, nbytes));
  }
  umemArray_release(array);
  assert_int_equal(umem_close(ctx), umemOK);
}

TEST_CASE(a_child_may_free_by_a_call) {
  void *ctx = umem_open("shm:?size=1M");
  uintptr_t adr = umem_alloc(ctx, nbytes);
  IN_CHILD {
    uint64_t before = umem_thread_failures();
    umem_free(ctx, adr);
    EXPECT(umem_thread_failures() == before);
  }
  assert_int_equal(umem_alloc(ctx, nbytes), adr);
  umem_close(ctx);
}

/* ---- named files ---- */

/* Writes five arrays, each ended before the next one. keeps: as of umemArray_set_keeps. Returns how
 * many are in different places. */
static int write_five(char const *name, int keeps) {
  SCOPED(unlink_path) char path[name_size];
  void *ctx = open_name(name, path);
  uintptr_t adr[5];
  int different = 0;
  for (int k = 0; k < 5; k++) {
    umemArray *array = make_array(ctx, k);
    if (keeps >= 0) umemArray_set_keeps(array, keeps);
    adr[k] = umemArray_address(array);
    umemArray_release(array);
    bool is_new = true;
    for (int i = 0; i < k; i++) is_new = is_new && adr[i] != adr[k];
    different += is_new;
  }
  if (umem_close(ctx) != umemOK) fail_msg("%s: %s", name, umem_thread_message());
  return different;
}

TEST_CASE(reuse_decides_what_an_array_leaves) {
  static struct {
    char const *name;
    int keeps, expected;
  } const cases[] = {
      {"file:%s?mode=w+", -1, 1},
      {"file:%s?mode=w+", 1, 5},
      {"mmap:%s?mode=w+", 1, 5},
      {"track+limit+file:%s?mode=w+&limit=1M", 1, 5},
      {"debug+file:%s?mode=w+", 1, 5},
      {"pool+file:%s?mode=w+", 1, 5},
      {"file:%s?mode=w+&reuse=no", -1, 5},
      {"file:%s?mode=w+&reuse=no", 0, 1},
      {"mmap:%s?mode=a&reuse=no", -1, 5},
      {"file:%s?mode=w+&reuse=yes", 1, 1},
      {"file:?reuse=no", 1, 1},
      {"shm:?size=1M", 1, 1},
      {"host:", 1, -1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int found = write_five(cases[i].name, cases[i].keeps);
    if (cases[i].expected > 0 && found != cases[i].expected)
      fail_msg("%s: %d places, not %d", cases[i].name, found, cases[i].expected);
  }
}

TEST_CASE(a_wrong_reuse_is_refused) {
  char path[name_size];
  umemFile file;
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  temporary_name(path, sizeof path);
  options.reuse = (umemReuse)3;
  assert_int_equal(umemFile_ctor_with(&file, path, "w+", &options), umemValueError);
  assert_non_null(strstr(umem_get_message(&file), "reuse is 3"));
  options.size = offsetof(umemFileOptions, reuse); /* of an older program */
  assert_int_equal(umemFile_ctor_with(&file, path, "w+", &options), umemOK);
  assert_false(file.super.capabilities & umemKeepsAll);
  assert_true(file.super.capabilities & umemKeeps);
  umem_dtor(&file);
  unlink(path);
}

/* ---- what nobody receives ---- */

static void ignore(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
}

/* What umem_report_end prints, with or without a hook. */
static void printed(bool hook, char *text, size_t size) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    dup2(ends[1], STDERR_FILENO);
    if (hook) umem_set_failure_hook(ignore, NULL);
    umem_set_status(NULL, umemIOError, "the disk is full");
    umem_report_end("the end of a test");
    _exit(0);
  }
  close(ends[1]);
  ssize_t n = read(ends[0], text, size - 1);
  text[n > 0 ? n : 0] = 0;
  close(ends[0]);
  assert_int_equal(child_wait(child), 0);
}

TEST_CASE(a_loss_is_one_line_unless_there_is_a_hook) {
  char text[1000];
  printed(false, text, sizeof text);
  assert_string_equal(text, "umem: the end of a test: the disk is full\n");
  printed(true, text, sizeof text);
  assert_string_equal(text, "");
}
