/* handle_hostile.c - handles, descriptors and sockets of a process that means harm; and many
 * threads at one handle. */
#include "shm_help.h"

static umemHandle good; /* of a block in shm */

static void open_all(void **state UNUSED) {
  umemHost_ctor(&host);
  open_small(&shm, MiB, 64);
  assert_ok(umem_share(&shm, umem_alloc(&shm, 1000), 1000, &good));
}

static void close_all(void **state UNUSED) { DESTRUCT(&shm, &host); }

/* A memory file as long as the segment, which says that it is the segment. */
static int forged(umemHandle *handle) {
  char page[4096];
  struct stat st;
  int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_int_equal(fchmod(fd, 0600), 0);
  assert_int_equal(ftruncate(fd, (off_t)good.size), 0);
  assert_int_equal(pread(umemShm_descriptor(&shm), page, sizeof page, 0), sizeof page);
  assert_int_equal(pwrite(fd, page, sizeof page, 0), sizeof page);
  assert_int_equal(fstat(fd, &st), 0);
  *handle = good;
  handle->identity[0] = st.st_dev;
  handle->identity[1] = st.st_ino;
  return fd;
}

/* ---- numbers ---- */

static void expect_refusal(umemHandle const *handle, umemStatusType type, char const *words) {
  assert_true(umem_attach_with(handle, dup(umemShm_descriptor(&shm)), &host) == 0);
  expect_failure(&host, type, words);
}

/* Every combination of extreme sizes is refused, or leads to bytes of the segment. */
TEST_CASE(extreme_sizes_lead_nowhere) {
  uint64_t const numbers[] = {0,
                              1,
                              4095,
                              4096,
                              good.size,
                              good.size - 1,
                              good.size + 1,
                              INT64_MAX,
                              INT64_MAX - 1,
                              UINT64_MAX,
                              UINT64_MAX - 1,
                              (uint64_t)1 << 63,
                              (uint64_t)1 << 32,
                              good.offset,
                              -good.offset,
                              good.offset + 1,
                              good.offset - 1,
                              1000};
  enum { count = sizeof numbers / sizeof *numbers };
  uintptr_t base = umemShm_address(&shm, good.size - 1) - (uintptr_t)(good.size - 1);
  uint64_t const first = good.size - MiB; /* of the data */
  unsigned attached = 0;
  for (unsigned i = 0; i < count * count * count; i++) {
    umemHandle bad = good;
    bad.length = numbers[i % count];
    bad.offset = numbers[i / count % count];
    bad.size = numbers[i / count / count];
    uintptr_t adr = umem_attach(&bad, &host);
    if (adr) {
      attached++;
      assert_true(adr - base == bad.offset && bad.offset < good.size && bad.length);
      assert_true(bad.offset >= first && bad.size == good.size); /* no lock, no tables */
      assert_true(bad.length <= good.size - bad.offset);
      assert_ok(umem_detach(&host, adr));
    }
    umem_thread_clear();
  }
  umem_clear_status(&host);
  assert_true(attached > 10);
}

TEST_CASE(other_versions_and_kinds_are_refused) {
  uint32_t const numbers[] = {0, 2, 6, 1000, INT32_MAX, UINT32_MAX};
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    umemHandle bad = good;
    bad.version = numbers[i];
    expect_refusal(&bad, umemValueError, "its version is not that of this umem");
    bad = good;
    bad.kind = numbers[i] == 2 ? 7 : numbers[i];
    expect_refusal(&bad, umemValueError, "its kind is not known");
  }
  umemHandle bad = good;
  bad.kind = umemHandleNamed;
  char const *const names[] = {"", "/", "name", "/a/b", "/..", "/../etc/passwd"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    memset(bad.name, 0, sizeof bad.name);
    strcpy(bad.name, names[i]);
    expect_refusal(&bad, umemValueError, "its name is malformed");
  }
  memset(bad.name, 'x', sizeof bad.name);
  *bad.name = '/';
  expect_refusal(&bad, umemValueError, "its name is malformed"); /* without an end */
}

/* ---- descriptors ---- */

/* Of whatever a descriptor is, the handle says that it is memory or a file, with its identity and
 * size. */
