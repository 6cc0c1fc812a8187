/* file_lists.c - lists of copies from files, on File and MMap: short rows from the mapping, and
 * pieces that the cache lacks, which a ring of the kernel reads, or calls that it knows of
 * before. */
#include <stdatomic.h>

#include "base/faultable.h"

#include "runs_help.h"

/* ---- what the library calls ---- */

static atomic_size_t announced;      /* runs of which the kernel knows */
static _Atomic off_t announced_last; /* the run that was announced last */
static atomic_bool announced_back;   /* one was announced after one behind it */
/* The length that the file gets before bytes are copied from its mapping; 0: as it is. */
static _Atomic off_t cut_to;

WRAPPED(int, posix_fadvise, (int fd, off_t offset, off_t size, int advice)) {
  if (advice == POSIX_FADV_WILLNEED) {
    off_t const last = atomic_exchange(&announced_last, offset);
    if (atomic_fetch_add(&announced, 1) && offset < last) announced_back = true;
  }
  return __real_posix_fadvise(fd, offset, size, advice);
}
WRAPPED(bool, umem_access_faultable,
        (umemFaultableRange const ranges[2], umemFaultableWork *work, void *data)) {
  if (cut_to) assert_int_equal(truncate(path, cut_to), 0);
  return __real_umem_access_faultable(ranges, work, data);
}

/* ---- rings of the kernel ---- */

enum { ring_setup = 425, ring_enter = 426 };

static atomic_size_t setups, enters; /* calls */
static atomic_int setup_error;       /* of all of them; 0: none */
static atomic_size_t failing_enter;  /* this one fails with EAGAIN, counted from 1; 0: none */
static atomic_long enter_time;       /* nanoseconds that each takes */
static _Atomic off_t
    ring_cut_to; /* the length that the file gets before the second one; 0: as it is */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number == ring_setup) {
    setups++;
    errno = setup_error;
    if (setup_error) return -1;
  }
  if (number == ring_enter) {
    size_t const enter = atomic_fetch_add(&enters, 1) + 1;
    if (enter_time) nanosleep(&(struct timespec){0, enter_time}, NULL);
    if (ring_cut_to && enter == 2) assert_int_equal(truncate(path, ring_cut_to), 0);
    errno = EAGAIN;
    if (enter == failing_enter) return -1;
  }
  return __real_syscall(number, a, b, c, d, e, f);
}

/* ---- lists of short runs ---- */

enum { list_count = 64, list_row = 40, list_size = 200000 };

/* Rows from all over the file, in no order. */
static uint64_t place_of_row(size_t i) { return i * 37 % list_count * 3000 + 11; }

static umemStatusType read_list(unsigned char *bytes, umemCopyManyOptions const *options) {
  umemCopyItem items[list_count];
  for (size_t i = 0; i < list_count; i++)
    items[i] = (umemCopyItem){&any, at(&any, place_of_row(i)), &host,
                              (uintptr_t)bytes + i * list_row, list_row};
  reads = 0;
  return umem_copy_many(items, list_count, options);
}

static void check_row(unsigned char const *bytes, size_t i) {
  check_pattern(bytes + i * list_row, list_row, place_of_row(i));
}

TEST(cached_rows_need_no_calls) {
  unsigned char bytes[list_count * list_row];
  uint8_t done[list_count / 8] = {0};
  umemCopyManyOptions options = {.size = sizeof options, .done = done};
  make_file(list_size);
  open_any(&any, "r");
  assert_int_equal(read_list(bytes, &options), umemOK);
  for (size_t i = 0; i < list_count; i++) check_row(bytes, i);
  for (size_t i = 0; i < list_count / 8; i++) assert_int_equal(done[i], 0xFF);
  assert_int_equal(reads, 0);
}

TEST(cold_rows_bring_their_pages_alone) {
  unsigned char bytes[8 * list_count];
  umemCopyItem items[list_count];
  make_file(far_size);
  bool cold = make_cold(far_size);
  open_any(&any, "r");
  for (size_t i = 0; i < list_count; i++)
    items[i] = (umemCopyItem){&any, at(&any, (i * 37 % list_count * 4 + 1) * 64 * KiB), &host,
                              (uintptr_t)bytes + i * 8, 8};
  assert_int_equal(umem_copy_many(items, list_count, NULL), umemOK);
  close_any(&any);
  if (cold) assert_true(cached_pages(far_size) <= 8 * list_count);
}

/* The kernel knows all rows before they are read, in the order of the file: nothing else is
 * announced. */
