#include <poll.h>

#include "fault/scenarios.h"
#include "scenarios.h"
#include "settings.h"

/* Blocks of `small` fit into the old file several times; `middle` is a block with room for a margin
 * on both sides of what is copied, whose bytes must stay. */
enum {
  small = 1500,
  middle = 9000,
  margin = 100,
  inner = middle - 2 * margin,
  grown = 300000,        /* reaches past the end of the old file */
  large = 8 << 20 | 5,   /* long enough for the threads of a staged copy */
  longest = 16 << 20 | 5 /* and of a read */
};

static unsigned char before[middle], after[middle], staged[middle];
static unsigned char long_bytes[longest], long_found[longest];

static void fill(unsigned char *bytes, size_t nbytes, unsigned seed) {
  for (size_t i = 0; i < nbytes; i++) bytes[i] = (unsigned char)((i + seed) * 40503u >> 7);
}

static bool is_null(void *ctx, uintptr_t adr) { return adr == umem_null(ctx); }

/* Memory that nothing else may have touched. */
static void require_margins(Trial *t, uintptr_t adr) {
  REQUIRE(t, trial_holds(t, adr, before, margin));
  REQUIRE(t, trial_holds(t, adr + margin + inner, before + margin + inner, margin));
}

/* ---- blocks ---- */

static void run_alloc(Trial *t) {
  uintptr_t a, b, c, d;
  bool all = GOT(t, t->ctx, a, umem_alloc(t->ctx, 1));
  all = GOT(t, t->ctx, b, umem_alloc(t->ctx, middle)) && all;
  all = GOT(t, t->ctx, c, umem_alloc(t->ctx, small)) && all;
  if (all) {
    REQUIRE(t, a % 16 == 0 && b % 16 == 0 && c % 16 == 0);
    REQUIRE(t, a + 1 <= b || b + middle <= a);
    REQUIRE(t, b + middle <= c || c + small <= b);
  }
  trial_free(t, t->ctx, b);
  GOT(t, t->ctx, d, umem_alloc(t->ctx, small));
  trial_free(t, t->ctx, a);
  trial_free(t, t->ctx, d);
  trial_free(t, t->ctx, c);
}

static void run_many(Trial *t) {
  enum { count = 200 };
  uintptr_t adr[count];
  for (size_t i = 0; i < count; i++) GOT(t, t->ctx, adr[i], umem_alloc(t->ctx, 16 + i));
  for (size_t i = 0; i < count; i += 2) trial_free(t, t->ctx, adr[i]);
  for (size_t i = 1; i < count; i += 2) trial_free(t, t->ctx, adr[i]);
}

static void run_grow(Trial *t) {
  uintptr_t a, b;
  GOT(t, t->ctx, a, umem_alloc(t->ctx, grown));
  if (GOT(t, t->ctx, b, umem_alloc(t->ctx, grown))) {
    unsigned char last = 77;
    trial_note(t, b, grown);
    if (STEP(t, umem_set(t->ctx, b + grown - 1, last, 1)))
      REQUIRE(t, trial_holds(t, b + grown - 1, &last, 1));
  }
  trial_free(t, t->ctx, b);
  trial_free(t, t->ctx, a);
}

static void run_calloc(Trial *t) {
  static unsigned char const zeros[middle];
  uintptr_t a, b;
  if (GOT(t, t->ctx, a, umem_calloc(t->ctx, middle / 40, 40))) {
    trial_note(t, a, middle);
    REQUIRE(t, trial_holds(t, a, zeros, middle));
  }
  trial_free(t, t->ctx, a);
  if (GOT(t, t->ctx, b, umem_calloc(t->ctx, 1, small))) {
    trial_note(t, b, small);
    REQUIRE(t, trial_holds(t, b, zeros, small));
  }
  trial_free(t, t->ctx, b);
}

