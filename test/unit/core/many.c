/* many.c - umem_copy_many: which calls of a context a list becomes, who makes them, and what is
 * known after a failure. */
#include "many_help.h"

static atomic_size_t windows; /* that were opened */

static bool store_window(umemVirtual *ctx, uintptr_t adr, size_t nbytes UNUSED,
                         umemCapability access UNUSED, umemWindow *window) {
  windows++;
  window->bytes = ((Store *)ctx)->bytes + adr;
  return true;
}

static bool store_no_window(umemVirtual *ctx UNUSED, uintptr_t adr UNUSED, size_t nbytes UNUSED,
                            umemCapability access UNUSED, umemWindow *window UNUSED) {
  windows++;
  return false;
}

/* Blocks of 1 MiB. */
static umemSearch store_find_block(umemVirtual *ctx UNUSED, uintptr_t adr, umemFound *found) {
  if (adr >= room) return umemSearchNone;
  found->nbytes = 1 << 20;
  found->adr = adr / found->nbytes * found->nbytes;
  return umemSearchFound;
}

static void assert_read(umemCopyItem const *item) {
  unsigned char const *bytes = (unsigned char const *)item->dst_adr;
  for (size_t i = 0; i < item->nbytes; i++) assert_int_equal(bytes[i], byte_at(item->src_adr + i));
}

/* ---- calls ---- */

TEST(neighbours_are_one_call_in_the_order_of_the_source) {
  umemCopyItem const items[] = {read_of(300, 0, 10), read_of(120, 60, 40), read_of(110, 50, 10),
                                read_of(0, 200, 7),  read_of(160, 100, 5), read_of(165, 110, 5)};
  assert_int_equal(umem_copy_many(items, 6, NULL), umemOK);
  uintptr_t const at[] = {0, 110, 165, 300};
  size_t const lengths[] = {7, 55, 5, 10};
  assert_int_equal(store.calls, 4);
  assert_memory_equal(store.at, at, sizeof at);
  assert_memory_equal(store.lengths, lengths, sizeof lengths);
  for (size_t i = 0; i < 6; i++) assert_read(&items[i]);
}

TEST(writes_are_in_the_order_of_the_target) {
  construct(umemConcurrent);
  umemCopyItem items[100];
  size_t const length = 80000;
  umem_set_threads(4);
  for (size_t i = 0; i < 100; i++)
    items[i] = (umemCopyItem){&host, (uintptr_t)memory + i * length, &store,
                              (i * 37 % 100) * length, length - 1};
  assert_int_equal(umem_copy_many(items, 100, NULL), umemOK);
  assert_int_equal(store.calls, 100);
  for (size_t i = 0; i < 100; i++) {
    assert_int_equal(store.at[i], i * length);
    assert_true(pthread_equal(store.threads[i], pthread_self())); /* files take one writer */
  }
  umem_set_threads(0);
}

/* Far apart, so that none has a neighbour. */
enum { piece = 8000, pieces = room / 2 / piece };

static void scatter(umemCopyItem items[pieces]) {
  for (size_t i = 0; i < pieces; i++)
    items[i] = read_of((i * 211 % pieces) * 2 * piece, i * piece, piece);
}

TEST(threads_share_a_list_of_a_concurrent_context) {
  static umemCopyItem items[pieces];
  uint8_t done[pieces / 8 + 1];
  umemCopyManyOptions options = {.size = sizeof options, .done = done};
  construct(umemConcurrent);
  umem_set_threads(4);
  scatter(items);
  assert_int_equal(umem_copy_many(items, pieces, &options), umemOK);
  assert_int_equal(store.calls, pieces);
  assert_int_equal(count_bits(done, pieces), pieces);
  for (size_t i = 0; i < pieces; i++) assert_read(&items[i]);
  construct(0); /* not concurrent */
  assert_int_equal(umem_copy_many(items, pieces, NULL), umemOK);
  for (size_t i = 0; i < pieces; i++) assert_true(pthread_equal(store.threads[i], pthread_self()));
  umem_set_threads(0);
}

