/* cuda_order_transfers.c - the order of transfers and lists among what is queued. */
#include "order_help.h"

#include <poll.h>

static umemTransfer *start_to_page(umemCudaAsync *ctx, uintptr_t adr) {
  umemTransfer *transfer = NULL;
  expect_ok(umem_start(ctx, adr, &pinned, (uintptr_t)page, n, NULL, &transfer));
  assert_non_null(transfer);
  return transfer;
}

static uint64_t done_of(umemTransfer *transfer) {
  uint64_t done = 1;
  expect_ok(umemTransfer_progress(transfer, &done, NULL));
  return done;
}

/* Between what is queued before and after it. */
ORDER_TEST(a_transfer_is_queued) {
  uintptr_t adr = block_of(&a, n);
  expect_ok(umem_set(&a, adr, 1, n));
  umemTransfer *transfer = start_to_page(&a, adr);
  expect_ok(umem_set(&a, adr, 2, n));
  assert_true(is_late(&a));
  assert_true(page_is(0));
  assert_int_equal(done_of(transfer), 0);
  assert_false(umemTransfer_poll(transfer));
  umemTransfer_cancel(transfer); /* it goes on */
  while (!umemTransfer_poll(transfer)) continue;
  assert_true(page_is(1));
  assert_int_equal(done_of(transfer), n);
  expect_ok(umemTransfer_wait(transfer));
  expect_ok(umemTransfer_release(transfer));
  transfer = start_to_page(&a, adr);
  while (!umemTransfer_wait_for(transfer, 1)) continue;
  assert_true(page_is(2));
  expect_ok(umemTransfer_release(transfer));
  expect_ok(umem_set(&a, adr, 3, n));
  transfer = start_to_page(&a, adr);
  expect_ok(umemTransfer_wait(transfer));
  assert_true(page_is(3));
  expect_ok(umemTransfer_release(transfer));
}

ORDER_TEST(later_work_sees_the_bytes_of_a_transfer) {
  umemTransfer *transfer;
  void *file = opened("file:");
  uintptr_t in_file = umem_alloc(file, n), adr = block_of(&a, n);
  expect_ok(umem_set(file, in_file, 5, n));
  expect_ok(umem_set(&a, adr, 1, n));
  expect_ok(umem_start(file, in_file, &a, adr, n, NULL, &transfer));
  to_page(&a, adr);
  expect_ok(umem_synchronize(&a));
  assert_true(page_is(5));
  expect_ok(umemTransfer_release(transfer));
}

/* Items of two queues, which are late, and one that threads copy. */
static umemTransfer *start_list(uintptr_t of_a, uintptr_t of_b, void *file, unsigned char *to) {
  umemTransfer *transfer = NULL;
  umemCopyItem const items[] = {{&a, of_a, &pinned, (uintptr_t)page, n / 2},
                                {file, 0, &host, (uintptr_t)to, large},
                                {&b, of_b, &pinned, (uintptr_t)(page + n / 2), n / 2}};
  expect_ok(umem_start_many(items, 3, NULL, &transfer));
  assert_non_null(transfer);
  return transfer;
}

ORDER_TEST(a_list_ends_after_all_its_queues) {
  void *file = opened("file:");
  uintptr_t of_a = block_of(&a, n), of_b = block_of(&b, n);
  SCOPED(free_bytes) unsigned char *to = calloc(1, large);
  assert_true(umem_alloc(file, large) == 0);
  expect_ok(umem_set(file, 0, 9, large));
  for (int way = 0; way < 4; way++) {
    expect_ok(umem_set(&a, of_a, way + 1, n));
    expect_ok(umem_set(&b, of_b, way + 1, n));
    umemTransfer *transfer = start_list(of_a, of_b, file, to);
    expect_ok(umem_set(&a, of_a, 77, n));
    expect_ok(umem_set(&b, of_b, 77, n));
    struct pollfd end = {way == 1 ? umemTransfer_descriptor(transfer) : -1, POLLIN, 0};
    if (way == 1) assert_int_equal(poll(&end, 1, 60000), 1);
    if (way == 2) umemTransfer_cancel(transfer); /* what is queued goes on */
    while (way == 3 && !umemTransfer_poll(transfer)) continue;
    umemStatusType status = umemTransfer_wait(transfer);
    assert_true(status == umemOK || (way == 2 && status == umemCancelledError));
    if (status != umemOK) umem_thread_clear();
    assert_true(page_is(way + 1));
    assert_true(status != umemOK || (to[large - 1] == 9 && done_of(transfer) == n + large));
    expect_ok(umemTransfer_release(transfer));
    umem_clear_status(&host);
    memset(to, 0, large);
  }
}