static void run_aligned(Trial *t) {
  uintptr_t a, b;
  if (GOT(t, t->ctx, a, umem_aligned_alloc(t->ctx, 4096, small))) {
    REQUIRE(t, a % 4096 == 0);
    REQUIRE(t, umem_aligned_origin(t->ctx, a) <= a);
  }
  if (GOT(t, t->ctx, b, umem_aligned_alloc(t->ctx, 64, 1))) REQUIRE(t, b % 64 == 0);
  umem_aligned_free(t->ctx, a);
  umem_free_aligned(t->ctx, b);
  trial_settle(t);
}

static void run_realloc(Trial *t) {
  uintptr_t adr = trial_block(t, before, small);
  uintptr_t larger, smaller;
  if (GOT(t, t->ctx, larger, umem_realloc(t->ctx, adr, small, 3 * small))) adr = larger;
  if (!is_null(t->ctx, larger)) trial_note(t, larger, 3 * small);
  REQUIRE(t, trial_holds(t, adr, before, small));
  if (GOT(t, t->ctx, smaller, umem_realloc(t->ctx, adr, small, 40))) adr = smaller;
  if (!is_null(t->ctx, smaller)) trial_note(t, smaller, 40);
  REQUIRE(t, trial_holds(t, adr, before, 40));
  trial_free(t, t->ctx, adr);
}

/* ---- bytes ---- */

static void run_set(Trial *t) {
  uintptr_t adr = trial_block(t, before, middle);
  if (STEP(t, umem_set(t->ctx, adr + margin, 0x15a, inner))) {
    memset(after, 0x5a, inner);
    REQUIRE(t, trial_holds(t, adr + margin, after, inner));
  }
  require_margins(t, adr);
  trial_free(t, t->ctx, adr);
}

static void run_write(Trial *t) {
  uintptr_t adr = trial_block(t, before, middle);
  fill(after, inner, 1);
  if (STEP(t, umem_copy_to(&t->host, (uintptr_t)after, t->ctx, adr + margin, inner)))
    REQUIRE(t, trial_holds(t, adr + margin, after, inner));
  require_margins(t, adr);
  trial_free(t, t->ctx, adr);
}

static void run_read(Trial *t) {
  uintptr_t adr = trial_block(t, before, middle);
  memset(after, 0xee, middle);
  if (STEP(t, umem_copy_from(&t->host, (uintptr_t)after + margin, t->ctx, adr + margin, inner)))
    REQUIRE(t, !memcmp(after + margin, before + margin, inner));
  for (size_t i = 0; i < margin; i++)
    REQUIRE(t, after[i] == 0xee && after[margin + inner + i] == 0xee);
  REQUIRE(t, trial_holds(t, adr, before, middle));
  trial_free(t, t->ctx, adr);
}

static void run_inside(Trial *t) {
  uintptr_t from = trial_block(t, staged, middle);
  uintptr_t to = trial_block(t, before, middle);
  if (STEP(t, umem_copy_to(t->ctx, from + margin, t->ctx, to + margin, inner)))
    REQUIRE(t, trial_holds(t, to + margin, staged + margin, inner));
  REQUIRE(t, trial_holds(t, from, staged, middle));
  require_margins(t, to);
  trial_free(t, t->ctx, from);
  trial_free(t, t->ctx, to);
}

/* A block of the peer that holds other bytes than `before`. */
static uintptr_t peer_block(Trial *t, size_t nbytes) {
  inject_pause();
  uintptr_t adr = umem_alloc(t->peer, nbytes);
  REQUIRE(t, !is_null(t->peer, adr));
  fill(staged, nbytes, 9);
  REQUIRE(t, umem_copy_to(&t->host, (uintptr_t)staged, t->peer, adr, nbytes) == umemOK);
  inject_resume();
  return adr;
}

static void require_peer(Trial *t, uintptr_t adr, unsigned char const *bytes, size_t nbytes) {
  inject_pause();
  REQUIRE(t, umem_copy_to(t->peer, adr, &t->host, (uintptr_t)after, nbytes) == umemOK);
  inject_resume();
  REQUIRE(t, !memcmp(after, bytes, nbytes));
}

