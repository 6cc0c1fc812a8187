/* direct.c - long reads and writes by several threads, around the page cache and through it, when
 * calls into the system fail, are interrupted, or move only a part. */

#include "fault/trial.h"

enum { length = (9 << 20) + 777, threads = 3 };

static char path[256];
static unsigned char *data, *back;
static umemHost host;
static umemFile file;

/* Odd, so that the device cannot reach it. */
static uintptr_t odd(unsigned char *bytes) { return (uintptr_t)bytes + 40; }

static void drop(void) {
  inject_pause();
  int fd = open(path, O_RDWR);
  assert_true(fd >= 0 && fdatasync(fd) == 0);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
  inject_resume();
}

static bool reads(void) {
  memset(back, 0xee, length + 4096);
  return umem_copy_to(&file, 0, &host, odd(back), length) == umemOK;
}

static bool writes(void) { return umem_copy_from(&file, 0, &host, odd(data), length) == umemOK; }

static void expect_read(void) { assert_memory_equal((void *)odd(back), (void *)odd(data), length); }

/* The file holds data, by a look of the test's own. */
static void expect_written(void) {
  inject_pause();
  int fd = open(path, O_RDONLY);
  size_t done = 0;
  assert_true(fd >= 0);
  while (done < length) {
    ssize_t n = pread(fd, back + done, length - done, (off_t)done);
    assert_true(n > 0);
    done += (size_t)n;
  }
  close(fd);
  inject_resume();
  assert_memory_equal(back, (void *)odd(data), length);
}

static void fresh_data(unsigned seed) {
  for (size_t i = 0; i < length; i++)
    ((unsigned char *)odd(data))[i] = (unsigned char)((i * 2654435761u >> 13) + seed);
}

static size_t route; /* the number of that among the values of the option direct */

static void set_up(void **state UNUSED) {
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  umemDirect const routes[] = {umemDirectAuto, umemDirectOn, umemDirectOff};
  data = malloc(length + 4096);
  back = malloc(length + 4096);
  assert_true(data && back);
  temporary_name(path, sizeof path);
  write_file(path, 1);
  options.direct = is_direct(path) ? routes[route] : umemDirectAuto;
  assert_ok(umemHost_ctor(&host));
  assert_ok(umemFile_ctor_with(&file, path, "w+", &options));
  assert_int_equal(umem_alloc(&file, length), 0);
  umem_set_threads(threads);
  fresh_data(1);
  assert_true(writes());
}

static void tear_down(void **state UNUSED) {
  DESTRUCT(&file, &host);
  free(data);
  free(back);
  umem_set_threads(0);
  assert_int_equal(unlink(path), 0);
}

#define DIRECT_TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* The nth call fails, for every n. error is reported, or another way was found. */
static void sweep(InjectCall call, int error, bool lasting, bool writing, bool must_tell) {
  unsigned long struck = 1;
  for (unsigned long nth = 1; struck; nth++) {
    fresh_data((unsigned)nth);
    if (!writing) assert_true(writes());
    if (!writing) drop();
    long descriptors = open_descriptors();
    inject_fail(call, nth, error, lasting);
    bool good = writing ? writes() : reads();
    struck = inject_off();
    if (!struck || !must_tell)
      assert_true(good);
    else
      assert_false(good);
    if (good)
      writing ? expect_written() : expect_read();
    else
      assert_true(umem_thread_status() == umemIOError && strstr(umem_thread_message(), "cannot "));
    assert_int_equal(open_descriptors(), descriptors);
    FORGET(&file);
    assert_true(writes() && reads());
    expect_read();
  }
}

DIRECT_TEST(a_read_that_fails_is_reported) { sweep(callRead, EIO, false, false, true); }

DIRECT_TEST(a_write_that_fails_is_reported) {
  sweep(callWrite, ENOSPC, false, true, true);
  sweep(callWrite, EIO, true, true, true);
}

/* Another descriptor, memory for a buffer, threads, what is cached (asked so before Linux 6.5): all
 * can be done without. */
DIRECT_TEST(what_helps_may_be_missing) {
  sweep(callOpen, EMFILE, true, false, false);
  sweep(callOpen, EACCES, true, true, false);
  sweep(callHeap, ENOMEM, true, false, false);
  sweep(callHeap, ENOMEM, true, true, false);
  sweep(callThread, EAGAIN, true, false, false);
  sweep(callPeek, EIO, false, false, false);
  sweep(callPeek, EPERM, true, false, false);
}

DIRECT_TEST(short_transfers_are_completed) {
  for (unsigned seed = 1; seed < 4; seed++) {
    fresh_data(seed);
    inject_short(seed);
    bool good = writes();
    assert_true(inject_off() > 3 && good);
    expect_written();
    drop();
    inject_short(seed);
    good = reads();
    assert_true(inject_off() > 3 && good);
    expect_read();
  }
}

DIRECT_TEST(interrupted_calls_are_repeated) {
  fresh_data(9);
  inject_storm();
  bool good = writes();
  assert_true(inject_off() > 0 && good);
  expect_written();
  drop();
  inject_storm();
  good = reads();
  assert_true(inject_off() > 3 && good);
  expect_read();
}

int main(void) {
  static char const *const words[] = {"auto", "on", "off"};
  int failed = 0;
  for (route = 0; route < 3; route++) {
    print_message("direct=%s\n", words[route]);
    failed += run_cases(NULL, NULL);
  }
  return failed;
}
