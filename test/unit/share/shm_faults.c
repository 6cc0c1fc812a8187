/* shm_faults.c - each system call that shared memory and handles make fails, in its turn.
 *
 * The linker sends the calls to the wrappers here. After each failure: a status with a message, or
 * success; no descriptor is left open, no name left behind; and the same work succeeds when nothing
 * fails. */
#include "shm_help.h"

#include <sys/file.h>
#include <sys/random.h>

#include "share/segment.h"
#include "wrap.h"

typedef enum Call {
  callMemory,
  callName,
  callLength,
  callReserve,
  callMap,
  callControl,
  callStat,
  callLock,
  callRandom,
  callMode,
  callRead,
  callWrite,
  callHeap,
  callSend,
  callReceive,
  call_count
} Call;

/* Of the thread of the test. */
static _Thread_local Call armed = call_count;
static _Thread_local unsigned long left; /* calls until one fails */
static _Thread_local int with;
static _Thread_local bool met;
static _Thread_local Call failed_call;

static bool fails(Call call) {
  if (call != armed || !left || --left) return false;
  met = true;
  failed_call = call;
  errno = with;
  return true;
}

/* Functions that return -1 when they fail. */
#define FAILS(call, type, name, parameters, arguments)                                             \
  WRAP(fails(call), (type)-1, type, name, parameters, arguments)

FAILS(callMemory, int, memfd_create, (char const *name, unsigned flags), (name, flags))
FAILS(callName, int, shm_open, (char const *name, int flags, mode_t mode), (name, flags, mode))
FAILS(callLength, int, ftruncate, (int fd, off_t length), (fd, length))

/* The bytes that were reserved while the system only pretends to; then a call for none is an error,
 * as of the kernel. */
static uint64_t pretended;
static bool pretends;

WRAPPED(int, fallocate, (int fd, int mode, off_t at, off_t length)) {
  if (fails(callReserve)) return -1;
  if (!pretends) return __real_fallocate(fd, mode, at, length);
  pretended += (uint64_t)length;
  errno = EINVAL;
  return length > 0 ? 0 : -1;
}

FAILS(callMap, void *, mmap, (void *adr, size_t n, int how, int flags, int fd, off_t at),
      (adr, n, how, flags, fd, at))
FAILS(callControl, int, fcntl, (int fd, int what, long argument), (fd, what, argument))
FAILS(callStat, int, fstat, (int fd, struct stat *st), (fd, st))
FAILS(callLock, int, flock, (int fd, int how), (fd, how))
FAILS(callRandom, ssize_t, getrandom, (void *bytes, size_t n, unsigned flags), (bytes, n, flags))
FAILS(callMode, int, fchmod, (int fd, mode_t mode), (fd, mode))
FAILS(callRead, ssize_t, pread, (int fd, void *bytes, size_t n, off_t at), (fd, bytes, n, at))
FAILS(callWrite, ssize_t, pwrite, (int fd, void const *bytes, size_t n, off_t at),
      (fd, bytes, n, at))
FAILS(callSend, ssize_t, sendmsg, (int fd, struct msghdr const *message, int flags),
      (fd, message, flags))
FAILS(callReceive, ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),
      (fd, message, flags))

WRAP(fails(callHeap), NULL, void *, calloc, (size_t count, size_t size), (count, size))

/* Mappings of shared memory, and addresses that are only reserved. */
static int mappings(void) {
  int count = 0;
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps))
    count +=
        strstr(line, "memfd:umem") || strstr(line, "/dev/shm/umem-test") || strstr(line, " ---p ");
  fclose(maps);
  return count;
}

/* ---- what may fail: each returns whether it has succeeded, and leaves nothing ---- */

static bool makes_without_a_name(void) {
  if (umemShm_ctor(&shm, NULL, MiB) != umemOK) return false;
  bool good = umem_alloc(&shm, 100) != 0;
  umem_dtor(&shm);
  return good;
}

static bool makes_a_name(void) {
  if (umemShm_ctor(&shm, own_name("fault"), MiB) != umemOK) {
    char path[128];
    snprintf(path, sizeof path, "/dev/shm/%s", own_name("fault"));
    armed = call_count;
    struct stat st;
    if (stat(path, &st) == 0) { /* what could not be locked may be another one's by now */
      assert_int_equal(st.st_size, 0);
      assert_true(failed_call == callLock || failed_call == callStat);
      unlink(path);
    }
    return false;
  }
  assert_ok(umemShm_remove(own_name("fault")));
  umem_dtor(&shm);
  return true;
}

/* Of an empty file of others, which has its length and its permissions after a failure. */
static bool fills_an_empty_name(void) {
  struct stat st;
  SCOPED(unlink_path) char path[128];
  snprintf(path, sizeof path, "/dev/shm/%s", own_name("empty"));
  SCOPED(close_fd) int fd = open(path, O_CREAT | O_RDWR | O_EXCL, 0640);
  assert_true(fd >= 0);
  bool good = umemShm_ctor(&shm, own_name("empty"), MiB) == umemOK;
  if (good) umem_dtor(&shm);
  armed = call_count;
  assert_int_equal(stat(path, &st), 0);
  if (!good) assert_true(st.st_size == 0 && st.st_blocks == 0 && (st.st_mode & 0777) == 0640);
  return good;
}

static umemShm served; /* has a name */
static umemShm nameless;
static uintptr_t there;

static bool opens_a_name(void) {
  if (umemShm_ctor(&shm, own_name("served"), MiB) != umemOK) return false;
  umem_dtor(&shm);
  return true;
}

