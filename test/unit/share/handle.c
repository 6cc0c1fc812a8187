/* handle.c - handles: of whom they are, what they lead to, what is refused, and their way through
 * sockets. */
#include "shm_help.h"

#include "temporary.h"

/* Of each test. */
static umemHandle handle;

/* Descriptors that a new program would get. */
static int inherited_descriptors(void) {
  int count = 0;
  for (int fd = 0; fd < 256; fd++) count += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  return count;
}

static void send_raw(int socket, void const *bytes, size_t nbytes, int const *fds, size_t count) {
  union {
    struct cmsghdr aligned;
    char bytes[CMSG_SPACE(sizeof(int) * 250)];
  } control = {.bytes = {0}};
  struct iovec part = {(void *)(uintptr_t)bytes, nbytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_len = CMSG_LEN(sizeof(int) * count);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(rights), fds, sizeof(int) * count);
  }
  assert_int_equal(sendmsg(socket, &message, 0), nbytes);
}

static void open_all(void **state UNUSED) {
  umemHost_ctor(&host);
  open_small(&shm, MiB, 64);
}

static void close_all(void **state UNUSED) { DESTRUCT(&shm, &host); }

/* ---- in one process ---- */

TEST_CASE(the_sharer_gets_the_original_address) {
  uintptr_t adr = umem_alloc(&shm, 1000);
  assert_ok(umem_share(&shm, adr + 100, 800, &handle));
  assert_int_equal(handle.kind, umemHandleUnnamed);
  assert_int_equal(handle.length, 800);
  assert_true(umem_attach(&handle, &shm) == adr + 100);
  assert_ok(umem_detach(&shm, adr + 100));
  assert_true(umem_attach(&handle, &host) == adr + 100);
  assert_true(umem_attach(&handle, &host) == adr + 100); /* counted */
  umem_dtor(&shm);
  memset((void *)(adr + 100), 3, 800); /* the attachments hold the mapping */
  assert_ok(umem_detach(&host, adr + 100));
  assert_int_equal(*(char *)(adr + 899), 3);
  assert_ok(umem_detach(&host, adr + 100));
  expect_status(&host, umem_detach(&host, adr + 100), umemValueError, "nothing is attached at");
  assert_true(umem_attach(&handle, &host) == 0); /* gone, and nobody has sent it */
  expect_failure(&host, umemValueError, "it needs its descriptor");
  open_small(&shm, MiB, 64);
}

TEST_CASE(stacks_share_what_is_below) {
  void *stack = umem_open("stats+pool+shm:?size=4M");
  assert_non_null(stack);
  uintptr_t adr = umem_calloc(stack, 1, 100);
  assert_ok(umem_share(stack, adr, 100, &handle));
  assert_true(umem_attach(&handle, stack) == adr);
  assert_true(umem_attach(&handle, &host) == adr);
  assert_ok(umem_detach(&host, adr));
  umem_free(stack, adr);
  umem_close(stack);
  void *plain = umem_open("stats+host:");
  adr = umem_alloc(plain, 8);
  assert_int_equal(umem_share(plain, adr, 8, &handle), umemNotSupportedError);
  expect_failure(NULL, umemNotSupportedError, "the memory of a Host cannot be shared");
  assert_int_equal(handle.version, 0);
  umem_free(plain, adr);
  umem_close(plain);
}

TEST_CASE(bad_questions_are_refused) {
  umemFile file;
  uintptr_t adr = umem_alloc(&shm, 10);
  assert_int_equal(umem_share(&shm, 0, 10, &handle), umemValueError);
  assert_int_equal(umem_share(&shm, adr, 0, &handle), umemValueError);
  assert_int_equal(umem_share(&shm, adr, SIZE_MAX, &handle), umemValueError);
  assert_int_equal(umem_share(&shm, adr, 10, NULL), umemValueError);
  assert_int_equal(umem_share(&shm, adr - 4096, 10, &handle), umemIndexError);
  expect_failure(&shm, umemIndexError, "are not in the shared memory");
  assert_int_equal(umem_share(&shm, adr, 2 * MiB, &handle), umemIndexError);
  assert_ok(umem_share(&shm, adr, 10, &handle));
  expect_no_block(&host, umem_attach(NULL, &host), umemValueError, "it is NULL");
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  assert_true(umem_attach(&handle, &file) == UINTPTR_MAX);
  expect_failure(&file, umemTypeError, "the bytes of the handle are not in this File");
  void *nodes = umem_open("host:?policy=first-touch");
  if (nodes) { /* has blocks of its own alone */
    assert_true(umem_attach(&handle, nodes) == 0);
    expect_failure(nodes, umemTypeError, "attach them to a Host without options");
    umem_close(nodes);
  }
  umem_thread_clear();
  assert_int_equal(umem_share(&file, 0, 1, &handle), umemIndexError);
  umem_dtor(&file);
  umem_clear_status(&shm);
  umem_free(&shm, adr);
}

