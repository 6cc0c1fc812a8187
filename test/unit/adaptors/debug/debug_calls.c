/* debug_calls.c - umem/debug.h: wrong calls over each kind of memory, call sites, construction. */
#include "debug_help.h"

/* ---- wrong calls ---- */

__attribute__((noinline)) uintptr_t allocate_here(umemDebug *debug, size_t nbytes);
__attribute__((noinline)) void free_here(umemDebug *debug, uintptr_t adr);

uintptr_t allocate_here(umemDebug *debug, size_t nbytes) {
  uintptr_t adr = umem_alloc(debug, nbytes);
  __asm__ volatile("" ::"r"(adr)); /* no tail call */
  return adr;
}

void free_here(umemDebug *debug, uintptr_t adr) {
  umem_free(debug, adr);
  __asm__ volatile("" ::"r"(adr));
}

static bool lies_in(void *const *trace, unsigned frames, uintptr_t function) {
  for (unsigned i = 0; i < frames; i++)
    if ((uintptr_t)trace[i] > function && (uintptr_t)trace[i] < function + 200) return true;
  return false;
}

EACH_PLACE_WITH(a_second_free_tells_both_sites, with_frames(12)) {
  uintptr_t adr = allocate_here(debug, 100);
  free_here(debug, adr);
  umem_free(debug, adr);
  char const *message = umem_get_message(debug);
  assert_non_null(strstr(message, "; allocated by allocate_here+0x"));
  assert_non_null(strstr(message, "; freed by free_here+0x"));
  expect_failure(debug, umemValueError, "umem_free: the block of 100 bytes at 0x");
  umemDebugFault fault = first_fault(debug);
  assert_int_equal(fault.kind, umemDebugDoubleFree);
  assert_true(fault.adr == adr && fault.offset == 0 && fault.nbytes == 100);
  assert_true(lies_in(fault.allocated_at, fault.allocated_frames, (uintptr_t)allocate_here));
  assert_true(lies_in(fault.freed_at, fault.freed_frames, (uintptr_t)free_here));
  assert_int_equal(figures_of(debug).kept_blocks, 1);
}

/* One frame is enough: umem's own are not kept. */
EACH_PLACE_WITH(call_sites_are_the_programs, with_frames(1)) {
  uintptr_t adr = allocate_here(debug, 100);
  free_here(debug, adr);
  umem_free(debug, adr);
  umemDebugFault fault = first_fault(debug);
  assert_true(fault.allocated_frames == 1 && fault.freed_frames == 1);
  assert_true(lies_in(fault.allocated_at, 1, (uintptr_t)allocate_here));
  assert_true(lies_in(fault.freed_at, 1, (uintptr_t)free_here));
  expect_failure(debug, umemValueError, "; freed by free_here+0x");
}

EACH_PLACE_WITH(a_wrong_write_tells_the_sites, with_frames(12)) {
  uintptr_t adr = allocate_here(debug, 100), live = allocate_here(debug, 100);
  free_here(debug, adr);
  poke(place, adr + 4, 1);
  umem_trim(debug, 0);
  assert_non_null(strstr(umem_get_message(debug), "; allocated by allocate_here+0x"));
  expect_failure(debug, umemIndexError, "; freed by free_here+0x");
  poke(place, live + 100, 1);
  if (place->direct) { /* refused: it is not free, and nobody has freed it */
    free_here(debug, live);
    expect_failure(debug, umemIndexError, "; allocated by allocate_here+0x");
    umem_set(debug, live, 0, 101);
    assert_null(strstr(umem_get_message(debug), "freed"));
    expect_failure(debug, umemIndexError, "; allocated by allocate_here+0x");
    return;
  }
  umemDebug_check(debug);
  assert_null(strstr(umem_get_message(debug), "freed"));
  expect_failure(debug, umemIndexError, "; allocated by allocate_here+0x");
}

/* The wrong free of adr is a finding of this kind, and changes nothing. */
static void refuses(Place *place, void (*give_back)(void *, uintptr_t), uintptr_t adr,
                    char const *words) {
  umemDebugFigures before = figures_of(&place->debug);
  give_back(&place->debug, adr);
  expect_failure(&place->debug, umemValueError, words);
  umemDebugFigures after = figures_of(&place->debug);
  assert_int_equal(after.faults, before.faults + 1);
  assert_int_equal(after.live_blocks, before.live_blocks);
  assert_int_equal(after.kept_blocks, before.kept_blocks);
}