static bool attaches_a_descriptor(void) {
  umemHandle handle;
  int fd;
  uintptr_t adr = 0;
  if (umem_share_with(&nameless, there, 100, &handle, &fd) == umemOK)
    adr = umem_attach_with(&handle, dup(fd), &host);
  return adr && umem_detach(&host, adr) == umemOK;
}

/* In a child, where nothing is mapped yet: it has the descriptor alone. */
static bool maps_a_descriptor(void) {
  umemHandle handle;
  umemShm other;
  if (umemShm_ctor(&other, NULL, MiB) != umemOK) return false;
  int fd = dup(umemShm_descriptor(&other));
  umem_share(&other, umem_alloc(&other, 100), 100, &handle);
  umem_dtor(&other);
  uintptr_t adr = umem_attach_with(&handle, fd, &host);
  return adr && umem_detach(&host, adr) == umemOK;
}

static bool sends_and_receives(void) {
  int ends[2];
  sockets(SOCK_SEQPACKET, ends);
  uintptr_t adr = 0;
  if (umem_send(ends[0], &nameless, there, 100) == umemOK) adr = umem_receive(ends[1], &host, NULL);
  if (adr) umem_detach(&host, adr);
  close_both(ends);
  return adr;
}

static struct {
  char const *name;
  bool (*run)(void);
} const works[] = {
    {"makes without a name", makes_without_a_name},
    {"makes a name", makes_a_name},
    {"opens a name", opens_a_name},
    {"fills an empty name", fills_an_empty_name},
    {"attaches a descriptor", attaches_a_descriptor},
    {"maps a descriptor", maps_a_descriptor},
    {"sends and receives", sends_and_receives},
};

/* ---- faults ---- */

static struct {
  Call call;
  int error;
  bool retried; /* as if nothing was */
} const faults[] = {
    {callMemory, EMFILE, false}, {callMemory, ENOMEM, false},  {callName, EMFILE, false},
    {callName, EACCES, false},   {callName, EINTR, true},      {callLength, EFBIG, false},
    {callLength, EINTR, true},   {callReserve, ENOSPC, false}, {callReserve, EINTR, true},
    {callMap, ENOMEM, false},    {callControl, EPERM, false},  {callStat, EIO, false},
    {callLock, ENOLCK, false},   {callLock, EINTR, true},      {callLock, EWOULDBLOCK, true},
    {callRandom, ENOSYS, false}, {callRandom, EINTR, true},    {callMode, EPERM, false},
    {callRead, EIO, false},      {callRead, EINTR, true},      {callWrite, ENOSPC, false},
    {callWrite, EINTR, true},    {callHeap, ENOMEM, false},    {callSend, EPIPE, false},
    {callSend, EINTR, true},     {callReceive, EIO, false},    {callReceive, EINTR, true},
};

/* A system call fails only if its failure is of consequence: others ask what would be good to
 * know. */
static void check(bool good, unsigned work, unsigned fault, unsigned long n) {
  if (faults[fault].retried && !good)
    fail_msg("%s: call %d, the %luth, is not made again: %s", works[work].name,
             (int)faults[fault].call, n, umem_thread_message());
  if (good) return;
  assert_true(umem_thread_status() == umemMemoryError || umem_thread_status() == umemIOError ||
              umem_thread_status() == umemNotSupportedError ||
              umem_thread_status() == umemValueError);
  assert_true(strlen(umem_thread_message()) > 10);
}

TEST_CASE(every_system_call_may_fail) {
  unsigned long failed = 0;
  umemHost_ctor(&host);
  assert_ok(umemShm_ctor(&served, own_name("served"), MiB));
  assert_ok(umemShm_ctor(&nameless, NULL, MiB));
  there = umem_alloc(&nameless, 100);
  for (unsigned work = 0; work < sizeof works / sizeof *works; work++) {
    assert_true(works[work].run());
    int before = open_descriptors(), mapped = mappings();
    for (unsigned fault = 0; fault < sizeof faults / sizeof *faults; fault++) {
      for (unsigned long n = 1;; n++) {
        armed = faults[fault].call;
        with = faults[fault].error;
        left = n;
        met = false;
        bool good = works[work].run();
        armed = call_count;
        if (met) check(good, work, fault, n);
        if (met && !good) failed++;
        FORGET(&host, &nameless);
        if (open_descriptors() != before)
          fail_msg("%s: call %d, the %luth, leaks a descriptor", works[work].name,
                   (int)faults[fault].call, n);
        if (mappings() != mapped)
          fail_msg("%s: call %d, the %luth, leaves a mapping", works[work].name,
                   (int)faults[fault].call, n);
        if (!met) break;
        assert_true(works[work].run());
      }
    }
  }
  print_message("%lu failures\n", failed);
  assert_true(failed > 40);
  DESTRUCT(&nameless, &served);
  umemShm_remove(own_name("served"));
  umem_dtor(&host);
}

/* It is reserved in pieces of 1 GiB, and nothing is left for a last one. */
TEST_CASE(a_segment_of_whole_gibibytes_is_made) {
  umemShmOptions options = {.size = sizeof options,
                            .blocks = 1,
                            .capacity = 2048 * MiB - umemSegment_data(1, umemSegmentUsual)};
  pretends = true;
  pretended = 0;
  umemStatusType status = umemShm_ctor_with(&shm, NULL, &options);
  pretends = false;
  if (status == umemMemoryError && !pretended) skip(); /* on this machine there is not so much */
  assert_ok(status);
  assert_true(pretended == 2048 * MiB);
  umem_dtor(&shm);
}
