/* shm_room.c - a Shm where there is too little room; and its names and permissions at their limits.
 *
 * What changes limits or mounts runs in a child. */
#include "shm_help.h"
#include "unit/system_files.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* ---- room ---- */

static void expect_no_memory(char const *name, size_t capacity, bool sparse, char const *words) {
  umemShm own;
  umemShmOptions options = {.size = sizeof options, .capacity = capacity, .sparse = sparse};
  EXPECT(umemShm_ctor_with(&own, name, &options) == umemMemoryError);
  EXPECT(strstr(umem_thread_message(), words));
  umem_thread_clear();
}

/* The kernel would end the process (SIGXFSZ). */
static void with_a_limit_of_files(void) {
  char const *name = own_name("limit");
  rlim_t const limits[] = {0, 100, 100000};
  for (unsigned i = 0; i < 3; i++) {
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = limits[i];
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int sparse = 0; sparse < 2; sparse++) {
      expect_no_memory(NULL, MiB, sparse, "RLIMIT_FSIZE");
      expect_no_memory(name, MiB, sparse, "RLIMIT_FSIZE");
      EXPECT(access(path_of(name), F_OK) != 0);
    }
  }
}

TEST_CASE(a_limit_of_files_is_a_memory_error) { assert_true(in_child(with_a_limit_of_files)); }

/* A tmpfs of 1 MiB as /dev/shm, which only this child sees. */
static void mount_small(void) {
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m"))
    _exit(child_not_permitted);
}

static void on_a_full_tmpfs(void) {
  umemShm other;
  struct stat st;
  char const *name = own_name("full");
  mount_small();
  expect_no_memory(name, 4 * MiB, false, "No space left on device");
  EXPECT(count_entries("/dev/shm", "") == 0);
  int fd = open(path_of(name), O_CREAT | O_RDWR, 0640); /* is about to become somebody else's */
  EXPECT(fd >= 0);
  expect_no_memory(name, 4 * MiB, false, "No space left on device");
  EXPECT(fstat(fd, &st) == 0 && st.st_nlink == 1);
  EXPECT(st.st_size == 0 && st.st_blocks == 0);
  EXPECT((st.st_mode & 0777) == 0640);
  close(fd);
  EXPECT(unlink(path_of(name)) == 0);
  EXPECT(umemShm_ctor(&shm, name, 512 << 10) == umemOK);
  expect_no_memory("umem-test-second", 512 << 10, false, "No space left on device");
  EXPECT(count_entries("/dev/shm", "") == 1);
  uintptr_t adr = umem_alloc(&shm, 512 << 10); /* was reserved */
  EXPECT(adr);
  memset((void *)adr, 1, 512 << 10);
  EXPECT(umemShm_ctor(&other, name, 0) == umemOK);
  DESTRUCT(&other, &shm);
}

TEST_CASE(a_full_file_system_is_a_memory_error) {
  if (!in_child(on_a_full_tmpfs)) skip();
}

/* The blocks of a sparse segment may find no room later; its tables have it from the beginning. */
static void sparse_on_a_full_tmpfs(void) {
  static char const bytes[64 << 10] = {1};
  umemShm ctx;
  umemShmOptions options = {.size = sizeof options, .capacity = 4 * MiB, .sparse = 1};
  mount_small();
  int fd = open("/dev/shm/filler", O_CREAT | O_RDWR, 0600);
  EXPECT(fd >= 0);
  for (unsigned left = 0; left < 256; left += 4) { /* KiB */
    EXPECT(ftruncate(fd, 0) == 0);
    for (unsigned done = 0; done < 1024 - left; done += 4)
      EXPECT(pwrite(fd, bytes, 4096, (off_t)done << 10) == 4096);
    umemStatusType status = umemShm_ctor_with(&ctx, "umem-test-sparse", &options);
    EXPECT(status == umemOK || status == umemMemoryError);
    EXPECT(left >= 4 || status == umemMemoryError);
    EXPECT(left < 240 || status == umemOK);
    if (status == umemOK) {
      EXPECT(umemShm_blocks(&ctx, NULL, 0) == 0);
      uintptr_t adr = umem_alloc(&ctx, 100); /* needs only the tables */
      EXPECT(adr);
      umem_free(&ctx, adr);
      umem_dtor(&ctx);
      EXPECT(umemShm_remove("umem-test-sparse") == umemOK);
    }
    umem_thread_clear();
    EXPECT(count_entries("/dev/shm", "") == 1);
  }
}

