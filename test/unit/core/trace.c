/* trace.c - the route that a copy writes down: umem/copy.h. */
#include "trace_help.h"

TEST_CASE(a_route_names_its_legs) {
  umemRoute route;
  uintptr_t a = block_of(&file, 100), b = block_of(&host, 100), c = block_of(&other, 100);
  assert_int_equal(copy(&host, b, &host, block_of(&host, 100), 100, &route), umemOK);
  assert_text(&route, "host -> host");
  assert_int_equal(copy(&file, a, &host, b, 100, &route), umemOK);
  assert_text(&route, "file -> page cache -> host");
  assert_int_equal(copy(&host, b, &file, a, 100, &route), umemOK);
  assert_text(&route, "host -> page cache -> file");
  assert_int_equal(copy(&file, a, &other, c, 100, &route), umemOK);
  assert_text(&route, "file -> page cache -> host -> page cache -> file");
  assert_int_equal(route.leg_count, 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(route.legs[i].bytes, 100);
    assert_int_equal(route.legs[i].calls, 1);
    assert_int_equal(route.legs[i].workers, 1);
    assert_true(route.legs[i].seconds > 0 && route.legs[i].seconds <= route.seconds);
  }
  assert_int_equal(route.bytes, 100);
}

/* One call writes the pages of one file from a mapping of the other. */
TEST_CASE(files_are_copied_through_the_cache) {
  size_t const nbytes = 100 << 10;
  umemRoute route;
  uintptr_t a = block_of(&file, nbytes), b = block_of(&other, nbytes);
  umem_set(&file, a, 1, nbytes);
  assert_int_equal(copy(&file, a, &other, b, nbytes, &route), umemOK);
  assert_text(&route, "file -> page cache -> file");
  assert_int_equal(route.leg_count, 1);
  assert_int_equal(route.legs[0].bytes, nbytes);
  umem_free(&other, b);
  umem_free(&file, a);
}

/* A file in the memory of a tmpfs has nothing beside the page cache, whatever O_DIRECT says. */
static void check_in_memory(umemDirect direct) {
  size_t const nbytes = 2 << 20;
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  umemFile shared;
  umemRoute route;
  int fd = memfd_create("umem-trace", MFD_CLOEXEC);
  assert_true(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0); /* a hole: nothing of it is cached */
  options.direct = direct;
  if (umemFile_adopt_with(&shared, fd, &options) !=
      umemOK) { /* an older kernel has no O_DIRECT there */
    assert_int_equal(umem_thread_status(), umemNotSupportedError);
    assert_int_equal(direct, umemDirectOn);
    umem_thread_clear();
    close(fd);
    return;
  }
  uintptr_t block = block_of(&host, nbytes), written = umem_alloc(&shared, nbytes);
  assert_true(written != umem_null(&shared));
  assert_int_equal(copy(&shared, 0, &host, block, nbytes, &route), umemOK);
  assert_text(&route, "file -> page cache -> host");
  assert_int_equal(route.legs[0].bytes, nbytes);
  assert_int_equal(copy(&host, block, &shared, written, nbytes, &route), umemOK);
  assert_text(&route, "host -> page cache -> file");
  assert_int_equal(route.legs[0].bytes, nbytes);
  umem_dtor(&shared);
}

TEST_CASE(files_in_memory_name_the_page_cache) {
  umem_set_threads(1);
  check_in_memory(umemDirectAuto);
  check_in_memory(umemDirectOn);
  check_in_memory(umemDirectOff);
  umem_set_threads(0);
}

TEST_CASE(workers_share_a_leg) {
  size_t const nbytes = 24 << 20;
  umemRoute route;
  uintptr_t a = block_of(&file, nbytes), b = block_of(&host, nbytes);
  umem_set(&file, a, 1, nbytes);
  umem_set_threads(3);
  assert_int_equal(copy(&file, a, &host, b, nbytes, &route), umemOK);
  umem_set_threads(0);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < route.leg_count; i++) bytes += route.legs[i].bytes;
  assert_int_equal(bytes, nbytes);
  assert_true(route.legs[0].workers >= 2 && route.legs[0].workers <= 3);
  umem_free(&file, a);
}

TEST_CASE(an_adaptor_adds_nothing) {
  umemRoute route;
  CONTEXT(umemLimit, limit, &file, 1 << 20);
  CONTEXT(umemStats, stats, &limit);
  uintptr_t a = block_of(&stats, 100), b = block_of(&host, 100);
  assert_int_equal(copy(&stats, a, &host, b, 100, &route), umemOK);
  assert_text(&route, "file -> page cache -> host");
  assert_int_equal(route.legs[0].bytes, 100);
  assert_int_equal(copy(&host, b, &stats, a, 100, &route), umemOK);
  assert_text(&route, "host -> page cache -> file");
  umem_free(&stats, a);
}