TEST(cold_rows_are_announced) {
  unsigned char bytes[list_count * list_row];
  make_file(list_size);
  for (umemDirect direct = umemDirectAuto; direct <= umemDirectOff; direct++) {
    if (!make_cold(list_size)) break;
    umemFileOptions options = {.size = sizeof options, .direct = direct};
    if (any_ctor_with(&any, path, "r", &options) != umemOK) continue;
    announced = 0;
    announced_back = false;
    assert_int_equal(read_list(bytes, NULL), umemOK);
    for (size_t i = 0; i < list_count; i++) check_row(bytes, i);
    assert_int_equal(announced, direct == umemDirectOn ? 0 : list_count);
    assert_false(announced_back);
    close_any(&any);
  }
}

TEST(a_list_names_the_cold_row_past_the_end) {
  unsigned char bytes[list_count * list_row];
  uint8_t done[list_count / 8] = {0};
  size_t failed = list_count;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  make_file(63 * 3000 + 20);
  make_cold(63 * 3000 + 20);
  open_any(&any, "r");
  assert_int_equal(read_list(bytes, &options), umemIndexError);
  expect_failure(&any, umemIndexError, "past the end of");
  assert_int_equal(place_of_row(failed), 63 * 3000 + 11);
  for (size_t i = 0; i < list_count; i++)
    if (done[i / 8] >> i % 8 & 1) check_row(bytes, i);
}

/* To whole pages, whose access raises a signal, and into a page, whose rest reads as zeros. */
TEST(a_list_names_the_row_that_is_cut_off_meanwhile) {
  off_t const lengths[] = {98304, 63 * 3000 + 20};
  for (size_t k = 0; k < 2; k++) {
    unsigned char bytes[list_count * list_row];
    uint8_t done[list_count / 8] = {0};
    size_t failed = list_count;
    umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
    make_file(list_size);
    open_any(&any, "r");
    cut_to = lengths[k];
    umemStatusType status = read_list(bytes, &options);
    cut_to = 0;
    assert_int_equal(status, umemIOError);
    expect_failure(&any, umemIOError, "was truncated by another process");
    assert_true(failed < list_count && place_of_row(failed) + list_row > (uint64_t)lengths[k]);
    for (size_t i = 0; i < list_count; i++)
      if (done[i / 8] >> i % 8 & 1) check_row(bytes, i);
    close_any(&any);
  }
}

/* ---- lists of pieces that the cache lacks ---- */

/* More than a ring has in flight, three times as many, and so many that they are read for longer
 * than a step. */
enum {
  few_pieces = 160,
  some_pieces = 400,
  most_pieces = 1024,
  piece_size = 20 << 10,
  piece_step = 24 << 10
};
static size_t piece_count;

static size_t size_of_pieces(void) { return piece_count * piece_step + MiB; }

static bool has_ring(void) {
  char parameters[120] = {0};
  long fd = __real_syscall(ring_setup, 8L, parameters);
  if (fd >= 0) close((int)fd);
  return fd >= 0;
}

static uint64_t place_of_piece(size_t i, size_t shift) {
  return i * 37 % piece_count * piece_step + shift;
}

static char *pieces; /* of the memory that they are read to */

/* Reads pieces that begin shift bytes after a page. */
static umemStatusType read_pieces(size_t shift, umemCopyManyOptions const *options) {
  umemCopyItem items[most_pieces];
  for (size_t i = 0; i < piece_count; i++)
    items[i] = (umemCopyItem){&any, at(&any, place_of_piece(i, shift)), &host,
                              (uintptr_t)pieces + i * piece_size + shift, piece_size};
  memset(pieces, 0xEE, (piece_count + 1) * piece_size);
  reads = 0;
  announced = 0;
  setups = 0;
  enters = 0;
  return umem_copy_many(items, piece_count, options);
}

static void check_piece(size_t i, size_t shift) {
  check_pattern((unsigned char *)pieces + i * piece_size + shift, piece_size,
                place_of_piece(i, shift));
}

static void check_pieces(size_t shift) {
  for (size_t i = 0; i < piece_count; i++) check_piece(i, shift);
  for (size_t i = 0; i < shift; i++) assert_int_equal((unsigned char)pieces[i], 0xEE);
  assert_int_equal((unsigned char)pieces[piece_count * piece_size + shift], 0xEE);
}

/* Opens the cold file; false, with a message, where it cannot be cold, or there are no rings. */
static bool open_pieces(size_t count, umemDirect direct) {
  umemFileOptions options = {.size = sizeof options, .direct = direct};
  piece_count = count;
  if (!pieces) pieces = aligned_alloc(4096, (most_pieces + 1) * piece_size);
  assert_non_null(pieces);
  make_file(size_of_pieces());
  if (make_cold(size_of_pieces()) && has_ring() &&
      any_ctor_with(&any, path, "r", &options) == umemOK)
    return true;
  umem_thread_clear();
  print_message("skipped: no cold files in %s, or no io_uring\n", folder);
  return false;
}

