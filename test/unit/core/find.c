/* find.c - umem/find.h: stacks, threads, forks, the list of contexts, and its place in messages. */

#include "returns_null.h"
#include "workers.h"
#include "wrap.h"

/* ---- malloc that counts, and fails on request ---- */

static size_t mallocs; /* atomic */
static bool fails;     /* atomic */

/* Counts an allocation. Whether it fails. */
static bool fails_now(void) {
  __atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
  return __atomic_load_n(&fails, __ATOMIC_RELAXED);
}

WRAP(fails_now(), NULL, void *, malloc, (size_t size), (size))
WRAP(fails_now(), NULL, void *, calloc, (size_t count, size_t size), (count, size))

/* ---- stacks ---- */

static umemHost host;
static umemTrack below;
static umemPool pool;
static umemTrack above;

/* A Track over a pool over a Track over RAM. */
static void open_stack(void **state UNUSED) {
  assert_ok(umemHost_ctor(&host));
  assert_ok(umemTrack_ctor(&below, &host, NULL));
  assert_ok(umemPool_ctor(&pool, &below, NULL));
  assert_ok(umemTrack_ctor(&above, &pool, NULL));
}

static void close_stack(void **state UNUSED) {
  umem_list_when_out_of_memory(0);
  DESTRUCT(&above, &pool, &below, &host);
}

#define ON_STACK(name) TEST_CASE_WITH(name, open_stack, close_stack)

ON_STACK(the_outermost_layer_is_found_first) {
  umemFound found = UMEM_FOUND_INIT;
  uintptr_t adr = umem_alloc(&above, 1000);
  assert_true(umem_find(adr + 7, &found));
  assert_ptr_equal(found.ctx, &above);
  assert_true(found.adr == adr);
  assert_int_equal(found.nbytes, 1000);
  assert_true(umem_find_in(umem_get_upstream(found.ctx), adr + 7, &found));
  assert_ptr_equal(found.ctx, &pool);
  assert_true(found.adr == adr);
  assert_in_range(found.nbytes, 1000, 1100);
  assert_true(umem_find_in(umem_get_upstream(found.ctx), adr + 7, &found));
  assert_ptr_equal(found.ctx, &below); /* the chunk */
  assert_in_range(found.nbytes, 64 << 10, SIZE_MAX);
  assert_false(umem_find_in(umem_get_upstream(found.ctx), adr + 7, &found));
  umem_free(&above, adr);
  assert_true(umem_find(adr, &found)); /* free memory of the pool is in its chunk */
  assert_ptr_equal(found.ctx, &below);
}

ON_STACK(a_block_of_a_view_is_one_of_the_pool) {
  umemFound found = UMEM_FOUND_INIT;
  CONTEXT(umemPoolOn, view, &pool, &below);
  uintptr_t adr = umem_alloc(&view, 1 << 20);
  assert_true(umem_find(adr + 12345, &found));
  assert_ptr_equal(found.ctx, &pool);
  assert_true(found.adr == adr);
  assert_true(umem_find_in(&view, adr + 12345, &found));
  assert_ptr_equal(found.ctx, &view);
  umem_free(&view, adr);
  assert_false(umem_find_in(&view, adr + 12345, &found));
}

/* Blocks of all sizes and queues: those that the pool keeps for later are not found. */
ON_STACK(each_block_of_a_pool_is_found_until_it_is_freed) {
  enum { count = 300 };
  uintptr_t adrs[count];
  size_t sizes[count];
  for (size_t i = 0; i < count; i++) {
    sizes[i] = (size_t)1 << i % 22 | i * 37;
    assert_true((adrs[i] = umem_alloc(&pool, sizes[i])) != 0);
  }
  for (size_t i = 0; i < count; i++) {
    umemFound found = UMEM_FOUND_INIT;
    for (size_t k = 0; k < 3; k++) {
      assert_true(umem_find_in(&pool, adrs[i] + k * (sizes[i] - 1) / 2, &found));
      assert_true(found.adr == adrs[i]);
      assert_in_range(found.nbytes, sizes[i], 2 * sizes[i] + 4096);
    }
    umem_free(&pool, adrs[i]);
    for (size_t k = 0; k < 3; k++)
      assert_false(umem_find_in(&pool, adrs[i] + k * (sizes[i] - 1) / 2, NULL));
  }
}

/* A block of Fixed that is aligned further begins inside of its room: the bytes before it are no
 * part of it. */
