/* new_file.c - base/files.h: files that get their names late, where the file system has nameless
 * files and where it has none. What stays when a process is killed is tested with save_npy
 * (cxx/npy_kill.cpp).
 *
 * Linked with -Wl,--wrap=openat,--wrap=openat64,--wrap=syscall. */

#include <sys/syscall.h>

#include "base/files.h"
#include "temporary.h"
#include "workers.h"
#include "unit/nameless.h"

static bool lacks_noreplace;

/* Of each test. */
static umemNewFile file;

WRAPPED(long, syscall, (long number, ...)) {
  long word[5];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 5; i++) word[i] = va_arg(rest, long);
  va_end(rest);
  if (number != SYS_renameat2 || !lacks_noreplace)
    return __real_syscall(number, word[0], word[1], word[2], word[3], word[4]);
  errno = EINVAL;
  return -1;
}

/* ---- a folder ---- */

static char folder[256];
static int folder_fd = -1;

static void set_up(void **state UNUSED) {
  assert_true(temporary_folder(folder, sizeof folder));
  folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  assert_true(folder_fd >= 0);
}

static void tear_down(void **state UNUSED) {
  unlinkat(folder_fd, "name", 0);
  close(folder_fd);
  assert_int_equal(rmdir(folder), 0); /* empty, or the test fails */
}

static int count_files(void) { return count_entries(folder, ""); }

static void write_old(void) {
  int fd = openat(folder_fd, "name", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0 && write(fd, "old", 3) == 3 && close(fd) == 0);
}

/* The file that has the name holds this text. */
static void expect_text(char const *text) {
  char found[8] = "";
  int fd = openat(folder_fd, "name", O_RDONLY | O_CLOEXEC, 0);
  assert_true(fd >= 0 && read(fd, found, sizeof found - 1) >= 0 && close(fd) == 0);
  assert_string_equal(found, text);
}

static void create(void) {
  file = (umemNewFile){.fd = -1, .folder = dup(folder_fd), .name = "name"};
  assert_int_equal(umemNewFile_create(&file), 0);
  assert_int_equal(write(file.fd, "new", 3), 3);
  assert_int_equal(count_files() - (faccessat(folder_fd, "name", F_OK, 0) == 0), lacks_nameless);
}

static void end(void) {
  umemNewFile_end(&file);
  assert_int_equal(file.folder, -1);
  assert_int_equal(close(file.fd), 0);
}