EACH_PLACE(wrong_frees_change_nothing) {
  uintptr_t adr = umem_alloc(debug, 100);
  uintptr_t aligned = umem_aligned_alloc(debug, 64, 100);
  refuses(place, umem_free, adr + 1, "is byte 1 of the block of 100 bytes at 0x");
  assert_int_equal(first_fault(debug).kind, umemDebugInnerFree);
  assert_true(first_fault(debug).offset == 1);
  refuses(place, umem_free, adr + 100, "is byte 100 of the block of 100 bytes");
  refuses(place, umem_free, adr - 32, "is byte -32 of the block of 100 bytes"); /* upstream's */
  refuses(place, umem_free, (uintptr_t)place, "is in no block");
  refuses(place, umem_free, aligned, "is of umem_aligned_alloc: free it with umem_aligned_free");
  refuses(place, umem_aligned_free, adr, "is not of umem_aligned_alloc: free it with umem_free");
  assert_true(umem_realloc(debug, adr, 99, 10) == umem_null(debug));
  expect_failure(debug, umemValueError, "umem_realloc: the block of 100 bytes");
  assert_true(umem_realloc(debug, aligned, 100, 10) == umem_null(debug));
  expect_failure(debug, umemValueError, "umem_realloc: the block of 100 bytes");
  umem_free(debug, adr);
  refuses(place, umem_free, adr, "is free already");
  refuses(place, umem_aligned_free, adr, "is free already");
  refuses(place, umem_free, adr + 5, "is byte 5 of the freed block of 100 bytes");
  expect_no_block(debug, umem_realloc(debug, adr, 100, 10), umemValueError, "is free already");
  umem_aligned_free(debug, aligned);
  assert_ok(umem_trim(debug, 0));
  refuses(place, umem_free, adr, "is in no block");
}

EACH_PLACE(a_resize_moves_and_watches_the_old_place) {
  uintptr_t old = umem_calloc(debug, 1, 100), null = umem_null(debug);
  poke(place, old + 99, 7);
  uintptr_t adr = umem_realloc(debug, old, 100, 200);
  assert_true(adr != null && adr != old);
  assert_true(all_are(place, adr, 0, 99) && all_are(place, adr + 99, 7, 1));
  assert_true(all_are(place, old, UMEM_DEBUG_FREED, 100));
  poke(place, old + 50, 7);
  assert_int_equal(umemDebug_check(debug), umemIndexError);
  expect_failure(debug, umemIndexError, "byte 50 of the freed block of 100 bytes");

  uintptr_t small = umem_realloc(debug, adr, 200, 1);
  assert_true(small != null && all_are(place, small, 0, 1));
  poke(place, small + 1, 7);
  adr = umem_realloc(debug, small, 1, 10);
  if (place->direct) { /* reported, and nothing else done */
    assert_true(adr == null);
    expect_failure(debug, umemIndexError, "umem_realloc: a wrong write to byte 1 of");
    assert_int_equal(figures_of(debug).live_blocks, 1);
    adr = umem_realloc(debug, small, 1, 10);
  } else {
    assert_int_equal(umemDebug_check(debug), umemIndexError);
    expect_failure(debug, umemIndexError, "byte 1 of the freed block of 1 byte");
  }
  assert_true(adr != null);
  umem_free(debug, adr);
  assert_int_equal(figures_of(debug).live_blocks, 0);
}

/* What is none is reported, and not read. */
TEST(questions_are_for_its_kind) {
  umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
  CONTEXT(umemLimit, limit, &host, 100);
  assert_int_equal(umemDebug_check((umemDebug *)&limit), umemTypeError);
  expect_failure(&limit, umemTypeError, "umemDebug_check: this Limit is no umemDebug");
  assert_int_equal(umemDebug_get((umemDebug *)&limit, &figures), umemTypeError);
  expect_failure(&limit, umemTypeError, "umemDebug_get: this Limit is no umemDebug");
  assert_false(umemDebug_first((umemDebug *)&limit, NULL));
  expect_failure(&limit, umemTypeError, "umemDebug_first: this Limit is no umemDebug");
}

/* ---- sets and copies ---- */

static void expect_bad_access(Place *place, umemStatusType status, char const *words) {
  assert_int_equal(status, umemIndexError);
  expect_failure(&place->debug, umemIndexError, words);
  assert_ok(umemDebug_check(&place->debug)); /* nothing was touched */
}