ON_STACK(bytes_before_an_aligned_block_are_not_in_it) {
  enum { count = 4 };
  uintptr_t adrs[count];
  size_t before = 0;
  CONTEXT(umemFixed, fixed, &host, 160, NULL);
  for (size_t i = 0; i < count; i++) {
    umemFound found = UMEM_FOUND_INIT, other = UMEM_FOUND_INIT;
    assert_true((adrs[i] = umem_aligned_alloc(&fixed, 64, 16)) != 0);
    assert_true(umem_find_in(&fixed, adrs[i] + 15, &found));
    assert_true(found.adr == adrs[i]);
    before += 160 - found.nbytes;
    if (found.nbytes < 160) assert_false(umem_find_in(&fixed, adrs[i] - 1, &other));
  }
  assert_true(before > 0); /* some of them do begin inside */
  for (size_t i = 0; i < count; i++) umem_aligned_free(&fixed, adrs[i]);
}

ON_STACK(what_is_no_block_is_not_found) {
  int local;
  umemTrack gone;
  assert_false(umem_find((uintptr_t)&local, NULL));
  assert_false(umem_find((uintptr_t)&umem_find, NULL));
  assert_int_equal(umem_thread_status(), umemOK);
  umemTrack_ctor(&gone, &host, NULL);
  uintptr_t adr = umem_alloc(&gone, 10);
  assert_true(umem_find(adr, NULL));
  umem_dtor(&gone); /* with a leak, which goes with it */
  assert_false(umem_find(adr, NULL));
  umem_free(&host, adr);
}

ON_STACK(a_file_is_asked_by_itself) {
  umemFound found = UMEM_FOUND_INIT;
  CONTEXT(umemFile, file, NULL, "w+");
  uintptr_t adr = umem_alloc(&file, 100);
  assert_true(umem_find_in(&file, adr + 99, &found));
  assert_ptr_equal(found.ctx, &file);
  assert_int_equal(found.nbytes, 100);
  assert_false(umem_find(adr + 99, &found));
}

/* ---- labels ---- */

ON_STACK(labels_are_in_what_is_found_and_in_reports) {
  umemTrack track;
  umemFound found = UMEM_FOUND_INIT;
  umemTrack_ctor(&track, &host, NULL);
  umem_set_label(&track, "ocean");
  uintptr_t adr = umem_alloc(&track, 40);
  assert_int_equal(umem_set_block_label(&track, adr, "salinity"), umemOK);
  assert_true(umem_find(adr + 39, &found));
  assert_string_equal(found.label, "ocean");
  assert_string_equal(found.block_label, "salinity");
  umem_dtor(&track);
  assert_non_null(strstr(umem_thread_message(), "of \"ocean\""));
  assert_non_null(strstr(umem_thread_message(), "\"salinity\""));
  umem_free(&host, adr);
}

ON_STACK(a_label_belongs_to_the_block_that_a_layer_above_has) {
  uintptr_t adr = umem_alloc(&above, 100);
  assert_int_equal(umem_set_block_label(&above, adr, "upper"), umemOK);
  assert_string_equal(umem_get_block_label(&below, adr), ""); /* its block there is the chunk */
  assert_int_equal(umem_set_block_label(&pool, adr, "x"), umemNotSupportedError);
  umem_clear_status(&pool);
  umem_free(&above, adr);
}

ON_STACK(a_failed_realloc_keeps_the_label) {
  uintptr_t adr = umem_alloc(&above, 100);
  umem_set_block_label(&above, adr, "kept");
  assert_true(umem_realloc(&above, adr, 100, SIZE_MAX / 4) == 0);
  assert_string_equal(umem_get_block_label(&above, adr), "kept");
  umem_clear_status(&above);
  umem_clear_status(&pool);
  umem_clear_status(&below);
  umem_free(&above, adr);
}

ON_STACK(a_label_without_memory_is_refused) {
  uintptr_t adr = umem_alloc(&above, 10);
  __atomic_store_n(&fails, true, __ATOMIC_RELAXED);
  umemStatusType one = umem_set_label(&host, "x");
  __atomic_store_n(&fails, false, __ATOMIC_RELAXED);
  assert_int_equal(one, umemMemoryError);
  assert_string_equal(umem_get_label(&host), "");
  umem_clear_status(&host);
  umem_free(&above, adr);
}

/* ---- the list ---- */

ON_STACK(the_largest_contexts_are_described_first) {
  char text[1024], cut[30];
  size_t before = umem_describe_contexts(NULL, 0);
  umemTrack large;
  umemTrack_ctor(&large, &host, NULL);
  umem_set_label(&large, "large");
  uintptr_t adr = umem_alloc(&large, 3 << 20), more = umem_alloc(&large, 1 << 20);
  umem_free(&large, more);
  assert_int_equal(umem_describe_contexts(text, sizeof text), before + 1);
  assert_true(strstr(text, "Track \"large\" 3145728 bytes (peak 4194304)") == text);
  assert_non_null(strstr(text, ", Pool 0 bytes"));
  umem_describe_contexts(cut, sizeof cut);
  assert_int_equal(strlen(cut), sizeof cut - 1);
  assert_memory_equal(cut, text, sizeof cut - 1);
  umem_free(&large, adr);
  umem_dtor(&large);
  assert_int_equal(umem_describe_contexts(NULL, 0), before);
}