TEST_CASE(a_sparse_segment_has_room_for_its_tables) {
  if (!in_child(sparse_on_a_full_tmpfs)) skip();
}

static void expect_room(size_t capacity, bool sparse, umemStatusType status) {
  umemShmOptions options = {
      .size = sizeof options, .capacity = capacity, .blocks = 16, .sparse = sparse};
  assert_int_equal(umemShm_ctor_with(&shm, NULL, &options), status);
  if (status == umemOK) umem_dtor(&shm);
  umem_thread_clear();
}

/* Files of groups; path NULL: a step. What then has room for 2 MiB, and not for 4. */
static struct {
  char const *path, *text;
} const files[] = {
    {"/proc/meminfo", "MemTotal: 9999 kB\nMemAvailable: 3000 kB\nSwapFree: 10 kB\n"},
    {NULL, "the machine"},
    {"/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 99999999 kB\nSwapFree: 0 kB\n"},
    {"/proc/self/cgroup", "0::/outer/inner\n"},
    {"/sys/fs/cgroup/outer/inner/memory.max", "max\n"},
    {"/sys/fs/cgroup/outer/inner/memory.current", "100\n"},
    {"/sys/fs/cgroup/outer/memory.max", "4000000\n"},
    {"/sys/fs/cgroup/outer/memory.current", "1000000\n"},
    {NULL, "a group around the group"},
    {"/sys/fs/cgroup/outer/inner/memory.max", "5000000\n"},
    {"/sys/fs/cgroup/outer/inner/memory.current", "4000000\n"},
    {"/sys/fs/cgroup/outer/inner/memory.stat",
     "anon 1000000\nfile 3000000\ninactive_file 1000000\nactive_file 1000000\n"},
    {"/sys/fs/cgroup/outer/memory.max", "max\n"},
    {NULL, "a group with a cache of files"},
    {"/proc/self/cgroup", "0::/\n"},
    {"/sys/fs/cgroup/memory.max", "3000000\n"},
    {"/sys/fs/cgroup/memory.current", "0\n"},
    {NULL, "a container"},
    {"/sys/fs/cgroup/memory.max", "max\n"},
    {"/proc/self/cgroup", "5:cpu:/\n4:memory:/docker/abc\n0::/\n"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9000000\n"},
    {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "7000000\n"},
    {"/sys/fs/cgroup/memory/memory.stat",
     "inactive_file 8000000\ntotal_inactive_file 500000\ntotal_active_file 500000\n"},
    {NULL, "a container with the old groups"},
};

TEST_CASE(groups_of_processes_have_limits) {
  expect_room(MiB, false, umemOK); /* which process this is is asked once, of the real system */
  begin_system();
  for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
    if (files[i].path) {
      write_there(files[i].path, files[i].text);
      continue;
    }
    print_message("%s\n", files[i].text);
    expect_room(2 * MiB, false, umemOK);
    expect_room(4 * MiB, false, umemMemoryError);
    expect_room(4 * MiB, true, umemOK);
  }
  char const *const odd[] = {
      "", "x", "0", "0:", "0::", "\n\n", "0::\n0::/a", ":memory:", "4:memory:relative\n"};
  write_there("/sys/fs/cgroup/memory/memory.limit_in_bytes", "what\n");
  for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
    write_there("/proc/self/cgroup", odd[i]);
    expect_room(4 * MiB, false, umemOK);
  }
  end_system();
}

/* ---- names and permissions ---- */

