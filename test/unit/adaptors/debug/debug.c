/* debug.c - umem/debug.h: wrong writes, and what memory is filled with, over each kind of
 * memory. */
#include "debug_help.h"

/* ---- wrong writes ---- */

static size_t const sizes[] = {1, 7, 100, 4096, 300001};
enum { size_count = sizeof sizes / sizeof *sizes };

TEST(one_byte_past_the_end_is_found) {
  for (size_t i = 0; i < size_count; i++) {
    Place place;
    FOR_EACH_PLACE(place, NULL) {
      char words[100];
      uintptr_t before = umem_alloc(&place.debug, 50), adr = umem_alloc(&place.debug, sizes[i]);
      poke(&place, adr + sizes[i] - 1, 0x42); /* the last one of its own */
      poke(&place, adr + sizes[i], 0x41);
      snprintf(words, sizeof words,
               "a wrong write to byte %zu of the %sblock of %zu byte%s at 0x%jx, past its end: ",
               sizes[i], place.direct ? "" : "freed ", sizes[i], sizes[i] == 1 ? "" : "s",
               (uintmax_t)adr);
      free_is_reported(&place, adr, words);
      umemDebugFault fault = first_fault(&place.debug);
      assert_int_equal(fault.kind, umemDebugOverflow);
      assert_true(fault.adr == adr && fault.nbytes == sizes[i] && fault.number == 2);
      assert_true(fault.offset == (int64_t)sizes[i] && fault.wrong == 1);
      assert_true(fault.found == 0x41 && fault.expected == UMEM_DEBUG_GUARD);
      assert_true(fault.freed == !place.direct && !fault.aligned);
      umem_free(&place.debug, before);
    }
  }
}

EACH_PLACE(writes_before_a_block_are_found) {
  uintptr_t adr = umem_alloc(debug, 100);
  poke(place, adr, 0x42);
  poke(place, adr - 1, 0x41);
  poke(place, adr - 3, 0x40);
  free_is_reported(place, adr, "a wrong write to byte -3 of the");
  umemDebugFault fault = first_fault(debug);
  assert_int_equal(fault.kind, umemDebugUnderflow);
  assert_true(fault.adr == adr && fault.offset == -3 && fault.wrong == 2);
  assert_int_equal(fault.found, 0x40);
}

/* The longest guards, to their ends. */
TEST(guards_are_as_long_as_they_should_be) {
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  Place place;
  size_t const guards[] = {1, 33, 5000, UMEM_DEBUG_LARGEST_GUARD};
  for (size_t i = 0; i < 4; i++) {
    options.guard = guards[i];
    FOR_EACH_PLACE(place, &options) {
      uintptr_t adr = umem_alloc(&place.debug, 10);
      poke(&place, adr - guards[i], 1);
      free_is_reported(&place, adr, ", before it: ");
      adr = umem_alloc(&place.debug, 10);
      poke(&place, adr + 9 + guards[i], 1);
      free_is_reported(&place, adr, ", past its end: ");
      assert_true(first_fault(&place.debug).offset == -(int64_t)guards[i]);
      assert_int_equal(figures_of(&place.debug).faults, 2);
    }
  }
}

EACH_PLACE(writes_into_freed_blocks_are_found) {
  char words[160];
  uintptr_t first = umem_alloc(debug, 64), adr = umem_calloc(debug, 10, 10);
  FREE(debug, first, adr);
  poke(place, adr + 12, 0);
  poke(place, adr + 99, 1);
  assert_int_equal(umem_trim(debug, 0), umemIndexError);
  snprintf(words, sizeof words,
           "umem_trim: a wrong write to byte 12 of the freed block of 100 "
           "bytes at 0x%jx: 0x00 instead of 0xdd, 2 bytes in all",
           (uintmax_t)adr);
  expect_failure(debug, umemIndexError, words);
  umemDebugFault fault = first_fault(debug);
  assert_int_equal(fault.kind, umemDebugWriteAfterFree);
  assert_true(fault.adr == adr && fault.offset == 12 && fault.wrong == 2 && fault.freed);
  assert_ok(umem_trim(debug, 0)); /* it was reported */
  assert_int_equal(figures_of(debug).kept_blocks, 0);
}

/* More than is copied at once, several times over; to the first byte and the last. */
EACH_PLACE(nothing_is_too_long_to_be_looked_at) {
  enum { nbytes = 1000000 };
  size_t const at[] = {0, 1, 262111, 262112, 262143, 262144, 600000, nbytes - 1};
  uintptr_t adr[8];
  for (size_t i = 0; i < 8; i++) adr[i] = umem_alloc(debug, nbytes);
  for (size_t i = 0; i < 8; i++) umem_free(debug, adr[i]);
  for (size_t i = 0; i < 8; i++) {
    char words[100];
    poke(place, adr[i] + at[i], 1);
    assert_int_equal(umemDebug_check(debug), umemIndexError);
    snprintf(words, sizeof words, "byte %zu of the freed block of 1000000 bytes at 0x%jx: ", at[i],
             (uintmax_t)adr[i]);
    expect_failure(debug, umemIndexError, words);
  }
}

