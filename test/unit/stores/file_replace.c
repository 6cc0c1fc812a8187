/* file_replace.c - files that take the name of another one: umemFile_replace and umemFile_commit,
 * where the file system has nameless files and where it has none. What names, links and permissions
 * mean is tested with save_npy (test/cxx/npy_save.cpp), that nothing comes in between with
 * npy_kill.cpp. */
#include "file_help.h"

#include <grp.h>
#include <sys/file.h>

#include "unit/nameless.h"

/* ---- file systems that lack something ---- */

static bool lacks_proc;

/* Of each test. */
static umemFile file;

WRAPPED(int, access, (char const *name, int how)) {
  if (!lacks_proc || strncmp(name, "/proc/", 6)) return __real_access(name, how);
  errno = ENOENT;
  return -1;
}

static int fsyncs;
WRAPPED(int, fsync, (int fd)) {
  fsyncs++;
  return __real_fsync(fd);
}

/* ---- looking ---- */

/* The file at path is this text; NULL: there is none. */
static void expect_text(char const *text) {
  char found[64] = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_int_equal(fd >= 0, text != NULL);
  if (fd < 0 || !text) return;
  ssize_t length = read(fd, found, sizeof found - 1);
  close(fd);
  assert_int_equal(length, strlen(text));
  assert_string_equal(found, text);
}

