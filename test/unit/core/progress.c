/* progress.c - umem_copy_to_with and umem_copy_strided_with of many pieces, which threads share.
 * The contract tests copies of one step and of short ones on every context. */

#include "failures.h"

enum { mebibyte = 1 << 20, size = 40 * mebibyte + 12345 };

static umemHost host;
static umemFile file;
static char const path[] = "unit_progress.bin";
static char *bytes;
static uintptr_t in_file;

/* What the program has heard of its copy. */
typedef struct Heard {
  pthread_t caller;
  char const *there; /* where the done bytes are to be; NULL: it does not look */
  uint64_t last, step, total, cancel_at;
  size_t asked; /* the step that the copy is asked for; 0: step */
  int calls;
  bool right;
} Heard;

static bool tell(void *user, uint64_t done, uint64_t total) {
  Heard *heard = user;
  uint64_t last = heard->last, next = last + heard->step, due = next < total ? next : total;
  bool first = heard->calls++ == 0;
  heard->right = heard->right && pthread_equal(heard->caller, pthread_self()) &&
                 total == heard->total && done == (first ? 0 : due);
  if (heard->there && heard->right) /* each byte once: musl's memcmp is slow */
    heard->right = !memcmp(heard->there + last, bytes + last, (size_t)(done - last));
  heard->last = done;
  return done < heard->cancel_at;
}

static Heard start(char const *there, uint64_t total, uint64_t step) {
  return (Heard){.caller = pthread_self(),
                 .there = there,
                 .total = total,
                 .step = step,
                 .cancel_at = UINT64_MAX,
                 .right = true};
}

static umemStatusType copy(void *src, uintptr_t from, void *dst, uintptr_t to, Heard *heard) {
  umemCopyOptions options = {.size = sizeof options,
                             .progress = tell,
                             .user = heard,
                             .step = heard->asked ? heard->asked : heard->step};
  return umem_copy_to_with(src, from, dst, to, (size_t)heard->total, &options);
}

static void open_places(void **state UNUSED) {
  assert_ok(umem_set_threads(4));
  assert_ok(umemHost_ctor(&host));
  assert_ok(umemFile_ctor(&file, path, "w+"));
  in_file = umem_alloc(&file, size);
  bytes = test_malloc(size);
  for (size_t i = 0; i < size; i++) bytes[i] = (char)(i * 31 + i / 4096);
}

static void close_places(void **state UNUSED) {
  test_free(bytes);
  DESTRUCT(&file, &host);
  unlink(path);
  umem_set_threads(0);
}

#define PROGRESS_TEST(name) TEST_CASE_WITH(name, open_places, close_places)

PROGRESS_TEST(every_step_is_reported_in_order) {
  uint64_t const steps[] = {100003, mebibyte, 16 * mebibyte, size - 1, size};
  char *there = test_malloc(size);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    Heard to_file = start(NULL, size, steps[i]), back = start(there, size, steps[i]);
    memset(there, 0, size);
    assert_ok(copy(&host, (uintptr_t)bytes, &file, in_file, &to_file));
    assert_ok(copy(&file, in_file, &host, (uintptr_t)there, &back));
    assert_true(to_file.right && back.right);
    assert_true(to_file.last == size && back.last == size);
    assert_memory_equal(there, bytes, size);
  }
  test_free(there);
}

/* Threads share the copy: what one of them has copied behind a gap is not reported. */
PROGRESS_TEST(every_step_in_ram_is_reported_in_order) {
  uint64_t const steps[] = {4099, mebibyte, 5 * mebibyte + 1, size - 1};
  char *there = test_malloc(size);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    Heard heard = start(there, size, steps[i]);
    memset(there, 0, size);
    assert_ok(copy(&host, (uintptr_t)bytes, &host, (uintptr_t)there, &heard));
    assert_true(heard.right && heard.last == size);
  }
  for (uint64_t at = 0; at < size; at += 9 * mebibyte) {
    Heard heard = start(there, size, mebibyte);
    heard.cancel_at = at;
    memset(there, 0, size);
    assert_int_equal(copy(&host, (uintptr_t)bytes, &host, (uintptr_t)there, &heard),
                     umemCancelledError);
    assert_true(heard.right && heard.last == at);
    FORGET(&host);
  }
  test_free(there);
}

/* Each byte is in the route once, also if threads have copied more than was reported. */
PROGRESS_TEST(the_route_has_all_bytes) {
  char *there = test_malloc(size);
  assert_ok(umem_copy_to(&host, (uintptr_t)bytes, &file, in_file, size));
  for (unsigned k = 0; k < 4; k++) {
    umemRoute route = UMEM_ROUTE_INIT;
    umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
    Heard heard = start(there, size, mebibyte);
    bool from_file = k % 2, cancels = k / 2;
    heard.cancel_at = cancels ? 20 * mebibyte : UINT64_MAX;
    options = (umemCopyOptions){sizeof options, tell, &heard, mebibyte, &route};
    memset(there, 0, size);
    umem_copy_to_with(from_file ? (void *)&file : (void *)&host,
                      from_file ? in_file : (uintptr_t)bytes, &host, (uintptr_t)there, size,
                      &options);
    assert_true(heard.right && route.leg_count == 1);
    assert_true(route.legs[0].bytes >= heard.last && route.legs[0].bytes <= size);
    assert_true(cancels || route.legs[0].bytes == size);
    FORGET(&host);
  }
  test_free(there);
}