TEST_CASE(descriptors_of_other_kinds_are_refused) {
  int ends[2], pair[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  sockets(SOCK_STREAM, pair);
  int before = open_descriptors();
  int const fds[] = {open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                     open("/dev/zero", O_RDWR | O_CLOEXEC),
                     open("/proc/self/exe", O_PATH | O_CLOEXEC),
                     open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                     dup(ends[0]),
                     dup(ends[1]),
                     dup(pair[0])};
  for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++) {
    struct stat st;
    assert_true(fds[i] >= 0);
    assert_int_equal(fstat(fds[i], &st), 0);
    for (uint32_t kind = umemHandleUnnamed; kind <= umemHandleFile; kind++) {
      umemHandle bad = good;
      bad.kind = kind;
      bad.identity[0] = st.st_dev;
      bad.identity[1] = st.st_ino;
      bad.size = st.st_size > 8192 ? (uint64_t)st.st_size : MiB;
      bad.offset = kind == umemHandleUnnamed ? bad.size - 1 : 0;
      bad.length = bad.size - bad.offset;
      assert_true(umem_attach_with(&bad, dup(fds[i]), &host) == 0);
      assert_int_equal(umem_thread_status(), umemIOError);
      assert_int_equal(umem_get_status(&host), umemIOError);
      FORGET(&host);
    }
    close(fds[i]);
  }
  assert_true(umem_attach_with(&good, 1 << 20, &host) !=
              0); /* the segment is mapped here: it needs none */
  assert_ok(umem_detach(&host, umemShm_address(&shm, good.offset)));
  assert_int_equal(open_descriptors(), before);
  for (int i = 0; i < 2; i++) {
    close(ends[i]);
    close(pair[i]);
  }
}

/* A file can be cut. What was attached as a file does not become memory that nobody can cut. */
TEST_CASE(a_file_that_is_attached_is_no_memory) {
  umemHandle handle;
  SCOPED(close_fd) int fd = forged(&handle);
  handle.kind = umemHandleFile;
  uintptr_t adr = umem_attach_with(&handle, dup(fd), &host);
  assert_true(adr != 0);
  handle.kind = umemHandleUnnamed;
  expect_no_block(&host, umem_attach(&handle, &host), umemValueError, "it needs its descriptor");
  assert_true(umem_attach_with(&handle, dup(fd), &host) == 0);
  expect_failure(&host, umemIOError, "the size of its memory is not sealed");
  assert_ok(umem_detach(&host, adr));
  assert_int_equal(umem_detach(&host, adr), umemValueError);
  FORGET(&host);
}

/* A file has one address for all handles, also when it has grown between. */
TEST_CASE(a_file_that_grows_keeps_its_address) {
  umemHandle handle, second;
  int fd;
  CONTEXT(umemFile, file, NULL, "w+");
  uintptr_t adr = umem_alloc(&file, 5000);
  assert_ok(umem_share_with(&file, adr, 5000, &handle, &fd));
  uintptr_t one = umem_attach_with(&handle, dup(fd), &host);
  uintptr_t more = umem_alloc(&file, MiB);
  uintptr_t two = umem_attach_with(&handle, dup(fd), &host);
  assert_true(one && one == two);
  assert_ok(umem_share(&file, more, MiB, &second)); /* this one has more bytes */
  uintptr_t large = umem_attach_with(&second, dup(fd), &host);
  assert_true(large);
  memset((void *)large, 1, MiB);
  assert_ok(umem_detach(&host, large));
  assert_ok(umem_detach(&host, one));
  assert_ok(umem_detach(&host, two));
  assert_int_equal(umem_detach(&host, two), umemValueError);
  FORGET(&host);
}

/* ---- threads ---- */

static bool stop; /* atomic */

/* Maps and unmaps pages of its own. A page that another thread unmaps raises SIGSEGV here. */
static void *map_pages(void *unused UNUSED) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    char *page = mmap(NULL, 16 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) continue;
    for (unsigned i = 0; i < 50; i++) ((char volatile *)page)[i * 4096] = 1;
    munmap(page, 16 * MiB);
  }
  return NULL;
}

/* The kernel refuses to map it only when its place is free already: meanwhile another thread may
 * have got that place. */
TEST_CASE(memory_that_cannot_be_written_harms_no_other_thread) {
  umemHandle handle;
  pthread_t thread;
  SCOPED(close_fd) int fd = forged(&handle);
  assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
  assert_int_equal(pthread_create(&thread, NULL, map_pages, NULL), 0);
  int before = open_descriptors();
  for (int i = 0; i < (setting_small() ? 100 : 3000); i++) {
    assert_true(umem_attach_with(&handle, dup(fd), &host) == 0);
    expect_failure(&host, umemIOError, "Operation not permitted");
  }
  assert_int_equal(open_descriptors(), before);
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  handle.flags = UMEM_HANDLE_READ_ONLY; /* Linux 6.7 and later map it for reading */
  uintptr_t adr = umem_attach_with(&handle, dup(fd), &host);
  if (adr) assert_ok(umem_detach(&host, adr));
  FORGET(&host);
}

static umemHandle passed;
static int passed_fd;