typedef umemStatusType Copy(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                            size_t nbytes);

static umemStatusType transfer(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                               size_t nbytes) {
  umemTransfer *transfer = NULL;
  umemStatusType status = umem_start(src, src_adr, dst, dst_adr, nbytes, NULL, &transfer);
  if (status == umemOK) status = umemTransfer_wait(transfer);
  umemTransfer_release(transfer);
  return status;
}

static void copy_to_peer(Trial *t, Copy *copy) {
  uintptr_t adr = trial_block(t, before, middle);
  uintptr_t other = peer_block(t, middle);
  if (STEP(t, copy(t->ctx, adr + margin, t->peer, other + margin, inner)))
    require_peer(t, other + margin, before + margin, inner);
  require_peer(t, other, staged, margin);
  require_peer(t, other + margin + inner, staged + margin + inner, margin);
  REQUIRE(t, trial_holds(t, adr, before, middle));
  trial_free(t, t->peer, other);
  trial_free(t, t->ctx, adr);
}

static void run_to_peer(Trial *t) { copy_to_peer(t, umem_copy_to); }
static void run_transfer_to_peer(Trial *t) { copy_to_peer(t, transfer); }

static void copy_from_peer(Trial *t, Copy *copy) {
  uintptr_t adr = trial_block(t, before, middle);
  uintptr_t other = peer_block(t, middle);
  if (STEP(t, copy(t->peer, other + margin, t->ctx, adr + margin, inner)))
    REQUIRE(t, trial_holds(t, adr + margin, staged + margin, inner));
  require_margins(t, adr);
  require_peer(t, other, staged, middle);
  trial_free(t, t->peer, other);
  trial_free(t, t->ctx, adr);
}

static umemStatusType copy_from(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                size_t nbytes) {
  return umem_copy_from(dst, dst_adr, src, src_adr, nbytes);
}
static void run_from_peer(Trial *t) { copy_from_peer(t, copy_from); }
static void run_transfer_from_peer(Trial *t) { copy_from_peer(t, transfer); }

/* ---- strided copies: every third item of 40 bytes, 16 in a row, rows backwards ---- */

static size_t const extents[] = {4, 16};
static ptrdiff_t const gaps[] = {-16 * 120, 120}, packed[] = {16 * 40, 40};
enum { item = 40, items = 4 * 16, section = 4 * 16 * 120, first_item = 3 * 16 * 120 };

static size_t at_gaps(size_t i) { return first_item - i / 16 * 16 * 120 + i % 16 * 120; }

/* Whether a byte of the section belongs to an item. */
static bool in_item(size_t offset) { return offset % 120 < item; }

static umemLayout layout(ptrdiff_t const *src, ptrdiff_t const *dst) {
  return (umemLayout){sizeof(umemLayout), item, 2, extents, src, dst};
}

/* Copies packed items of the host into the section, whose gaps must keep their bytes. */
static void run_scatter(Trial *t) {
  uintptr_t adr = trial_block(t, before, section);
  umemLayout const into = layout(packed, gaps);
  fill(staged, items * item, 3);
  bool done =
      STEP(t, umem_copy_strided(&t->host, (uintptr_t)staged, t->ctx, adr + first_item, &into));
  trial_peek(t, adr, after, section);
  for (size_t i = 0; i < section; i++)
    if (!in_item(i)) REQUIRE(t, after[i] == before[i]);
  for (size_t i = 0; done && i < items; i++)
    REQUIRE(t, !memcmp(after + at_gaps(i), staged + i * item, item));
  trial_free(t, t->ctx, adr);
}

static void run_gather(Trial *t) {
  uintptr_t adr = trial_block(t, before, section);
  umemLayout const out = layout(gaps, packed);
  memset(after, 0xee, sizeof after);
  bool done =
      STEP(t, umem_copy_strided(t->ctx, adr + first_item, &t->host, (uintptr_t)after, &out));
  for (size_t i = 0; done && i < items; i++)
    REQUIRE(t, !memcmp(after + i * item, before + at_gaps(i), item));
  for (size_t i = items * item; i < sizeof after; i++) REQUIRE(t, after[i] == 0xee);
  trial_free(t, t->ctx, adr);
}