/* Every byte of a handle is changed: it is refused, or leads to bytes of this segment. */
TEST_CASE(changed_handles_are_refused) {
  umemHandle good, bad;
  uintptr_t adr = umem_alloc(&shm, 1000);
  assert_ok(umem_share(&shm, adr, 1000, &good));
  for (unsigned i = 0; i < 20 * sizeof good; i++) {
    bad = good;
    ((unsigned char *)&bad)[i % sizeof good] ^= (unsigned char)(1 + below(255));
    uintptr_t found = umem_attach_with(&bad, i % 3 ? -1 : dup(umemShm_descriptor(&shm)), &host);
    if (found) {
      volatile char last = *(char *)(found + (uintptr_t)bad.length - 1);
      (void)last;
      assert_ok(umem_detach(&host, found));
    } else {
      assert_true(umem_thread_status() != umemOK);
    }
    umem_thread_clear();
  }
  umem_clear_status(&host);
  umem_free(&shm, adr);
}

/* ---- other processes ---- */

/* Runs in a child, which has nothing but the socket: it writes 7 where there was 5. */
static int receive_and_answer(int socket, bool twice) {
  umemHost own;
  umemHost_ctor(&own);
  unsigned char *bytes = (unsigned char *)umem_receive(socket, &own, &handle);
  if (!bytes) return 1;
  for (size_t i = 0; i < handle.length; i++)
    if (bytes[i] != 5) return 2;
  if (twice && umem_attach(&handle, &own) != (uintptr_t)bytes) return 3;
  memset(bytes, 7, handle.length);
  if (twice && umem_detach(&own, (uintptr_t)bytes) != umemOK) return 4;
  if (bytes[0] != 7) return 5;
  if (umem_detach(&own, (uintptr_t)bytes) != umemOK) return 6;
  if (umem_detach(&own, (uintptr_t)bytes) != umemValueError) return 7;
  return 0;
}

/* Through a new program, whose memory has nothing of this one. */
static void pass_to_a_child(void *ctx, uintptr_t adr, size_t nbytes, int kind, bool twice) {
  int ends[2];
  sockets(kind, ends);
  int before = open_descriptors();
  pid_t child = fork();
  if (!child) {
    char number[16];
    snprintf(number, sizeof number, "%d", ends[1]);
    fcntl(ends[1], F_SETFD, 0);
    execl("/proc/self/exe", "unit_handle", number, twice ? "twice" : "once", (char *)NULL);
    _exit(9);
  }
  assert_ok(umem_send(ends[0], ctx, adr, nbytes));
  assert_int_equal(child_wait(child), 0);
  assert_int_equal(open_descriptors(), before);
  close_both(ends);
}

