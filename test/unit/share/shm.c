/* shm.c - what a Shm promises beside the contract: names, other processes, owners, limits, damaged
 * segments. */
#include "shm_help.h"

#include <sched.h>

#include "share/shm_segment.h"

/* ---- names ---- */

TEST_CASE(a_name_leads_to_the_same_bytes) {
  umemShm one, other;
  char const *name = own_name("same");
  assert_ok(umemShm_ctor(&one, name, MiB));
  assert_ok(umemShm_ctor(&other, name, 0));
  uintptr_t adr = umem_alloc(&one, 100);
  assert_true(umem_is_same_device(&one, &other));
  assert_true(umemShm_address(&other, umemShm_offset(&one, adr)) == adr);
  umem_free(&other, adr);
  assert_ok(umem_get_status(&other));
  umem_free(&one, adr);
  expect_failure(&one, umemValueError, "is not a live block of the shared memory /umem-test-");
  umem_dtor(&one);
  adr = umem_calloc(&other, 1, 100); /* the mapping stays for the other */
  assert_int_equal(*(char *)adr, 0);
  umem_dtor(&other);
  struct stat st;
  char const *path = path_of(name);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  assert_ok(umemShm_remove(name));
  assert_int_equal(umemShm_remove(name), umemIOError);
  expect_failure(NULL, umemIOError, "cannot remove the shared memory /umem-test-");
}

/* Whether [from, from + size) of the segment has bytes that were ever written. */
static bool has_data(uintptr_t adr, size_t size) {
  off_t from = (off_t)umemShm_offset(&shm, adr);
  off_t data = lseek(umemShm_descriptor(&shm), from, SEEK_DATA);
  return data >= 0 && data < from + (off_t)size;
}

TEST_CASE(zeros_are_not_written_where_nothing_was) {
  size_t const size = 8 * MiB;
  assert_ok(umemShm_ctor(&shm, NULL, 2 * size));
  uintptr_t adr = umem_calloc(&shm, size, 1);
  assert_true(adr && !has_data(adr, size));
  memset((char *)adr + 3 * MiB + 5, 1, MiB);
  umem_free(&shm, adr);
  assert_true(umem_calloc(&shm, size, 1) == adr);
  for (size_t i = 0; i < size; i++) assert_int_equal(((char *)adr)[i], 0);
  umem_free(&shm, adr);
  umem_dtor(&shm);
}