static void write_text(char const *text) {
  SCOPED(close_fd) int fd = open_path(O_WRONLY | O_CREAT | O_TRUNC);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* ---- replacing ---- */

static void begin_with(umemFile *ctx, char const *text) {
  if (umemFile_replace(ctx, path) != umemOK) fail_msg("%s", umem_thread_message());
  uintptr_t adr = umem_alloc(ctx, strlen(text));
  assert_int_equal(adr, 0);
  assert_ok(umem_copy_from(ctx, adr, &host, (uintptr_t)text, strlen(text)));
}

static void begin(char const *text) { begin_with(&file, text); }

TEST(a_commit_gives_the_name) {
  for (int exists = 0; exists < 2; exists++) {
    if (exists) write_text("older");
    begin("new");
    expect_text(exists ? "older" : NULL);
    assert_ok(umem_flush(&file));
    expect_text(exists ? "older" : NULL);
    assert_ok(umemFile_commit(&file));
    expect_text("new");
    assert_int_equal(count_entries(folder, ""), 1);
    umem_dtor(&file);
    expect_text("new");
    unlink(path);
  }
}

TEST(without_a_commit_nothing_happens) {
  begin("new");
  umem_dtor(&file);
  assert_int_equal(count_entries(folder, ""), 0);
  write_text("older");
  begin("new");
  DESTRUCT(&file, &file);
  expect_text("older");
  assert_int_equal(count_entries(folder, ""), 1);
}

TEST(the_context_goes_on_after_a_commit) {
  umemFile second;
  begin("new");
  umemInfo info = info_of(&file);
  assert_string_equal(info.name, path);
  assert_ok(umemFile_commit(&file));
  assert_ok(umem_copy_from(&file, 0, &host, (uintptr_t) "old", 3));
  uintptr_t more = umem_alloc(&file, 3);
  assert_int_equal(more, 16);
  assert_ok(umem_set(&file, more, 'x', 3));
  expect_status(&second, umemFile_ctor(&second, path, "r+"), umemIOError, "has another writer");
  umem_dtor(&second);
  expect_status(&file, umemFile_commit(&file), umemValueError, "has been replaced already");
  umem_dtor(&file);
  umem_thread_clear();
  assert_int_equal(count_entries(folder, ""), 1);
}

/* ---- before the commit ---- */

static mode_t mode_of(char const *name) {
  struct stat about;
  assert_int_equal(stat(name, &about), 0);
  return about.st_mode & 07777;
}

TEST(only_the_owner_opens_it_before_the_commit) {
  char draft[4096];
  mode_t const before = umask(022);
  for (int exists = 0; exists < 2; exists++) {
    if (exists) write_text("older");
    if (exists) assert_int_equal(chmod(path, 04766), 0);
    begin("new");
    assert_ok(umemFile_draft(&file, draft, sizeof draft));
    assert_int_equal(mode_of(draft), 0600);
    assert_ok(umemFile_commit(&file));
    assert_int_equal(mode_of(path), exists ? 0766 : 0644);
    umem_dtor(&file);
    unlink(path);
  }
  umask(before);
}

enum { stranger = 4711 };

static void replace_as_stranger(void *unused UNUSED) {
  EXPECT(!setgroups(0, NULL) && !setresgid(stranger, stranger, stranger) &&
         !setresuid(stranger, stranger, stranger));
  EXPECT(!umemFile_replace(&file, path) && !umemFile_commit(&file));
}

/* The owner of the file may not be kept, nor its group. Returns the mode of the file that replaces
 * one of this mode. */
static mode_t mode_by_a_stranger(mode_t mode, gid_t group) {
  write_text("older");
  assert_int_equal(chown(path, 0, group), 0);
  assert_int_equal(chmod(path, mode), 0);
  assert_int_equal(chmod(folder, 0777), 0);
  assert_true(child_run(replace_as_stranger, NULL));
  mode_t const now = mode_of(path);
  unlink(path);
  assert_int_equal(chmod(folder, 0700), 0);
  return now;
}

/* What the group of the old file could do, another group gets only where everybody could. */
TEST(another_group_gets_no_more_than_everybody) {
  if (geteuid() != 0) skip();
  assert_int_equal(mode_by_a_stranger(0662, 0), 0622);
  assert_int_equal(mode_by_a_stranger(0676, 0), 0666);
  assert_int_equal(mode_by_a_stranger(0662, 4711), 0662);
}

/* ---- a name for other processes ---- */

/* What other processes write by that name is in the file; they may lock it. */
TEST(a_draft_is_written_by_others) {
  char draft[4096], again[4096];
  begin("...");
  assert_ok(umemFile_draft(&file, draft, sizeof draft));
  assert_ok(umemFile_draft(&file, again, sizeof again));
  assert_string_equal(draft, again);
  assert_non_null(strstr(draft, "/.umem-"));
  assert_int_equal(count_entries(folder, ""), 1);
  int fd = open(draft, O_WRONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
  assert_int_equal(pwrite(fd, "new", 3, 0), 3);
  close(fd);
  assert_ok(umemFile_commit(&file));
  expect_text("new");
  assert_int_equal(count_entries(folder, ""), 1);
  assert_int_equal(umemFile_draft(&file, draft, sizeof draft), umemValueError);
  umem_dtor(&file);
  begin("newer");
  assert_ok(umemFile_draft(&file, draft, sizeof draft));
  umem_dtor(&file); /* removes the draft */
  expect_text("new");
  assert_int_equal(count_entries(folder, ""), 1);
  umem_thread_clear();
}

TEST(a_draft_is_beside_what_links_lead_to) {
  char link[512], inner[512], draft[4096];
  snprintf(inner, sizeof inner, "%s/inner", folder);
  snprintf(link, sizeof link, "%s/link", folder);
  assert_int_equal(mkdir(inner, 0700), 0);
  for (int absolute = 0; absolute < 2; absolute++) {
    char target[520];
    snprintf(target, sizeof target, "%s/x", absolute ? inner : "inner");
    assert_int_equal(symlink(target, link), 0);
    assert_ok(umemFile_replace(&file, link));
    assert_int_equal(umemFile_draft(&file, draft, 8), umemIOError);
    assert_ok(umemFile_draft(&file, draft, sizeof draft));
    assert_memory_equal(draft, inner, strlen(inner));
    assert_int_equal(access(draft, W_OK), 0);
    umem_dtor(&file);
    assert_int_equal(access(draft, F_OK), -1);
    unlink(link);
  }
  assert_int_equal(rmdir(inner), 0);
  umem_thread_clear();
}

/* Nobody can know the name before, and put a link there. */
TEST(names_of_drafts_are_random) {
  char drafts[2][4096];
  for (int i = 0; i < 2; i++) {
    begin("new");
    assert_ok(umemFile_draft(&file, drafts[i], sizeof drafts[i]));
    umem_dtor(&file);
  }
  char const *const one = strrchr(drafts[0], '-') + 1, *const other = strrchr(drafts[1], '-') + 1;
  assert_int_equal(strlen(one), 16);
  int same = 0;
  for (int i = 0; i < 16; i++) same += one[i] == other[i];
  assert_true(same < 12);
}

TEST(only_such_files_are_committed) {
  umemLimit limit;
  assert_int_equal(umemFile_commit(NULL), umemValueError);
  assert_int_equal(umemFile_commit((umemFile *)&host), umemTypeError);
  assert_ok(umemFile_ctor(&file, path, "w"));
  expect_status(&file, umemFile_commit(&file), umemValueError, "was not opened to replace a file");
  assert_ok(umemLimit_ctor(&limit, &file, 100));
  assert_int_equal(umemFile_commit((umemFile *)&limit), umemTypeError);
  DESTRUCT(&limit, &file);
  assert_int_not_equal(umemFile_commit(&file), umemOK); /* destructed */
  memset(&file, 0, sizeof file);
  assert_int_not_equal(umemFile_commit(&file), umemOK);
  umem_thread_clear();
}

TEST(a_copy_by_value_commits_nothing) {
  umemFile copy;
  begin("new");
  memcpy(&copy, &file, sizeof copy);
  expect_status(&copy, umemFile_commit(&copy), umemValueError, "must not be copied or moved");
  expect_text(NULL);
  assert_ok(umem_get_status(&file));
  assert_ok(umemFile_commit(&file));
  expect_text("new");
  umem_dtor(&file);
  umem_thread_clear();
}

TEST(names_that_cannot_be) {
  assert_int_equal(umemFile_replace(NULL, path), umemValueError);
  expect_status(&file, umemFile_replace(&file, NULL), umemValueError,
                "umemFile_replace: the file name is NULL");
  assert_int_equal(umemFile_replace(&file, ""), umemValueError);
  expect_status(&file, umemFile_replace(&file, folder), umemIOError, "is a directory");
  assert_int_equal(umemFile_replace(&file, "/nonexistent/x"), umemIOError);
  assert_int_equal(umem_alloc(&file, 1), umem_null(&file));
  umem_dtor(&file);
  umem_thread_clear();
}

TEST(options_are_those_of_other_files) {
  struct stat status;
  umemFileOptions options = {.size = sizeof options, .reserve = (umemReserve)99};
  assert_int_equal(umemFile_replace_with(&file, path, &options), umemValueError);
  umem_thread_clear();
  options.reserve = umemReserveNone;
  assert_ok(umemFile_replace_with(&file, path, &options));
  assert_int_equal(umem_alloc(&file, 1 << 20), 0);
  assert_ok(umemFile_commit(&file));
  umem_dtor(&file);
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_size, 1 << 20);
  assert_true(status.st_blocks < 1 << 10); /* not reserved: the file is sparse */
  unlink(path);
}

TEST(the_folder_is_the_one_of_the_beginning) {
  char before[4096], moved[320];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(folder), 0);
  assert_ok(umemFile_replace(&file, strrchr(path, '/') + 1));
  assert_ok(umem_set(&file, umem_alloc(&file, 3), 'x', 3));
  assert_int_equal(chdir(before), 0);
  snprintf(moved, sizeof moved, "%s-moved", folder);
  assert_int_equal(rename(folder, moved), 0);
  assert_ok(umemFile_commit(&file));
  umem_dtor(&file);
  assert_int_equal(rename(moved, folder), 0);
  expect_text("xxx");
}

