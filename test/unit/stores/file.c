/* file.c - opening files, what cannot be opened, and what contexts say of their files, on File and
 * MMap. */
#include "file_help.h"

#include <sys/resource.h>

/* ---- modes and names ---- */

TEST(modes_are_those_of_the_header) {
  static char const *const good[] = {"r",  "r+",  "w",   "w+",  "a",   "a+",  "rb", "wb",
                                     "ab", "r+b", "rb+", "w+b", "wb+", "a+b", "ab+"};
  static char const *const bad[] = {"",   "b",   "+",  "x",   "R",  "rw", "r++", "rbb",
                                    "rt", "w+x", "wx", "r b", " r", "ra", "r+b+"};
  make_file(10);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    expect_opened(good[i]);
    if (*good[i] == 'w') make_file(10);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    expect_status(&any, any_ctor(&any, path, bad[i]), umemValueError, "bad mode");
  }
  expect_status(&any, any_ctor(&any, path, NULL), umemValueError, "bad mode \"NULL\"");
  expect_pattern(0, 10);
}

TEST(names_and_contexts_that_cannot_be) {
  static char const *const modes[] = {"r", "r+", "w", "a", "a+"};
  expect_status(&any, any_ctor(&any, "", "w+"), umemValueError, "the file name is empty");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    expect_status(&any, any_ctor(&any, NULL, modes[i]), umemValueError, "scratch");
  }
  assert_int_equal(umemFile_ctor(NULL, path, "w"), umemValueError);
  assert_int_equal(umemMMap_ctor(NULL, path, "w"), umemValueError);
  assert_int_equal(umemFile_adopt(NULL, 0), umemValueError);
  assert_int_equal(umemMMap_adopt(NULL, 0), umemValueError);
  assert_non_null(strstr(umem_thread_message(), "umemMMap_adopt: the context is NULL"));
  umem_thread_clear();
  assert_int_equal(access(path, F_OK), -1);
}

TEST(capabilities_follow_the_mode) {
  static struct {
    char const *mode;
    unsigned file, mmap;
  } const rows[] = {
      {"r", umemReadable, umemReadable},
      {"r+", umemReadable | umemWritable, umemReadable | umemWritable},
      {"w", umemWritable, umemReadable | umemWritable},
      {"w+", umemReadable | umemWritable, umemReadable | umemWritable},
      {"a", umemWritable, umemReadable | umemWritable},
      {"a+", umemReadable | umemWritable, umemReadable | umemWritable},
  };
  make_file(1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    open_any(&any, rows[i].mode);
    unsigned expected = umemConcurrent | umemShared | umemPlansAlike;
    if (rows[i].file & umemWritable) expected |= umemKeeps;
    if (kind == kindFile) {
      expected |= umemOffsets | rows[i].file;
    } else {
      expected |= umemFaultable | umemCpuReadable | rows[i].mmap;
      if (rows[i].mmap & umemWritable) expected |= umemCpuWritable;
    }
    assert_int_equal(any.super.capabilities, expected);
    assert_int_equal(any.super.alignment, 16);
    assert_int_equal(any.super.type, kind == kindFile ? umemFileDevice : umemMMapDevice);
    assert_string_equal(umem_get_device_name(&any), kind == kindFile ? "File" : "MMap");
    close_any(&any);
  }
}

TEST(a_file_for_writing_only_is_not_read) {
  char bytes[10] = {0};
  open_any(&any, "w");
  assert_int_equal(alloc(&any, 10), 0);
  umemStatusType expected = kind == kindFile ? umemNotSupportedError : umemOK;
  assert_int_equal(get(&any, 0, bytes, 10), expected);
  FORGET(&any);
}

TEST(w_empties_and_the_others_keep) {
  static char const *const keeping[] = {"r", "r+", "a", "a+"};
  make_file(1000);
  for (size_t i = 0; i < sizeof keeping / sizeof *keeping; i++) {
    expect_opened(keeping[i]);
    assert_int_equal(length_of(path), 1000);
    expect_pattern(0, 1000);
  }
  open_any(&any, "w+");
  assert_int_equal(length_of(path), 0);
  close_any(&any);
  make_file(1000);
  open_any(&any, "w");
  assert_int_equal(length_of(path), 0);
}