TEST(a_long_item_among_short_ones_is_whole) {
  construct(umemConcurrent);
  umem_set_threads(4);
  umemCopyItem items[100];
  for (size_t i = 0; i < 99; i++) items[i] = read_of(i * 10000, i * 9000, 9000);
  items[99] = read_of(2 << 20, 2 << 20, 5 << 20);
  assert_int_equal(umem_copy_many(items, 100, NULL), umemOK);
  for (size_t i = 0; i < 100; i++) assert_read(&items[i]);
  umem_set_threads(0);
}

static void check_failed(umemCopyItem const *items, size_t count, size_t bad, uint8_t const *done,
                         size_t failed) {
  assert_int_equal(failed, bad);
  assert_int_equal(umem_get_status(&store), umemIOError);
  assert_int_equal(umem_thread_status(), umemIOError);
  char text[60];
  snprintf(text, sizeof text, "umem_copy_many: item %zu: the call fails", bad);
  assert_string_equal(umem_thread_message(), text);
  assert_string_equal(umem_get_message(&store), text);
  for (size_t i = 0; i < count; i++)
    if (done[i / 8] >> i % 8 & 1) {
      assert_int_not_equal(i, bad);
      assert_read(&items[i]);
    }
  FORGET(&store);
}

/* ---- rows of parts of arrays ---- */

enum { planes = 5, rows_of_plane = 20, row = 24, part_rows = planes * rows_of_plane };

static void list_rows(umemCopyItem items[part_rows], size_t from) {
  for (size_t i = 0; i < part_rows; i++)
    items[i] = read_of(from + i / rows_of_plane * 5000 + i % rows_of_plane * 100, i * row * 2, row);
}

static struct umemVtbl special; /* of a test */

static void use_window(bool (*window)(umemVirtual *, uintptr_t, size_t, umemCapability,
                                      umemWindow *)) {
  special = store_vtbl;
  special.window = window;
  windows = 0;
  store.super.vptr = &special;
}

TEST(rows_of_a_part_are_one_copy) {
  umemCopyItem items[part_rows + 1];
  for (int watched = 0; watched < 2; watched++) {
    uint8_t done[part_rows / 8 + 1];
    umemRoute route = UMEM_ROUTE_INIT;
    umemCopyManyOptions options = {.size = sizeof options, .done = done};
    if (watched) options.route = &route;
    construct(umemConcurrent);
    use_window(store_window);
    list_rows(items, 40);
    items[part_rows] = read_of(100000, 50000, 7);
    assert_int_equal(umem_copy_many(items, part_rows + 1, &options), umemOK);
    assert_int_equal(windows, 1);
    assert_int_equal(store.calls, 1);
    assert_int_equal(store.lengths[0], 7);
    assert_int_equal(count_bits(done, part_rows + 1), part_rows + 1);
    for (size_t i = 0; i <= part_rows; i++) assert_read(&items[i]);
    assert_int_equal(memory[row], 0); /* between two rows */
    if (watched) assert_int_equal(route.bytes, part_rows * row + 7);
  }
}

static void list_even_rows(umemCopyItem items[part_rows]) {
  use_window(store_window);
  for (size_t i = 0; i < part_rows; i++) items[i] = read_of(40 + i * 100, i * row * 2, row);
}

/* Also if the last one is shorter. */
TEST(rows_at_equal_distances_are_one_copy) {
  umemCopyItem items[part_rows];
  for (int uneven = 0; uneven < 2; uneven++) {
    uint8_t done[part_rows / 8 + 2];
    size_t failed = 0;
    umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
    memset(done, 0xA5, sizeof done);
    construct(umemConcurrent);
    list_even_rows(items);
    if (uneven) items[part_rows - 1].nbytes--;
    assert_int_equal(umem_copy_many(items, part_rows, &options), umemOK);
    assert_int_equal(windows, 1);
    assert_int_equal(store.calls, uneven);
    assert_int_equal(count_bits(done, part_rows), part_rows);
    assert_int_equal(done[part_rows / 8] >> part_rows % 8, 0); /* no bit behind the last one */
    assert_int_equal(done[part_rows / 8 + 1], 0xA5);
    assert_int_equal(failed, part_rows);
    for (size_t i = 0; i < part_rows; i++) assert_read(&items[i]);
    assert_int_equal(memory[row], 0); /* between two rows */
  }
}