TEST(a_file_that_appears_meanwhile_is_replaced) {
  begin("new");
  write_text("made by others");
  assert_ok(umemFile_commit(&file));
  umem_dtor(&file);
  expect_text("new");
  assert_int_equal(count_entries(folder, ""), 1);
}

TEST(a_folder_that_appears_meanwhile_is_not) {
  begin("new");
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(umemFile_commit(&file), umemIOError);
  assert_non_null(strstr(umem_get_message(&file), strerror(EISDIR)));
  umem_dtor(&file);
  umem_thread_clear();
  assert_int_equal(count_entries(folder, ""), 1);
  assert_int_equal(rmdir(path), 0);
}

/* Nothing is tried there: in some of them a new file is a request to the kernel. */
TEST(not_where_nothing_is_stored) {
  expect_status(&file, umemFile_replace(&file, "/proc/self/new"), umemIOError,
                "on a file system that stores nothing (proc)");
  umem_dtor(&file);
  umem_thread_clear();
}

TEST(a_childs_destructor_leaves_the_parents_file) {
  write_text("older");
  begin("new");
  IN_CHILD umem_dtor(&file);
  assert_ok(umemFile_commit(&file));
  umem_dtor(&file);
  expect_text("new");
}

/* Also where the new file has a name at once, and others may read the old one. */
TEST(a_hidden_file_is_closed_to_others) {
  struct stat found;
  write_text("older");
  assert_int_equal(chmod(path, 0664), 0);
  begin("new");
  if (lacks_nameless || lacks_proc) {
    assert_int_equal(count_entries(folder, ".umem-"), 1);
    DIR *opened = opendir(folder);
    assert_non_null(opened);
    for (struct dirent const *entry; (entry = readdir(opened));)
      if (!strncmp(entry->d_name, ".umem-", 6)) {
        assert_int_equal(fstatat(dirfd(opened), entry->d_name, &found, 0), 0);
        assert_int_equal(found.st_mode & 07777, 0600);
      }
    closedir(opened);
  } else {
    assert_int_equal(count_entries(folder, ".umem-"), 0);
  }
  assert_ok(umemFile_commit(&file));
  umem_dtor(&file);
  assert_int_equal(count_entries(folder, ".umem-"), 0);
}

TEST(a_commit_waits_for_the_disk_unless_it_need_not_be_durable) {
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  for (int hasty = 0; hasty < 2; hasty++) {
    options.durable = hasty ? umemDurableNo : umemDurableAuto;
    assert_ok(umemFile_replace_with(&file, path, &options));
    fsyncs = 0;
    assert_ok(umemFile_commit(&file));
    assert_int_equal(fsyncs > 0, !hasty);
    expect_text("");
    umem_dtor(&file);
  }
  options.durable = (umemDurable)2;
  expect_status(&file, umemFile_replace_with(&file, path, &options), umemValueError,
                "durable is 2");
  umem_dtor(&file);
}

TEST(two_at_a_time_have_names_of_their_own) {
  umemFile one, two;
  begin_with(&one, "one");
  begin_with(&two, "two");
  assert_ok(umemFile_commit(&two));
  expect_text("two");
  assert_ok(umemFile_commit(&one));
  expect_text("one");
  DESTRUCT(&one, &two);
  assert_int_equal(count_entries(folder, ""), 1);
}

int main(void) {
  int failed = run_cases(NULL, NULL);
  lacks_nameless = true;
  failed += run_cases(NULL, NULL);
  lacks_nameless = false;
  lacks_proc = true;
  return failed + run_cases(NULL, NULL);
}