typedef umemStatusType CopyItems(Trial *t, uintptr_t from, uintptr_t to, umemLayout const *which);

static umemStatusType copy_items(Trial *t, uintptr_t from, uintptr_t to, umemLayout const *which) {
  return umem_copy_strided(t->ctx, from, t->peer, to, which);
}

/* Who waits looks at the descriptor. Without one the copy goes on all the same. */
static umemStatusType transfer_items(Trial *t, uintptr_t from, uintptr_t to,
                                     umemLayout const *which) {
  umemTransfer *transfer = NULL;
  umemStatusType status = umem_start_strided(t->ctx, from, t->peer, to, which, NULL, &transfer);
  if (status != umemOK) return status;
  int fd = umemTransfer_descriptor(transfer);
  if (fd < 0) {
    REQUIRE(t, umem_thread_status() == umemRuntimeError);
    umem_thread_clear();
    t->failures = umem_thread_failures();
  }
  if (fd >= 0) REQUIRE(t, poll(&(struct pollfd){fd, POLLIN, 0}, 1, 60000) == 1);
  status = umemTransfer_wait(transfer);
  umemTransfer_release(transfer);
  return status;
}

static void gather_to_peer(Trial *t, CopyItems *copy) {
  uintptr_t adr = trial_block(t, before, section);
  uintptr_t other = peer_block(t, section);
  umemLayout const both = layout(gaps, gaps);
  bool done = STEP(t, copy(t, adr + first_item, other + first_item, &both));
  inject_pause();
  REQUIRE(t, umem_copy_to(t->peer, other, &t->host, (uintptr_t)after, section) == umemOK);
  inject_resume();
  for (size_t i = 0; i < section; i++) {
    if (!in_item(i))
      REQUIRE(t, after[i] == staged[i]);
    else if (done)
      REQUIRE(t, after[i] == before[i]);
  }
  trial_free(t, t->peer, other);
  trial_free(t, t->ctx, adr);
}

static void run_gather_to_peer(Trial *t) { gather_to_peer(t, copy_items); }
static void run_items_transfer_to_peer(Trial *t) { gather_to_peer(t, transfer_items); }

/* ---- lists: neighbours, a gap, and a target before all others ---- */

enum { list_items = 4, list_piece = inner / 8 };
static size_t const list_from[list_items] = {margin, margin + list_piece, margin + 4 * list_piece,
                                             margin + 6 * list_piece};
static size_t const list_to[list_items] = {margin + 2 * list_piece, margin + 3 * list_piece,
                                           margin + 5 * list_piece, margin};

/* What the bits say is done is done, and bytes of no target have not changed. */
static void require_list(Trial *t, uint8_t done, unsigned char const *source) {
  static bool of_target[middle];
  memset(of_target, 0, sizeof of_target);
  for (size_t i = 0; i < list_items; i++) {
    memset(of_target + list_to[i], 1, list_piece);
    if (done >> i & 1) REQUIRE(t, !memcmp(after + list_to[i], source + list_from[i], list_piece));
  }
  for (size_t i = 0; i < middle; i++)
    if (!of_target[i]) REQUIRE(t, after[i] == staged[i]);
}

static bool go_on(void *user, uint64_t done, uint64_t total) {
  Trial *t = user;
  REQUIRE(t, done <= total);
  return true;
}

/* As a transfer, of a list that does not live on. */
static umemStatusType start_list(umemCopyItem *list, umemCopyManyOptions const *options) {
  umemTransfer *transfer = NULL;
  umemStatusType status = umem_start_many(list, list_items, options, &transfer);
  memset(list, 0, list_items * sizeof *list);
  if (status == umemOK) status = umemTransfer_wait(transfer);
  umemTransfer_release(transfer);
  return status;
}

