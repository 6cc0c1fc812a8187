/* shm_trust.c - whose shared memory a process opens, attaches, receives and shares. Other users are
 * children with another number; only root can make them. */
#include "shm_help.h"

#include <grp.h>
#include <sys/file.h>
#include <sys/sendfile.h>

#include "share/segment.h"

enum { stranger = 12345, friend = 12346, company = 23456 /* a group of both */ };

static char name[64];

/* In a child: becomes another user. Tests that need one are skipped where the program is not
 * root's. */
static void become(uid_t user, gid_t group) {
  if (setgroups(1, &group) != 0 || setgid(group) != 0 || setuid(user) != 0)
    _exit(child_not_permitted);
  umask(0);
}

static void make_name(void **state UNUSED) {
  snprintf(name, sizeof name, "umem-test-%ld-trust", (long)getpid());
  shm_unlink(name);
}

/* Makes a segment in a child that is another user. */
static uint32_t permissions;
static gid_t group_of_stranger;

static void make_as_stranger(void) {
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  become(stranger, group_of_stranger);
  options.capacity = MiB;
  options.how = umemShmCreate;
  options.permissions = permissions;
  EXPECT(umemShm_ctor_with(&shm, name, &options) == umemOK);
  EXPECT(umem_alloc(&shm, 100));
}

static bool let_a_stranger_make(uint32_t mode, gid_t group) {
  permissions = mode;
  group_of_stranger = group;
  return in_child(make_as_stranger);
}

static umemStatusType open_trusting(umemTrust trust, umemShmHow how) {
  umemShm own;
  umemShmOptions options = {.size = sizeof options, .capacity = MiB, .how = how, .trust = trust};
  umemStatusType status = umemShm_ctor_with(&own, name, &options);
  if (status == umemOK) umem_dtor(&own);
  return status;
}

/* ---- names ---- */

TEST_CASE(a_name_of_another_user_is_refused) {
  make_name(state);
  uint32_t const modes[] = {0600, 0660, 0666, 0644};
  for (unsigned i = 0; i < 4; i++) {
    if (!let_a_stranger_make(modes[i], stranger)) skip();
    for (unsigned how = 0; how < 3; how += 2) {
      for (umemTrust trust = umemTrustDefault; trust <= umemTrustUser; trust++) {
        assert_int_equal(open_trusting(trust, (umemShmHow)how), umemIOError);
        expect_failure(NULL, umemIOError, "it belongs to another user (option trust)");
      }
      assert_int_equal(open_trusting(umemTrustGroup, (umemShmHow)how), umemIOError);
      expect_failure(NULL, umemIOError, "a user who is not in a group of this one");
      assert_ok(open_trusting(umemTrustAll, (umemShmHow)how));
    }
    char text[128];
    snprintf(text, sizeof text, "shm:%s?size=1M", name);
    assert_null(umem_open(text));
    expect_failure(NULL, umemIOError, "another user");
    snprintf(text, sizeof text, "shm:%s?size=1M&trust=all", name);
    void *ctx = umem_open(text);
    assert_non_null(ctx);
    umem_close(ctx);
    snprintf(text, sizeof text, "shm:%s?size=1M&access=all",
             name); /* all may write it: that is trust */
    ctx = umem_open(text);
    assert_non_null(ctx);
    umem_close(ctx);
    umemShm_remove(name);
  }
}

static void open_as_friend(void) {
  become(friend, company);
  EXPECT(open_trusting(umemTrustUser, umemShmOpen) == umemIOError);
  umem_thread_clear();
  EXPECT(open_trusting(umemTrustGroup, umemShmOpen) == (permissions & 2 ? umemIOError : umemOK));
}

/* The kernel sorts the groups: company is the last one. */
static void open_as_member_of_many_groups(void) {
  enum { many = 100 };
  gid_t groups[many];
  for (int i = 0; i < many; i++) groups[i] = (gid_t)(company - many + 1 + i);
  if (setgroups(many, groups) != 0 || setgid(friend) != 0 || setuid(friend) != 0)
    _exit(child_not_permitted);
  EXPECT(open_trusting(umemTrustGroup, umemShmOpen) == umemOK);
}

TEST_CASE(a_group_can_be_trusted) {
  make_name(state);
  if (!let_a_stranger_make(0660, company) || !in_child(open_as_friend)) skip();
  assert_true(in_child(open_as_member_of_many_groups));
  umemShm_remove(name);
  assert_true(let_a_stranger_make(0662, company) && in_child(open_as_friend));
  umemShm_remove(name);
}