TEST_CASE(names_are_opened_as_asked) {
  umemShm second;
  char const *name = own_name("how");
  umemShmOptions options = {.size = sizeof options, .capacity = MiB, .how = umemShmOpen};
  assert_int_equal(umemShm_ctor_with(&shm, name, &options), umemIOError);
  expect_failure(NULL, umemIOError, "No such file or directory");
  options.how = umemShmCreate;
  options.permissions = 0640;
  mode_t mask = umask(077);
  assert_ok(umemShm_ctor_with(&shm, name, &options));
  umask(mask);
  struct stat st;
  assert_int_equal(fstat(umemShm_descriptor(&shm), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0640);
  assert_int_equal(fcntl(umemShm_descriptor(&shm), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  expect_status(NULL, umemShm_ctor_with(&second, name, &options), umemIOError, "File exists");
  assert_int_equal(umemShm_ctor(&second, name, 2 * MiB), umemValueError);
  expect_failure(NULL, umemValueError, "it exists with another size");
  assert_ok(umemShm_ctor(&second, name, MiB));
  DESTRUCT(&second, &shm);
  umemShm_remove(name);
  options.capacity = 0;
  assert_int_equal(umemShm_ctor_with(&shm, name, &options), umemValueError);
  expect_failure(NULL, umemValueError, "what is created needs a size");
  for (unsigned i = 0; i < 4; i++) {
    char const *const bad[] = {"", "/", "a/b", ".."};
    assert_int_equal(umemShm_ctor(&shm, bad[i], MiB), umemValueError);
    expect_failure(NULL, umemValueError, "is no name for shared memory");
  }
}

TEST_CASE(a_name_of_a_failed_stack_goes) {
  char text[256];
  umemShm ctx;
  snprintf(text, sizeof text, "limit+shm:%s?size=1M",
           own_name("stack")); /* limit lacks its limit */
  assert_null(umem_open(text));
  umem_thread_clear();
  snprintf(text, sizeof text, "pool+shm:%s?size=1M&pool.initial=2M", own_name("stack"));
  assert_null(umem_open(text));
  umem_thread_clear();
  assert_int_equal(umemShm_ctor(&ctx, own_name("stack"), 0), umemIOError);
  expect_failure(NULL, umemIOError, "No such file or directory");
  snprintf(text, sizeof text, "stats+shm:%s?size=1M&access=group&blocks=5", own_name("stack"));
  void *stack = umem_open(text);
  assert_non_null(stack);
  umem_close(stack);
  umemShmOptions options = {.size = sizeof options, .trust = umemTrustGroup};
  assert_ok(umemShm_ctor_with(&ctx, own_name("stack"), &options));
  umem_dtor(&ctx);
  umemShm_remove(own_name("stack"));
}

/* A process that was killed while it made the segment leaves a beginning. */
TEST_CASE(a_segment_that_was_begun_is_made_again) {
  char const *name = own_name("begun");
  char path[128];
  for (int how = 0; how < 2; how++) {
    snprintf(path, sizeof path, "/%s", name);
    int fd = shm_open(path, O_CREAT | O_RDWR, 0600);
    umemShmHeader header = {.ready = 0};
    memcpy(header.magic, "umem segment\r\n", sizeof "umem segment\r\n");
    if (how) assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
    if (how) assert_int_equal(pwrite(fd, "junk", 4, 9000), 4);
    assert_int_equal(umemShm_ctor(&shm, name, 0), umemIOError);
    umem_thread_clear();
    assert_ok(umemShm_ctor(&shm, name, MiB));
    uintptr_t adr = umem_alloc(&shm, MiB);
    assert_true(adr != 0);
    umem_dtor(&shm);
    close(fd);
    umemShm_remove(name);
  }
}

/* Another program may be about to give its new file a length. */
TEST_CASE(an_empty_name_of_others_survives_a_failure) {
  char const *name = own_name("empty");
  char const *path = path_of(name);
  SCOPED(close_fd) int fd = open(path, O_CREAT | O_RDWR, 0600);
  assert_true(fd >= 0);
  umemShmOptions options = {.size = sizeof options, .capacity = MiB, .blocks = SIZE_MAX};
  assert_int_equal(umemShm_ctor_with(&shm, name, &options), umemValueError);
  umem_thread_clear();
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, 0);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(umemShm_ctor_with(&shm, name, &options), umemValueError);
  umem_thread_clear();
  assert_int_equal(access(path, F_OK), -1); /* a name that the call made itself goes */
}

/* ---- what is no segment ---- */

static void refuse_file(char const *path, char const *words) {
  umemShm own;
  expect_status(NULL, umemShm_adopt(&own, open(path, O_RDWR)), umemIOError, words);
}

TEST_CASE(foreign_and_cut_segments_are_refused) {
  char const *name = own_name("foreign");
  char const *path = path_of(name);
  int fd = open(path, O_CREAT | O_RDWR, 0600);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, "foreign", 7, 8000), 7);
  refuse_file(path, "it is no segment of umem");
  assert_int_equal(umemShm_ctor(&shm, name, MiB), umemIOError); /* and it is not overwritten */
  expect_failure(NULL, umemIOError, "it is no segment of umem");
  assert_int_equal(ftruncate(fd, 100), 0);
  refuse_file(path, "it is too short");
  unlink(path);
  close(fd);

  assert_ok(umemShm_ctor(&shm, name, MiB));
  umemShmHeader good, bad;
  fd = open(path, O_RDWR);
  assert_int_equal(pread(fd, &good, sizeof good, 0), sizeof good);
  off_t length = lseek(fd, 0, SEEK_END);
  assert_int_equal(ftruncate(fd, length - 4096), 0);
  refuse_file(path, "it has not the length that it says");
  assert_int_equal(ftruncate(fd, length), 0);
  for (unsigned i = 0; i < 2000; i++) { /* no header is trusted: it opens, or is refused */
    size_t const checked = offsetof(umemShmHeader, id);
    bad = good;
    ((unsigned char *)&bad)[below(checked)] ^= (unsigned char)(1 + below(255));
    assert_int_equal(pwrite(fd, &bad, checked, 0), checked);
    umemShm other;
    if (umemShm_adopt(&other, dup(fd)) == umemOK) umem_dtor(&other);
    umem_thread_clear();
  }
  assert_int_equal(pwrite(fd, &good, offsetof(umemShmHeader, lock), 0),
                   offsetof(umemShmHeader, lock));
  close(fd);
  umem_dtor(&shm);
  umemShm_remove(name);
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(umemShm_adopt(&shm, ends[0]), umemIOError);
  expect_failure(NULL, umemIOError, "no file that is open for reading and writing");
  close(ends[1]);
}

