/* pool_on_capture.c - views of a pool while another thread begins a capture of one's stream: before
 * any call that umem makes meanwhile. No other call uses this stream, nobody else is drawn into the
 * capture, nobody waits for it, and it stays whole.
 *
 * On a double of the runtime, where a test can come between two calls. */
#include "pool_cuda_help.h"
#include "settings.h"

enum { n = 1 << 20, small = 4096, in_span = 16 };

static uintptr_t spans[in_span];

/* It begins and is over at once. */
static void begin_and_end(void *unused) {
  begin_in_thread(unused);
  end_in_thread();
}

/* ---- what this thread does meanwhile ---- */

typedef struct Scene {
  char const *name;
  void (*prepare)(void);
  void (*act)(void);
} Scene;

static void free_large_to_a(void) { umem_free(&on_a, block_of(&on_a, n)); }

static void take_large(void) { umem_free(&on_b, block_of(&on_b, n)); }

/* Several spans of a, with all their blocks free; which the thread keeps no more. */
static void free_small_to_a(void) {
  for (int i = 0; i < in_span; i++) spans[i] = block_of(&on_a, small);
  for (int i = 0; i < in_span; i++) umem_free(&on_a, spans[i]);
  expect_ok(umem_trim(&on_a, SIZE_MAX));
}

static void take_small(void) { umem_free(&on_b, block_of(&on_b, small)); }

/* Blocks of one span in the order of both. */
static void free_mixed(void) {
  for (int i = 0; i < in_span; i++) spans[i] = block_of(&on_a, small);
  expect_ok(umem_wait(&b, &a));
  for (int i = 0; i + 1 < in_span; i++) umem_free(i % 2 ? &on_a : &on_b, spans[i]);
  expect_ok(umem_trim(&on_a, SIZE_MAX));
  expect_ok(umem_trim(&on_b, SIZE_MAX));
}

static void trim_pool(void) { expect_ok(umem_trim(&pool, 0)); }

static void take_from_the_pool(void) { umem_free(&pool, block_of(&pool, n)); }

static Scene const scenes[] = {
    {"a large block", free_large_to_a, take_large},
    {"a small block", free_small_to_a, take_small},
    {"a block of a mixed span", free_mixed, take_small},
    {"the pool's trim", free_large_to_a, trim_pool},
    {"a block of the pool", free_large_to_a, take_from_the_pool},
};

/* ---- the moments ---- */

static bool is_captured(void *stream) {
  umemCudaCapture state = umemCudaNoCapture;
  uint64_t id;
  enter(0);
  ok(rt->stream_capture(stream, &state, &id));
  leave(0);
  return state != umemCudaNoCapture;
}

/* Whether there was such a moment: before the nth call of function. */
static bool play(Scene const *scene, char const *function, unsigned long nth, bool over_at_once) {
  open_over(upstream, n, 4 * n);
  scene->prepare();
  capture.begun = false;
  fake_cudart_before(function, nth, over_at_once ? begin_and_end : begin_in_thread, NULL);
  fake_cudart_bar(stream_of(&a), true);
  scene->act();
  fake_cudart_bar(stream_of(&a), false);
  fake_cudart_before(NULL, 0, NULL, NULL);
  bool was_one = capture.begun;
  if (was_one) {
    bool drawn = is_captured(stream_of(&b)) || is_captured(stream_of(&base));
    if (!over_at_once) end_in_thread();
    if (drawn || !capture.is_whole)
      fail_msg("%s, %s, call %lu%s: %s", scene->name, function, nth, over_at_once ? ", over" : "",
               drawn ? "drawn in" : "the capture is broken");
  }
  expect_ok(umem_synchronize(&b));
  close_all();
  return was_one;
}

static char const *const functions[] = {"context_current",    "context_push",     "stream_capture",
                                        "event_create",       "event_record",     "stream_wait",
                                        "stream_synchronize", "event_synchronize"};

ON_EACH(nobody_is_drawn_in) {
  unsigned long moments = 0;
  for (size_t s = 0; s < sizeof scenes / sizeof *scenes; s++)
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
      for (int over = 0; over < 2; over++)
        for (unsigned long nth = 1; play(&scenes[s], functions[f], nth, over); nth++) moments++;
  if (moments < 50) fail_msg("%lu moments", moments);
}