ON_STACK(the_message_lists_contexts_on_request) {
  umem_set_label(&pool, "temps");
  uintptr_t adr = umem_alloc(&pool, 5000);
  assert_true(umem_alloc(&host, SIZE_MAX / 2) == 0);
  assert_null(strstr(umem_thread_message(), "live contexts"));
  umem_clear_status(&host);
  umem_list_when_out_of_memory(2);
  size_t before = __atomic_load_n(&mallocs, __ATOMIC_RELAXED);
  assert_true(umem_alloc(&host, SIZE_MAX / 2) == 0);
  assert_int_equal(__atomic_load_n(&mallocs, __ATOMIC_RELAXED), before);
  char const *text = umem_thread_message();
  assert_non_null(strstr(text, "; live contexts: Track "));
  assert_non_null(strstr(text, ", Pool \"temps\" "));
  assert_non_null(strstr(text, " more"));
  assert_string_equal(umem_get_message(&host), text);
  umem_clear_status(&host);
  assert_true(umem_alloc(&pool, SIZE_MAX / 4) == 0); /* from within a pool, too */
  assert_non_null(strstr(umem_get_message(&pool), "Pool \"temps\" "));
  assert_null(strstr(umem_get_message(&pool), "busy"));
  umem_clear_status(&pool);
  umem_clear_status(&below);
  umem_set_status(&host, umemIOError, "no list");
  assert_null(strstr(umem_thread_message(), "live contexts"));
  umem_clear_status(&host);
  umem_free(&pool, adr);
}

static size_t lists; /* that the hook has seen */
static void count_lists(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)data;
  char text[256];
  lists += type == umemMemoryError && strstr(message, "live contexts") && strlen(message) < 512;
  umem_describe_contexts(text, sizeof text); /* may be called here */
}

ON_STACK(a_list_in_the_failure_hook_does_not_hang) {
  lists = 0;
  umem_list_when_out_of_memory(100);
  umem_set_failure_hook(count_lists, NULL);
  assert_true(umem_alloc(&above, SIZE_MAX / 4) == 0);
  umem_set_failure_hook(NULL, NULL);
  assert_int_equal(lists, 1);
  umem_clear_status(&above);
  umem_clear_status(&pool);
  umem_clear_status(&below);
}

/* ---- threads and forks ---- */

/* Allocates, finds its own blocks, frees, and has contexts come and go. */
static void *find_own_blocks(void *unused) {
  for (size_t i = 0; i < 400; i++) {
    umemTrack mine;
    umemFound found = UMEM_FOUND_INIT;
    size_t nbytes = 1 + i * 331 % 70000;
    umemTrack_ctor(&mine, &pool, NULL);
    uintptr_t adr = umem_alloc(&mine, nbytes);
    umem_set_label(&mine, "mine");
    umem_set_block_label(&mine, adr, "block");
    bool good = umem_find(adr + nbytes / 2, &found) && found.ctx == &mine && found.adr == adr &&
                found.nbytes == nbytes && !strcmp(found.label, "mine") &&
                !strcmp(found.block_label, "block");
    char text[512];
    if (i % 16 == 0) umem_describe_contexts(text, sizeof text);
    umem_free(&mine, adr);
    good &= !umem_find_in(&mine, adr, NULL);
    umem_dtor(&mine);
    if (!good) return &pool;
  }
  return unused;
}

ON_STACK(threads_find_while_contexts_come_and_go) { run_at_once(4, find_own_blocks, NULL, 0); }

ON_STACK(a_child_of_fork_finds_what_its_parent_had) {
  uintptr_t adr = umem_alloc(&above, 10);
  IN_CHILD {
    umemFound found = UMEM_FOUND_INIT;
    bool good = umem_find(adr + 1, &found) && found.ctx == &above;
    umemTrack mine;
    umemTrack_ctor(&mine, &host, NULL);
    uintptr_t other = umem_alloc(&mine, 10);
    good &= umem_find(other, &found) && found.ctx == &mine;
    EXPECT(good);
  }
  umem_free(&above, adr);
}

/* In no order of construction. */
ON_STACK(contexts_end_in_any_order) {
  enum { count = 50 };
  SCOPED(free_bytes) umemTrack *many = calloc(count, sizeof *many);
  uintptr_t adrs[count];
  for (size_t i = 0; i < count; i++) {
    umemTrack_ctor(&many[i], &host, NULL);
    adrs[i] = umem_alloc(&many[i], 16);
  }
  for (size_t i = 0, k = 0; i < count; i++, k = (k + 17) % count) {
    umemFound found = UMEM_FOUND_INIT;
    assert_true(umem_find(adrs[k], &found));
    assert_ptr_equal(found.ctx, &many[k]);
    umem_free(&many[k], adrs[k]);
    umem_dtor(&many[k]);
    assert_false(umem_find(adrs[k], NULL));
  }
}