/* Whatever stands in the tables, a call succeeds or fails, and reaches no other memory. */
TEST_CASE(damaged_tables_crash_nothing) {
  unsigned const rounds = setting_small() ? 300 : 3000;
  for (unsigned round = 0; round < rounds; round++) {
    uintptr_t adr[8];
    open_small(&shm, MiB, 16);
    for (unsigned i = 0; i < 8; i++) adr[i] = umem_alloc(&shm, 1 + below(5000));
    FREE(&shm, adr[2], adr[5]);
    umemShmHeader *header =
        mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, umemShm_descriptor(&shm), 0);
    size_t const root = offsetof(umemShmHeader, root),
                 extents = 34 * sizeof(umemShmExtent) + 64 * 4;
    for (unsigned i = 0; i < 1 + below(6); i++) {
      size_t at =
          below(3) ? 4096 + below(extents / 4) * 4 : root + below(sizeof(umemShmRoot) / 4) * 4;
      uint32_t const values[] = {0,          1,          34,         35,
                                 UINT32_MAX, 0x6c697665, 0x66726565, (uint32_t)next_random()};
      memcpy((char *)header + at, &values[below(8)], 4);
    }
    if (round % 3 == 0) { /* what the next one does after a death */
      umemShmTable table = {&header->root,
                            (umemShmExtent *)(void *)((char *)header + 4096),
                            NULL,
                            34,
                            16,
                            63,
                            MiB,
                            0};
      table.heads = (uint32_t *)(void *)(table.extents + 34);
      umemShmTable_rebuild(&table);
    }
    for (unsigned i = 0; i < 20; i++) {
      uintptr_t *one = &adr[below(8)];
      uint64_t what = below(4);
      if (what == 0) umem_free(&shm, *one);
      if (what == 1) *one = umem_alloc(&shm, 1 + below(9000));
      if (what == 2) umem_realloc(&shm, *one, 1, 1 + below(9000));
      if (what == 3) umem_aligned_alloc(&shm, 4096, 1 + below(9000));
    }
    umemShmBlock blocks[40];
    umemShm_blocks(&shm, blocks, 40);
    umemShm_reclaim(&shm, 0);
    munmap(header, 64 << 10);
    umem_dtor(&shm);
    umem_thread_clear();
  }
  open_small(&shm, MiB, 16);
  uintptr_t adr = umem_alloc(&shm, 10);
  umemShmHeader *header =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, umemShm_descriptor(&shm), 0);
  header->root.damaged = 1;
  umem_free(&shm, adr);
  expect_failure(&shm, umemRuntimeError,
                 "the tables of the shared memory without a name are damaged");
  munmap(header, 4096);
  umem_dtor(&shm);
}