/* What others may write is not the user's own any more, whoever has made it. */
TEST_CASE(an_own_name_that_others_may_write_is_refused) {
  make_name(state);
  static struct {
    mode_t mode;
    bool user, group;
  } const cases[] = {{0600, true, true},   {0644, true, true},   {0640, true, true},
                     {0620, false, true},  {0660, false, true},  {0602, false, false},
                     {0666, false, false}, {0622, false, false}, {0655, true, true}};
  assert_ok(umemShm_ctor(&shm, name, MiB));
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(fchmod(umemShm_descriptor(&shm), cases[i].mode), 0);
    assert_int_equal(open_trusting(umemTrustDefault, umemShmOpen) == umemOK, cases[i].user);
    assert_int_equal(open_trusting(umemTrustGroup, umemShmOpen) == umemOK, cases[i].group);
    assert_ok(open_trusting(umemTrustAll, umemShmOpen));
    umem_thread_clear();
    umemShm other;
    umemStatusType status = umemShm_adopt(&other, dup(umemShm_descriptor(&shm)));
    assert_int_equal(status == umemOK, cases[i].user);
    if (status == umemOK) umem_dtor(&other);
    umem_thread_clear();
  }
  umem_dtor(&shm);
  umemShm_remove(name);
}

TEST_CASE(a_second_name_of_a_file_is_refused) {
  make_name(state);
  char second[600];
  assert_ok(umemShm_ctor(&shm, name, MiB));
  snprintf(second, sizeof second, "%s-2", path_of(name));
  assert_int_equal(link(path_of(name), second), 0);
  assert_int_equal(open_trusting(umemTrustUser, umemShmOpen), umemIOError);
  expect_failure(NULL, umemIOError, "it has a second name");
  assert_ok(open_trusting(umemTrustAll, umemShmOpen));
  assert_int_equal(unlink(second), 0);
  assert_int_equal(symlink(path_of(name), second), 0);
  snprintf(second, sizeof second, "%s-2", name);
  umemShm other;
  assert_int_equal(umemShm_ctor(&other, second, 0), umemIOError); /* and links are not followed */
  umem_thread_clear();
  umemShm_remove(second);
  umem_dtor(&shm);
  umemShm_remove(name);
}

/* An empty file, one that was begun, one whose lock somebody holds: no segment is made of it, and
 * no call waits. */
static char what_is_there;

static void leave_something(void) {
  become(stranger, stranger);
  int fd = open(path_of(name), O_CREAT | O_EXCL | O_RDWR, 0666);
  EXPECT(fd >= 0);
  umemShmHeader header = {.ready = 0};
  memcpy(header.magic, umemSegment_magic, sizeof header.magic);
  if (what_is_there == 'b') EXPECT(pwrite(fd, &header, sizeof header, 0) == sizeof header);
  if (what_is_there == 'o') EXPECT(pwrite(fd, "other", 5, 9000) == 5);
}