EACH_PLACE(a_check_finds_them_where_they_are) {
  enum { count = 200 }; /* several batches */
  uintptr_t adr[count];
  for (size_t i = 0; i < count; i++) adr[i] = umem_alloc(debug, 10 + i);
  for (size_t i = 0; i < count; i += 2) umem_free(debug, adr[i]);
  assert_ok(umemDebug_check(debug));
  poke(place, adr[151] + 161, 5);
  expect_status(debug, umemDebug_check(debug), umemIndexError,
                "umemDebug_check: a wrong write to byte 161 of the");
  poke(place, adr[50] + 2, 5);
  poke(place, adr[3] - 2, 5);
  assert_int_equal(umemDebug_check(debug), umemIndexError);
  expect_failure(debug, umemIndexError, "byte 2 of the freed block of 60 bytes");
  assert_ok(umemDebug_check(debug)); /* each is reported once */
  poke(place, adr[50] + 1, 5);
  poke(place, adr[3] - 1, 5);
  assert_ok(umemDebug_check(debug));
  poke(place, adr[50] - 1, 5); /* around is not inside */
  assert_int_equal(umemDebug_check(debug), umemIndexError);
  expect_failure(debug, umemIndexError, "byte -1 of the freed block of 60 bytes");
  umemDebugFigures figures = figures_of(debug);
  assert_true(figures.faults == 4 && figures.live_blocks == count / 2);
  assert_int_equal(figures.kept_blocks, count / 2);
  for (size_t i = 1; i < count; i += 2) umem_free(debug, adr[i]);
}

TEST(the_end_finds_what_is_left) {
  Place place;
  for (size_t i = 0; i < place_count; i++) {
    open_place(&place, place_names[i], NULL);
    uintptr_t adr = umem_alloc(&place.debug, 100), other = umem_alloc(&place.debug, 100);
    umem_free(&place.debug, other);
    poke(&place, adr + 100, 5);
    poke(&place, other + 7, 5);
    umem_dtor(&place.debug);
    assert_non_null(strstr(umem_get_message(&place.debug), "byte 7 of the freed block of 100"));
    expect_failure(&place.debug, umemIndexError, "umem_dtor: a wrong write ");
    assert_true(umem_is_ok(place.upstream));
    if (place.row->records) assert_int_equal(place.row->records(place.upstream).blocks, 0);
    backend_close(place.row, place.upstream);
  }
}

/* ---- what memory holds ---- */

TEST(new_and_freed_memory_is_filled) {
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  for (int fill = 0; fill < 2; fill++) {
    options.fill = fill;
    Place place;
    FOR_EACH_PLACE(place, &options) {
      uintptr_t adr = umem_alloc(&place.debug, 5000);
      unsigned char zeros[10] = {0};
      if (fill) assert_true(all_are(&place, adr, UMEM_DEBUG_NEW, 5000));
      assert_true(all_are(&place, adr - 32, UMEM_DEBUG_GUARD, 32));
      assert_true(all_are(&place, adr + 5000, UMEM_DEBUG_GUARD, 32));
      assert_ok(umem_copy_from(&place.debug, adr, &host, (uintptr_t)zeros, 10));
      umem_free(&place.debug, adr);
      assert_true(all_are(&place, adr, UMEM_DEBUG_FREED, 5000));
      adr = umem_calloc(&place.debug, 50, 100);
      assert_true(all_are(&place, adr, 0, 5000));
      adr = umem_realloc(&place.debug, adr, 5000, 7000);
      assert_true(all_are(&place, adr, 0, 5000));
      if (fill) assert_true(all_are(&place, adr + 5000, UMEM_DEBUG_NEW, 2000));
      umem_free(&place.debug, adr);
    }
  }
}

TEST(alignment_is_kept_with_guards) {
  Place place;
  FOR_EACH_PLACE(place, NULL) for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    uintptr_t adr = umem_aligned_alloc(&place.debug, alignment, 77);
    assert_true(adr != umem_null(&place.debug) && adr % alignment == 0);
    assert_true(umem_aligned_origin(&place.debug, adr) == adr);
    if (alignment == 4096) poke(&place, adr - 4096, 1);
    if (alignment == 8192) poke(&place, adr + 77, 1);
    umem_aligned_free(&place.debug, adr);
    if (place.direct && (alignment == 4096 || alignment == 8192)) {
      expect_failure(&place.debug, umemIndexError, alignment == 4096 ? "before" : "past");
      umem_aligned_free(&place.debug, adr);
    }
    if (!place.direct && alignment == 65536) {
      assert_int_equal(umemDebug_check(&place.debug), umemIndexError);
      expect_failure(&place.debug, umemIndexError, "byte -4096 of the freed block of 77");
    }
    if (alignment == 65536) assert_true(first_fault(&place.debug).aligned);
    assert_int_equal(figures_of(&place.debug).live_blocks, 0);
  }
}

int main(void) {
  doubles_use();
  return run_cases(NULL, NULL);
}
