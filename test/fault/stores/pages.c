/* pages.c - RAM that is mapped page by page while the system refuses to map it. */
#include <sys/resource.h>

#include "fault/trial.h"
#include "core/context.h"

enum { room = 8 };

static umemHost host;
static umemPages const *pages;
static uintptr_t range;
static size_t page;

static void set_up(void **state UNUSED) {
  inject_reset();
  assert_int_equal(umemHost_ctor(&host), umemOK);
  pages = host.super.vptr->pages(&host.super);
  assert_non_null(pages);
  page = pages->page_size;
  range = pages->reserve(&host.super, room * page);
  assert_true(range != 0);
}

static void tear_down(void **state UNUSED) {
  inject_reset();
  assert_true(pages->release(&host.super, range, room * page));
  umem_dtor(&host);
}

static char *bytes_of(size_t i) { return (char *)(range + i * page); }

/* What the kernel says of the first byte of a page: may it be written? */
static bool has_memory(size_t i) {
  int ends[2];
  bool can = false;
  assert_int_equal(pipe(ends), 0);
  ssize_t written = write(ends[1], "x", 1);
  if (written == 1) can = read(ends[0], bytes_of(i), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

/* Exactly these pages have memory, as digits. */
static void expect_mapped(char const *which) {
  char found[room + 1] = {0};
  for (size_t i = 0; i < room; i++) found[i] = has_memory(i) ? '1' : '0';
  assert_string_equal(found, which);
}

static void expect_failure(umemStatusType type, char const *words) {
  assert_int_equal(umem_thread_status(), type);
  if (!strstr(umem_thread_message(), words)) assert_string_equal(umem_thread_message(), words);
  FORGET(&host);
}

static size_t map(size_t first, size_t count) {
  return pages->map(&host.super, range + first * page, count * page) / page;
}
static size_t unmap(size_t first, size_t count) {
  return pages->unmap(&host.super, range + first * page, count * page) / page;
}
static size_t move(size_t from, size_t to, size_t count) {
  return pages->move(&host.super, range + from * page, range + to * page, count * page) / page;
}

#define PAGES_TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

PAGES_TEST(a_range_that_cannot_be_reserved) {
  inject_fail(callMap, 1, ENOMEM, false);
  assert_true(pages->reserve(&host.super, page) == 0);
  expect_failure(umemMemoryError, "cannot reserve 2097152 bytes");
  inject_off();
  expect_mapped("00000000");
}

PAGES_TEST(a_page_that_cannot_be_mapped) {
  assert_int_equal(map(0, 1), 1);
  inject_fail(callProtect, 1, ENOMEM, false);
  assert_int_equal(map(1, 3), 0);
  expect_failure(umemMemoryError, "cannot map 6291456 bytes");
  inject_off();
  expect_mapped("10000000");
  inject_fail(callProtect, 1, EACCES, false);
  assert_int_equal(map(1, 3), 0);
  expect_failure(umemRuntimeError, strerror(EACCES));
  inject_off();
  inject_fail(callAdvise, 1, EINVAL, true); /* advice only */
  assert_int_equal(map(1, 3), 3);
  inject_off();
  expect_mapped("11110000");
  assert_int_equal(unmap(0, 4), 4);
}

PAGES_TEST(a_page_that_cannot_be_unmapped) {
  assert_int_equal(map(0, 3), 3);
  inject_fail(callMap, 1, ENOMEM, false);
  assert_int_equal(unmap(1, 1), 0);
  expect_failure(umemMemoryError, "cannot unmap 2097152 bytes");
  inject_off();
  expect_mapped("11100000");
  assert_int_equal(unmap(1, 1), 1);
  expect_mapped("10100000");
  assert_int_equal(unmap(0, 1) + unmap(2, 1), 2);
}

/* They keep their bytes: nothing was given back, and nothing asked for. */
PAGES_TEST(pages_are_carried) {
  assert_int_equal(map(0, 2), 2);
  strcpy(bytes_of(0), "one");
  strcpy(bytes_of(1), "two");
  inject_count();
  assert_int_equal(move(0, 4, 2), 2);
  bool carried = inject_calls(callRemap) == 2 && inject_calls(callProtect) == 0;
  inject_off();
  expect_mapped("00001100");
  if (carried) { /* not by a kernel before 5.7, nor by tools that know no newer one */
    assert_string_equal(bytes_of(4) + 1, "ne"); /* after what expect_mapped has written */
    assert_string_equal(bytes_of(5) + 1, "wo");
  }
  assert_int_equal(unmap(4, 2), 2);
}

PAGES_TEST(pages_that_cannot_be_carried_are_mapped_anew) {
  int const errors[] = {EINVAL, ENOMEM, ENOSYS};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(map(0, 2), 2);
    inject_fail(callRemap, 1, errors[i], true);
    assert_int_equal(move(0, 4, 2), 2);
    assert_true(inject_off() >= 2);
    expect_mapped("00001100");
    assert_int_equal(unmap(4, 2), 2);
  }
  assert_int_equal(umem_thread_status(), umemOK);
}

/* Each call fails once, and the pages that are not done are as before. */
PAGES_TEST(pages_that_cannot_be_moved) {
  InjectCall const calls[] = {callMap, callProtect};
  unsigned failed = 0;
  for (int with = 0; with < 2; with++)
    for (size_t c = 0; c < 2; c++)
      for (unsigned long nth = 1; nth <= 4; nth++) {
        assert_int_equal(map(0, 3), 3);
        if (with) inject_lacking(callRemap, EINVAL);
        inject_fail(calls[c], nth, ENOMEM, false);
        size_t done = move(0, 4, 3);
        inject_off();
        inject_lacking(callHeap, 0);
        failed += done < 3;
        if (done < 3) expect_failure(umemMemoryError, strerror(ENOMEM));
        char expected[room + 1] = "11100000";
        for (size_t i = 0; i < done; i++) expected[i] = '0', expected[4 + i] = '1';
        expect_mapped(expected);
        if (done) assert_int_equal(unmap(4, done), done);
        if (done < 3) assert_int_equal(unmap(done, 3 - done), 3 - done);
      }
  assert_true(failed >= 9);
}

/* A process may have so many mappings: pages leave half of them to the program. */
static void use_all_mappings(void *unused) {
  (void)unused;
  enum { most = 40000 };
  umemHost own;
  EXPECT(umemHost_ctor(&own) == umemOK);
  uintptr_t large = pages->reserve(&own.super, most * 2 * page);
  EXPECT(large);
  size_t i = 0;
  while (i < most && pages->map(&own.super, large + 2 * i * page, page)) i++; /* each second one */
  if (i < most) {
    EXPECT(umem_thread_status() == umemMemoryError);
    umem_thread_clear();
    EXPECT(i > 100);
    EXPECT(!pages->map(&own.super, large + 2 * i * page,
                       page)); /* still not, and nothing has changed */
    umem_thread_clear();
    EXPECT(pages->unmap(&own.super, large, page) == page);
    void *of_program = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(of_program != MAP_FAILED);
    EXPECT(!munmap(of_program, page));
  }
  EXPECT(pages->release(&own.super, large, most * 2 * page));
}

PAGES_TEST(no_mappings_are_left) { child_run(use_all_mappings, NULL); }

/* Where /proc is not mounted nobody can count: then it is what pages may take at most. */
static void use_half_of_them(void *unused) {
  (void)unused;
  enum { most = 40000, few = 1000 };
  umemHost own;
  EXPECT(umemHost_ctor(&own) == umemOK);
  inject_fail(callOpen, 1, ENOENT, true);
  uintptr_t large = pages->reserve(&own.super, most * 2 * page);
  EXPECT(large);
  size_t i = 0;
  while (i < most && pages->map(&own.super, large + 2 * i * page, page)) i++;
  EXPECT(i > 10000 && i < 17000);
  EXPECT(umem_thread_status() == umemMemoryError);
  umem_thread_clear();
  for (size_t k = 0; k < few; k++)
    EXPECT(pages->unmap(&own.super, large + 2 * k * page, page) == page);
  size_t again = 0; /* a new count comes after some calls */
  for (size_t k = 0; k < 20 * few && !again; k++) again = pages->map(&own.super, large, page);
  EXPECT(again == page);
  EXPECT(pages->release(&own.super, large, most * 2 * page));
}

PAGES_TEST(no_mappings_are_counted) { child_run(use_half_of_them, NULL); }