static mode_t permissions_of_file(void) {
  struct stat about;
  assert_int_equal(fstat(file.fd, &about), 0);
  return about.st_mode & 07777;
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* ---- tests ---- */

TEST(it_has_its_permissions_when_it_is_complete) {
  mode_t const before = umask(027);
  for (int replaces = 0; replaces < 2; replaces++) {
    create();
    assert_int_equal(permissions_of_file(), 0600);
    assert_int_equal(umemNewFile_show(&file), 0);
    assert_int_equal(permissions_of_file(), 0600);
    if (replaces) file.permissions = 0604;
    assert_int_equal(replaces ? umemNewFile_replace(&file) : umemNewFile_publish(&file), 0);
    assert_int_equal(permissions_of_file(), replaces ? 0604 : 0640);
    end();
  }
  umask(before);
}

TEST(without_a_name_it_goes) {
  create();
  end();
  assert_int_equal(count_files(), 0);
}

TEST(it_is_published_over_nothing) {
  create();
  assert_int_equal(umemNewFile_publish(&file), 0);
  assert_true(file.named);
  end();
  expect_text("new");
  assert_int_equal(count_files(), 1);
}

TEST(it_is_not_published_over_a_file) {
  write_old();
  create();
  for (int i = 0; i < 2; i++) assert_int_equal(umemNewFile_publish(&file), EEXIST);
  assert_false(file.named);
  expect_text("old");
  assert_int_equal(unlinkat(folder_fd, "name", 0), 0);
  assert_int_equal(umemNewFile_publish(&file), 0); /* it is as it was */
  end();
  expect_text("new");
}

TEST(it_replaces_a_file_or_nothing) {
  for (int is_there = 0; is_there < 2; is_there++) {
    if (is_there) write_old();
    create();
    assert_int_equal(umemNewFile_replace(&file), 0);
    assert_true(file.named);
    end();
    expect_text("new");
    assert_int_equal(count_files(), 1);
    assert_int_equal(unlinkat(folder_fd, "name", 0), 0);
  }
}

TEST(it_replaces_no_folder) {
  assert_int_equal(mkdirat(folder_fd, "name", 0700), 0);
  create();
  assert_int_equal(umemNewFile_replace(&file), EISDIR);
  assert_false(file.named);
  end();
  assert_int_equal(count_files(), 1);
  assert_int_equal(unlinkat(folder_fd, "name", AT_REMOVEDIR), 0);
}

TEST(a_published_file_is_withdrawn_if_it_is_still_that) {
  lacks_noreplace = false;
  create();
  umemNewFile_withdraw(&file, 3); /* it has no name */
  assert_int_equal(umemNewFile_publish(&file), 0);
  umemNewFile_withdraw(&file, 3);
  assert_false(file.named);
  end();
  assert_int_equal(count_files(), 0);
  create();
  assert_int_equal(umemNewFile_publish(&file), 0);
  umemNewFile_withdraw(&file, 4); /* another length: somebody has written to it */
  end();
  expect_text("new");
}

TEST(a_child_leaves_the_file_of_its_parent) {
  create();
  IN_CHILD umemNewFile_end(&file);
  assert_int_equal(umemNewFile_publish(&file), 0);
  end();
  expect_text("new");
}

TEST(a_folder_that_is_none_is_an_error) {
  file = (umemNewFile){.fd = -1, .folder = open("/dev/null", O_RDONLY | O_CLOEXEC), .name = "name"};
  assert_true(file.folder >= 0);
  assert_int_equal(umemNewFile_create(&file), ENOTDIR);
  assert_int_equal(file.fd, -1);
  umemNewFile_end(&file);
}

/* ---- names of tests ---- */

static void make(char *made, size_t size, char const *parent, long process, char const *what) {
  snprintf(made, size, "%s/umem-test-%ld-%s", parent, process, what);
}

/* As if nothing had changed it for an hour. */
static void make_old(char const *path) {
  struct timespec const hour_ago = {.tv_sec = time(NULL) - 3600};
  struct timespec const times[2] = {hour_ago, hour_ago};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A test that was killed has left a file, a folder with a file, and shared memory. What has just
 * changed stays: the process may be one of another PID namespace. */
TEST(a_test_removes_what_killed_ones_have_left) {
  char left[300], inner[320], live[300], young[300], segment[300];
  pid_t child = fork();
  if (!child) _exit(0);
  assert_int_equal(child_wait(child), 0);
  make(left, sizeof left, folder, child, "file");
  make(live, sizeof live, folder, getpid(), "file");
  make(young, sizeof young, folder, child, "young");
  make(segment, sizeof segment, "/dev/shm", child, "segment");
  assert_int_equal(mkdir(left, 0700), 0);
  snprintf(inner, sizeof inner, "%s/in", left);
  char const *const all[] = {inner, live, segment, young};
  for (int i = 0; i < 4; i++) {
    int fd = open(all[i], O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
  }
  make_old(left), make_old(live), make_old(segment);
  temporary_sweep(folder);
  temporary_sweep("/dev/shm");
  assert_int_equal(access(left, F_OK), -1);
  assert_int_equal(access(segment, F_OK), -1);
  assert_int_equal(unlink(live), 0);
  assert_int_equal(unlink(young), 0);
}

int main(void) {
  int failed = run_cases(NULL, NULL);
  lacks_nameless = true;
  failed += run_cases(NULL, NULL);
  lacks_noreplace = true;
  return failed + run_cases(NULL, NULL);
}
