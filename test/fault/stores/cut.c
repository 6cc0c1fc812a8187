/* cut.c - another process cuts the file that a context stands on: what is gone is a umemIOError
 * that says so, never a signal, and what is left can be used on. */
#include "fault/trial.h"

enum { left = 5000, block = 30000, section = 15000, middle = 12000 };

static unsigned char bytes[block], found[block];

static void cut(void *argument) { EXPECT(truncate(argument, left) == 0); }

/* The last call failed because of the cut, and on this context. */
static void require_report(Trial *t, umemStatusType status) {
  REQUIRE(t, status == umemIOError);
  REQUIRE(t, umem_thread_status() == umemIOError);
  REQUIRE(t, umem_get_status(t->ctx) == umemIOError);
  REQUIRE(t, strstr(umem_get_message(t->ctx), "truncated by another process"));
  REQUIRE(t, umem_clear_status(t->ctx) == umemOK);
  umem_thread_clear();
}

static void reads_fail(Trial *t, uintptr_t adr) {
  uintptr_t const to = (uintptr_t)found;
  size_t const extents[] = {70};
  ptrdiff_t const strides[] = {400};
  umemLayout const items = {sizeof items, 4, 1, extents, strides, NULL};
  uintptr_t other = umem_alloc(t->peer, block);
  require_report(t, umem_copy_to(t->ctx, adr, &t->host, to, block));
  require_report(t, umem_copy_to(t->ctx, adr + middle, &t->host, to, 1));
  require_report(t, umem_copy_to(t->ctx, adr, t->peer, other, block));
  require_report(t, umem_copy_strided(t->ctx, adr, &t->host, to, &items));
  umem_free(t->peer, other);
  if (t->ctx->capabilities & umemCpuReadable) return; /* connect gives out the pointer itself */
  REQUIRE(t, umem_connect(t->ctx, adr, block, &t->host, 64) == 0);
  require_report(t, umemIOError);
}

static void what_is_left_reads(Trial *t, uintptr_t adr) {
  memset(found, 0, sizeof found);
  REQUIRE(t, umem_copy_to(t->ctx, adr, &t->host, (uintptr_t)found, left) == umemOK);
  REQUIRE(t, !memcmp(bytes, found, left));
}

/* Writing would make the file longer again, with zeros where bytes were cut away. */
static void writes_fail(Trial *t, uintptr_t adr) {
  require_report(t, umem_set(t->ctx, adr + middle, 7, 100));
  require_report(t, umem_copy_from(t->ctx, adr + section, &t->host, (uintptr_t)bytes, section));
  REQUIRE(t, umem_copy_from(t->ctx, adr, &t->host, (uintptr_t)bytes, left) == umemOK);
  uintptr_t other = umem_calloc(t->ctx, 1, block); /* makes it longer */
  require_report(t, umem_copy_to(t->ctx, adr, &t->host, (uintptr_t)found, block));
  umem_free(t->ctx, other);
  what_is_left_reads(t, adr);
}

/* With the old bytes in the file again: the cut was not the context's doing. */
static void close_uncut(Trial *t) {
  umem_dtor(t->ctx);
  REQUIRE(t, umem_thread_status() == umemOK);
  write_file(t->path, old_size);
  trial_finish(t);
}

static void on_a_cut_file(void **state) {
  Place const *place = *state;
  SCOPED(close_uncut) Trial t;
  trial_open(&t, place, "fake");
  t.fault = "truncated";
  uintptr_t adr = trial_block(&t, bytes, block);
  assert_true(child_run(cut, t.path));
  reads_fail(&t, adr);
  what_is_left_reads(&t, adr);
  if (place->mode[1] == '+') writes_fail(&t, adr);
  REQUIRE(&t, umem_thread_status() == umemOK && umem_is_ok(t.ctx));
  umem_free(t.ctx, adr);
}

/* The context has no memory to note which block has lost what. */
static void is_noted_without_memory(void **state) {
  Place const *place = *state;
  SCOPED(close_uncut) Trial t;
  trial_open(&t, place, "fake");
  t.fault = "truncated";
  uintptr_t adr = trial_block(&t, bytes, block);
  assert_true(child_run(cut, t.path));
  inject_fail(callHeap, 1, ENOMEM, true);
  umemStatusType status = umem_copy_to(t.ctx, adr, &t.host, (uintptr_t)found, block);
  unsigned long refused = inject_off();
  require_report(&t, status);
  REQUIRE(&t, refused > 0);
  uintptr_t other = umem_calloc(t.ctx, 1, block); /* makes it longer */
  REQUIRE(&t, other != umem_null(t.ctx));
  require_report(&t, umem_copy_to(t.ctx, adr, &t.host, (uintptr_t)found, block));
  require_report(&t, umem_set(t.ctx, adr + middle, 7, 100));
  what_is_left_reads(&t, adr);
}

/* A file that is cut to nothing while a block past its end is allocated: the file holds the whole
 * block. */
static void grows_after_a_cut(void **state) {
  Place const *place = *state;
  SCOPED(close_uncut) Trial t;
  trial_open(&t, place, NULL);
  uintptr_t first = umem_alloc(t.ctx, old_size);
  assert_true(child_run(cut, t.path));
  uintptr_t adr = umem_calloc(t.ctx, 1, block);
  REQUIRE(&t, first != umem_null(t.ctx) && adr != umem_null(t.ctx));
  memset(bytes, 0, sizeof bytes);
  REQUIRE(&t, umem_copy_to(t.ctx, adr, &t.host, (uintptr_t)found, block) == umemOK);
  REQUIRE(&t, !memcmp(bytes, found, block));
}

int main(void) {
  for (size_t i = 0; i < place_count; i++) {
    Place const *place = &places[i];
    if (!place->mode || place->scratch || place->fresh || place->mode[0] == 'a') continue;
    if (place->mode[0] != 'r' && place->mode[1] != '+') continue;
    add_case(on_a_cut_file, place, "%s, truncated", place->name);
    if (place->mode[1] != '+') continue;
    add_case(grows_after_a_cut, place, "%s, truncated, then grown", place->name);
    add_case(is_noted_without_memory, place, "%s, truncated, without memory", place->name);
  }
  return run_cases(NULL, NULL);
}