TEST(rows_at_equal_distances_may_not_overlap) {
  umemCopyItem items[part_rows];
  size_t failed;
  umemCopyManyOptions options = {.size = sizeof options, .failed = &failed};
  list_even_rows(items);
  for (size_t i = 0; i < part_rows; i++) items[i].dst_adr = items[0].dst_adr + i * (row - 1);
  assert_int_equal(umem_copy_many(items, part_rows, &options), umemValueError);
  assert_int_equal(failed, 1);
  for (size_t i = 0; i < part_rows; i++) { /* each source has bytes of the next target */
    uintptr_t to = items[0].dst_adr + i * row * 2;
    items[i] = (umemCopyItem){&host, to + row * 2, &host, to, row};
  }
  assert_int_equal(umem_copy_many(items, part_rows, &options), umemValueError);
  assert_int_not_equal(failed, part_rows);
  FORGET(&store, &host);
}

TEST(rows_without_a_window_name_the_one_that_fails) {
  enum { bad = 33 };
  umemCopyItem items[part_rows];
  uint8_t done[part_rows / 8 + 1];
  size_t failed;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  use_window(store_no_window);
  list_rows(items, 40);
  assert_int_equal(umem_copy_many(items, part_rows, &options), umemOK);
  for (size_t i = 0; i < part_rows; i++) assert_read(&items[i]);
  store.fails_from = items[bad].src_adr + 5;
  store.fails_to = store.fails_from + 1;
  store.fails = SIZE_MAX;
  assert_int_equal(umem_copy_many(items, part_rows, &options), umemIOError);
  check_failed(items, part_rows, bad, done, failed);
  assert_int_equal(count_bits(done, part_rows), bad);
}

/* What is between them may be no one's. */
TEST(rows_of_several_blocks_are_copied_one_by_one) {
  umemCopyItem items[part_rows];
  use_window(store_window);
  special.find = store_find_block;
  list_rows(items, (1 << 20) - 1000);
  assert_int_equal(umem_copy_many(items, part_rows, NULL), umemOK);
  assert_int_equal(windows, 0);
  assert_int_equal(store.calls, part_rows);
  for (size_t i = 0; i < part_rows; i++) assert_read(&items[i]);
}

/* ---- failures ---- */

TEST(a_failure_in_any_thread_names_its_item) {
  static umemCopyItem items[pieces];
  uint8_t done[pieces / 8 + 1];
  size_t failed;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  umem_set_threads(4);
  for (size_t bad = 0; bad < pieces; bad += 37) {
    construct(umemConcurrent);
    scatter(items);
    store.fails_from = items[bad].src_adr + 5;
    store.fails_to = store.fails_from + 1;
    store.fails = 1;
    assert_int_equal(umem_copy_many(items, pieces, &options), umemIOError);
    check_failed(items, pieces, bad, done, failed);
  }
  umem_set_threads(0);
}

/* The run is copied again, item by item, to find out which of them it was. */
TEST(a_failure_of_a_run_names_its_item) {
  uint8_t done[2];
  size_t failed;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  umemCopyItem items[10];
  for (size_t i = 0; i < 10; i++) items[i] = read_of((9 - i) * 100, (9 - i) * 100, 100);
  for (size_t bad = 0; bad < 10; bad++) {
    construct(0);
    store.fails_from = items[bad].src_adr + 99;
    store.fails_to = store.fails_from + 1;
    store.fails = SIZE_MAX;
    assert_int_equal(umem_copy_many(items, 10, &options), umemIOError);
    check_failed(items, 10, bad, done, failed);
    assert_int_equal(count_bits(done, 10), 9 - bad);
  }
}

/* What fails once is a failure, although each item can be copied then. */
TEST(a_failure_that_does_not_come_again_is_one) {
  uint8_t done[1];
  size_t failed;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  umemCopyItem const items[] = {read_of(0, 0, 10), read_of(10, 10, 10), read_of(20, 20, 10)};
  store.fails_to = 30;
  store.fails = 1;
  assert_int_equal(umem_copy_many(items, 3, &options), umemIOError);
  check_failed(items, 3, 0, done, failed);
  assert_int_equal(done[0], 6);
}

