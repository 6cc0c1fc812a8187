/* file_owner.c - who owns a file: its descriptor, locks, forked children, descriptors that are
 * taken over, and scratch files, on File and MMap. */
#include "file_help.h"

#include "base/files.h"

#include <sys/file.h>

/* ---- the descriptor ---- */

TEST(the_descriptor_is_closed_on_exec_and_does_not_append) {
  static char const *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};
  make_file(1);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    int fd;
    open_any(&any, modes[i]);
    count_descriptors(path, &fd);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_false(fcntl(fd, F_GETFL) & O_APPEND);
    close_any(&any);
    count_descriptors(path, &fd);
    assert_int_equal(fd, -1);
  }
}

TEST(the_destructor_may_be_called_twice) {
  expect_opened("w+");
  int reused = open("/dev/null", O_RDONLY); /* gets the number that the context had */
  umem_dtor(&any);
  assert_true(fcntl(reused, F_GETFD) >= 0);
  close(reused);
  assert_int_equal(alloc(&any, 1), none);
  assert_int_equal(umem_thread_status(), umemValueError);
  umem_thread_clear();
}

/* ---- locks ---- */

TEST(a_second_writer_is_refused_and_harms_nothing) {
  static char const *const writing[] = {"r+", "w", "w+", "a", "a+"};
  Any first, second, reader;
  make_file(100);
  for (size_t i = 0; i < sizeof writing / sizeof *writing; i++) {
    open_any(&first, "r+");
    expect_status(&second, any_ctor(&second, path, writing[i]), umemIOError, "has another writer");
    umem_dtor(&second);
    open_any(&reader, "r");
    close_any(&reader);
    assert_int_equal(any_ctor(&second, path, "r+"),
                     umemIOError); /* a reader's end unlocks nothing */
    expect_failure(&second, umemIOError, "has another writer");
    close_any(&first);
    expect_pattern(0, 100);
  }
  open_any(&second, "a");
  close_any(&second);
}

TEST(a_childs_destructor_leaves_the_parents_lock) {
  Any second;
  open_any(&any, "w+");
  assert_int_equal(alloc(&any, 3), 0);
  put(&any, 0, "abc", 3);
  assert_true(child_run(umem_dtor, &any));
  expect_status(&second, any_ctor(&second, path, "r+"), umemIOError, "has another writer");
  char bytes[3];
  assert_int_equal(get(&any, 0, bytes, 3), umemOK);
  assert_memory_equal(bytes, "abc", 3);
}

static void work_in_child(void *argument) {
  Any *ctx = argument;
  char bytes[3] = "";
  get(ctx, 0, bytes, 3);
  EXPECT(memcmp(bytes, "abc", 3) == 0 && alloc(ctx, 3) == 16);
  put(ctx, 16, "def", 3);
  umem_dtor(ctx);
  EXPECT(umem_is_ok(ctx));
}

TEST(a_child_may_use_the_context) {
  char bytes[3];
  open_any(&any, "w+");
  assert_int_equal(alloc(&any, 3), 0);
  put(&any, 0, "abc", 3);
  assert_true(child_run(work_in_child, &any));
  assert_int_equal(get(&any, 16, bytes, 3), umemOK);
  assert_memory_equal(bytes, "def", 3);
}

/* ---- descriptors that are taken over ---- */

TEST(adopted_for_reading_or_both) {
  char bytes[4];
  make_file(100);
  int fd = open(path, O_RDONLY);
  lseek(fd, 42, SEEK_SET);
  int twin = dup(fd);
  assert_int_equal(any_adopt(&any, fd), umemOK);
  assert_int_equal(any.super.capabilities & (umemReadable | umemWritable), umemReadable);
  assert_int_equal(alloc(&any, 100), 0);
  assert_int_equal(get(&any, 96, bytes, 4), umemOK);
  check_pattern((unsigned char *)bytes, 4, 96);
  assert_int_equal(alloc(&any, 1), none);
  expect_failure(&any, umemMemoryError, "do not fit into descriptor ");
  close_any(&any);
  assert_int_equal(lseek(twin, 0, SEEK_CUR), 42);
  close(twin);
  assert_int_equal(fcntl(fd, F_GETFD), -1); /* was the context's to close */

  fd = open(path, O_RDWR);
  assert_int_equal(any_adopt(&any, fd), umemOK);
  assert_int_equal(alloc(&any, 200), 0);
  put(&any, 96, "WXYZ", 4);
  close_any(&any);
  assert_int_equal(length_of(path), 200);
  expect_pattern(0, 96);
}