/* Those before it in the queue have ended, too, but no other list. */
ORDER_TEST(the_end_of_a_list_ends_earlier_transfers) {
  uintptr_t of_a = block_of(&a, n), of_b = block_of(&b, n);
  umemCopyItem const items[] = {{&a, of_a, &pinned, (uintptr_t)page, 1},
                                {&b, of_b, &pinned, (uintptr_t)(page + 1), 1}};
  umemTransfer *both, *alone;
  expect_ok(umem_start_many(items, 2, NULL, &both));
  umemTransfer *plain_one = start_to_page(&a, of_a);
  expect_ok(umem_start_many(items, 1, NULL, &alone));
  expect_ok(umemTransfer_wait(alone));
  assert_int_equal(done_of(plain_one), n);
  assert_true(is_late(&b));
  assert_int_equal(done_of(both), 0);
  expect_ok(umemTransfer_wait(both));
  assert_false(is_late(&b));
  assert_int_equal(done_of(both), 2);
  expect_ok(umemTransfer_release(both));
  expect_ok(umemTransfer_release(plain_one));
  expect_ok(umemTransfer_release(alone));
}

/* ---- a list through pinned chunks that takes long ---- */

static void slow_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr, umemVirtual *that UNUSED,
                         uintptr_t dst_adr, size_t nbytes) {
  usleep(5000);
  for (size_t i = 0; i < nbytes; i++)
    ((unsigned char *)dst_adr)[i] = (unsigned char)((src_adr + i) >> 12);
}

static unsigned reports;

static bool count_reports(void *user UNUSED, uint64_t done UNUSED, uint64_t total UNUSED) {
  reports++;
  return true;
}

/* Pieces end with a run, and the list goes on behind it. */
ORDER_TEST(a_slow_list_to_a_gpu_is_whole) {
  enum { count = 96, length = 300 << 10 };
  static struct umemVtbl const vtbl = {.copy_to = slow_copy_to};
  static umemCopyItem items[count];
  SCOPED(umem_dtor) umemVirtual slow;
  umemVirtual_ctor(&slow, &host);
  slow.vptr = &vtbl;
  slow.capabilities |= umemOffsets | umemConcurrent;
  uintptr_t adr = block_of(&plain, (size_t)count * (length + 8));
  SCOPED(free_bytes) unsigned char *found = malloc(length);
  for (size_t i = 0; i < count; i++)
    items[i] = (umemCopyItem){&slow, (i * 7 % count) * (length + 64), &plain,
                              adr + i * (length + 8), length};
  umemCopyManyOptions options = {.size = sizeof options, .progress = count_reports, .step = length};
  reports = 0;
  expect_ok(umem_copy_many(items, count, &options));
  assert_int_equal(reports, count + 1);
  for (size_t i = 0; i < count; i++) {
    assert_true(fake_cudart_peek(items[i].dst_adr, found, length));
    for (size_t k = 0; k < length; k += 1000)
      assert_int_equal(found[k], (unsigned char)((items[i].src_adr + k) >> 12));
  }
}

/* A thread of umem looks how far the queue is. */
ORDER_TEST(a_descriptor_shows_the_end_of_a_queued_transfer) {
  uintptr_t adr = block_of(&a, n);
  expect_ok(umem_set(&a, adr, 1, n));
  umemTransfer *transfer = start_to_page(&a, adr);
  struct pollfd end = {umemTransfer_descriptor(transfer), POLLIN, 0};
  assert_int_equal(poll(&end, 1, 60000), 1);
  assert_true(umemTransfer_poll(transfer));
  assert_true(page_is(1));
  expect_ok(umemTransfer_release(transfer));
  transfer = start_to_page(&a, adr);
  assert_true(umemTransfer_descriptor(transfer) >= 0);
  while (!umemTransfer_wait_for(transfer, 1)) continue;
  expect_ok(umemTransfer_release(transfer));
}

