/* log.c - a umemLog that cannot begin, for whatever reason, leaves the log that was there as it
 * was; signals keep none from beginning. */
#include <sys/time.h>

#include "fault/trial.h"
#include "trace.h"

enum { small = 1 << 16, larger = 1 << 18, largest = 4 << 20, old_records = 200 };

static umemHost host;
static umemLog log_;
static char folder[200], path[256];

/* ---- files ---- */

typedef struct Content {
  char *bytes;
  size_t length;
} Content;

static Content read_log(void) {
  struct stat about;
  Content content = {NULL, 0};
  SCOPED(close_fd) int fd = open(path, O_RDONLY);
  EXPECT(fd >= 0 && fstat(fd, &about) == 0);
  content.length = (size_t)about.st_size;
  content.bytes = malloc(content.length + 1);
  EXPECT(content.bytes && pread(fd, content.bytes, content.length, 0) == about.st_size);
  return content;
}

static void expect_content(Content const *expected) {
  Content now = read_log();
  EXPECT(now.length == expected->length && !memcmp(now.bytes, expected->bytes, now.length));
  free(now.bytes);
}

static umemStatusType begin(uint64_t max_bytes) {
  umemLogOptions options = {.size = sizeof options, .filename = path, .max_bytes = max_bytes};
  return umemLog_ctor(&log_, &host, &options);
}

static void use_log(void) {
  for (int i = 0; i < old_records / 2; i++) umem_free(&log_, umem_alloc(&log_, 100));
  EXPECT(umem_is_ok(&log_));
  umem_dtor(&log_);
}

static void expect_records(size_t count) {
  Trace trace;
  EXPECT(trace_read(&trace, path) && trace.header.ended && trace.count == count);
  trace_close(&trace);
}

static SmallDisk disk;

/* On a tmpfs of so many MiB, which this child alone sees; 0: where temporary files are. */
static void make_folder(unsigned mebibytes) {
  if (!mebibytes)
    EXPECT(temporary_folder(folder, sizeof folder));
  else if (!small_disk_mount(&disk, "tmpfs", mebibytes))
    _exit(child_not_permitted);
  else
    memcpy(folder, disk.folder, sizeof folder);
  snprintf(path, sizeof path, "%s/run.umem", folder);
  EXPECT(umemHost_ctor(&host) == umemOK);
}

static void remove_folder(void) {
  unlink(path);
  if (*disk.folder)
    small_disk_unmount(&disk);
  else
    EXPECT(rmdir(folder) == 0);
  umem_dtor(&host);
}

/* ---- a full disk ---- */

static void fill_disk(char *name, size_t size) {
  small_disk_fill(&disk, 0);
  snprintf(name, size, "%s/filler", folder);
}

static void on_full_disk(void *unused) {
  (void)unused;
  char name[256];
  make_folder(1);
  EXPECT(begin(small) == umemOK);
  use_log();
  Content const old = read_log();
  fill_disk(name, sizeof name);
  EXPECT(begin(larger) == umemMemoryError);
  EXPECT(strstr(umem_get_message(&log_), strerror(ENOSPC)));
  umem_dtor(&log_);
  expect_content(&old);
  expect_records(old_records);
  umem_thread_clear();
  EXPECT(begin(small) == umemOK); /* it has its space */
  use_log();
  EXPECT(rename(path, name) == 0); /* there is no log, and no room for one */
  EXPECT(begin(larger) == umemOK);
  umem_dtor(&log_);
  EXPECT(unlink(path) == 0);
  EXPECT(begin((uint64_t)1 << 40) == umemMemoryError && count_entries(folder, "") == 1);
  umem_dtor(&log_);
  EXPECT(unlink(name) == 0);
  remove_folder();
}

/* The disk does not say that it is full: part of the space is there. */
static void without_a_report(void *unused) {
  (void)unused;
  char name[256];
  struct stat about;
  make_folder(1);
  EXPECT(begin(small) == umemOK);
  use_log();
  Content const old = read_log();
  fill_disk(name, sizeof name);
  EXPECT(truncate(name, (1 << 20) - small - 3 * 4096) == 0);
  int reserving = 0;
  bool fails = true;
  for (unsigned long nth = 1; fails; nth++) {
    inject_fail(callStat, nth, EIO, false); /* one of them is fstatvfs */
    inject_lacking(callReserve, EOPNOTSUPP);
    EXPECT(begin(larger) != umemOK);
    fails = inject_off();
    inject_reset();
    reserving += strstr(umem_get_message(&log_), "cannot reserve the space of the log") != NULL;
    umem_dtor(&log_);
    expect_content(&old);
    EXPECT(stat(path, &about) == 0 && about.st_blocks * 512 <= small);
  }
  EXPECT(reserving > 0);
  EXPECT(unlink(name) == 0 && unlink(path) == 0);
  remove_folder();
}