TEST_CASE(strided_copies_have_a_route) {
  size_t const extents[] = {16, 16};
  ptrdiff_t const across[] = {8, 128};
  umemLayout layout = {.size = sizeof layout, .item_size = 8, .rank = 2, .extents = extents};
  layout.src_strides = across;
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = {.size = sizeof options, .route = &route};
  uintptr_t a = block_of(&host, 2048), b = block_of(&host, 2048), c = block_of(&file, 2048);
  assert_int_equal(umem_copy_strided_with(&host, a, &host, b, &layout, &options), umemOK);
  assert_text(&route, "host -> items -> host");
  assert_int_equal(route.legs[0].bytes, 2048);
  assert_int_equal(umem_copy_strided_with(&host, a, &file, c, &layout, &options), umemOK);
  assert_text(&route, "host -> window -> file");
  assert_int_equal(route.legs[0].bytes, 2048);
}

typedef struct Steps {
  uint64_t last, total;
  int calls;
  bool go;
} Steps;

static bool step(void *user, uint64_t done, uint64_t total) {
  Steps *steps = user;
  steps->calls++;
  steps->last = done;
  steps->total = total;
  char byte = 1;
  umem_copy_to(&host, (uintptr_t)&byte, &host, (uintptr_t)&byte + 0, 0);
  return steps->go;
}

TEST_CASE(strided_copies_report_and_cancel) {
  size_t const extents[] = {4};
  ptrdiff_t const every_other[] = {2};
  umemLayout layout = {.size = sizeof layout, .item_size = 1, .rank = 1, .extents = extents};
  layout.src_strides = every_other;
  char from[8] = "a.b.c.d", to[5] = "";
  Steps steps = {.go = true};
  umemCopyOptions options = {.size = sizeof options, .progress = step, .user = &steps};
  uintptr_t src = (uintptr_t)from, dst = (uintptr_t)to;
  assert_int_equal(umem_copy_strided_with(&host, src, &host, dst, &layout, &options), umemOK);
  assert_string_equal(to, "abcd");
  assert_true(steps.calls == 2 && steps.last == 4 && steps.total == 4);
  steps = (Steps){.go = false};
  memset(to, 0, sizeof to);
  assert_int_equal(umem_copy_strided_with(&host, src, &host, dst, &layout, &options),
                   umemCancelledError);
  assert_string_equal(to, "");
  layout.rank = -1;
  assert_int_equal(umem_copy_strided_with(&host, src, &host, dst, &layout, &options),
                   umemValueError);
  assert_int_equal(steps.calls, 1);
  umem_clear_status(&host);
}

TEST_CASE(a_failed_copy_says_what_was_done) {
  umemRoute route;
  uintptr_t a = block_of(&file, 100), b = block_of(&host, 100);
  assert_int_equal(copy(&host, b, &file, a + (1 << 20), 50, &route), umemIndexError);
  assert_text(&route, "host -> method -> file");
  assert_int_equal(route.legs[0].bytes, 0);
  assert_int_equal(route.bytes, 50);
  assert_int_equal(copy(&host, 0, &file, a, 50, &route), umemValueError);
  assert_text(&route, "");
  umem_clear_status(&file);
  umem_clear_status(&host);
}

TEST_CASE(sizes_of_structs_are_respected) {
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = {.size = sizeof options, .route = &route};
  route.size = sizeof(size_t);
  assert_int_equal(copy_bytes(4, &options), umemValueError);
  umem_clear_status(&host);
  route.size = offsetof(umemRoute, legs);
  route.legs[0].bytes = 77;
  assert_int_equal(copy_bytes(4, &options), umemOK);
  assert_int_equal(route.size, offsetof(umemRoute, legs));
  assert_int_equal(route.leg_count, 1);
  assert_int_equal(route.legs[0].bytes, 77);
  assert_text(&route, "");
  options.size = offsetof(umemCopyOptions, route); /* of an earlier version */
  options.route = (umemRoute *)1;
  assert_int_equal(copy_bytes(4, &options), umemOK);
}

TEST_CASE(texts_are_bounded) {
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  char text[8];
  options.route = &route;
  assert_int_equal(copy_bytes(4, &options), umemOK);
  assert_int_equal(umemRoute_text(&route, text, sizeof text), strlen("host -> host"));
  assert_string_equal(text, "host ->");
  assert_int_equal(umemRoute_text(&route, NULL, 0), strlen("host -> host"));
  assert_int_equal(umemRoute_text(NULL, text, sizeof text), 0);
  assert_string_equal(text, "");
  umemRoutePlace const on_disk = {"file", -1, 0}, near = {"pinned", -1, 0}, far = {"cuda", 0, 0};
  route.leg_count = 3;
  route.legs[0] = (umemRouteLeg){.src = on_disk, .dst = near, .way = "page cache", .workers = 16};
  route.legs[1] = (umemRouteLeg){.src = on_disk, .dst = near, .way = "direct I/O", .workers = 1};
  route.legs[2] = (umemRouteLeg){.src = near, .dst = far, .way = "dma", .workers = 1};
  assert_text(&route, "file -> 16 workers, page cache + direct I/O -> pinned -> cuda:0");
}

int main(void) { return run_cases(open_contexts, close_contexts); }
