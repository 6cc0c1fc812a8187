/* open_with.c - umem_open_with: names that are kept to some schemes and folders. */
#include "open_help.h"
#include "temporary.h"

static char root[300]; /* with the folders in, in/deep and out */
static char in[320], out[320];

static char const *path_of(char const *rest) {
  static char paths[4][512];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", root, rest);
  return path;
}

static void write_text(char const *path, char const *text) {
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  fputs(text, stream);
  assert_int_equal(fclose(stream), 0);
}

static long length_of(char const *path) {
  struct stat st;
  return stat(path, &st) == 0 ? (long)st.st_size : -1;
}

static void make_folders(void **state UNUSED) {
  assert_true(temporary_folder(root, sizeof root));
  snprintf(in, sizeof in, "%s/in", root);
  snprintf(out, sizeof out, "%s/out", root);
  assert_int_equal(mkdir(in, 0700) | mkdir(out, 0700) | mkdir(path_of("in/deep"), 0700), 0);
  write_text(path_of("in/a"), "inside");
  write_text(path_of("out/a"), "outside");
  assert_int_equal(symlink("../out/a", path_of("in/to-out")), 0);
  assert_int_equal(symlink("../out/new", path_of("in/to-new")), 0);
  assert_int_equal(symlink("../out", path_of("in/folder-out")), 0);
  assert_int_equal(symlink("deep/../a", path_of("in/to-a")), 0);
  assert_int_equal(symlink("loop", path_of("in/loop")), 0);
  assert_int_equal(symlink("../in/a", path_of("out/to-in")), 0);
}

static void remove_folders(void **state UNUSED) { temporary_remove(root); }

/* What keeps names to the folder in. */
static umemOpenOptions options_of_in(void) {
  static char const *const folders[] = {in};
  umemOpenOptions options = {.size = sizeof options, .folders = folders, .folder_count = 1};
  return options;
}

static void *open_in(char const *pattern, char const *rest) {
  umemOpenOptions options = options_of_in();
  char name[1024];
  snprintf(name, sizeof name, pattern, path_of(rest));
  return umem_open_with(name, &options);
}

static char const *const patterns[] = {
    "file:%s?mode=w",       "file:%s?mode=r+",       "mmap:%s?mode=w+",
    "pool+file:%s?mode=a+", "log+host:?log.file=%s", "stats+log+pool+host:?log.file=%s",
};
enum { pattern_count = sizeof patterns / sizeof *patterns };

#define WITH_FOLDERS(name) TEST_CASE_WITH(name, make_folders, remove_folders)

WITH_FOLDERS(what_leads_outside_is_refused) {
  char const *const paths[] = {
      "out/a",     "out/new",   "in/../out/a",     "in/../out/new",     "in/deep/../../out/a",
      "in/to-out", "in/to-new", "in/folder-out/a", "in/folder-out/new", "new",
      "in/../new", "out/to-in",
  };
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    for (size_t k = 0; k < pattern_count; k++) {
      expect_none(open_in(patterns[k], paths[i]), umemValueError,
                  "not in a folder that is allowed here");
    }
  assert_int_equal(length_of(path_of("out/a")), 7);
  assert_int_equal(length_of(path_of("out/new")), -1);
  assert_int_equal(length_of(path_of("new")), -1);
}

WITH_FOLDERS(what_stays_inside_is_opened) {
  char const *const paths[] = {"in/a",           "in/new",  "in/deep/new",   "in/deep/../new2",
                               "out/../in/new3", "in/to-a", "in/./deep//new"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    void *ctx = open_in("pool+file:%s?mode=w%%2B", paths[i]);
    if (!ctx) print_message("%s\n", paths[i]);
    use_and_close(ctx);
    assert_true(length_of(path_of(paths[i])) >= 0);
  }
}

/* A draft of a new log is made in the folder that was looked at. */
WITH_FOLDERS(logs_stay_inside) {
  char const *const paths[] = {"in/log",          "in/deep/log",          "in/deep/../log2",
                               "out/../in/log3",  "in/folder-in/log4",    "in/to-deep/log5",
                               "in/./deep//log6", "in/folder-in/../log7", "in/deep/log"};
  assert_int_equal(symlink("../in/deep", path_of("in/folder-in")), 0);
  assert_int_equal(symlink(path_of("in/deep"), path_of("in/to-deep")), 0);
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    void *ctx = open_in("log+file:?log.file=%s", paths[i]);
    if (!ctx) print_message("%s\n", paths[i]);
    use_and_close(ctx);
    assert_true(length_of(path_of(paths[i])) > 0);
  }
}

/* A name without a slash is in the working directory. */
WITH_FOLDERS(a_bare_name_is_in_the_working_directory) {
  char before[1024];
  umemOpenOptions options = options_of_in();
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(path_of("in/deep")), 0);
  for (int i = 0; i < 2; i++) { /* a new one, then it is there */
    use_and_close(umem_open_with("log+file:bare?mode=w%2B&log.file=bare.umem", &options));
  }
  assert_int_equal(chdir(out), 0);
  assert_null(umem_open_with("log+host:?log.file=bare.umem", &options));
  assert_null(umem_open_with("file:bare?mode=w", &options));
  umem_thread_clear();
  assert_int_equal(chdir(before), 0);
  assert_true(length_of(path_of("in/deep/bare.umem")) > 0 &&
              length_of(path_of("in/deep/bare")) > 0);
  assert_int_equal(length_of(path_of("out/bare.umem")), -1);
  assert_int_equal(length_of(path_of("out/bare")), -1);
}

