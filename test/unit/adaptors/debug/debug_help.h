/* debug_help.h - what the tests of umemDebug share: each place that it goes over, and wrong
 * writes. */
#pragma once

#include "unit/adaptors/adaptor_help.h"
#include "backends.h"
#include "fake/doubles.h"
#include "settings.h"

/* The CPU's memory, at once; files, with offsets and mapped; what the CPU cannot touch; what is
 * ordered; pools over them. */
static char const *const place_names[] = {"host",
                                          "file-scratch",
                                          "mmap-scratch",
                                          "fake",
                                          "fake-offset",
                                          "fake-async",
                                          "fake-managed",
                                          "cuda",
                                          "cuda-async",
                                          "cuda-host",
                                          "pool(host)",
                                          "pool(cuda)",
                                          "pool(cuda-async)"};
enum { place_count = sizeof place_names / sizeof *place_names };

/* A umemDebug over one of them. */
typedef struct Place {
  Backend const *row;
  umemVirtual *upstream;
  umemDebug debug;
  bool batched; /* blocks that go back are looked at together */
  bool direct;  /* the program writes through pointers, which is looked at when a block is freed */
} Place;

static inline void open_place(Place *place, char const *name, umemDebugOptions const *options) {
  place->row = backend_by_name(name);
  assert_non_null(place->row);
  place->upstream = backend_open(place->row);
  assert_non_null(place->upstream);
  assert_ok(umemDebug_ctor(&place->debug, place->upstream, options));
  unsigned const of_cpu = umemCpuReadable | umemCpuWritable;
  place->batched =
      (place->upstream->capabilities & (of_cpu | umemFaultable | umemOrdered)) != of_cpu;
  place->direct = (place->upstream->capabilities & (of_cpu | umemOrdered)) == of_cpu;
}

static inline void close_place(Place *place) {
  end(&place->debug);
  if (!umem_is_ok(place->upstream)) fail_msg("%s", umem_get_message(place->upstream));
  backend_close(place->row, place->upstream);
  char const *complaint = doubles_complaint();
  if (complaint) fail_msg("%s", complaint);
}

#define FOR_EACH_PLACE(place, options)                                                             \
  for (size_t i_ = 0; i_ < place_count && (open_place(&(place), place_names[i_], options), true);  \
       close_place(&(place)), i_++)

/* Options that let few freed blocks wait. */
static inline umemDebugOptions few(size_t blocks, size_t bytes) {
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  options.kept_blocks = blocks;
  options.kept_bytes = bytes;
  return options;
}

static inline umemDebugOptions with_frames(unsigned frames) {
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  options.frames = frames;
  return options;
}

/* A test of a umemDebug over each place: EACH_PLACE(name) { ... } has place and debug, which is
 * &place->debug. */
#define EACH_PLACE(name) EACH_PLACE_TEST(name, NULL)
#define EACH_PLACE_WITH(name, options) EACH_PLACE_TEST(name, (umemDebugOptions[]){options})
#define EACH_PLACE_TEST(name, options)                                                             \
  static void name##_on(Place *place, umemDebug *debug);                                           \
  TEST(name) {                                                                                     \
    Place place;                                                                                   \
    FOR_EACH_PLACE(place, options) name##_on(&place, &place.debug);                                \
  }                                                                                                \
  static void name##_on(Place *place __attribute__((unused)),                                      \
                        umemDebug *debug __attribute__((unused)))

/* ---- memory, past the adaptor ---- */

static inline void poke(Place *place, uintptr_t adr, unsigned char byte) {
  assert_ok(umem_copy_from(place->upstream, adr, &host, (uintptr_t)&byte, 1));
  assert_ok(umem_synchronize(place->upstream));
}

static inline void peek(Place *place, uintptr_t adr, void *bytes, size_t n) {
  assert_ok(umem_copy_to(place->upstream, adr, &host, (uintptr_t)bytes, n));
  assert_ok(umem_synchronize(place->upstream));
}

static inline bool all_are(Place *place, uintptr_t adr, unsigned char byte, size_t n) {
  SCOPED_BYTES(unsigned char, bytes, n);
  peek(place, adr, bytes, n);
  size_t same = 0;
  while (same < n && bytes[same] == byte) same++;
  return same == n;
}

/* ---- what was reported ---- */

static inline umemDebugFault first_fault(umemDebug *debug) {
  umemDebugFault fault = UMEM_DEBUG_FAULT_INIT;
  assert_true(umemDebug_first(debug, &fault));
  assert_ptr_equal(fault.ctx, debug);
  return fault;
}

static inline umemDebugFigures figures_of(umemDebug *debug) {
  umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
  assert_ok(umemDebug_get(debug, &figures));
  return figures;
}

/* Frees the block at adr, around which something is wrong. Where memory is inspected at once the
 * free reports that and is refused; elsewhere the report comes when the block leaves. */
static inline void free_is_reported(Place *place, uintptr_t adr, char const *words) {
  umemDebug *debug = &place->debug;
  size_t live = figures_of(debug).live_blocks;
  umem_free(debug, adr);
  if (place->direct) {
    expect_failure(debug, umemIndexError, words);
    assert_int_equal(figures_of(debug).live_blocks, live);
    umem_free(debug, adr);
  } else {
    assert_true(umem_is_ok(debug));
    assert_int_equal(umem_trim(debug, 0), umemIndexError);
    expect_failure(debug, umemIndexError, words);
  }
  assert_int_equal(figures_of(debug).live_blocks, live - 1);
  assert_ok(umem_trim(debug, 0));
  assert_int_equal(figures_of(debug).kept_blocks, 0);
}