/* ---- overlaps ---- */

/* As many as a real list, in random order, against a model of their bytes. */
TEST(overlaps_are_found_in_long_lists) {
  enum { count = 3000, length = 100 };
  static umemCopyItem items[count];
  uint64_t seed = 1;
  for (size_t trial = 0; trial < 50; trial++) {
    for (size_t i = 0; i < count; i++) items[i] = read_of(i, i * 2 * length, length);
    for (size_t i = count; i > 1; i--) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      size_t k = (size_t)(seed >> 33) % i;
      umemCopyItem item = items[i - 1];
      items[i - 1] = items[k];
      items[k] = item;
    }
    size_t one = (size_t)(seed >> 20) % count, other = (one + 1 + trial) % count;
    assert_int_equal(umem_copy_many(items, count, NULL), umemOK);
    items[one].dst_adr = items[other].dst_adr + (trial & 1 ? length - 1 : 0) - (trial & 2 ? 1 : 0);
    size_t calls = store.calls;
    assert_int_equal(umem_copy_many(items, count, NULL), umemValueError);
    assert_int_equal(store.calls, calls);
    char text[30];
    snprintf(text, sizeof text, "item %zu: its target", one > other ? one : other);
    assert_non_null(strstr(umem_thread_message(), text));
    umem_clear_status(&host);
  }
  umem_thread_clear();
}

/* Of items with one pair of contexts and targets in rising order, each of which is right. */
enum { rising_count = 50, rising_bad = 20 };

static void make_rising(umemCopyItem items[rising_count]) {
  for (size_t i = 0; i < rising_count; i++)
    items[i] = (umemCopyItem){&host, (uintptr_t)memory + i * 37 % rising_count * 100, &host,
                              (uintptr_t)memory + 10000 + i * 100, 100};
}

static void refuse_rising(umemCopyItem items[rising_count], umemStatusType status,
                          char const *text) {
  assert_int_equal(umem_copy_many(items, rising_count, NULL), status);
  assert_non_null(strstr(umem_thread_message(), text));
  for (size_t i = 0; i < 5000; i++) assert_int_equal(memory[10000 + i], 0);
  FORGET(&host, &store);
  make_rising(items);
}

TEST(items_of_a_list_in_order_are_checked) {
  umemCopyItem items[rising_count], *bad = &items[rising_bad];
  make_rising(items);
  bad->src_adr = items[40].dst_adr + 99;
  refuse_rising(items, umemValueError, "item 20: its source has bytes of the target of item 40");
  bad->dst_adr--;
  refuse_rising(items, umemValueError, "item 20: its target has bytes of the target of item 19");
  bad->nbytes = SIZE_MAX - 10;
  refuse_rising(items, umemValueError, "item 20: ");
  bad->src_adr = UINTPTR_MAX - 10;
  refuse_rising(items, umemValueError, "item 20: ");
  bad->src_adr = 0;
  refuse_rising(items, umemValueError, "item 20: ");
  items->dst_adr = 0;
  refuse_rising(items, umemValueError, "item 0: ");
  bad->src = NULL;
  refuse_rising(items, umemValueError, "item 20: ");
  store.super.capabilities &= ~(unsigned)umemReadable;
  bad->src = &store;
  refuse_rising(items, umemNotSupportedError, "item 20: ");
  for (size_t i = 0; i < rising_count; i++) items[i].src = &store;
  refuse_rising(items, umemNotSupportedError, "item 0: ");
  bad->nbytes = 0;
  for (size_t i = 0; i < 5000; i++) memory[i] = byte_at(i);
  assert_int_equal(umem_copy_many(items, rising_count, NULL), umemOK);
  for (size_t i = 0; i < rising_count; i++)
    assert_memory_equal((void *)items[i].dst_adr, (void *)items[i].src_adr, items[i].nbytes);
}