/* What a program asks for itself draws in, as CUDA does. */
ON_TEST(who_waits_for_a_captured_stream_is_drawn_in) {
  begin_in_thread(NULL);
  expect_ok(umem_wait(&b, &a));
  assert_true(is_captured(stream_of(&b)));
  expect_ok(umem_wait(&a, &b));
  end_in_thread();
  assert_true(capture.is_whole);
}

/* ---- two threads ---- */

enum { captures = 300, most_pages = 24 };

static bool stop; /* atomic */

/* Captures the stream of a again and again, and uses the view of it in between. Never makes a call
 * on the stream of b. */
static void *capture_often(void *unused UNUSED) {
  unsigned whole = 0;
  fake_cudart_bar(stream_of(&b), true);
  for (unsigned i = 0; i < (setting_small() ? captures / 4 : captures); i++) {
    void *graph = NULL;
    uintptr_t adr = umem_alloc(&on_a, (size_t)(1 + i % 4) * n), tiny = umem_alloc(&on_a, small);
    int error = fake_cudart_begin_capture_in(stream_of(&a), 2);
    if (adr && i % 3) umem_set(&on_a, adr, 1, small);
    umem_free(&on_a, i % 2 ? adr : tiny);
    sched_yield();
    if (!error) error = fake_cudart_end_capture(stream_of(&a), &graph);
    umem_free(&on_a, i % 2 ? tiny : adr);
    whole += !error && graph;
    umem_clear_status(&on_a); /* it may be out of memory */
  }
  umem_thread_clear();
  fake_cudart_bar(stream_of(&b), false);
  __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
  return whole == (setting_small() ? captures / 4 : captures) ? &stop : NULL;
}

/* No call on b, and none on the pool, uses the stream of a; and memory passes all the same. */
ON_EACH(views_of_two_threads_use_their_own_streams) {
  unsigned got = 0, i = 0;
  open_over(upstream, n, most_pages * n);
  stop = false;
  fake_cudart_bar(stream_of(&a), true);
  pthread_t thread = start_thread(capture_often, NULL);
  for (; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); i++) {
    size_t size = i % 5 ? (size_t)(1 + i % 20) * n : small;
    uintptr_t adr = umem_alloc(i % 7 ? (void *)&on_b : &pool, size);
    if (adr && i % 7) expect_ok(umem_set(&on_b, adr, 2, size));
    if (adr) umem_free(i % 7 ? (void *)&on_b : &pool, adr);
    if (i % 64 == 0) expect_ok(umem_trim(&pool, i % 128 ? SIZE_MAX : 0));
    got += adr != 0;
    FORGET(&on_b, &pool);
  }
  assert_non_null(join_thread(thread));
  fake_cudart_bar(stream_of(&a), false);
  if (got < i / 2) fail_msg("%u of %u requests were served", got, i);
  close_all();
}

/* ---- staging ---- */

enum { large = 16 << 20 };

/* The channels of a long copy stay outside, whatever comes of the copy: it is the program's to say
 * whether it belongs to the capture. */
ON_TEST(staging_is_not_drawn_in) {
  static unsigned char bytes[large];
  CONTEXT(umemHost, host);
  uintptr_t adr = block_of(&a, large);
  char const *const moments[] = {"event_record", "stream_wait"};
  for (size_t i = 0; i < 2; i++) {
    memset(bytes, (int)i + 1, large);
    expect_ok(umem_set(&a, adr, 9, large));
    fake_cudart_before(moments[i], 1, begin_in_thread, NULL);
    expect_ok(umem_copy_from(&a, adr, &host, (uintptr_t)bytes, large));
    end_in_thread();
    assert_true(capture.is_whole); /* no other stream is in it */
    memset(bytes, 0, large);
    expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)bytes, large));
    assert_int_equal(bytes[large - 1], i == 0 ? 9 : 2); /* recorded, or done */
  }
  umem_free(&a, adr);
}