/* step: SIZE_MAX, as a transfer. */
static void copy_list(Trial *t, umemVirtual *src, uintptr_t from, umemVirtual *dst, uintptr_t to,
                      size_t step, uint8_t *done) {
  umemCopyItem list[list_items];
  size_t failed = 77;
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  options.done = done;
  options.failed = &failed;
  options.progress = step && step < SIZE_MAX ? go_on : NULL;
  options.user = t;
  options.step = step;
  for (size_t i = 0; i < list_items; i++)
    list[i] = (umemCopyItem){src, from + list_from[i], dst, to + list_to[i], list_piece};
  if (STEP(t, step == SIZE_MAX ? start_list(list, &options)
                               : umem_copy_many(list, list_items, &options)))
    REQUIRE(t, *done == 0xf && failed == list_items);
  else
    REQUIRE(t, failed == list_items || !(*done >> failed & 1));
}

static void list_to_peer(Trial *t, size_t step) {
  uint8_t done = 0xff;
  uintptr_t adr = trial_block(t, before, middle), other = peer_block(t, middle);
  copy_list(t, t->ctx, adr, t->peer, other, step, &done);
  inject_pause();
  REQUIRE(t, umem_copy_to(t->peer, other, &t->host, (uintptr_t)after, middle) == umemOK);
  inject_resume();
  require_list(t, done, before);
  trial_free(t, t->peer, other);
  trial_free(t, t->ctx, adr);
}

static void run_list_to_peer(Trial *t) { list_to_peer(t, 0); }
static void run_list_to_peer_in_steps(Trial *t) { list_to_peer(t, list_piece); }
static void run_list_transfer_to_peer(Trial *t) { list_to_peer(t, SIZE_MAX); }

static void run_list_from_host(Trial *t) {
  uint8_t done = 0xff;
  fill(staged, middle, 9);
  uintptr_t adr = trial_block(t, staged, middle);
  copy_list(t, &t->host.super, (uintptr_t)before, t->ctx, adr, 0, &done);
  trial_peek(t, adr, after, middle);
  require_list(t, done, before);
  trial_free(t, t->ctx, adr);
}

/* ---- pairs ---- */

static void pair(Trial *t, void *dst, size_t alignment) {
  uintptr_t adr = trial_block(t, before, middle), paired;
  if (GOT(t, dst, paired, umem_connect(t->ctx, adr, middle, dst, alignment))) {
    STEP(t, umem_sync_to(t->ctx, adr, dst, paired, middle));
    memset(after, 0, middle);
    inject_pause();
    REQUIRE(t, umem_copy_to(dst, paired, &t->host, (uintptr_t)after, middle) == umemOK);
    inject_resume();
    if (t->result == umemOK) REQUIRE(t, !memcmp(after, before, middle));
    if (t->ctx->capabilities & umemWritable)
      STEP(t, umem_sync_from(t->ctx, adr, dst, paired, middle));
  }
  STEP(t, umem_disconnect(t->ctx, adr, dst, paired, alignment));
  if (t->result == umemOK) REQUIRE(t, trial_holds(t, adr, before, middle));
  trial_free(t, t->ctx, adr);
}

static void run_connect(Trial *t) { pair(t, &t->host, 64); }
static void run_connect_peer(Trial *t) { pair(t, t->peer, 4096); }

/* ---- the rest ---- */

static void run_flush(Trial *t) {
  uintptr_t adr = trial_block(t, before, small);
  STEP(t, umem_flush(t->ctx));
  REQUIRE(t, trial_holds(t, adr, before, small));
  trial_free(t, t->ctx, adr);
  STEP(t, umem_flush(t->ctx));
}

static void run_trim(Trial *t) {
  uintptr_t first = trial_block(t, after, small);
  uintptr_t adr = trial_block(t, before, middle);
  trial_free(t, t->ctx, first);
  STEP(t, umem_trim(t->ctx, 0));
  REQUIRE(t, trial_holds(t, adr, before, middle));
  trial_free(t, t->ctx, adr);
  STEP(t, umem_trim(t->ctx, 0));
}