TEST(w_and_a_create_with_the_users_mask) {
  static char const *const creating[] = {"w", "w+", "a", "a+"};
  mode_t old = umask(027);
  for (size_t i = 0; i < sizeof creating / sizeof *creating; i++) {
    struct stat st;
    expect_opened(creating[i]);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    unlink(path);
  }
  umask(old);
}

/* ---- what cannot be opened ---- */

TEST(missing_files_tell_the_systems_words) {
  static char const *const modes[] = {"r", "r+"};
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(any_ctor(&any, path, modes[i]), umemIOError);
    expect_failure(&any, umemIOError, "/a.bin\": No such file or directory");
    assert_int_equal(access(path, F_OK), -1);
  }
  expect_status(&any, any_ctor(&any, "/nonexistent/a.bin", "w"), umemIOError,
                kind == kindFile
                    ? "umemFile_ctor: cannot open \"/nonexistent/a.bin\": No such file"
                    : "umemMMap_ctor: cannot open \"/nonexistent/a.bin\": No such file");
}

TEST(only_regular_files_are_taken) {
  assert_int_equal(any_ctor(&any, folder, "r"), umemIOError);
  expect_failure(&any, umemIOError, "is a directory, not a regular file");
  expect_status(&any, any_ctor(&any, folder, "r+"), umemIOError, "Is a directory");
  expect_status(&any, any_ctor(&any, "/dev/zero", "r"), umemIOError, "not a regular file");

  assert_int_equal(mkfifo(path, 0600), 0); /* nobody at the other end: must not wait */
  expect_status(&any, any_ctor(&any, path, "r"), umemIOError, "not a regular file");
  expect_status(&any, any_ctor(&any, path, "r+"), umemIOError, "not a regular file");
}

/* Regular by name; root may open them, and what is written there changes the machine. Only looked
 * at. */
