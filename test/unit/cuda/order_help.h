/* order_help.h - contexts, and the places of bytes, of tests of the order of queues.
 *
 * On a double of the runtime that does nothing before it is demanded; once as drivers are so
 * far, and once with copies of pageable memory as late as the manual allows. */
#pragma once

#include "cuda_help.h"

#include "backends.h"
#include "fake/fake.h"
#include "core/context.h"
#include "cuda/cuda_pinned.h"

enum { n = 5000, large = umemStagingToDevice + (1 << 20) }; /* large is staged, both ways */

static umemHost host;
static umemCudaAsync a, b, other; /* on GPU 0, 0 and 1 */
static umemCuda plain, plain_1;   /* on GPU 0 and 1 */
static umemCudaHost pinned;
static FakeAsync fake;
static unsigned char *page; /* n bytes of pinned memory, zero */

static bool late_pageable;

static void order_set_up(void **state) {
  cuda_set_up(state);
  expect_ok(umemHost_ctor(&host));
  expect_ok(umemCudaAsync_ctor(&a, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&b, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&other, 1, UMEM_STREAM_NEW));
  expect_ok(umemCuda_ctor(&plain, 0));
  expect_ok(umemCuda_ctor(&plain_1, 1));
  expect_ok(umemCudaHost_ctor(&pinned, 0));
  expect_ok(fake_async_ctor(&fake));
  page = (unsigned char *)umem_calloc(&pinned, n, 1);
  fake_cudart_machine()->late_pageable = late_pageable;
  assert_true(page);
}

static void order_tear_down(void **state) {
  void *const all[] = {&a, &b, &other, &plain, &plain_1, &pinned, &fake, &host};
  close_opened();
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) umem_dtor(all[i]);
  if (umem_thread_status() != umemOK) fail_msg("%s", umem_thread_message());
  cuda_tear_down(state);
}

#define ORDER_TEST(name) TEST_CASE_WITH(name, order_set_up, order_tear_down)

static void *stream_of(umemCudaAsync *ctx) { return (void *)umemCudaAsync_stream(ctx); }

static bool is_late(umemCudaAsync *ctx) { return fake_cudart_is_late(stream_of(ctx)); }

/* Whether n pinned bytes are all this. */
static bool page_is(int value) {
  for (size_t i = 0; i < n; i++)
    if (page[i] != value) return false;
  return true;
}

static void to_page(void *ctx, uintptr_t adr) {
  expect_ok(umem_copy_to(ctx, adr, &pinned, (uintptr_t)page, n));
}

/* Ends the capture of a, which must be whole, and returns its graph. */
static void *end_capture(void) {
  void *graph = NULL;
  ok(fake_cudart_end_capture(stream_of(&a), &graph));
  assert_non_null(graph);
  return graph;
}

static void launch(void *graph) {
  ok(fake_cudart_launch_graph(graph, stream_of(&a)));
  expect_ok(umem_synchronize(&a));
}

/* All of it once as drivers are so far, and once with copies of pageable memory as late as the
 * manual allows. */
static int run_order_cases(void) {
  int failed = run_cases(NULL, NULL);
  late_pageable = true;
  return failed + run_cases(NULL, NULL);
}
