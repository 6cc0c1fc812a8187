/* cudart_pages.c - the double of the CUDA runtime: pages, and ranges of addresses. */
#include "cudart_help.h"

static size_t size;

static void *reserve(size_t count) {
  void *adr = NULL;
  ok(rt->page_size(&size, 0));
  ok(rt->range_reserve(&adr, count * size, size));
  assert_int_equal((uintptr_t)adr % size, 0);
  return adr;
}

static void *page(void *range, size_t i) { return (char *)range + i * size; }

static uint64_t create(void) {
  uint64_t handle = 0;
  ok(rt->page_create(&handle, size, 0, false));
  return handle;
}

TEST(pages_are_memory_where_they_are_mapped) {
  unsigned char bytes[100], back[100] = {0};
  umemCudaMemory kind;
  int device;
  enter(0);
  void *range = reserve(3);
  void *over = (char *)page(range, 1) - 50;
  uint64_t one = create(), two = create();
  assert_int_equal(fake_cudart_live().pages, 2);
  assert_int_equal(fake_cudart_live().ranges, 1);
  ok(rt->page_map(range, size, one));
  ok(rt->page_map(page(range, 1), size, two));
  ok(rt->page_allow(range, 2 * size, 1));
  memset(bytes, 9, sizeof bytes);
  ok(rt->memcpy(over, bytes, sizeof bytes, umemCudaToDevice));
  ok(rt->memcpy(back, over, sizeof back, umemCudaToHost));
  assert_memory_equal(bytes, back, sizeof bytes);
  ok(rt->pointer(over, &kind, &device));
  assert_int_equal(kind, umemCudaDeviceMemory);
  assert_int_equal(device, 0);
  ok(rt->pointer(page(range, 2), &kind, &device));
  assert_int_equal(kind, umemCudaUnregistered);
  ok(rt->page_release(one));
  ok(rt->page_release(two));
  assert_int_equal(fake_cudart_live().pages, 2); /* mapped still */
  ok(rt->page_unmap(range, size));
  refused(rt->memcpy(back, over, sizeof back, umemCudaToHost), umemCudaInvalidValue);
  expect_misuse("where no page is mapped");
  ok(rt->page_unmap(page(range, 1), size));
  assert_int_equal(fake_cudart_live().pages, 0);
}

TEST(pages_count_as_memory_of_the_device) {
  size_t before, after, capacity;
  enter(0);
  ok(rt->page_size(&size, 0));
  ok(rt->memory_info(&before, &capacity));
  uint64_t one = create();
  ok(rt->memory_info(&after, &capacity));
  assert_int_equal(before - after, size);
  fake_cudart_machine()->device[0].capacity = 3 * size - 1;
  uint64_t two = create(), three;
  refused(rt->page_create(&three, size, 0, false), umemCudaOutOfMemory);
  ok(rt->page_release(one));
  ok(rt->page_release(two));
  fake_cudart_machine()->device[0].no_pages = true;
  refused(rt->page_create(&three, size, 0, false), umemCudaNotSupported);
  refused(rt->page_create(&three, size, 3, false), umemCudaInvalidOrdinal);
  refused(rt->page_create(&three, size + 1, 1, false), umemCudaInvalidValue);
}

TEST(mappings_are_checked) {
  char byte = 0;
  uint64_t kept = 0;
  enter(0);
  void *range = reserve(4);
  uint64_t one = create(), two = create();
  int const wrong = umemCudaInvalidValue;
  refused(rt->page_map((char *)range + 4096, size, one), wrong);
  expect_misuse("not in a reserved range");
  refused(rt->page_map(page(range, 4), size, one), wrong);
  expect_misuse("not in a reserved range");
  refused(rt->page_map(range, 2 * size, one), wrong);
  expect_misuse("bytes of a page of");
  ok(rt->page_map(range, size, one));
  refused(rt->page_map(range, size, two), wrong);
  expect_misuse("mapped at");
  refused(rt->memcpy(range, &byte, 1, umemCudaToDevice), wrong);
  expect_misuse("that nobody may use");
  refused(rt->page_allow(range, 2 * size, 1), wrong);
  expect_misuse("where no page is mapped");
  refused(rt->page_unmap(page(range, 1), size), wrong);
  expect_misuse("not a page that is mapped");
  refused(rt->page_unmap(range, 2 * size), wrong);
  expect_misuse("not a page that is mapped");
  refused(rt->page_retain(&kept, page(range, 1)), wrong);
  expect_misuse("no page at");
  refused(rt->range_free(range, 4 * size), wrong);
  expect_misuse("with pages in them");
  refused(rt->range_free(range, size), wrong);
  expect_misuse("no whole range");
  refused(rt->free(range), wrong);
  expect_misuse("not the start of a live block");
  ok(rt->page_release(two));
  refused(rt->page_map(page(range, 1), size, two), wrong);
  expect_misuse("was released");
  refused(rt->page_release(two), wrong);
  expect_misuse("was released");
  ok(rt->page_retain(&kept, range)); /* one page at two places */
  ok(rt->page_map(page(range, 3), size, kept));
  ok(rt->page_release(kept));
  ok(rt->page_release(one));
  ok(rt->page_unmap(range, size));
  assert_int_equal(fake_cudart_live().pages, 1);
  ok(rt->page_unmap(page(range, 3), size));
}

/* Work that is queued finds its page gone. */
TEST(pages_must_stay_until_their_work_is_done) {
  enter(0);
  void *stream = new_stream();
  void *range = reserve(1);
  uint64_t one = create();
  ok(rt->page_map(range, size, one));
  ok(rt->page_allow(range, size, 1));
  ok(rt->page_release(one));
  ok(rt->memset_async(range, 1, 100, stream));
  ok(rt->page_unmap(range, size));
  ok(rt->stream_synchronize(stream));
  expect_misuse("after they were freed");
}

/* enable_peer_access is about other memory. */
DEVICE_TEST(peers_need_access_of_their_own) {
  enter(1);
  void *range = reserve(1);
  uint64_t one = create();
  ok(rt->enable_peer_access(0));
  void *there = new_block(100);
  ok(rt->page_map(range, size, one));
  ok(rt->page_allow(range, size, 1));
  ok(rt->page_release(one));
  unsigned long before = fake_cudart_done().direct_peer;
  ok(rt->memcpy_peer_async(there, 1, range, 0, 100, NULL));
  assert_int_equal(fake_cudart_done().direct_peer, before);
  refused(rt->page_allow(range, size, 1 << 2), umemCudaInvalidOrdinal); /* no peer */
  ok(rt->page_allow(range, size, 1 << 1));
  ok(rt->memcpy_peer_async(there, 1, range, 0, 100, NULL));
  assert_int_equal(fake_cudart_done().direct_peer, before + 1);
  ok(rt->stream_synchronize(NULL));
  ok(rt->page_unmap(range, size));
}

DEVICE_TEST(what_is_left_is_found) {
  void *range = reserve(1);
  uint64_t one = create();
  assert_false(fake_cudart_is_clean());
  leave(0);
  expect_misuse("ends with 1 things in it");
  ok(rt->page_release(one));
  assert_false(fake_cudart_is_clean());
  ok(rt->range_free(range, size));
  assert_true(fake_cudart_is_clean());
}