TEST_CASE(another_program_attaches_the_same_bytes) {
  umemShm named;
  int const kinds[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
  for (unsigned i = 0; i < 3; i++) {
    unsigned char *bytes = (unsigned char *)umem_alloc(&shm, 5000);
    memset(bytes, 5, 5000);
    pass_to_a_child(&shm, (uintptr_t)bytes + 1, 4998, kinds[i], true);
    assert_true(bytes[0] == 5 && bytes[1] == 7 && bytes[4998] == 7 && bytes[4999] == 5);
    umem_free(&shm, (uintptr_t)bytes);
  }
  assert_ok(umemShm_ctor(&named, own_name("pass"), MiB));
  unsigned char *bytes = (unsigned char *)umem_alloc(&named, 300);
  memset(bytes, 5, 300);
  pass_to_a_child(&named, (uintptr_t)bytes, 300, SOCK_STREAM, true);
  assert_int_equal(bytes[299], 7);
  umem_dtor(&named);
  umemShm_remove(own_name("pass"));
}

TEST_CASE(files_pass_too) {
  umemFile file;
  unsigned char got[100];
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  uintptr_t adr = umem_alloc(&file, 5000);
  umem_set(&file, adr, 5, 5000);
  pass_to_a_child(&file, adr + 4000, 100, SOCK_STREAM, false);
  umem_copy_to(&file, adr + 4000, &host, (uintptr_t)got, 100);
  assert_true(got[0] == 7 && got[99] == 7);
  assert_ok(umem_share(&file, adr + 8, 16, &handle));
  assert_true(umem_attach(&handle, &file) == adr + 8);
  assert_ok(umem_detach(&file, adr + 8));
  int fd;
  assert_ok(umem_share_with(&file, adr + 8, 16, &handle, &fd));
  uintptr_t one = umem_attach_with(&handle, dup(fd), &host);
  uintptr_t other = umem_attach_with(&handle, dup(fd), &host);
  assert_true(one && one == other);
  assert_true(umem_attach(&handle, &host) == 0); /* it needs the descriptor each time */
  expect_failure(&host, umemValueError, "it needs its descriptor");
  assert_ok(umem_detach(&host, one));
  assert_ok(umem_detach(&host, one));
  umem_dtor(&file);
  CONTEXT(umemMMap, mmapped, NULL, "w+");
  unsigned char *bytes = (unsigned char *)umem_alloc(&mmapped, 5000);
  memset(bytes, 5, 5000);
  pass_to_a_child(&mmapped, (uintptr_t)bytes + 10, 100, SOCK_STREAM, false);
  assert_true(bytes[9] == 5 && bytes[10] == 7 && bytes[109] == 7 && bytes[110] == 5);
  assert_ok(umem_share(&mmapped, (uintptr_t)bytes + 10, 100, &handle));
  assert_true(umem_attach(&handle, &mmapped) == (uintptr_t)bytes + 10);
}

/* As in a program that has closed its standard input. */
TEST_CASE(a_descriptor_may_have_number_0) {
  CONTEXT(umemShm, nameless, NULL, 1 << 20);
  CONTEXT(umemFile, file, NULL, "w+");
  umemVirtual *const owners[] = {&nameless.super, &file.super};
  SCOPED(close_fd) int const input = dup(0);
  for (int i = 0; i < 2; i++) {
    int fd;
    uintptr_t adr = umem_alloc(owners[i], 100);
    umem_set(owners[i], adr, 5, 100);
    assert_ok(umem_share_with(owners[i], adr, 100, &handle, &fd));
    assert_int_equal(dup2(fd, 0), 0);
    uintptr_t there = umem_attach_with(&handle, 0, &host);
    assert_true(there && *(char *)there == 5);
    assert_ok(umem_detach(&host, there));
    dup2(fd, 0);
    handle.size = 0;
    assert_true(umem_attach_with(&handle, 0, &host) == 0); /* it is closed after a failure, too */
    assert_int_equal(fcntl(0, F_GETFD), -1);
    expect_failure(&host, umemValueError, "");
  }
  if (input >= 0) assert_int_equal(dup2(input, 0), 0);
}

TEST_CASE(read_only_files_stay_so) {
  SCOPED(unlink_path) char path[256];
  int fd = temporary_file(path, sizeof path), own;
  assert_int_equal(write(fd, "0123456789", 10), 10);
  close(fd);
  CONTEXT(umemFile, file, path, "r");
  assert_ok(umem_share_with(&file, 2, 4, &handle, &own));
  assert_int_equal(handle.flags, UMEM_HANDLE_READ_ONLY);
  char *bytes = (char *)umem_attach_with(&handle, dup(own), &host);
  assert_memory_equal(bytes, "2345", 4);
  assert_ok(umem_detach(&host, (uintptr_t)bytes));
  handle.flags = 0; /* a lie: the descriptor cannot write */
  assert_true(umem_attach_with(&handle, dup(own), &host) == 0);
  expect_failure(&host, umemIOError, "its descriptor is not open for that");
  handle.flags = UMEM_HANDLE_READ_ONLY;
  handle.size = handle.length = 4000;
  handle.offset = 0;
  assert_true(umem_attach_with(&handle, dup(own), &host) == 0);
  expect_failure(&host, umemIOError, "its file is shorter now");
  umem_dtor(&file);
  assert_ok(umemFile_ctor(&file, path, "w"));
  umem_alloc(&file, 10);
  assert_int_equal(umem_share(&file, 0, 4, &handle), umemNotSupportedError);
  expect_failure(&file, umemNotSupportedError, "is open for writing only");
}

/* What is mapped read-only already is mapped again for who may write. */
TEST_CASE(a_writable_handle_finds_no_read_only_mapping) {
  umemFile files[2];
  SCOPED(unlink_path) char path[256];
  int fd = temporary_file(path, sizeof path);
  assert_int_equal(write(fd, "0123456789", 10), 10);
  close(fd);
  char *bytes[2];
  for (int i = 0; i < 2; i++) {
    int own;
    assert_ok(umemFile_ctor(&files[i], path, i ? "r+" : "r"));
    assert_ok(umem_share_with(&files[i], 2, 4, &handle, &own));
    assert_int_equal(handle.flags, i ? 0 : UMEM_HANDLE_READ_ONLY);
    bytes[i] = (char *)umem_attach_with(&handle, own, &host);
    assert_non_null(bytes[i]);
  }
  assert_true(bytes[0] != bytes[1]);
  bytes[1][0] = 'x';
  assert_memory_equal(bytes[0], "x345", 4);
  for (int i = 0; i < 2; i++) {
    assert_ok(umem_detach(&host, (uintptr_t)bytes[i]));
    umem_dtor(&files[i]);
  }
}

/* ---- sockets ---- */

static void refuse(int socket, umemStatusType type, char const *words) {
  umemHandle refused;
  expect_no_block(&host, umem_receive(socket, &host, &refused), type, words);
  assert_int_equal(refused.version, 0);
}

TEST_CASE(no_descriptor_leaks) {
  int ends[2], fd, many[250]; /* Linux sends at most 253 at a time */
  uintptr_t adr = umem_alloc(&shm, 10);
  assert_ok(umem_share_with(&shm, adr, 10, &handle, &fd));
  sockets(SOCK_SEQPACKET, ends);
  for (unsigned i = 0; i < 250; i++) many[i] = fd;
  int before = open_descriptors();
  send_raw(ends[0], &handle, sizeof handle, NULL, 0);
  refuse(ends[1], umemIOError, "0 descriptors came with it, and it needs 1");
  send_raw(ends[0], &handle, sizeof handle, many, 3);
  refuse(ends[1], umemIOError, "3 descriptors came with it, and it needs 1");
  send_raw(ends[0], &handle, sizeof handle, many, 250); /* the kernel cuts them: MSG_CTRUNC */
  refuse(ends[1], umemIOError, "or more, and it needs 1");
  send_raw(ends[0], &handle, 100, many, 1); /* too little, and then nothing */
  shutdown(ends[0], SHUT_WR);
  refuse(ends[1], umemIOError, "the other side has closed the socket");
  assert_int_equal(open_descriptors(), before);
  close_both(ends);

  sockets(SOCK_STREAM, ends);
  before = open_descriptors();
  send_raw(ends[0], &handle, 10, many, 1); /* in two parts, each with a descriptor */
  send_raw(ends[0], (char *)&handle + 10, sizeof handle - 10, many, 2);
  refuse(ends[1], umemIOError, "3 descriptors");
  umemHandle junk;
  memset(&junk, 0xff, sizeof junk);
  send_raw(ends[0], &junk, sizeof junk, NULL, 0);
  refuse(ends[1], umemValueError, "its version is not that of this umem");
  send_raw(ends[0], &handle, sizeof handle, many, 1);
  assert_true(umem_receive(ends[1], &host, NULL) == adr);
  assert_ok(umem_detach(&host, adr));
  assert_int_equal(open_descriptors(), before);
  close(ends[1]);
  assert_int_equal(umem_send(ends[0], &shm, adr, 10), umemIOError); /* and no SIGPIPE */
  expect_failure(&shm, umemIOError, "cannot send the handle: Broken pipe");
  close(ends[0]);
  assert_int_equal(umem_send(-1, &shm, adr, 10), umemIOError);
  refuse(-1, umemIOError, "Bad file descriptor");
  umem_clear_status(&shm);
  umem_free(&shm, adr);
}

TEST_CASE(a_new_program_gets_nothing_of_it) {
  int ends[2];
  umemShm other;
  sockets(SOCK_STREAM, ends);
  open_small(&other, MiB, 4);
  umem_send(ends[0], &other, umem_alloc(&other, 10), 10);
  umem_dtor(&other);
  int before = inherited_descriptors(), open = open_descriptors();
  uintptr_t adr = umem_receive(ends[1], &host, &handle);
  assert_true(adr != 0 && handle.length == 10);
  assert_int_equal(open_descriptors(), open + 1);
  assert_int_equal(inherited_descriptors(), before);
  assert_ok(umem_detach(&host, adr));
  assert_int_equal(open_descriptors(), open);
  close_both(ends);
}

/* Memory that its owner could cut is refused: an access would end this process. */
TEST_CASE(memory_that_can_be_cut_is_refused) {
  struct stat st;
  uintptr_t adr = umem_alloc(&shm, 10);
  assert_ok(umem_share(&shm, adr, 10, &handle));
  SCOPED(close_fd) int fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_int_equal(fchmod(fd, 0600), 0);
  assert_int_equal(ftruncate(fd, (off_t)handle.size), 0);
  char page[4096];
  assert_int_equal(pread(umemShm_descriptor(&shm), page, sizeof page, 0), sizeof page);
  assert_int_equal(pwrite(fd, page, sizeof page, 0), sizeof page);
  assert_int_equal(fstat(fd, &st), 0);
  handle.identity[0] = st.st_dev;
  handle.identity[1] = st.st_ino;
  assert_true(umem_attach_with(&handle, dup(fd), &host) == 0);
  expect_failure(&host, umemIOError, "the size of its memory is not sealed");
  assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  uintptr_t attached = umem_attach_with(&handle, dup(fd), &host);
  assert_true(attached != 0);
  assert_ok(umem_detach(&host, attached));
  handle.identity[2]++;
  assert_true(umem_attach_with(&handle, dup(fd), &host) == 0);
  expect_failure(&host, umemIOError, "another segment has its name");
  handle.identity[2]--;
  handle.identity[1]++;
  assert_true(umem_attach_with(&handle, dup(fd), &host) == 0);
  expect_failure(&host, umemIOError, "something else is in its place");
  umem_free(&shm, adr);
}

TEST_CASE(a_name_that_was_taken_again_is_another_segment) {
  umemShm named;
  char const *name = own_name("again");
  assert_ok(umemShm_ctor(&named, name, MiB));
  assert_ok(umem_share(&named, umem_alloc(&named, 10), 10, &handle));
  assert_int_equal(handle.kind, umemHandleNamed);
  umemShm unknown; /* of a descriptor: it cannot tell others the name */
  umemHandle none;
  assert_ok(umemShm_adopt(&unknown, dup(umemShm_descriptor(&named))));
  assert_int_equal(umem_share(&unknown, umem_alloc(&unknown, 1), 1, &none), umemNotSupportedError);
  expect_failure(&unknown, umemNotSupportedError, "a name that the context does not know");
  DESTRUCT(&unknown, &named);
  uintptr_t adr = umem_attach(&handle, &host);
  assert_true(adr != 0);
  assert_ok(umem_detach(&host, adr));
  assert_ok(umemShm_remove(name));
  expect_no_block(&host, umem_attach(&handle, &host), umemIOError, "No such file or directory");
  assert_ok(umemShm_ctor(&named, name, MiB));
  expect_no_block(&host, umem_attach(&handle, &host), umemIOError, "it is not there any more");
  umem_dtor(&named);
  umemShm_remove(name);
}

int main(int count, char **words) {
  if (count == 3) return receive_and_answer(atoi(words[1]), !strcmp(words[2], "twice"));
  return run_cases(open_all, close_all);
}