TEST(adopted_for_writing_only) {
  make_file(100);
  int fd = open(path, O_WRONLY);
  if (kind == kindMMap) {
    assert_int_equal(any_adopt(&any, fd), umemValueError);
    expect_failure(&any, umemValueError, "writing only, which cannot be mapped");
    close(fd);
    return;
  }
  assert_int_equal(any_adopt(&any, fd), umemOK);
  assert_int_equal(any.super.capabilities & (umemReadable | umemWritable), umemWritable);
  assert_int_equal(alloc(&any, 16), 0);
  put(&any, 0, "12", 2);
  close_any(&any);
  expect_pattern(2, 98);
}

/* After each failure fd is still open. */
static void refuse(int fd, umemStatusType type, char const *text) {
  expect_status(&any, any_adopt(&any, fd), type, text);
  umem_dtor(&any);
  if (fd < 0) return;
  assert_true(fcntl(fd, F_GETFD) >= 0);
  close(fd);
}

TEST(descriptors_that_are_refused_stay_the_callers) {
  int ends[2];
  make_file(10);
  refuse(-1, umemIOError, "cannot use descriptor -1: Bad file descriptor");
  refuse(open(path, O_RDWR | O_APPEND), umemValueError, "O_APPEND, which ignores offsets");
  refuse(open(path, O_PATH), umemValueError, "O_PATH");
  int direct = open(path, O_RDWR | O_DIRECT);
  if (direct >= 0) refuse(direct, umemValueError, "O_DIRECT"); /* some file systems have none */
  refuse(open(folder, O_RDONLY), umemIOError, "is a directory");
  assert_int_equal(pipe(ends), 0);
  refuse(ends[0], umemIOError, "not a regular file");
  close(ends[1]);
  int locked = open(path, O_RDWR);
  assert_int_equal(flock(locked, LOCK_EX), 0);
  refuse(open(path, O_RDWR), umemIOError, "has another writer");
  close(locked);
  expect_pattern(0, 10);
}

TEST(memory_files_can_be_adopted) {
  char bytes[5];
  int fd = memfd_create("test", MFD_CLOEXEC);
  SCOPED(close_fd) int twin = dup(fd);
  assert_true(fd >= 0);
  assert_int_equal(any_adopt(&any, fd), umemOK);
  assert_int_equal(alloc(&any, 5), 0);
  put(&any, 0, "hello", 5);
  assert_int_equal(umem_flush(&any), umemOK);
  assert_int_equal(pread(twin, bytes, 5, 0), 5);
  assert_memory_equal(bytes, "hello", 5);
}

/* ---- scratch files ---- */

TEST(scratch_files_have_no_name_and_give_space_back) {
  struct stat st;
  SCOPED(free_bytes) char *old = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
  int before = count_entries(folder, "");
  int lowest = dup(0);
  close(lowest);
  setenv("TMPDIR", folder, 1);
  assert_int_equal(any_ctor(&any, NULL, "w+"), umemOK);
  assert_int_equal(count_entries(folder, ""), before);
  assert_int_equal(alloc(&any, MiB), 0);
  assert_int_equal(alloc(&any, 4 * MiB), MiB);
  assert_int_equal(umem_set(&any, at(&any, 0), 1, MiB), umemOK);
  assert_int_equal(umem_set(&any, at(&any, MiB), 2, 4 * MiB), umemOK);
  assert_int_equal(fstat(lowest, &st), 0); /* the only descriptor opened since */
  assert_true((uint64_t)st.st_blocks * 512 >= 5 * MiB);
  umem_free(&any, at(&any, MiB));
  assert_int_equal(fstat(lowest, &st), 0);
  assert_true((uint64_t)st.st_blocks * 512 < 2 * MiB);
  char byte = 0;
  assert_int_equal(get(&any, MiB - 1, &byte, 1), umemOK);
  assert_int_equal(byte, 1);
  close_any(&any);

  setenv("TMPDIR", "/nonexistent", 1);
  expect_status(&any, any_ctor(&any, NULL, "w+"), umemIOError,
                "a scratch file in \"/nonexistent\": No such file or directory");
  setenv("TMPDIR", "", 1);
  assert_int_equal(any_ctor(&any, NULL, "w+b"), umemOK);
  close_any(&any);
  if (old)
    setenv("TMPDIR", old, 1);
  else
    unsetenv("TMPDIR");
}