static void *attach_and_detach(void *failed) {
  SCOPED(umem_dtor) umemHost own;
  umemHost_ctor(&own);
  for (unsigned i = 0; i < (setting_small() ? 200 : 2000); i++) {
    char volatile *bytes = (char *)umem_attach_with(&passed, dup(passed_fd), &own);
    bool right = bytes && bytes[99] == 5;
    if (!right || umem_detach(&own, (uintptr_t)bytes) != umemOK)
      __atomic_fetch_add((int *)failed, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* The mapping comes and goes, since nobody else has it. */
TEST_CASE(threads_attach_one_handle) {
  enum { workers = 4 };
  umemShm other;
  pthread_t threads[workers];
  int failed = 0, fd;
  open_small(&other, MiB, 4);
  uintptr_t adr = umem_alloc(&other, 100);
  memset((void *)adr, 5, 100);
  assert_ok(umem_share_with(&other, adr, 100, &passed, &fd));
  passed_fd = dup(fd);
  umem_dtor(&other);
  int before = open_descriptors();
  for (int i = 0; i < workers; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, attach_and_detach, &failed), 0);
  for (int i = 0; i < workers; i++) pthread_join(threads[i], NULL);
  assert_int_equal(failed, 0);
  assert_int_equal(open_descriptors(), before);
  assert_true(umem_attach(&passed, &host) == 0); /* no count is left */
  expect_failure(&host, umemValueError, "it needs its descriptor");
  close(passed_fd);
}

/* A child has the attachments of its parent, and detaches them for itself alone. */
TEST_CASE(a_child_of_fork_detaches_for_itself) {
  umemHandle handle;
  int fd = forged(&handle);
  assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  char *bytes = (char *)umem_attach_with(&handle, fd, &host);
  assert_non_null(bytes);
  IN_CHILD {
    bytes[0] = 9;
    bool right = umem_detach(&host, (uintptr_t)bytes) == umemOK && umem_attach(&handle, &host) == 0;
    EXPECT(right);
  }
  assert_int_equal(bytes[0], 9);
  assert_ok(umem_detach(&host, (uintptr_t)bytes));
}

/* ---- sockets ---- */

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76 /* Linux 6.5 */
#endif

/* What a socket was told to add to messages, such as who has sent them, takes nothing away from the
 * handle. */
TEST_CASE(messages_may_have_more_than_a_descriptor) {
  int const options[] = {SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD}, on = 1;
  int ends[2];
  for (unsigned set = 0; set < 8; set++) {
    sockets(SOCK_STREAM, ends);
    for (unsigned i = 0; i < 3; i++)
      if (set & 1u << i) setsockopt(ends[1], SOL_SOCKET, options[i], &on, sizeof on);
    int before = open_descriptors();
    assert_ok(umem_send(ends[0], &shm, umemShm_address(&shm, good.offset), 1000));
    uintptr_t adr = umem_receive(ends[1], &host, NULL);
    if (!adr) fail_msg("with options %u: %s", set, umem_thread_message());
    assert_ok(umem_detach(&host, adr));
    assert_int_equal(open_descriptors(), before);
    close_both(ends);
  }
}

TEST_CASE(longer_messages_are_refused) {
  int ends[2];
  char message[sizeof good + 1] = {0};
  memcpy(message, &good, sizeof good);
  sockets(SOCK_SEQPACKET, ends);
  assert_int_equal(send(ends[0], message, sizeof message, 0), sizeof message);
  assert_true(umem_receive(ends[1], &host, NULL) == 0);
  expect_failure(&host, umemIOError, "cannot receive the handle");
  close_both(ends);
}

/* A socket that is full, and does not wait: the call fails, and takes nothing. */
TEST_CASE(a_full_socket_keeps_nothing) {
  int const kinds[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
  for (unsigned i = 0; i < 3; i++) {
    int ends[2], sent = 0;
    sockets(kinds[i] | SOCK_NONBLOCK, ends);
    int before = open_descriptors();
    while (umem_send(ends[0], &shm, umemShm_address(&shm, good.offset), 1000) == umemOK) sent++;
    expect_failure(&shm, umemIOError, "cannot send the handle: Resource temporarily unavailable");
    assert_true(sent > 0);
    assert_int_equal(open_descriptors(), before);
    for (; sent; sent--) {
      uintptr_t adr = umem_receive(ends[1], &host, NULL);
      assert_true(adr != 0);
      assert_ok(umem_detach(&host, adr));
    }
    assert_true(umem_receive(ends[1], &host, NULL) == 0); /* and a part at most is left */
    FORGET(&host);
    assert_int_equal(open_descriptors(), before);
    close_both(ends);
  }
}

int main(void) { return run_cases(open_all, close_all); }