/* What no death can leave is damage: blocks that overlap, or reach out of the data. */
TEST_CASE(impossible_tables_are_damaged) {
  static umemShmRoot root;
  static umemShmExtent extents[10];
  static uint32_t heads[64];
  umemShmTable table = {&root, extents, heads, 10, 4, 63, 4096, 0};
  uint64_t offset, second;
  assert_true(umemShmTable_rebuild(&table));
  assert_int_equal(umemShmTable_alloc(&table, 200, 64, (umemShmOwner){1, 1}, true, &offset),
                   umemShmOK);
  assert_int_equal(umemShmTable_alloc(&table, 200, 64, (umemShmOwner){1, 1}, true, &second),
                   umemShmOK);
  assert_true(umemShmTable_rebuild(&table));
  umemShmExtent *other = extents[0].offset == second ? &extents[0] : &extents[1];
  assert_true(other->offset == second && second == offset + 256);
  other->offset -= 64;
  assert_false(umemShmTable_rebuild(&table));
  assert_int_equal(umemShmTable_free(&table, offset), umemShmDamaged);
  other->offset = 4096 - 128;
  assert_false(umemShmTable_rebuild(&table));
  other->offset = second;
  assert_true(umemShmTable_rebuild(&table));
  assert_int_equal(umemShmTable_free(&table, offset), umemShmOK);
}

/* ---- other processes ---- */

TEST_CASE(a_dead_owner_leaves_its_blocks) {
  umemShmBlock blocks[8];
  open_small(&shm, MiB, 0);
  uintptr_t mine = umem_alloc(&shm, 10);
  pid_t child = fork();
  if (!child) {
    char *bytes = (char *)umem_alloc(&shm, 100);
    umem_alloc(&shm, 200);
    umem_free(&shm, mine); /* blocks of others, too */
    memcpy(bytes, "hello", 6);
    bool good = umem_get_status(&shm) == umemOK && umemShm_blocks(&shm, blocks, 8) == 2 &&
                !blocks[0].dead && blocks[0].pid == (uint32_t)getpid();
    umem_dtor(&shm);
    _exit(good ? 0 : 1);
  }
  assert_int_equal(child_wait(child), 0);
  assert_int_equal(umemShm_blocks(&shm, blocks, 1), 2);
  assert_int_equal(umemShm_blocks(&shm, blocks, 8), 2);
  size_t const k = blocks[0].nbytes == 100 ? 0 : 1;
  assert_int_equal(blocks[k].nbytes, 100);
  assert_int_equal(blocks[k].pid, child);
  assert_int_equal(blocks[k].dead, 1);
  assert_true(blocks[k].start > 0);
  assert_string_equal((char *)blocks[k].address, "hello");
  assert_ok(umemShm_own(&shm, blocks[k].address));
  assert_int_equal(umemShm_own(&shm, blocks[k].address + 1), umemValueError);
  umem_clear_status(&shm);
  assert_int_equal(umemShm_reclaim(&shm, child + 1), 0);
  assert_int_equal(umemShm_reclaim(&shm, child), 1); /* the other is ours now */
  assert_int_equal(umemShm_reclaim(&shm, 0), 0);
  assert_int_equal(umemShm_blocks(&shm, blocks, 8), 1);
  assert_int_equal(blocks[0].pid, getpid());
  assert_ok(umem_get_status(&shm));
  umem_dtor(&shm);
}

