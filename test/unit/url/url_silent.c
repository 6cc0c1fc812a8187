/* url_silent.c - a server that falls silent: the program can cancel whatever waits for it. */
#include "url_help.h"

enum { long_size = 24 << 20 };

/* Answers the first request, which opens the object. */
static bool serve_silence(void *user, UrlRequest *request) {
  char byte;
  if (!__atomic_fetch_add((int *)user, 1, __ATOMIC_RELAXED)) return url_serve(NULL, request);
  ssize_t ignored = read(request->fd, &byte, 1); /* until the client gives up */
  (void)ignored;
  return false;
}

static bool end_third(void *user, size_t done, size_t total UNUSED) {
  assert_int_equal(done, 0);
  return ++*(int *)user < 3;
}

TEST(a_copy_from_a_silent_server_can_be_cancelled) {
  static unsigned char bytes[long_size]; /* the server uses these two until it ends */
  static int requests;
  int reports = 0;
  SCOPED(free_bytes) unsigned char *read = malloc(long_size);
  server = url_server_start(bytes, long_size, serve_silence, &requests);
  assert_ok(open_url());
  umemCopyOptions steps = {
      .size = sizeof steps, .progress = end_third, .user = &reports, .step = 1 << 20};
  time_t begin = time(NULL);
  assert_failed(umem_copy_to_with(&url, 0, &host, (uintptr_t)read, long_size, &steps),
                umemCancelledError, "");
  assert_int_equal(reports, 3);
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&url, 0, &host, (uintptr_t)read, long_size, NULL, &transfer));
  umemTransfer_cancel(transfer);
  assert_int_equal(umemTransfer_wait(transfer), umemCancelledError);
  umemTransfer_release(transfer);
  assert_true(time(NULL) - begin < 15); /* stall_ms: 30 s */
}

/* Short copies and openings wait in other places. */

static bool hear_nothing(void *user, UrlRequest *request) {
  static int one = 1;
  (void)user;
  return serve_silence(&one, request);
}

static bool wait_twice(void *data) { return ++*(int *)data < 3; }

TEST(a_short_copy_from_a_silent_server_can_be_cancelled) {
  int requests = 0, reports = 0;
  serve(serve_silence, &requests);
  umemCopyOptions steps = {.size = sizeof steps, .progress = end_third, .user = &reports};
  time_t begin = time(NULL);
  assert_failed(umem_copy_to_with(&url, 0, &host, (uintptr_t)got, 1000, &steps), umemCancelledError,
                "cannot read http://127.0.0.1");
  assert_int_equal(reports, 3);
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&url, 0, &host, (uintptr_t)got, 1000, NULL, &transfer));
  while (__atomic_load_n(&requests, __ATOMIC_RELAXED) < 3)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  umemTransfer_cancel(transfer);
  assert_int_equal(umemTransfer_wait(transfer), umemCancelledError);
  umemTransfer_release(transfer);
  int calls = 0;
  umem_set_wait_hook(wait_twice, &calls);
  assert_failed(read_bytes(0, 1000), umemCancelledError, "cancelled");
  assert_int_equal(calls, 3);
  reports = calls = 0;
  umemCopyItem const items[] = {{&url, 0, &host, (uintptr_t)got, 500},
                                {&url, 600, &host, (uintptr_t)got + 600, 400}};
  umemCopyManyOptions many = UMEM_COPY_MANY_OPTIONS_INIT;
  calls = 0;
  assert_failed(umem_copy_many(items, 2, &many), umemCancelledError, "cancelled");
  assert_int_equal(calls, 3);
  many.progress = end_third;
  many.user = &reports;
  assert_failed(umem_copy_many(items, 2, &many), umemCancelledError, "cancelled");
  assert_true(reports == 3 && calls == 3);
  umem_set_wait_hook(NULL, NULL);
  assert_true(time(NULL) - begin < 15); /* stall_ms: 30 s */
  end_server();
}

/* As Python's: it cancels in the thread of the program only. */
static bool cancel_here(void *program) {
  return !pthread_equal(pthread_self(), *(pthread_t *)program);
}

/* The object, in two blocks. */
static umemBlocksOptions two_blocks(size_t depth) {
  return (umemBlocksOptions){.size = sizeof(umemBlocksOptions),
                             .source = {&url, 0, 4, 0},
                             .count = object_size / 4,
                             .place = &host,
                             .rows = object_size / 8,
                             .depth = depth};
}

static umemStatusType stop_waiting(unsigned threads, size_t depth) {
  umemBlocksOptions given = two_blocks(depth);
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  assert_int_equal(umem_set_threads(threads), umemOK);
  assert_int_equal(umemBlocks_ctor(&blocks, &given), umemOK);
  assert_false(umemBlocks_next(&blocks, &block));
  umemStatusType status = umemBlocks_end(&blocks);
  assert_int_equal(umem_set_threads(0), umemOK);
  return status;
}

TEST(blocks_of_a_silent_server_can_be_cancelled) {
  int requests = 0;
  pthread_t program = pthread_self();
  serve(serve_silence, &requests);
  umem_set_wait_hook(cancel_here, &program);
  time_t begin = time(NULL);
  for (unsigned threads = 1; threads <= 4; threads += 3) {
    assert_failed(stop_waiting(threads, 1), umemCancelledError, "cancelled");
    assert_failed(stop_waiting(threads, 2), umemCancelledError, "cancelled");
  }
  umem_set_wait_hook(NULL, NULL);
  assert_true(time(NULL) - begin < 15); /* stall_ms: 30 s */
  end_server();
}

/* The first half comes. */
static bool serve_half(void *user, UrlRequest *request) {
  if (request->first < object_size / 2) return url_serve(NULL, request);
  return serve_silence(user, request);
}
TEST(blocks_that_nobody_needs_wait_for_no_server) {
  int requests = 1;
  serve(serve_half, &requests);
  umemBlocksOptions given = two_blocks(0);
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  assert_ok(umemBlocks_ctor(&blocks, &given));
  assert_true(umemBlocks_next(&blocks, &block));
  while (__atomic_load_n(&requests, __ATOMIC_RELAXED) < 2)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  time_t begin = time(NULL);
  assert_ok(umemBlocks_end(&blocks));
  assert_true(time(NULL) - begin < 15); /* stall_ms: 30 s */
  end_server();
}

/* Answers, late. */
static bool serve_late(void *user, UrlRequest *request) {
  nanosleep(&(struct timespec){0, 20000000}, NULL);
  return url_serve(user, request);
}
TEST(many_short_reads_can_be_cancelled) {
  int calls = 0;
  serve(serve_late, NULL);
  umem_set_wait_hook(wait_twice, &calls);
  umemStatusType status = umemOK;
  size_t k = 0;
  while (k < 1000 && status == umemOK) status = read_bytes(3000 * k++, 1);
  umem_set_wait_hook(NULL, NULL);
  assert_failed(status, umemCancelledError, "cancelled");
  assert_true(calls == 3 && k < 100);
}

TEST(the_opening_of_a_silent_server_can_be_cancelled) {
  int calls = 0;
  start(hear_nothing, NULL);
  umem_set_wait_hook(wait_twice, &calls);
  time_t begin = time(NULL);
  assert_failed(open_url(), umemCancelledError, "cannot open http://127.0.0.1");
  umem_set_wait_hook(NULL, NULL);
  assert_int_equal(calls, 3);
  assert_true(time(NULL) - begin < 15);
}

int main(void) { return url_has_libcurl() ? run_cases(NULL, NULL) : 0; }