static void run_info(Trial *t) {
  umemInfo info = UMEM_INFO_INIT;
  if (STEP(t, umem_get_info(t->ctx, &info))) REQUIRE(t, info.alignment >= 16);
}

/* A block of zeros, but for a few bytes here and there: made quickly. */
static uintptr_t long_block(Trial *t, void *ctx, size_t nbytes) {
  inject_pause();
  uintptr_t adr = umem_calloc(ctx, 1, nbytes);
  REQUIRE(t, !is_null(ctx, adr));
  fill(staged, margin, 5);
  memset(long_bytes, 0, nbytes);
  for (size_t at = 0; at < nbytes - margin; at += nbytes / 7) {
    memcpy(long_bytes + at, staged, margin);
    REQUIRE(t, umem_copy_to(&t->host, (uintptr_t)staged, ctx, adr + at, margin) == umemOK);
  }
  inject_resume();
  return adr;
}

static void require_large(Trial *t, void *ctx, uintptr_t adr) {
  inject_pause();
  memset(long_found, 0xee, large);
  REQUIRE(t, umem_copy_to(ctx, adr, &t->host, (uintptr_t)long_found, large) == umemOK);
  REQUIRE(t, !memcmp(long_found, long_bytes, large));
  inject_resume();
}

/* Longer than one chunk of any route. */
static void run_large_to_peer(Trial *t) {
  uintptr_t adr = long_block(t, t->ctx, large), other;
  if (GOT(t, t->peer, other, umem_alloc(t->peer, large)) &&
      STEP(t, umem_copy_to(t->ctx, adr, t->peer, other, large)))
    require_large(t, t->peer, other);
  trial_free(t, t->peer, other);
  trial_free(t, t->ctx, adr);
}

static void run_large_from_peer(Trial *t) {
  uintptr_t other = long_block(t, t->peer, large), adr;
  if (GOT(t, t->ctx, adr, umem_alloc(t->ctx, large)) &&
      STEP(t, umem_copy_to(t->peer, other, t->ctx, adr, large)))
    require_large(t, t->ctx, adr);
  trial_free(t, t->peer, other);
  trial_free(t, t->ctx, adr);
}

/* Long enough for a read to be split over threads, and for a set to go in chunks. */
static void run_large_with_host(Trial *t) {
  uintptr_t adr = long_block(t, t->ctx, longest);
  memset(long_found, 0xee, longest);
  if (STEP(t, umem_copy_to(t->ctx, adr, &t->host, (uintptr_t)long_found, longest)))
    REQUIRE(t, !memcmp(long_found, long_bytes, longest));
  STEP(t, umem_set(t->ctx, adr, 1, longest));
  trial_free(t, t->ctx, adr);
}

/* The end of a context takes its blocks with it, but for those of the host, which are libc's. */
static void run_before_end(Trial *t) {
  uintptr_t adr = trial_block(t, before, small);
  if (t->place->kind == kindHost) trial_free(t, t->ctx, adr);
}

enum { both = umemReadable | umemWritable };