/* A writer that is killed leaves a block that nobody takes for whole, also after a repair. */
TEST_CASE(an_incomplete_block_stays_so_until_it_is_written) {
  umemShm reader;
  umemShmBlock blocks[4];
  char text[128];
  snprintf(text, sizeof text, "shm:%s?size=1M&incomplete=yes", own_name("half"));
  void *writer = umem_open(text);
  assert_non_null(writer);
  assert_ok(umemShm_ctor(&reader, own_name("half"), 0));
  IN_CHILD {
    uintptr_t done = umem_alloc(writer, 100);
    umem_alloc(writer, 200);
    umem_alloc(&reader, 300); /* a context without the option */
    EXPECT(umemShm_complete(writer, done + 99) == umemOK);
  }
  umemShm_remove(own_name("half"));
  assert_int_equal(umemShm_blocks(&reader, blocks, 4), 3);
  umemShmHeader *header =
      mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, umemShm_descriptor(&reader), 0);
  for (int repaired = 0; repaired < 2; repaired++) {
    for (unsigned i = 0; i < 3; i++)
      assert_int_equal(umemShm_is_complete(&reader, blocks[i].address + 7),
                       blocks[i].nbytes != 200);
    header->lock.holder = umemShmOwner_mark(
        (umemShmOwner){blocks[0].start << 24 | blocks[0].pid, umemShmOwner_self().space}, false);
    assert_int_equal(umemShm_blocks(&reader, blocks, 4), 3); /* repairs what the child has left */
    assert_true(header->lock.holder == 0);
  }
  for (unsigned i = 0; i < 3; i++) umem_free(&reader, blocks[i].address);
  assert_false(umemShm_is_complete(&reader, blocks[0].address));
  expect_failure(&reader, umemValueError, "is not a live block");
  assert_int_equal(umemShm_complete(&reader, blocks[0].address), umemValueError);
  expect_failure(&reader, umemValueError, "is not a live block");
  umemHost_ctor(&host);
  assert_int_equal(umemShm_complete((umemShm *)&host, 1), umemTypeError);
  assert_false(umemShm_is_complete((umemShm *)&host, 1));
  umem_thread_clear();
  umem_dtor(&host);
  munmap(header, 64 << 10);
  umem_dtor(&reader);
  umem_close(writer);
}

/* What other processes that live have allocated stays theirs, also while they wait, or are
 * stopped. */
TEST_CASE(a_live_stranger_keeps_its_blocks) {
  umemShmBlock block;
  int ends[2];
  char ready;
  open_small(&shm, MiB, 4);
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    ready = umem_alloc(&shm, 100) != 0;
    if (write(ends[1], &ready, 1) == 1) pause();
    _exit(1);
  }
  assert_int_equal(read(ends[0], &ready, 1), 1);
  for (int stopped = 0; stopped < 2; stopped++) {
    assert_int_equal(umemShm_blocks(&shm, &block, 1), 1);
    assert_true(block.pid == (uint32_t)child && !block.dead);
    assert_int_equal(umemShm_reclaim(&shm, 0), 0);
    assert_int_equal(umemShm_reclaim(&shm, child), 0);
    kill(child, SIGSTOP);
  }
  kill(child, SIGKILL);
  assert_int_equal(child_wait(child), -SIGKILL);
  assert_int_equal(umemShm_reclaim(&shm, child), 1);
  close_both(ends);
  umem_dtor(&shm);
}

/* A number that is used again belongs to another process. */
TEST_CASE(a_start_time_tells_processes_apart) {
  open_small(&shm, MiB, 4);
  uintptr_t adr = umem_alloc(&shm, 10);
  assert_int_equal(umemShm_reclaim(&shm, getpid()), 0);
  umemShmHeader *header =
      mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, umemShm_descriptor(&shm), 0);
  umemShmExtent *extents = (umemShmExtent *)(void *)((char *)header + 4096);
  for (unsigned i = 0; i < 10; i++)
    if (extents[i].process) extents[i].process += UINT64_C(1) << 24;
  umemShmBlock block;
  assert_int_equal(umemShm_blocks(&shm, &block, 1), 1);
  assert_int_equal(block.dead, 1);
  for (unsigned i = 0; i < 10; i++) extents[i].space ^= 1; /* another PID namespace: nobody knows */
  assert_int_equal(umemShm_blocks(&shm, &block, 1), 1);
  assert_int_equal(block.dead, 0);
  assert_int_equal(umemShm_reclaim(&shm, 0), 0);
  for (unsigned i = 0; i < 10; i++) extents[i].space ^= 1;
  assert_int_equal(umemShm_reclaim(&shm, getpid()), 1);
  umem_free(&shm, adr);
  expect_failure(&shm, umemValueError, "is not a live block");
  munmap(header, 64 << 10);
  umem_dtor(&shm);
}