TEST(files_of_the_kernel_are_refused) {
  static char const *const names[] = {"/proc/self/status", "/proc/self/comm", "/proc/version",
                                      "/sys/kernel/mm/transparent_hugepage/enabled",
                                      "/proc/self/nonexistent"};
  static char const *const modes[] = {"r", "r+", "a"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
      bool missing = access(names[i], F_OK) != 0;
      if (missing && strstr(names[i], "/sys/")) continue;
      assert_int_equal(any_ctor(&any, names[i], modes[k]), umemIOError);
      expect_failure(&any, umemIOError, "is on a file system that stores nothing (");
    }
  SCOPED(close_fd) int fd = open("/proc/self/status", O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(any_adopt(&any, fd), umemIOError);
  expect_failure(&any, umemIOError, "is on a file system that stores nothing (proc)");
  close(fd);

  make_file(10); /* the name is the kernel's, the file is not */
  fd = open(path, O_RDWR);
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  assert_int_equal(any_ctor(&any, name, "r+"), umemOK);
}

TEST(symbolic_links_are_followed) {
  char target[320];
  snprintf(target, sizeof target, "%s/target", folder);
  assert_int_equal(symlink("target", path), 0);
  open_any(&any, "w+");
  assert_int_equal(alloc(&any, 5), 0);
  assert_int_equal(umem_flush(&any), umemOK);
  close_any(&any);
  assert_int_equal(length_of(target), 5);
}

TEST(messages_stay_one_bounded_line) {
  char name[3000] = "/nonexistent/";
  size_t used = strlen(name);
  for (; used < sizeof name - 20; used += 2) memcpy(name + used, "\xC3\xA9", 2);
  strcpy(name + used, "/line\nbell\a%s%n");
  assert_int_equal(any_ctor(&any, name, "r"), umemIOError);
  char const *message = umem_get_message(&any);
  assert_true(strlen(message) < UMEM_MESSAGE_SIZE);
  assert_null(strchr(message, '\n'));
  assert_null(strstr(message, "...\xA9"));
  expect_failure(&any, umemIOError, "/line\\x0abell\\x07%s%n\": No such file or directory");

  char longer[5000], words[80]; /* longer than PATH_MAX */
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  snprintf(words, sizeof words, "xxx\": %s", strerror(ENAMETOOLONG));
  expect_status(&any, any_ctor(&any, longer, "w"), umemIOError, words);
}

TEST(too_many_descriptors) {
  struct rlimit old, none_left;
  make_file(10);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  none_left = old;
  none_left.rlim_cur = 0;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  umemStatusType status = any_ctor(&any, path, "w");
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  assert_int_equal(status, umemIOError);
  expect_failure(&any, umemIOError, strerror(EMFILE));
  expect_pattern(0, 10);
}

TEST(a_failed_constructor_leaves_an_answering_context) {
  char byte = 0;
  memset(&any, 0xAA, sizeof any);
  assert_int_equal(any_ctor(&any, "/nonexistent/x", "r"), umemIOError);
  uintptr_t null = kind == kindFile ? UINTPTR_MAX : 0;
  assert_true(umem_null(&any) == null);
  assert_true(umem_alloc(&any, 1) == null);
  assert_true(umem_calloc(&any, 1, 1) == null);
  assert_true(umem_aligned_alloc(&any, 64, 1) == null);
  assert_int_equal(umem_copy_to(&any, 16, &host, (uintptr_t)&byte, 1), umemIOError);
  assert_int_equal(umem_flush(&any), umemIOError);
  assert_int_equal(umem_trim(&any, 0), umemIOError);
  if (kind == kindMMap) {
    assert_true(umemMMap_offset(&any.mmap, 16) == UINTPTR_MAX);
    assert_true(umemMMap_address(&any.mmap, 0) == 0);
  }
  assert_int_equal(umem_get_status(&any), umemIOError);
  umem_dtor(&any);
  umem_thread_clear();
}

/* ---- questions ---- */

TEST(info_tells_path_and_room) {
  make_file(1000);
  open_any(&any, "r");
  umemInfo info = info_of(&any);
  assert_string_equal(info.name, path);
  assert_int_equal(info.capacity, 1000);
  assert_int_equal(info.available, 1000);
  assert_int_equal(info.alignment, 16);
  assert_int_equal(info.ordinal, -1);
  assert_int_equal(alloc(&any, 100), 0);
  assert_int_equal(umem_get_info(&any, &info), umemOK);
  assert_int_equal(info.available, 1000 - 112);
  close_any(&any);
  open_any(&any, "r+");
  assert_int_equal(umem_get_info(&any, &info), umemOK);
  assert_true(info.capacity != UMEM_UNKNOWN && info.capacity > 1000);
  assert_true(info.available <= info.capacity);
  assert_true(info.page_size >= 512 && info.page_size <= MiB);
}

/* Memory that only a descriptor names is on no disk that has a size: it takes what the machine has
 * left. */
TEST(a_place_without_a_size_has_what_is_left) {
  int fd = memfd_create("test", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(any_adopt(&any, fd), umemOK);
  umemInfo info = info_of(&any);
  assert_true(info.capacity == UMEM_UNKNOWN && info.available < (uint64_t)1 << 60);
}

TEST(one_file_is_one_device) {
  SCOPED(close_any) Any one, same, other;
  char const *name = "b.bin";
  char second[320];
  snprintf(second, sizeof second, "%s/%s", folder, name);
  make_file(10);
  open_any(&one, "r+");
  open_any(&same, "r");
  assert_int_equal(any_ctor(&other, second, "w+"), umemOK);
  assert_true(umem_is_same_device(&one, &one));
  assert_int_equal(umem_is_same_device(&one, &same), kind == kindFile); /* pointers differ */
  assert_false(umem_is_same_device(&one, &other));
}

int main(void) { return run_on_both(); }