TEST(a_ring_reads_cold_pieces) {
  size_t const shifts[] = {0, 100};
  umemDirect const ways[] = {umemDirectAuto, umemDirectOn};
  for (size_t k = 0; k < 4; k++) {
    if (!open_pieces(few_pieces, ways[k / 2])) continue;
    assert_int_equal(read_pieces(shifts[k % 2], NULL), umemOK);
    check_pieces(shifts[k % 2]);
    assert_int_equal(reads + announced, 0);
    assert_true(setups == 1 && enters > 1);
    close_any(&any);
    assert_int_equal(cached_pages(size_of_pieces()), 0);
  }
}

/* The last page of the file is read in part. */
TEST(a_ring_reads_up_to_the_end) {
  if (!open_pieces(few_pieces, umemDirectAuto)) return;
  close_any(&any);
  size_t const end = (piece_count - 1) * (size_t)piece_step + 100 + piece_size;
  assert_int_equal(truncate(path, (off_t)end), 0);
  make_cold(end);
  open_any(&any, "r");
  assert_int_equal(read_pieces(100, NULL), umemOK);
  check_pieces(100);
  assert_int_equal(reads, 0);
}

TEST(other_cold_pieces_are_announced) {
  if (!open_pieces(few_pieces, umemDirectOff)) return;
  assert_int_equal(read_pieces(0, NULL), umemOK);
  check_pieces(0);
  assert_int_equal(announced, piece_count);
  assert_int_equal(setups, 0);
}

TEST(a_ring_that_fails_leaves_the_rest_to_calls) {
  for (failing_enter = 1; failing_enter <= 3; failing_enter += 2) {
    if (!open_pieces(some_pieces, umemDirectAuto)) continue;
    assert_int_equal(read_pieces(0, NULL), umemOK);
    check_pieces(0);
    assert_true(reads > 0 && reads <= piece_count);
    close_any(&any);
  }
  failing_enter = 0;
}

static void read_without_ring(void *argument UNUSED) {
  setup_error = EPERM;
  for (size_t k = 0; k < 2; k++) {
    make_cold(size_of_pieces());
    EXPECT(read_pieces(0, NULL) == umemOK && announced == piece_count && setups == !k);
    bool same = true;
    for (size_t i = 0; i < piece_count * piece_size; i++)
      same &=
          (unsigned char)pieces[i] == pattern(place_of_piece(i / piece_size, 0) + i % piece_size);
    EXPECT(same);
  }
}

/* As in a sandbox. It is asked once. */
TEST(a_ring_that_is_refused_is_not_needed) {
  if (!open_pieces(few_pieces, umemDirectAuto)) return;
  child_run(read_without_ring, NULL);
}

TEST(a_list_names_the_piece_that_is_cut_off_in_the_ring) {
  uint8_t done[few_pieces / 8] = {0};
  size_t failed = few_pieces;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  if (!open_pieces(few_pieces, umemDirectAuto)) return;
  ring_cut_to = (few_pieces - 20) * (off_t)piece_step + 5000;
  umemStatusType status = read_pieces(0, &options);
  assert_int_equal(status, umemIOError);
  expect_failure(&any, umemIOError, "was truncated by another process");
  assert_true(failed < piece_count);
  assert_true(place_of_piece(failed, 0) + piece_size > (uint64_t)ring_cut_to);
  ring_cut_to = 0;
  size_t count = 0;
  for (size_t i = 0; i < piece_count; i++)
    if (done[i / 8] >> i % 8 & 1) check_piece(i, 0), count++;
  assert_true(count > 0 && count < piece_count);
}

static bool goes_on(void *user UNUSED, uint64_t done, uint64_t nbytes) { return done <= nbytes; }

/* A list with progress takes a ring for each of its pieces. */
TEST(a_ring_stops_in_time) {
  umemCopyManyOptions options = {.size = sizeof options, .progress = goes_on, .step = 64 << 10};
  if (!open_pieces(most_pieces, umemDirectAuto)) return;
  enter_time = 2 * 1000 * 1000;
  assert_int_equal(read_pieces(0, &options), umemOK);
  enter_time = 0;
  check_pieces(0);
  assert_true(setups > 1);
  assert_true(reads < piece_count); /* on a slow machine a step has too few pieces for a ring */
}

int main(void) { return run_on_both(); }