EACH_PLACE(sets_and_copies_stay_inside) {
  unsigned char bytes[200] = {0};
  uintptr_t out = (uintptr_t)bytes;
  uintptr_t adr = umem_alloc(debug, 100), dead = umem_alloc(debug, 100);
  umem_free(debug, dead);
  assert_ok(umem_set(debug, adr, 1, 100));
  expect_bad_access(place, umem_set(debug, adr, 2, 101),
                    "umem_set: it touches byte 100 of the block of 100 bytes");
  umemDebugFault fault = first_fault(debug);
  assert_int_equal(fault.kind, umemDebugBadAccess);
  assert_true(fault.adr == adr && fault.offset == 100 && !fault.freed);
  expect_bad_access(place, umem_set(debug, adr - 2, 2, 5), "it touches byte -2 of the block");
  expect_bad_access(place, umem_set(debug, adr + 105, 2, 1), "byte 105 of the block of 100 bytes");
  size_t alignment = place->upstream->alignment;
  size_t guard = (32 + alignment - 1) / alignment * alignment;
  if (adr > guard + 8) /* from outside into a guard */
    expect_bad_access(place, umem_set(debug, adr - guard - 8, 2, 10), "it touches byte");
  expect_bad_access(place, umem_set(debug, dead + 5, 2, 1), "byte 5 of the freed block");
  expect_bad_access(place, umem_copy_to(debug, adr, &host, out, 101),
                    "byte 100 of the block of 100 bytes");
  expect_bad_access(place, umem_copy_from(debug, adr + 50, &host, out, 51),
                    "byte 100 of the block of 100 bytes");
  expect_bad_access(place, umem_copy_to(debug, dead, &host, out, 10), "byte 0 of the freed");
  expect_bad_access(place, umem_copy_to(debug, adr, debug, dead, 10), "freed");
  assert_true(all_are(place, adr, 1, 100));

  size_t const extents[] = {3, 5};
  ptrdiff_t const strides[] = {-40, 2};
  umemLayout layout = {sizeof layout, 1, 2, extents, strides, NULL};
  assert_ok(umem_copy_strided(debug, adr + 80, &host, out, &layout));
  expect_bad_access(place, umem_copy_strided(debug, adr + 79, &host, out, &layout),
                    "umem_copy_strided: it touches byte -1 of");
  expect_bad_access(place, umem_copy_strided(debug, adr + 92, &host, out, &layout),
                    "byte 100 of the block of 100 bytes");
  assert_ok(umem_synchronize(debug));
  umem_free(debug, adr);
}

/* ---- construction ---- */

TEST(what_cannot_have_guards_is_refused) {
  char path[BACKEND_PATH_SIZE];
  umemDebug debug;
  umemFile file;
  assert_true(backend_temp_file(path));
  char const *const modes[] = {"r", "w"};
  for (int i = 0; i < 2; i++) {
    assert_ok(umemFile_ctor(&file, path, modes[i]));
    assert_int_equal(umemDebug_adopt(&debug, &file, NULL), umemNotSupportedError);
    expect_failure(&debug, umemNotSupportedError, "cannot be both read and written");
    end(&file);
  }
  remove(path);
}

TEST(options_are_checked) {
  umemDebug debug;
  struct {
    umemDebugOptions options;
    char const *words;
  } wrong[] = {{UMEM_DEBUG_OPTIONS_INIT, "33 frames are more than 32"},
               {UMEM_DEBUG_OPTIONS_INIT, "a guard of 0 bytes is not one of 1 to 65536"},
               {UMEM_DEBUG_OPTIONS_INIT, "a guard of 65537 bytes"},
               {UMEM_DEBUG_OPTIONS_INIT, "too small"}};
  wrong[0].options.frames = UMEM_DEBUG_FRAMES + 1;
  wrong[1].options.guard = 0;
  wrong[2].options.guard = UMEM_DEBUG_LARGEST_GUARD + 1;
  wrong[3].options.size = 7;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(umemDebug_ctor(&debug, &fake, &wrong[i].options), umemValueError);
    expect_failure(&debug, umemValueError, wrong[i].words);
  }
  assert_non_null(fake.super.vptr);
}

TEST(structs_may_be_older) {
  umemDebug debug;
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  options.size = offsetof(umemDebugOptions, frames);
  options.frames = UMEM_DEBUG_FRAMES + 1;
  assert_ok(umemDebug_ctor(&debug, &fake, &options));
  end(&debug);
  umemDebugFault fault;
  umemDebugFigures figures;
  assert_ok(umemDebug_ctor(&debug, &fake, NULL));
  assert_false(umemDebug_first(&debug, NULL));
  umem_free(&debug, 4096);
  expect_failure(&debug, umemValueError, "0x1000 is in no block");
  assert_true(umemDebug_first(&debug, NULL));
  memset(&fault, 0xAA, sizeof fault);
  fault.size = offsetof(umemDebugFault, number);
  assert_true(umemDebug_first(&debug, &fault));
  assert_true(fault.kind == umemDebugUnknownFree && fault.adr == 4096);
  assert_true(fault.size == offsetof(umemDebugFault, number));
  assert_int_equal(fault.wrong, 0xAAAAAAAAAAAAAAAAu);
  fault.size = 4;
  assert_false(umemDebug_first(&debug, &fault));
  expect_failure(&debug, umemValueError, "umemDebug_first: fault->size is 4");
  memset(&figures, 0xAA, sizeof figures);
  figures.size = offsetof(umemDebugFigures, live_blocks);
  assert_ok(umemDebug_get(&debug, &figures));
  assert_true(figures.faults == 1 && figures.live_blocks == 0xAAAAAAAAAAAAAAAAu);
  figures.size = 3;
  assert_int_equal(umemDebug_get(&debug, &figures), umemValueError);
  expect_failure(&debug, umemValueError, "umemDebug_get: figures->size is 3");
  expect_status(&debug, umemDebug_get(&debug, NULL), umemValueError, "NULL");
  end(&debug);
  assert_false(umemDebug_first(&debug, NULL));
  assert_int_equal(umemDebug_check(&debug), umemValueError);
  expect_status(&debug, umemDebug_get(&debug, &figures), umemValueError, "not constructed");
}

int main(void) {
  doubles_use();
  return run_cases(NULL, NULL);
}