/* A file, and a mapping of it. */
TEST(one_file_in_two_contexts_is_one_memory) {
  umemFile file;
  umemMMap map;
  SCOPED(unlink_path) char path[] = "/tmp/umem-many-XXXXXX";
  SCOPED(close_fd) int fd = mkstemp(path);
  assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
  assert_int_equal(umemFile_ctor(&file, path, "r+"), umemOK);
  assert_int_equal(umemMMap_ctor(&map, path, "r"), umemOK);
  uintptr_t in_file = umem_alloc(&file, 4096), in_map = umem_alloc(&map, 4096);
  umemCopyItem items[] = {{&map, in_map, &file, in_file + 100, 50},
                          {&map, in_map + 149, &file, in_file + 300, 10}};
  assert_int_equal(umem_copy_many(items, 2, NULL), umemValueError);
  assert_non_null(strstr(umem_thread_message(), "item 1: its source has bytes of the target of"));
  umem_clear_status(&map);
  items[1].src_adr++;
  assert_int_equal(umem_copy_many(items, 2, NULL), umemOK);
  DESTRUCT(&map, &file); /* with their blocks */
  umem_thread_clear();
}

static bool store_is_same(umemVirtual *one, umemVirtual *other) {
  return one->vptr == other->vptr && ((Store *)one)->bytes == ((Store *)other)->bytes;
}

/* Their method says that what they call by the same address is the same byte. */
TEST(contexts_that_know_their_like_are_one_memory) {
  Store twin;
  special = store_vtbl;
  special.is_same_device = store_is_same;
  store.super.vptr = &special;
  twin = store;
  umemVirtual_ctor(&twin.super, &store.host);
  twin.super.vptr = &special;
  twin.super.capabilities |= umemOffsets;
  umemCopyItem items[] = {{&host, (uintptr_t)memory, &store, 100, 50},
                          {&host, (uintptr_t)memory, &twin, 149, 10}};
  assert_int_equal(umem_copy_many(items, 2, NULL), umemValueError);
  assert_non_null(strstr(umem_thread_message(), "item 1: its target has bytes of the target of"));
  FORGET(&twin);
  items[1].dst_adr++;
  assert_int_equal(umem_copy_many(items, 2, NULL), umemOK);
  umem_dtor(&twin);
}

/* ---- many contexts ---- */

static atomic_size_t layers_asked;

static umemVirtual *no_upstream(umemVirtual *ctx UNUSED) {
  layers_asked++;
  return NULL;
}

/* Each of its items has two contexts of its own. To find out which memories they are, and that none
 * is the target of two, umem asks each context a few times, not each for each other one. */
TEST(a_list_over_thousands_of_contexts_looks_at_each_a_few_times) {
  enum { count = 5000 };
  static struct umemVtbl const vtbl = {
      .copy_to = store_copy_to, .copy_from = store_copy_from, .upstream = no_upstream};
  SCOPED(free_bytes) Store *stores = calloc(count, sizeof *stores);
  SCOPED(free_bytes) umemCopyItem *items = calloc(count, sizeof *items);
  SCOPED(free_bytes) unsigned char *bytes = calloc(count, 16);
  assert_true(stores && items && bytes);
  for (size_t i = 0; i < count; i++) {
    umemVirtual_ctor(&stores[i].super, &store.host);
    stores[i].super.vptr = &vtbl;
    stores[i].super.capabilities |= umemOffsets;
    stores[i].bytes = bytes + 16 * i;
    items[i] = (umemCopyItem){&host, (uintptr_t)memory + 8 * i, &stores[i], 0, 8};
  }
  memset(memory, 3, (size_t)count * 8);
  layers_asked = 0;
  assert_int_equal(umem_copy_many(items, count, NULL), umemOK);
  for (size_t i = 0; i < count; i++) assert_memory_equal(bytes + 16 * i, memory, 8);
  assert_in_range(layers_asked, count, 40 * count);
  items[count - 1].dst = items[0].dst; /* no memory of its own any more */
  assert_int_equal(umem_copy_many(items, count, NULL), umemValueError);
  assert_non_null(strstr(umem_thread_message(), "item 4999: its target has bytes"));
  for (size_t i = 0; i < count; i++) umem_dtor(&stores[i]);
  umem_thread_clear();
}