ORDER_TEST(a_context_waits_for_transfers_in_its_queue) {
  umemCudaAsync ctx;
  expect_ok(umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW));
  uintptr_t adr = block_of(&ctx, n);
  expect_ok(umem_set(&ctx, adr, 1, n));
  umemTransfer *transfer = start_to_page(&ctx, adr);
  umem_dtor(&ctx);
  assert_true(umemTransfer_poll(transfer));
  assert_true(page_is(1));
  expect_ok(umemTransfer_release(transfer));
  expect_ok(umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW));
  umemCopyItem const items[] = {{&a, block_of(&a, n), &pinned, (uintptr_t)page, 1},
                                {&ctx, block_of(&ctx, n), &pinned, (uintptr_t)(page + 1), n - 1}};
  expect_ok(umem_set(&ctx, items[1].src_adr, 2, n));
  expect_ok(umem_start_many(items, 2, NULL, &transfer));
  umem_dtor(&ctx);
  assert_true(umemTransfer_poll(transfer));
  assert_int_equal(page[n - 1], 2);
  expect_ok(umemTransfer_release(transfer));
}

/* Memory of the queue goes in its order, all other after the queue has done the copy. */
ORDER_TEST(who_frees_a_block_waits_unless_its_queue_does) {
  uintptr_t adr = block_of(&a, n), to = umem_alloc(&pinned, n);
  umemTransfer *transfer;
  expect_ok(umem_set(&a, adr, 1, n));
  expect_ok(umem_start(&a, adr, &pinned, to, n, NULL, &transfer));
  umem_free(&a, adr);
  assert_true(is_late(&a));
  assert_int_equal(done_of(transfer), 0);
  umem_free(&pinned, to);
  assert_int_equal(done_of(transfer), n);
  expect_ok(umemTransfer_release(transfer));
}

ORDER_TEST(transfers_are_no_part_of_a_capture) {
  umemTransfer *transfer;
  uintptr_t adr = block_of(&a, n);
  expect_ok(umem_synchronize(&a));
  ok(fake_cudart_begin_capture(stream_of(&a)));
  expect_failure(umem_start(&a, adr, &pinned, (uintptr_t)page, n, NULL, &transfer),
                 umemNotSupportedError, "captured");
  expect_failure(umem_start(&host, (uintptr_t)page, &a, adr, n, NULL, &transfer),
                 umemNotSupportedError, "captured");
  umemCopyItem const items[] = {{&host, (uintptr_t)page, &host, (uintptr_t)(page + 1), 1},
                                {&host, (uintptr_t)(page + 2), &a, adr, 2}};
  expect_failure(umem_start_many(items, 2, NULL, &transfer), umemNotSupportedError, "captured");
  assert_null(transfer);
  expect_ok(umem_set(&a, adr, 6, n));
  to_page(&a, adr);
  launch(end_capture());
  assert_true(page_is(6));
}

/* Each enters the GPU three times, to look for a capture, to copy, and to set a mark. The events of
 * those that are done serve again. The queue of the double moves when it is waited for. */
ORDER_TEST(short_transfers_take_few_calls) {
  enum { many = 800, most_behind = 40, most_calls = 3 * 5 + 5 };
  umemTransfer *transfers[many];
  uintptr_t adr = block_of(&a, n);
  unsigned long before = fake_cudart_calls(), created = fake_cudart_calls_of("event_create");
  for (int i = 0; i < many; i++) {
    transfers[i] = start_to_page(&a, adr);
    if (i % most_behind == 0) expect_ok(umem_synchronize(&a));
  }
  expect_ok(umem_synchronize(&a));
  for (int i = 0; i < many; i++) {
    expect_ok(umemTransfer_wait(transfers[i]));
    assert_int_equal(done_of(transfers[i]), n);
    expect_ok(umemTransfer_release(transfers[i]));
  }
  assert_in_range(fake_cudart_calls() - before, many, most_calls * many);
  assert_in_range(fake_cudart_calls_of("event_create") - created, 1, 3 * most_behind);
}