TEST_CASE(the_longest_name_is_shared_too) {
  umemHandle handle;
  char name[260];
  memset(name, 'n', sizeof name);
  snprintf(name, 64, "%s", own_name("long"));
  name[strlen(name)] = '-';
  name[251] = 0;
  expect_status(NULL, umemShm_ctor(&shm, name, MiB), umemValueError, "1 to 250 bytes");
  memmove(name + 1, name, 250);
  *name = '/';
  name[251] = 0; /* "/" and 250 bytes */
  umemHost_ctor(&host);
  assert_ok(umemShm_ctor(&shm, name, MiB));
  assert_ok(umem_share(&shm, umem_alloc(&shm, 9), 9, &handle));
  assert_string_equal(handle.name, name);
  umem_dtor(&shm);
  uintptr_t adr = umem_attach(&handle, &host); /* by the name */
  assert_true(adr != 0);
  assert_ok(umem_detach(&host, adr));
  assert_ok(umemShm_remove(name));
  umem_dtor(&host);
}

TEST_CASE(permissions_are_those_asked_for_whatever_the_umask) {
  mode_t const masks[] = {0, 022, 077, 0777};
  static struct {
    char const *access;
    mode_t mode;
  } const cases[] = {{"user", 0600}, {"group", 0660}, {"all", 0666}};
  for (unsigned i = 0; i < 4 * 3; i++) {
    char text[200];
    struct stat st;
    snprintf(text, sizeof text, "shm:%s?size=64K&access=%s", own_name("mode"), cases[i % 3].access);
    mode_t mask = umask(masks[i / 3]);
    void *ctx = umem_open(text);
    umask(mask);
    assert_non_null(ctx);
    assert_int_equal(stat(path_of(own_name("mode")), &st), 0);
    assert_int_equal(st.st_mode & 07777, cases[i % 3].mode);
    umem_close(ctx);
    umemShm_remove(own_name("mode"));
  }
}

static void *open_with(char const *options) {
  char text[200];
  umem_thread_clear();
  snprintf(text, sizeof text, "shm:%s?%s", own_name("words"), options);
  return umem_open(text);
}

/* Each word is the member of the enumeration that it names. */
TEST_CASE(each_word_is_the_option_that_it_names) {
  assert_null(open_with("how=open"));
  expect_failure(NULL, umemIOError, "No such file or directory");
  void *made = open_with("size=1M&how=create");
  assert_non_null(made);
  assert_null(open_with("size=1M&how=create"));
  expect_failure(NULL, umemIOError, "File exists");
  void *opened = open_with("how=open"), *either = open_with("size=1M&how=open-or-create");
  assert_true(opened && either);
  umem_close(either);
  umem_close(opened);
  umem_close(made);
  assert_ok(umemShm_remove(own_name("words")));
  static struct {
    char const *name;
    uint64_t page;
  } const cases[] = {{"shm:?size=1M&sparse=yes&pages=default", 0},
                     {"shm:?size=1M&sparse=yes&pages=advise", 0},
                     {"shm:?size=2M&pages=2M", 2 * MiB},
                     {"shm:?size=1G&pages=1G", 1024 * MiB}};
  for (unsigned i = 0; i < 4; i++) {
    struct stat st;
    void *ctx = umem_open(cases[i].name);
    if (!ctx) { /* this machine has none set aside */
      assert_true(cases[i].page != 0);
      assert_true(umem_thread_status() == umemMemoryError ||
                  umem_thread_status() == umemNotSupportedError);
      umem_thread_clear();
      continue;
    }
    uint64_t page = cases[i].page ? cases[i].page : (uint64_t)sysconf(_SC_PAGESIZE);
    umemInfo info = info_of(ctx);
    assert_int_equal(info.page_size, page);
    assert_int_equal(fstat(umemShm_descriptor(ctx), &st), 0);
    if (!cases[i].page) assert_true((uint64_t)st.st_blocks * 512 < MiB / 2); /* sparse */
    umem_close(ctx);
  }
}
