/* fault.c - umemArchive_save where the n-th call into the system fails, and where the process is
 * killed at it, for every n: the file is the complete old one or the complete new one, and nothing
 * else is left but what umem/file.h names. */
#include <umem/formats.h>

#include "fault/trial.h"

enum { rows = 100, columns = 300, most = 1 << 20 };

typedef struct Bytes {
  size_t size;
  unsigned char bytes[most];
} Bytes;

static umemHost host;
static umemArchiveFormat format;
static umemDurable durable = umemDurableNo; /* syncs take most of the time */
static char folder[200], path[220];
static Bytes old_file, new_file, found;

/* ---- files ---- */

/* An array and its transpose, which is written through a mapping: all elements are value. */
static umemStatusType save_with(double value, umemReserve reserve) {
  umemStatusType status = umemOK;
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  umemFileOptions file = UMEM_FILE_OPTIONS_INIT;
  file.reserve = reserve;
  file.durable = durable;
  options.file = &file;
  int64_t const shape[] = {rows, columns};
  umemArray *one = umemArray_full(&host, umemDouble, 2, shape, NULL, &value, &status);
  umemArray *turned = umemArray_permute(one, NULL, &status);
  options.format = format;
  umemArchive_save(path, 2, (char const *[]){"one", "turned"}, (umemArray *[]){one, turned},
                   &options, &status);
  umemArray_release(turned);
  umemArray_release(one);
  return status;
}

static umemStatusType save(double value) { return save_with(value, umemReserveAuto); }

static void read_path(Bytes *into) {
  into->size = access(path, F_OK) == 0 ? read_file(path, into->bytes, most) : 0;
  assert_true(into->size <= most);
}

static bool is_file(Bytes const *expected) {
  read_path(&found);
  return found.size == expected->size && !memcmp(found.bytes, expected->bytes, found.size);
}

/* The old file, or none. */
static void begin(bool exists) {
  unlink(path);
  if (!exists) return;
  assert_ok(save(1));
}

/* Removes what a killed process has left beside the file, and counts it. */
static int remove_drafts(void) {
  char draft[600];
  int count = 0;
  DIR *opened = opendir(folder);
  assert_non_null(opened);
  for (struct dirent const *entry; (entry = readdir(opened));) {
    if (strncmp(entry->d_name, ".umem-", 6)) continue;
    snprintf(draft, sizeof draft, "%s/%s", folder, entry->d_name);
    assert_int_equal(unlink(draft), 0);
    count++;
  }
  closedir(opened);
  return count;
}

/* Runs a trial for each format, with an old file and without. */
static void each_case(void (*trial)(bool exists)) {
  assert_ok(umemHost_ctor(&host));
  assert_true(temporary_folder(folder, sizeof folder));
  snprintf(path, sizeof path, "%s/x", folder);
  umem_set_threads(1); /* a child has no thread of its parent's */
  for (format = umemArchiveSafetensors; format <= umemArchiveNpz; format++) {
    assert_ok(save(2));
    read_path(&new_file);
    for (int exists = 0; exists < 2; exists++) {
      begin(exists);
      read_path(&old_file);
      trial(exists);
    }
    unlink(path);
  }
  assert_int_equal(rmdir(folder), 0);
  umem_set_threads(0);
  umem_dtor(&host);
}

/* ---- calls that fail ---- */

static InjectCall const calls[] = {callHeap,     callOpen,  callLink,    callTemporary, callUnlink,
                                   callRead,     callWrite, callReserve, callLength,    callSync,
                                   callDataSync, callStat,  callSeek,    callLock,      callClose};
enum { call_count = sizeof calls / sizeof *calls };

/* Whether the call was made so often. */
static bool fail_nth(bool exists, InjectCall call, unsigned long nth, int error, bool lasting) {
  begin(exists);
  long const descriptors = open_descriptors();
  inject_fail(call, nth, error, lasting);
  umemStatusType const status = save(2);
  bool const met = inject_off() > 0;
  bool const is_new = is_file(&new_file);
  char const *const text = umem_thread_message();
  if (!is_new && (status == umemOK || !is_file(&old_file)))
    fail_msg("%s %lu: status %d, a file of %zu bytes", inject_call_name(call), nth, (int)status,
             found.size);
  if (!met) assert_int_equal(status, umemOK);
  if (status != umemOK && call != callHeap && !strstr(text, path))
    fail_msg("the message names no file: %s", text);
  if (status != umemOK && call == callWrite && !strstr(text, strerror(error)))
    fail_msg("the message has no reason: %s", text);
  assert_int_equal(count_entries(folder, ""), exists || is_new);
  assert_int_equal(open_descriptors(), descriptors);
  umem_thread_clear();
  umem_clear_status(&host);
  return met;
}