/* A context of the program, which copies what it is asked for from the file. */
static size_t asked, touched; /* bytes, and how often those behind them were touched */

static void nested_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr, umemVirtual *that UNUSED,
                           uintptr_t dst_adr, size_t nbytes) {
  umem_copy_to(&file, src_adr, &host, dst_adr, nbytes);
  char const *behind = (char const *)dst_adr + nbytes;
  asked += nbytes;
  touched += asked < size && behind[0] && behind[1];
}

static void nested_dtor(umemVirtual *ctx UNUSED) {}

/* Whoever copies within a copy has no part in its reports, and copies no more than it was asked
 * for. */
PROGRESS_TEST(a_copy_within_a_copy_has_pieces) {
  static struct umemVtbl const table = {.dtor = nested_dtor, .copy_to = nested_copy_to};
  umemVirtual nested;
  char *there = test_malloc(size + 2);
  umemVirtual_ctor(&nested, &host);
  nested.vptr = &table;
  nested.name = "nested";
  nested.capabilities |= umemOffsets;
  assert_ok(umem_copy_to(&host, (uintptr_t)bytes, &file, in_file, size));
  Heard heard = start(there, size, mebibyte);
  memset(there, 0, size + 2);
  asked = touched = 0;
  assert_ok(copy(&nested, in_file, &host, (uintptr_t)there, &heard));
  assert_true(heard.right && heard.last == size);
  assert_true(asked == size && !touched);
  assert_memory_equal(there, bytes, size);
  umem_dtor(&nested);
  test_free(there);
}

/* The caller hears of it in its own thread, and all threads stop: the bytes change no more. */
PROGRESS_TEST(a_long_copy_stops_where_it_is_cancelled) {
  char *there = test_malloc(size);
  assert_ok(umem_copy_to(&host, (uintptr_t)bytes, &file, in_file, size));
  for (uint64_t at = 0; at < size; at += 7 * mebibyte) {
    Heard heard = start(there, size, mebibyte);
    heard.cancel_at = at;
    memset(there, 0, size);
    assert_int_equal(copy(&file, in_file, &host, (uintptr_t)there, &heard), umemCancelledError);
    assert_true(heard.right && heard.last == at);
    memset(there, 0, size);
    usleep(1000);
    for (size_t i = 0; i < size; i += 512) assert_int_equal(there[i], 0);
    FORGET(&host);
  }
  Heard again = start(there, size, mebibyte);
  assert_ok(copy(&file, in_file, &host, (uintptr_t)there, &again));
  assert_memory_equal(there, bytes, size);
  test_free(there);
}

/* The file ends in the middle of the block: no thread reports a step behind that. */
PROGRESS_TEST(a_failure_in_any_thread_ends_it) {
  char *there = test_malloc(size);
  assert_ok(umem_copy_to(&host, (uintptr_t)bytes, &file, in_file, size));
  assert_int_equal(truncate(path, 20 * mebibyte), 0);
  Heard heard = start(there, size, mebibyte);
  assert_int_not_equal(copy(&file, in_file, &host, (uintptr_t)there, &heard), umemOK);
  assert_true(heard.right && heard.last <= 20 * mebibyte);
  assert_int_equal(umem_get_status(&host), umemOK);
  assert_int_not_equal(umem_get_status(&file), umemOK);
  FORGET(&file);
  assert_int_equal(truncate(path, size + 4096), 0);
  test_free(there);
}

PROGRESS_TEST(a_copy_onto_itself_is_one_piece) {
  enum { shift = 5 * mebibyte };
  char *moved = test_malloc(size);
  memcpy(moved, bytes, size);
  Heard heard = start(NULL, size - shift, size); /* it hears of the beginning and the end */
  heard.asked = mebibyte;
  assert_ok(copy(&host, (uintptr_t)moved, &host, (uintptr_t)moved + shift, &heard));
  assert_int_equal(heard.calls, 2);
  assert_memory_equal(moved + shift, bytes, size - shift);
  test_free(moved);
}

/* ---- items ---- */

enum { rows = 3000, columns = 1500 };

static umemStatusType transpose(char *there, Heard *heard) {
  size_t const extents[] = {rows, columns};
  ptrdiff_t const from[] = {columns * 8, 8}, to[] = {8, rows * 8};
  umemLayout const layout = {sizeof layout, 8, 2, extents, from, to};
  umemCopyOptions options = {
      .size = sizeof options, .progress = tell, .user = heard, .step = heard->step};
  return umem_copy_strided_with(&host, (uintptr_t)bytes, &host, (uintptr_t)there, &layout,
                                &options);
}

PROGRESS_TEST(items_are_reported_as_they_go) {
  char *there = test_malloc(size);
  uint64_t const steps[] = {mebibyte, 3 * mebibyte + 1, size};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    Heard heard = start(NULL, rows * columns * 8, steps[i]);
    memset(there, 0, size);
    assert_ok(transpose(there, &heard));
    assert_true(heard.right && heard.last == rows * columns * 8);
    for (size_t r = 0; r < rows; r += 7)
      for (size_t c = 0; c < columns; c++)
        assert_memory_equal(there + (c * rows + r) * 8, bytes + (r * columns + c) * 8, 8);
  }
  Heard heard = start(NULL, rows * columns * 8, mebibyte);
  heard.cancel_at = 20 * mebibyte;
  assert_int_equal(transpose(there, &heard), umemCancelledError);
  assert_true(heard.right && heard.last == 20 * mebibyte);
  FORGET(&host);
  test_free(there);
}