/* Refused by the constructor: it is no question of folders. */
WITH_FOLDERS(other_errors_stay_what_they_are) {
  char const *const paths[] = {"in/loop", "in/deep", "in/none/a", "in/deep/"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    expect_none(open_in("file:%s?mode=w%%2B", paths[i]), umemIOError, "");
}

/* What held for one name holds for no other. */
WITH_FOLDERS(others_are_not_kept_to_them) {
  char name[1024];
  assert_null(open_in("file:%s?mode=w", "out/a"));
  umem_thread_clear();
  void *inside = open_in("file:%s?mode=w", "in/a");
  snprintf(name, sizeof name, "file:%s?mode=r+", path_of("out/a"));
  use_and_close(umem_open(name));
  use_and_close(umem_open_with(name, NULL));
  assert_ok(umem_close(inside));
}

WITH_FOLDERS(no_folder_is_no_file) {
  umemOpenOptions options = UMEM_OPEN_OPTIONS_INIT;
  char const *folders[] = {NULL};
  char name[1024];
  options.folders = folders;
  snprintf(name, sizeof name, "file:%s?mode=w", path_of("in/a"));
  expect_none(umem_open_with(name, &options), umemValueError, "");
  use_and_close(umem_open_with("pool+host:", &options));
  options.folder_count = 1; /* and that is none */
  expect_none(umem_open_with("host:", &options), umemIOError, "");
  folders[0] = "/nonexistent/folder";
  expect_none(umem_open_with("host:", &options), umemIOError, "");
  assert_int_equal(length_of(path_of("in/a")), 6);
}

/* ---- schemes ---- */

CONSTRUCTOR(construct) { return umemHost_ctor(ctx); }

static umemOption const path_place = {.name = "path", .kind = umemPathOption};
static umemScheme const mine = {SCHEME_OF("with-path", umemHost, construct), .place = &path_place};

static void *open_schemes(char const *name, char const *schemes, bool folders) {
  umemOpenOptions options = options_of_in();
  options.schemes = schemes;
  if (!folders) options.folders = NULL, options.folder_count = 0;
  return umem_open_with(name, &options);
}

static void expect_opened(void *ctx, bool opened) {
  if (opened != (ctx != NULL)) fail_msg("%s", umem_thread_message());
  if (!opened) assert_int_equal(umem_thread_status(), umemValueError);
  umem_thread_clear();
  assert_ok(umem_close(ctx));
}

WITH_FOLDERS(schemes_are_those_that_are_named) {
  assert_ok(umem_register_scheme(&mine));
  expect_opened(open_schemes("pool+host:", "host pool", false), true);
  expect_opened(open_schemes("pool+host:", "  pool  host ", true), true);
  expect_opened(open_schemes("pool+host:", "host", false), false);
  expect_opened(open_schemes("host:", "hos host2 ost", false), false);
  expect_opened(open_schemes("host:", "", false), false);
  expect_opened(open_schemes("with-path:x", NULL, false), true);
  expect_opened(open_schemes("with-path:", NULL, true), false);
  expect_opened(open_schemes("with-path:", "with-path", true), true);
  char name[1024];
  snprintf(name, sizeof name, "with-path:%s", path_of("out/a"));
  expect_opened(open_schemes(name, "with-path", true), false);
  snprintf(name, sizeof name, "with-path:%s", path_of("in/a"));
  expect_opened(open_schemes(name, "with-path", true), true);
}

/* Goes over the default. */
CONSTRUCTOR(construct_over_default) {
  void *below = umem_default();
  return below ? umemStats_ctor(ctx, below) : umem_thread_status();
}

static umemScheme const over_default = {
    SCHEME_OF("over-default", umemStats, construct_over_default)};

/* The name of the default is not the one that is kept to folders; what is opened after it is. */
WITH_FOLDERS(the_default_is_where_the_user_wants_it) {
  char name[1024];
  assert_ok(umem_register_scheme(&over_default));
  snprintf(name, sizeof name, "file:%s?mode=w+", path_of("out/default"));
  assert_int_equal(setenv(UMEM_DEFAULT, name, 1), 0);
  snprintf(name, sizeof name, "log+over-default:?log.file=%s", path_of("in/log"));
  use_and_close(open_schemes(name, "log over-default", true));
  assert_int_equal(length_of(path_of("out/default")), 1000);
  snprintf(name, sizeof name, "log+over-default:?log.file=%s", path_of("out/log"));
  expect_opened(open_schemes(name, "log over-default", true), false);
}

WITH_FOLDERS(small_options_are_refused) {
  umemOpenOptions options = {.size = 3};
  expect_none(umem_open_with("host:", &options), umemValueError, "");
}