static void fail_each(bool exists) {
  for (size_t i = 0; i < call_count; i++)
    for (int lasting = 0; lasting < 2; lasting++) {
      unsigned long nth = 1;
      int const error = calls[i] == callHeap ? ENOMEM : ENOSPC;
      while (fail_nth(exists, calls[i], nth, error, lasting)) nth++;
      if (calls[i] == callWrite) assert_true(nth > 2);
    }
}

TEST_CASE(a_call_that_fails_leaves_the_old_file_and_nothing_else) {
  durable = umemDurableAuto;
  each_case(fail_each);
  durable = umemDurableNo;
}

TEST_CASE(so_it_does_without_nameless_files) {
  inject_lacking(callNameless, EOPNOTSUPP);
  each_case(fail_each);
  inject_reset();
}

/* ---- a full disk ---- */

/* Reserved, the file has no room; not reserved, one of its writes fails, or a store to its mapping.
 * The new file has 480 KB. On a disk without a free page it cannot even get its length. */
static void save_on_full_disk(void *argument UNUSED) {
  static size_t const rooms[] = {0, 4096, 100000, 300000};
  SmallDisk disk;
  if (!small_disk_mount(&disk, "tmpfs", 1)) _exit(child_not_permitted);
  snprintf(path, sizeof path, "%s/x", disk.folder);
  EXPECT(umemHost_ctor(&host) == umemOK && save(1) == umemOK);
  read_path(&old_file);
  for (size_t i = sizeof rooms / sizeof *rooms; i-- > 0;) {
    small_disk_fill(&disk, rooms[i]);
    for (umemReserve reserve = umemReserveAuto; reserve <= umemReserveNone; reserve++) {
      umemStatusType const status = save_with(2, reserve);
      EXPECT(status == (reserve == umemReserveNone && rooms[i] ? umemIOError : umemMemoryError));
      EXPECT(strstr(umem_thread_message(), strerror(ENOSPC)));
      EXPECT(strstr(umem_thread_message(), path));
      EXPECT(is_file(&old_file) && count_entries(disk.folder, "") == 2);
      umem_thread_clear();
      umem_clear_status(&host);
    }
  }
  small_disk_unmount(&disk);
}

TEST_CASE(a_full_disk_leaves_the_old_file_and_nothing_else) {
  for (format = umemArchiveSafetensors; format <= umemArchiveNpz; format++)
    if (!child_run(save_on_full_disk, NULL)) skip();
}

/* ---- a killed process ---- */

typedef struct Kill {
  InjectCall call;
  unsigned long nth;
} Kill;

static void save_until_killed(void *argument) {
  Kill const *at = argument;
  inject_fail(at->call, at->nth, inject_kill, false);
  EXPECT(save(2) == umemOK);
}

static int times_old, times_new, drafts;

static void kill_each(bool exists) {
  for (size_t i = 0; i < call_count; i++)
    for (Kill at = {calls[i], 1};; at.nth++) {
      begin(exists);
      int const status = child_wait(child_start(save_until_killed, &at));
      int const left = remove_drafts();
      bool const is_new = is_file(&new_file);
      if (!is_new && !is_file(&old_file))
        fail_msg("killed at %s %lu: a file of %zu bytes", inject_call_name(at.call), at.nth,
                 found.size);
      assert_true(left <= 1 && (status == -SIGKILL || left == 0));
      assert_int_equal(count_entries(folder, ""), exists || is_new);
      drafts += left;
      *(is_new ? &times_new : &times_old) += 1;
      if (status == 0) break;
      assert_int_equal(status, -SIGKILL);
    }
}

TEST_CASE(a_killed_process_leaves_the_old_file_or_the_new_one) {
  times_old = times_new = drafts = 0;
  each_case(kill_each);
  assert_true(times_old > 20 && times_new > 20);
}

TEST_CASE(without_nameless_files_a_draft_may_be_left) {
  times_old = times_new = drafts = 0;
  inject_lacking(callNameless, EOPNOTSUPP);
  each_case(kill_each);
  inject_reset();
  assert_true(times_old > 20 && times_new > 20 && drafts > 10);
}