TEST_CASE(what_another_user_has_left_becomes_no_segment) {
  make_name(state);
  for (char const *what = "ebo"; *what; what++) {
    what_is_there = *what;
    if (!in_child(leave_something)) skip();
    struct stat before, after;
    assert_int_equal(stat(path_of(name), &before), 0);
    int fd = open(path_of(name), O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(open_trusting(umemTrustDefault, umemShmOpenOrCreate), umemIOError);
    expect_failure(NULL, umemIOError, "it belongs to another user");
    close(fd);
    expect_status(NULL, open_trusting(umemTrustAll, umemShmOpenOrCreate), umemIOError,
                  *what == 'o' ? "it is no segment" : "another user has made this name");
    assert_int_equal(stat(path_of(name), &after), 0);
    assert_true(before.st_size == after.st_size && before.st_mode == after.st_mode &&
                before.st_uid == after.st_uid);
    umemShm_remove(name);
  }
}

/* ---- descriptors and handles ---- */

static int ends[2];

static void send_as_stranger(void) {
  become(stranger, stranger);
  EXPECT(umemShm_ctor(&shm, permissions ? name : NULL, MiB) == umemOK);
  uintptr_t adr = umem_alloc(&shm, 100);
  memset((void *)adr, 5, 100);
  for (int i = 0; i < 3; i++) EXPECT(umem_send(ends[0], &shm, adr, 100) == umemOK);
}

TEST_CASE(what_another_user_sends_is_refused) {
  make_name(state);
  umemHost_ctor(&host);
  for (permissions = 0; permissions < 2; permissions++) {
    sockets(SOCK_SEQPACKET, ends);
    if (!in_child(send_as_stranger)) skip();
    assert_true(umem_receive(ends[1], &host, NULL) == 0);
    expect_failure(&host, umemIOError, "it belongs to another user (option trust)");
    assert_true(umem_receive_trusting(ends[1], &host, NULL, (umemTrust)4) == 0);
    expect_failure(&host, umemValueError, "the trust has no meaning");
    umemHandle handle;
    char *bytes = (char *)umem_receive_trusting(ends[1], &host, &handle, umemTrustAll);
    assert_true(bytes && bytes[0] == 5 && bytes[99] == 5);
    assert_ok(umem_detach(&host, (uintptr_t)bytes));
    close_both(ends);
    if (!permissions) continue;
    expect_no_block(&host, umem_attach(&handle, &host), umemIOError, "it belongs to another user");
    umemShm_remove(name);
  }
  umem_dtor(&host);
}

TEST_CASE(a_descriptor_of_another_user_needs_trust) {
  make_name(state);
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  if (!let_a_stranger_make(0600, stranger)) skip();
  assert_int_equal(umemShm_adopt(&shm, open(path_of(name), O_RDWR)), umemIOError);
  expect_failure(NULL, umemIOError, "it belongs to another user");
  options.trust = umemTrustAll;
  assert_ok(umemShm_adopt_with(&shm, open(path_of(name), O_RDWR), &options));
  umem_dtor(&shm);
  options.trust = (umemTrust)4;
  int fd = open(path_of(name), O_RDWR);
  assert_int_equal(umemShm_adopt_with(&shm, fd, &options), umemValueError);
  assert_int_equal(fcntl(fd, F_GETFD), -1); /* taken over */
  umem_thread_clear();
  umemShm_remove(name);
}

/* Before it is mapped, so that the message says what is wrong with it. */
TEST_CASE(a_descriptor_that_cannot_write_and_read_is_refused) {
  umemShm other;
  int const modes[] = {O_RDONLY, O_WRONLY, O_PATH};
  assert_ok(umemShm_ctor(&shm, NULL, MiB));
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", umemShm_descriptor(&shm));
  for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
    int fd = open(path, modes[i]);
    assert_true(fd >= 0);
    assert_int_equal(umemShm_adopt(&other, fd), umemIOError);
    expect_failure(NULL, umemIOError, "no file that is open for reading and writing");
    assert_int_equal(fcntl(fd, F_GETFD), -1);
  }
  umem_dtor(&shm);
}

/* A receiver would refuse it, because its owner could cut it off while others read. */
TEST_CASE(adopted_memory_whose_size_is_not_sealed_is_not_shared) {
  make_name(state);
  umemShm named, ctx;
  SCOPED(close_fd) int fd = memfd_create("umem-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_ok(umemShm_ctor(&named, name, MiB));
  struct stat st;
  off_t from = 0;
  assert_int_equal(fchmod(fd, 0600), 0);
  assert_int_equal(fstat(umemShm_descriptor(&named), &st), 0);
  ssize_t sent = sendfile(fd, umemShm_descriptor(&named), &from, (size_t)st.st_size);
  assert_int_equal(sent, st.st_size);
  assert_ok(umemShm_adopt(&ctx, dup(fd)));
  uintptr_t adr = umem_alloc(&ctx, 100);
  umemHandle handle;
  assert_int_equal(umem_share(&ctx, adr, 100, &handle), umemNotSupportedError);
  expect_failure(&ctx, umemNotSupportedError, "it was made of a descriptor");
  assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  assert_ok(umem_share(&ctx, adr, 100, &handle));
  umem_dtor(&ctx);
  assert_ok(umemShm_adopt(&ctx, dup(umemShm_descriptor(&named))));
  adr = umem_alloc(&ctx, 100); /* a descriptor of a named segment shows no name */
  assert_int_equal(umem_share(&ctx, adr, 100, &handle), umemNotSupportedError);
  expect_failure(&ctx, umemNotSupportedError, "it was made of a descriptor");
  DESTRUCT(&ctx, &named);
  umemShm_remove(name);
}

/* A program that was compiled before the option existed. */
TEST_CASE(older_options_trust_the_user) {
  make_name(state);
  umemShmOptions options = {.size = offsetof(umemShmOptions, trust)};
  options.trust = umemTrustAll; /* is not looked at */
  if (!let_a_stranger_make(0666, stranger)) skip();
  assert_int_equal(umemShm_ctor_with(&shm, name, &options), umemIOError);
  expect_failure(NULL, umemIOError, "it belongs to another user");
  umemShm_remove(name);
}
