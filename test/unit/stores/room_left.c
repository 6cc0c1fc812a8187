/* room_left.c - places whose bytes are RAM refuse what the machine or a control group has not left,
 * before they take any of it. Most of this is on a machine that is made up; a group of the kernel
 * is used where the test may make one. */
#include "file_help.h"

#include "unit/system_files.h"

/* ---- a machine with 48 MiB left ---- */

static void begin_small(void **state UNUSED) {
  uint64_t forgotten; /* what was left before */
  begin_system();
  write_there("/proc/meminfo", "MemTotal: 999999 kB\nMemAvailable: 32768 kB\nSwapFree: 16384 kB\n");
  umemInfo info = UMEM_INFO_INIT;
  umemHost_ctor(&host);
  umem_get_info(&host, &info);
  assert_int_equal(info.available, 32 * MiB);
  forgotten = umem_alloc(&host, 64 * MiB); /* more than any answer that is remembered */
  if (forgotten) umem_free(&host, (uintptr_t)forgotten);
}

static void end_small(void **state UNUSED) { end_system(); }

static void expect_refused(void *ctx, uintptr_t adr, char const *words) {
  assert_true(adr == umem_null(ctx));
  assert_int_equal(umem_thread_status(), umemMemoryError);
  if (!strstr(umem_thread_message(), " bytes") || !strstr(umem_thread_message(), words))
    fail_msg("%s", umem_thread_message());
  FORGET(ctx);
}

#define SMALL(name) TEST_CASE_WITH(name, begin_small, end_small)

SMALL(ram_by_any_name) {
  static char const *const names[] = {"host:",
                                      "pool+host:",
                                      "limit+pool+host:?limit.limit=1T",
                                      "debug+pool+host:",
                                      "stats+fault+host:",
                                      "guarded+host:",
                                      "host:?nodes=0",
                                      "track+host:?nodes=0"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    void *ctx = umem_open(names[i]);
    if (!ctx) {
      if (!strstr(names[i], "nodes")) fail_msg("%s: %s", names[i], umem_thread_message());
      print_message("without %s: %s\n", names[i], umem_thread_message());
      umem_thread_clear();
      continue;
    }
    uintptr_t small = umem_alloc(ctx, 100);
    expect_refused(ctx, umem_alloc(ctx, 64 * MiB), "50331648 left");
    expect_refused(ctx, umem_calloc(ctx, 64, MiB), "50331648 left");
    expect_refused(ctx, umem_aligned_alloc(ctx, 4096, 64 * MiB), "50331648 left");
    assert_true(umem_realloc(ctx, small, 100, 64 * MiB) == 0);
    FORGET(ctx);
    uintptr_t some = umem_alloc(ctx, 24 * MiB); /* debug adds to it */
    assert_true(some != 0);
    FREE(ctx, some, small);
    umem_close(ctx);
  }
}

/* Each gap of the place has fewer pages than are left, and both have more. */
SMALL(gaps_of_a_pool_are_compared_together) {
  size_t const page = 2 * MiB;
  umemPool pool;
  umemHost_ctor(&host);
  assert_int_equal(umemPool_ctor(&pool, &host, NULL), umemOK);
  uintptr_t first = umem_alloc(&pool, 14 * page), middle = umem_alloc(&pool, page),
            last = umem_alloc(&pool, 14 * page);
  assert_true(middle == first + 14 * page && last == middle + page);
  FREE(&pool, first, last);
  umem_trim(&pool, 0);
  umem_free(&pool, middle);
  uintptr_t adr = umem_alloc(&pool, 29 * page);
  if (adr) print_message("at page %td\n", (ptrdiff_t)(adr - first) / (ptrdiff_t)page);
  assert_true(adr == 0);
  assert_int_equal(umem_thread_status(), umemMemoryError);
  assert_non_null(strstr(umem_thread_message(), "left"));
  FORGET(&pool);
  uintptr_t good = umem_alloc(&pool, 15 * page);
  assert_true(good != 0);
  umem_free(&pool, good);
  DESTRUCT(&pool, &host);
}

static off_t blocks_of(int fd) {
  struct stat st;
  assert_int_equal(fstat(fd, &st), 0);
  return st.st_blocks;
}