/* ---- folders of all users ---- */

enum { stranger = 4711 };

static void expect_planted(Any *ctx, umemStatusType status) {
  assert_int_equal(status, umemIOError);
  expect_failure(ctx, umemIOError, "another user has put it into a folder that everybody may");
  umem_dtor(ctx);
}

/* Constructors that write, or replace, refuse what path leads to; nothing happens to the file at
 * `kept`, which has 5 bytes, or is none and not made. */
static void expect_all_refuse(char const *kept) {
  static char const *const modes[] = {"r+", "w", "w+", "a", "a+"};
  bool const exists = access(kept, F_OK) == 0;
  for (size_t i = exists ? 0 : 1; i < sizeof modes / sizeof *modes; i++)
    expect_planted(&any, any_ctor(&any, path, modes[i]));
  expect_planted(&any, umemFile_replace(&any.file, path));
  assert_int_equal(access(kept, F_OK) == 0, exists);
  if (exists) assert_int_equal(length_of(kept), 5);
}

/* As in /tmp: another user knows the name that this program will write to, and makes a file or a
 * link of it first. */
TEST(what_others_put_into_a_folder_of_all_is_not_written) {
  if (geteuid() != 0) skip();
  char target[320];
  snprintf(target, sizeof target, "%s/target", folder);
  make_file(5);
  assert_int_equal(chown(path, stranger, stranger), 0);
  expect_opened("r+"); /* the folder is of this user */
  assert_int_equal(chmod(folder, 01777), 0);
  expect_all_refuse(path);
  expect_opened("r");
  assert_int_equal(rename(path, target), 0);
  assert_int_equal(chown(target, 0, 0), 0);
  assert_int_equal(symlink("target", path), 0);
  expect_opened("r+"); /* a link of this user */
  assert_int_equal(lchown(path, stranger, stranger), 0);
  expect_all_refuse(target);
  assert_int_equal(unlink(target), 0);
  expect_all_refuse(target);
  assert_int_equal(unlink(path), 0);
  expect_opened("w+"); /* a file of this user */
  expect_opened("r+");
}

/* The owner of the folder could replace the file anyway, and a folder that is not sticky lets
 * everybody do so. */
TEST(what_the_owner_of_the_folder_put_there_is_written) {
  if (geteuid() != 0) skip();
  make_file(5);
  assert_int_equal(chown(path, stranger, stranger), 0);
  assert_int_equal(chown(folder, stranger, stranger), 0);
  assert_int_equal(chmod(folder, 01777), 0);
  expect_opened("r+");
  assert_int_equal(chown(folder, 0, 0), 0);
  assert_int_equal(chmod(folder, 0777), 0);
  expect_opened("r+");
}

/* A link of another user has led to the file that is open, and is gone since. */
TEST(a_file_that_is_swapped_meanwhile_is_planted) {
  bool planted = false;
  make_file(5);
  SCOPED(close_fd) int fd = open_path(O_RDWR);
  assert_int_equal(umem_leads_to_planted(path, fd, &planted), 0);
  assert_false(planted);
  for (int there = 0; there < 2; there++) {
    assert_int_equal(unlink(path), 0);
    if (there) make_file(5);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(umem_leads_to_planted(path, fd, &planted), 0);
    assert_false(planted);
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(umem_leads_to_planted(path, fd, &planted), 0);
    assert_true(planted);
    if (!there) make_file(5);
  }
}

/* Holds a lease on the file for 100 ms after it has said so. */
static void lease(void *said) {
  struct timespec const held = {0, 100000000};
  char done = 'y';
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETLEASE, F_WRLCK)) done = 'n';
  EXPECT(write(*(int *)said, &done, 1) == 1 && done == 'y');
  nanosleep(&held, NULL);
  EXPECT(!fcntl(fd, F_SETLEASE, F_UNLCK));
}

/* O_NONBLOCK fails as long as somebody has a lease: the constructor waits until it is over. */
TEST(a_lease_is_waited_for) {
  char const *const modes[] = {"r", "r+", "a"};
  make_file(1000);
  for (int i = 0; i < 3; i++) {
    int ends[2];
    char done = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = child_start(lease, &ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &done, 1), 1);
    if (done == 'y') expect_opened(modes[i]);
    int status = child_wait(child);
    close(ends[0]);
    if (done != 'y') skip(); /* the file system of the test has no leases */
    assert_int_equal(status, 0);
  }
}

int main(void) { return run_on_both(); }