/* ---- limits ---- */

TEST_CASE(what_does_not_fit_is_a_memory_error) {
  expect_status(NULL, umemShm_ctor(&shm, NULL, (size_t)1 << 45), umemMemoryError, "cannot reserve");
  assert_int_equal(umemShm_ctor(&shm, own_name("large"), (size_t)1 << 45), umemMemoryError);
  umem_thread_clear();
  assert_int_equal(umemShm_remove(own_name("large")), umemIOError); /* nothing stays */
  umem_thread_clear();
  expect_status(NULL, umemShm_ctor(&shm, NULL, SIZE_MAX), umemValueError, "cannot have");

  open_small(&shm, MiB, 3);
  uintptr_t a = umem_alloc(&shm, 1);
  umem_alloc(&shm, 1);
  assert_true(umem_alloc(&shm, 2 * MiB) == 0);
  expect_failure(&shm, umemMemoryError, "no room for 2097152 bytes in the 1048576");
  umem_alloc(&shm, 1);
  assert_true(umem_alloc(&shm, 1) == 0);
  expect_failure(&shm, umemMemoryError, "no room for more than 3 blocks (option blocks)");
  umem_free(&shm, a);
  assert_true(umem_alloc(&shm, 1) != 0);
  assert_true(umem_aligned_alloc(&shm, (size_t)1 << 40, 1) == 0);
  umem_clear_status(&shm);
  umem_dtor(&shm);
}

TEST_CASE(nobody_can_cut_memory_without_a_name) {
  assert_ok(umemShm_ctor(&shm, NULL, MiB));
  int fd = umemShm_descriptor(&shm);
  assert_int_equal(ftruncate(fd, 0), -1);
  assert_int_equal(errno, EPERM);
  assert_int_equal(ftruncate(fd, (off_t)64 << 20), -1);
  struct stat st;
  assert_int_equal(fstat(fd, &st), 0);
  assert_true(st.st_blocks * 512 >= (blkcnt_t)MiB); /* and it is all reserved */
  umem_dtor(&shm);
}

TEST_CASE(huge_pages_are_there_or_refused) {
  umemShmOptions options = {.size = sizeof options, .capacity = 1, .pages = umemShmPagesAdvise};
  assert_ok(umemShm_ctor_with(&shm, NULL, &options));
  umem_dtor(&shm);
  options.pages = umemShmPages2M;
  umemStatusType status = umemShm_ctor_with(&shm, NULL, &options);
  if (status == umemOK) {
    umemInfo info = info_of(&shm);
    assert_int_equal(info.page_size, 2 * MiB);
    umem_dtor(&shm);
  } else {
    assert_true(status == umemMemoryError || status == umemNotSupportedError);
    assert_true(strlen(umem_thread_message()) > 0);
  }
  umem_thread_clear();
  assert_int_equal(umemShm_ctor_with(&shm, own_name("huge"), &options), umemNotSupportedError);
  expect_failure(NULL, umemNotSupportedError, "a name has no pages of hugetlbfs");
}

TEST_CASE(blocks_grow_and_shrink_in_place) {
  open_small(&shm, MiB, 8);
  uintptr_t adr = umem_alloc(&shm, 1000);
  memset((void *)adr, 7, 1000);
  assert_true(umem_realloc(&shm, adr, 1000, 500000) == adr);
  assert_true(umem_realloc(&shm, adr, 500000, 100) == adr);
  uintptr_t next = umem_alloc(&shm, 64);
  assert_true(next == adr + 128);
  uintptr_t moved = umem_realloc(&shm, adr, 100, 5000);
  assert_true(moved != adr && ((char *)moved)[99] == 7);
  expect_no_block(&shm, umem_realloc(&shm, moved, 5001, 1), umemValueError, "5001");
  FREE(&shm, next, moved);
  assert_true((adr = umem_alloc(&shm, MiB)) != 0);
  umem_free(&shm, adr);
  umem_dtor(&shm);
}