/* Before, the kernel ended a process. */
SMALL(a_descriptor_of_memory) {
  for (kind = kindFile; kind <= kindMMap; kind++) {
    int fd = memfd_create("umem-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(any_adopt(&any, fd), umemOK);
    umemInfo info = info_of(&any);
    assert_true(info.available == 48 * MiB && info.capacity == UMEM_UNKNOWN);
    uintptr_t some = umem_alloc(&any, 8 * MiB);
    assert_true(some != umem_null(&any));
    off_t before = blocks_of(fd);
    expect_refused(&any, umem_alloc(&any, 64 * MiB), "50331648 free");
    expect_refused(&any, umem_calloc(&any, 64, MiB), "50331648 free");
    expect_refused(&any, umem_aligned_alloc(&any, 4096, 64 * MiB), "50331648 free");
    expect_refused(&any, umem_realloc(&any, some, 8 * MiB, 64 * MiB), "50331648 free");
    assert_int_equal(blocks_of(fd), before);
    assert_int_equal(umem_set(&any, some, 1, 8 * MiB), umemOK);
    umem_free(&any, some);
    umem_dtor(&any);
  }
}

SMALL(a_file_of_a_tmpfs) {
  char place[256];
  if (access("/dev/shm", W_OK)) skip();
  for (kind = kindFile; kind <= kindMMap; kind++) {
    temporary_name_in("/dev/shm", place, sizeof place);
    assert_int_equal(any_ctor(&any, place, "w+"), umemOK);
    expect_refused(&any, umem_alloc(&any, 64 * MiB), " free");
    assert_true(umem_alloc(&any, MiB) != umem_null(&any));
    umem_dtor(&any);
    unlink(place);
  }
}

/* Reserves nothing: that is what the option is for. */
SMALL(a_sparse_file_of_memory_is_not_compared) {
  for (kind = kindFile; kind <= kindMMap; kind++) {
    umemFileOptions options = {.size = sizeof options, .reserve = umemReserveNone};
    assert_int_equal(any_adopt_with(&any, memfd_create("umem-test", MFD_CLOEXEC), &options),
                     umemOK);
    assert_true(umem_alloc(&any, 64 * MiB) != umem_null(&any));
    umem_dtor(&any);
  }
}

/* ---- a group of the kernel ---- */

static char group[200];

static bool write_group(char const *name, char const *text) {
  char whole[300];
  snprintf(whole, sizeof whole, "%s/%s", group, name);
  int fd = open(whole, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  close(fd);
  return good;
}

/* Beside that of the test, or where only the group itself is seen, below the mount. */
static bool make_group(void) {
  char const *const folders[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
  for (unsigned i = 0; i < 2; i++) {
    snprintf(group, sizeof group, "%s/umem-test-%d", folders[i], (int)getpid());
    if (mkdir(group, 0755)) continue;
    if (write_group(i ? "memory.max" : "memory.limit_in_bytes", "134217728")) return true;
    rmdir(group);
  }
  return false;
}

static void fill_group(void *unused UNUSED) {
  if (!write_group("cgroup.procs", "0")) _exit(child_not_permitted);
  umemPool pool;
  umemHost_ctor(&host);
  EXPECT(umemPool_ctor(&pool, &host, NULL) == umemOK);
  EXPECT(!umem_alloc(&host, 256 * MiB) && umem_thread_status() == umemMemoryError);
  EXPECT(!umem_calloc(&pool, 256, MiB) && umem_thread_status() == umemMemoryError);
  kind = kindFile;
  Any file;
  EXPECT(any_adopt(&file, memfd_create("umem-test", MFD_CLOEXEC)) == umemOK);
  EXPECT(umem_calloc(&file, 256, MiB) == umem_null(&file));
  uintptr_t adr = umem_calloc(&pool, 64, MiB);
  EXPECT(adr);
  memset((void *)adr, 1, 64 * MiB);
  EXPECT(umem_alloc(&file, 96 * MiB) == umem_null(&file));
  EXPECT(umem_alloc(&file, 16 * MiB) != umem_null(&file));
}

TEST_CASE(a_group_of_the_kernel) {
  if (!make_group()) {
    print_message("without a control group: it cannot be made here\n");
    skip();
  }
  int status = child_wait(child_start(fill_group, NULL));
  assert_int_equal(rmdir(group), 0);
  if (status == child_not_permitted) skip();
  assert_int_equal(status, 0);
}