/* Starts a transfer of a value that its page does not have yet. */
static void *start_beside(void *transfer) {
  uintptr_t adr = block_of(&a, 1);
  expect_ok(umem_set(&a, adr, 7, 1));
  expect_ok(umem_start(&a, adr, &pinned, (uintptr_t)page, 1, NULL, transfer));
  return NULL;
}

static void start_in_another_thread(void *transfer) {
  join_thread(start_thread(start_beside, transfer));
}

/* Another thread queues a copy behind the mark of a transfer, before that is known to the others:
 * the end of the transfer says nothing of this copy. */
ORDER_TEST(a_transfer_ends_only_those_with_earlier_marks) {
  uintptr_t adr = block_of(&a, n);
  umemTransfer *later = NULL;
  expect_ok(umem_synchronize(&a));
  unsigned long looks = fake_cudart_calls_of("stream_capture");
  expect_ok(umemTransfer_release(start_to_page(&a, adr)));
  looks = fake_cudart_calls_of("stream_capture") - looks;
  fake_cudart_before("stream_capture", looks, start_in_another_thread, &later);
  umemTransfer *transfer = start_to_page(&a, adr);
  assert_non_null(later);
  while (!umemTransfer_poll(transfer)) continue;
  assert_true(is_late(&a));
  assert_int_equal(done_of(later), 0);
  expect_ok(umemTransfer_wait(later));
  assert_int_equal(page[0], 7);
  expect_ok(umemTransfer_release(later));
  expect_ok(umemTransfer_release(transfer));
}

/* Without a mark the start waits; what is found wrong later belongs to the transfer. */
ORDER_TEST(failures_of_marks) {
  uintptr_t adr = block_of(&a, n);
  static char const *const calls[] = {"event_create", "event_record", "stream_capture"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    expect_ok(umem_set(&a, adr, (int)i, n));
    fake_cudart_fail_in(calls[i], 1, umemCudaOutOfMemory);
    umemTransfer *transfer = start_to_page(&a, adr);
    fake_cudart_fail_in(calls[i], 0, 0);
    expect_ok(umemTransfer_wait(transfer));
    assert_true(page_is((int)i));
    expect_ok(umemTransfer_release(transfer));
  }
  void *file = opened("file:");
  unsigned char *to = malloc(large);
  uintptr_t of_b = block_of(&b, n);
  assert_true(umem_alloc(file, large) == 0);
  for (unsigned long call = 1; call < 3; call++) { /* the list waits at the start for one queue */
    fake_cudart_fail_in("event_create", call, umemCudaOutOfMemory);
    umemTransfer *list = start_list(adr, of_b, file, to);
    fake_cudart_fail_in("event_create", 0, 0);
    expect_ok(umemTransfer_wait(list));
    expect_ok(umemTransfer_release(list));
  }
  free(to);
  umemTransfer *transfer = start_to_page(&a, adr);
  fake_cudart_fail_in("event_query", 1, umemCudaLaunchFailure);
  assert_true(umemTransfer_poll(transfer));
  expect_failure(umemTransfer_wait(transfer), umemRuntimeError, "queued work has failed");
  expect_ok(umemTransfer_release(transfer));
  umem_clear_status(&a);
}

/* A start that looks how far the queue is finds what has failed: that is the transfer's. */
ORDER_TEST(a_start_has_no_failure_of_another_transfer) {
  enum { many = 64 };
  umemTransfer *transfers[many];
  uintptr_t adr = block_of(&a, n);
  unsigned failed = 0;
  fake_cudart_fail_in("event_query", 1, umemCudaLaunchFailure);
  for (int i = 0; i < many; i++) transfers[i] = start_to_page(&a, adr);
  for (int i = 0; i < many; i++) {
    umemStatusType status = umemTransfer_wait(transfers[i]);
    failed += status == umemRuntimeError;
    assert_true(status == umemOK || strstr(umem_thread_message(), "queued work has failed"));
    expect_ok(umemTransfer_release(transfers[i]));
  }
  assert_int_equal(failed, 1);
  FORGET(&a);
}

int main(void) { return run_order_cases(); }