Scenario const scenarios[] = {
    {"constructor", NULL, 0, scenarioConstructs, NULL},
    {"alloc", NULL, 0, scenarioUses, run_alloc},
    {"many", NULL, onlyHeap, scenarioUses, run_many},
    {"grow", NULL, umemWritable | needsGrowth, scenarioUses, run_grow},
    {"calloc", NULL, umemWritable, scenarioUses, run_calloc},
    {"aligned", NULL, 0, scenarioUses, run_aligned},
    {"realloc", NULL, both, scenarioUses, run_realloc},
    {"set", NULL, umemWritable, scenarioUses, run_set},
    {"from host", NULL, umemWritable, scenarioUses, run_write},
    {"to host", NULL, umemReadable, scenarioUses, run_read},
    {"inside", NULL, both, scenarioUses, run_inside},
    {"to file", "file", umemReadable, scenarioUses, run_to_peer},
    {"from file", "file", umemWritable, scenarioUses, run_from_peer},
    {"transfer to file", "file", umemReadable, scenarioUses, run_transfer_to_peer},
    {"transfer from file", "file", umemWritable, scenarioUses, run_transfer_from_peer},
    {"to mmap", "mmap", umemReadable, scenarioUses, run_to_peer},
    {"from mmap", "mmap", umemWritable, scenarioUses, run_from_peer},
    {"to fake", "fake", umemReadable, scenarioUses, run_to_peer},
    {"from fake", "fake", umemWritable, scenarioUses, run_from_peer},
    {"scatter", NULL, umemWritable | usesWindows, scenarioUses, run_scatter},
    {"gather", NULL, umemReadable | usesWindows, scenarioUses, run_gather},
    {"gather to file", "file", umemReadable | usesWindows, scenarioUses, run_gather_to_peer},
    {"gather to fake", "fake", umemReadable | usesWindows, scenarioUses, run_gather_to_peer},
    {"items transfer to file", "file", umemReadable | usesWindows, scenarioUses,
     run_items_transfer_to_peer},
    {"list from host", NULL, umemWritable, scenarioUses, run_list_from_host},
    {"list to file", "file", umemReadable, scenarioUses, run_list_to_peer},
    {"list to fake", "fake", umemReadable, scenarioUses, run_list_to_peer},
    {"list to file in steps", "file", umemReadable, scenarioUses, run_list_to_peer_in_steps},
    {"list transfer to file", "file", umemReadable, scenarioUses, run_list_transfer_to_peer},
    {"connect", NULL, umemReadable, scenarioUses, run_connect},
    {"connect file", "file", umemReadable, scenarioUses, run_connect_peer},
    {"connect fake", "fake", umemReadable, scenarioUses, run_connect_peer},
    {"flush", NULL, 0, scenarioUses, run_flush},
    {"trim", NULL, 0, scenarioUses, run_trim},
    {"info", NULL, 0, scenarioUses, run_info},
    {"large to file", "file", both | needsLong, scenarioUses, run_large_to_peer},
    {"large from file", "file", both | needsLong, scenarioUses, run_large_from_peer},
    {"large to fake", "fake", both | needsLong, scenarioUses, run_large_to_peer},
    {"large from fake", "fake", both | needsLong, scenarioUses, run_large_from_peer},
    {"large with host", NULL, both | needsLong, scenarioUses, run_large_with_host},
    {"destructor", NULL, 0, scenarioDestructs, run_before_end},
};
size_t const scenario_count = sizeof scenarios / sizeof *scenarios;

static bool fits(Scenario const *scenario, Trial const *trial) {
  unsigned able = trial->ctx->capabilities & both;
  if (able & umemWritable) able |= needsGrowth;
  bool is_mapped =
      !strcmp(trial->place->name, "mmap w+") && !setting_small(); /* copies as the host does */
  if (trial->place->kind == kindHost || !strcmp(trial->place->name, "file w+, new") || is_mapped)
    able |= needsLong;
  able |= onlyHeap | usesWindows;
  return (scenario->needs & ~able) == 0;
}

bool scenario_begin(Trial *trial, Scenario const *scenario) {
  trial->scenario = scenario->name;
  if (scenario->kind == scenarioConstructs) return true;
  REQUIRE(trial, trial_construct(trial) == umemOK);
  if (!fits(scenario, trial)) return false;
  if (scenario->kind == scenarioDestructs) scenario->run(trial);
  return true;
}

void scenario_run(Trial *trial, Scenario const *scenario) {
  switch (scenario->kind) {
  case scenarioConstructs:
    STEP(trial, trial_construct(trial));
    break;
  case scenarioUses:
    scenario->run(trial);
    break;
  case scenarioDestructs:
    umem_dtor(trial->ctx);
    trial_settle(trial);
    break;
  }
}