TEST_CASE(full_disk) {
  if (child_run(on_full_disk, NULL) && child_run(without_a_report, NULL)) return;
  print_message("mounting is not permitted here\n");
  skip();
}

/* ---- calls that fail ---- */

static InjectCall const calls[] = {callHeap,    callMap,    callOpen, callRead, callWrite,
                                   callReserve, callLength, callLock, callStat, callLink};
enum { call_count = sizeof calls / sizeof *calls };

/* Begins a log of so many bytes where another one is, or nothing; every call fails once. lacking:
 * what this system does not have. */
static void each_call_fails(uint64_t old_bytes, uint64_t new_bytes, InjectCall lacking, int error) {
  Content old = {NULL, 0};
  unsigned struck = 0;
  for (int k = 0; k < call_count; k++)
    for (unsigned long nth = 1, more = 1; more; nth++) {
      unlink(path);
      free(old.bytes);
      old.bytes = NULL;
      if (old_bytes) {
        EXPECT(begin(old_bytes) == umemOK);
        use_log();
        old = read_log();
      }
      inject_fail(calls[k], nth, EIO, true);
      inject_lacking(lacking, error);
      umemStatusType status = begin(new_bytes);
      more = inject_off();
      inject_reset();
      if (status == umemOK) {
        use_log();
        expect_records(old_records);
      } else {
        struck++;
        EXPECT(more);
        umem_dtor(&log_);
        if (old_bytes)
          expect_content(&old);
        else
          EXPECT(access(path, F_OK) != 0);
      }
      EXPECT(count_entries(folder, "") == (old_bytes || status == umemOK));
      umem_thread_clear();
    }
  EXPECT(struck >= 7);
  free(old.bytes);
}

static void every_call(void *unused) {
  (void)unused;
  static struct {
    InjectCall call;
    int error;
  } const lacks[] = {{callNone, 0}, {callReserve, EOPNOTSUPP}, {callNameless, EOPNOTSUPP}};
  make_folder(0);
  for (int i = 0; i < 3; i++) {
    each_call_fails(0, small, lacks[i].call, lacks[i].error);
    each_call_fails(small, small, lacks[i].call, lacks[i].error);
    each_call_fails(small, larger, lacks[i].call, lacks[i].error);
    each_call_fails(larger, small, lacks[i].call, lacks[i].error);
  }
  remove_folder();
}

TEST_CASE(failing_calls_change_nothing) { child_run(every_call, NULL); }

/* ---- signals ---- */

static void take_note(int signal) { (void)signal; }

static void set_alarms(long us) {
  struct itimerval const every = {{0, us}, {0, us}};
  EXPECT(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

/* Signals all the time, and calls that say so when there was none. */
static void begin_in_storm(int rounds, InjectCall lacking) {
  struct sigaction const action = {.sa_handler = take_note}; /* no SA_RESTART */
  EXPECT(sigaction(SIGALRM, &action, NULL) == 0);
  for (int i = 0; i < rounds; i++) {
    if (i % 2) unlink(path);
    inject_storm();
    inject_lacking(lacking, EOPNOTSUPP);
    set_alarms(50);
    umemStatusType status = begin(largest);
    set_alarms(0);
    EXPECT(status == umemOK && inject_off() > 2);
    inject_reset();
    use_log();
    expect_records(old_records);
  }
}

static void in_storm(void *unused) {
  (void)unused;
  make_folder(0);
  begin_in_storm(40, callNone);
  begin_in_storm(10, callReserve);
  begin_in_storm(10, callNameless);
  remove_folder();
}

static void in_storm_on_tmpfs(void *unused) {
  (void)unused;
  make_folder(16);
  begin_in_storm(40, callNone);
  remove_folder();
}

TEST_CASE(signals_keep_none_from_beginning) {
  child_run(in_storm, NULL);
  if (!child_run(in_storm_on_tmpfs, NULL)) skip();
}
