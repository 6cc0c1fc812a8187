/* debug_look.c - fills upstream's memory, looks at it, and reports wrong writes and wrong calls.
 *
 * The CPU's own memory is filled and compared where it is. Any other is filled by umem_set, and
 * copied to a buffer to be compared: first many copies, one for each stretch of a block, then one
 * umem_synchronize. */
#include "adaptors/debug/debug.h"
#include "adaptors/sites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(UMEM_DEBUG_FRAMES == umemSiteFrames, "a site holds all frames");

enum {
  buffer_size = 256 << 10, /* bytes that are copied before they are waited for */
  small_size = 2 << 10,    /* for a second thread at a time, on its stack */
  most_pieces = 3 * umemDebugBatch,
  page = 4096 /* of a longer red zone in front the last so many bytes are used */
};

/* Whether this is a child of fork that shares the memory with its parent, as a file. Either may
 * have freed blocks that the other one knows: so the child writes nothing there, and reports
 * nothing. */
static bool is_shared(umemDebugImpl const *debug) {
  return !debug->direct && debug->forks != umem_fork_count();
}

/* ---- filling ---- */

/* How many bytes of the room in front of a block are filled and looked at. */
static size_t front_zone(umemDebugImpl const *debug, umemDebugBlock const *block) {
  size_t most = debug->red_zone > page ? debug->red_zone : page;
  return block->front < most ? block->front : most;
}

static size_t tail_zone(umemDebugBlock const *block) {
  return block->extent - block->front - block->nbytes;
}

static void fill_bytes(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemDebugImpl const *debug = umemDebug_impl(ctx);
  if (debug->direct)
    memset((void *)adr, c, nbytes);
  else if (!is_shared(debug))
    umem_set(umemAdaptor_upstream(ctx), adr, c, nbytes);
}

bool umemDebug_fill(umemVirtual *ctx, umemDebugBlock const *block, bool inside) {
  uint64_t before = umem_thread.failures;
  uintptr_t adr = umemDebugBlock_adr(block);
  size_t front = front_zone(umemDebug_impl(ctx), block);
  fill_bytes(ctx, adr - front, UMEM_DEBUG_GUARD, front);
  if (inside && umem_thread.failures == before) fill_bytes(ctx, adr, UMEM_DEBUG_NEW, block->nbytes);
  if (umem_thread.failures == before)
    fill_bytes(ctx, adr + block->nbytes, UMEM_DEBUG_GUARD, tail_zone(block));
  return !umemAdaptor_failed(ctx, before);
}

bool umemDebug_poison(umemVirtual *ctx, umemDebugBlock const *block) {
  uint64_t before = umem_thread.failures;
  fill_bytes(ctx, umemDebugBlock_adr(block), UMEM_DEBUG_FREED, block->nbytes);
  return !umemAdaptor_failed(ctx, before);
}

/* ---- comparing ---- */

/* Compares the n bytes of block from offset on, which are at bytes now. */
static void compare_bytes(umemDebugBlock *block, int64_t offset, unsigned char const *bytes,
                          unsigned char expected, size_t n) {
  umemDebugPart part = expected == UMEM_DEBUG_GUARD ? umemDebugZones : umemDebugInside;
  umemDebugOverwritten *overwritten = &block->overwritten[part];
  if (bytes[0] == expected && !memcmp(bytes, bytes + 1, n - 1)) return;
  for (size_t i = 0; i < n; i++) {
    if (bytes[i] == expected) continue;
    if (!overwritten->wrong++) {
      overwritten->offset = offset + (int64_t)i;
      overwritten->found = bytes[i];
      overwritten->expected = expected;
    }
  }
}

/* ---- looking at what is elsewhere ---- */

/* n bytes of block from offset on: they are, or will be, in the buffer from at on. */
typedef struct Piece {
  umemDebugBlock *block;
  int64_t offset;
  size_t at, n;
  unsigned char expected;
} Piece;

typedef struct Look {
  umemVirtual *ctx;
  uint64_t before; /* failures of the thread */
  unsigned char *buffer;
  size_t size, used, copied; /* what is between is a stretch of one block, still to be copied */
  uintptr_t stretch;         /* where that begins */
  unsigned count;
  Piece pieces[most_pieces];
} Look;

static bool look_failed(Look const *look) { return umem_thread.failures != look->before; }

static void copy_stretch(Look *look) {
  umemDebugImpl *debug = umemDebug_impl(look->ctx);
  size_t n = look->used - look->copied;
  uintptr_t to = (uintptr_t)(look->buffer + look->copied);
  if (n && !look_failed(look))
    umem_copy_to(umemAdaptor_upstream(look->ctx), look->stretch, &debug->host, to, n);
  look->copied = look->used;
}

/* Waits for all copies, also those before one that has failed: they write to the buffer. */
static void finish_look(Look *look) {
  copy_stretch(look);
  umem_synchronize(umemAdaptor_upstream(look->ctx));
  for (unsigned i = 0; i < look->count && !look_failed(look); i++) {
    Piece const *piece = &look->pieces[i];
    compare_bytes(piece->block, piece->offset, look->buffer + piece->at, piece->expected, piece->n);
  }
  look->used = look->copied = look->count = 0;
}

static void look_at_bytes(Look *look, umemDebugBlock *block, int64_t offset, unsigned char expected,
                          size_t n) {
  for (size_t part; n && !look_failed(look); offset += (int64_t)part, n -= part) {
    if (look->used == look->size || look->count == most_pieces) finish_look(look);
    uintptr_t adr = umemDebugBlock_adr(block) + (uintptr_t)offset;
    Piece const *last = look->count ? &look->pieces[look->count - 1] : NULL;
    bool goes_on = last && last->block == block && last->offset + (int64_t)last->n == offset;
    if (!goes_on) {
      copy_stretch(look);
      look->stretch = adr;
    }
    part = n < look->size - look->used ? n : look->size - look->used;
    look->pieces[look->count++] = (Piece){block, offset, look->used, part, expected};
    look->used += part;
  }
}

static void look_at_block(Look *look, umemDebugBlock *block) {
  size_t front = front_zone(umemDebug_impl(look->ctx), block);
  look_at_bytes(look, block, -(int64_t)front, UMEM_DEBUG_GUARD, front);
  if (block->poisoned) look_at_bytes(look, block, 0, UMEM_DEBUG_FREED, block->nbytes);
  look_at_bytes(look, block, (int64_t)block->nbytes, UMEM_DEBUG_GUARD, tail_zone(block));
}

static void look_through(umemVirtual *ctx, unsigned char *buffer, size_t size,
                         umemDebugBlock *blocks, unsigned count) {
  Look look = {.ctx = ctx, .before = umem_thread.failures, .buffer = buffer, .size = size};
  for (unsigned i = 0; i < count && !look_failed(&look); i++) look_at_block(&look, &blocks[i]);
  finish_look(&look);
}

static __attribute__((noinline)) void look_with_little(umemVirtual *ctx, umemDebugBlock *blocks,
                                                       unsigned count) {
  unsigned char buffer[small_size];
  look_through(ctx, buffer, sizeof buffer, blocks, count);
}

/* ---- looking ---- */

static void look_directly(umemDebugImpl const *debug, umemDebugBlock *block) {
  unsigned char const *adr = (unsigned char const *)umemDebugBlock_adr(block);
  size_t front = front_zone(debug, block);
  compare_bytes(block, -(int64_t)front, adr - front, UMEM_DEBUG_GUARD, front);
  if (block->poisoned) compare_bytes(block, 0, adr, UMEM_DEBUG_FREED, block->nbytes);
  compare_bytes(block, (int64_t)block->nbytes, adr + block->nbytes, UMEM_DEBUG_GUARD,
                tail_zone(block));
}

bool umemDebug_inspect(umemVirtual *ctx, umemDebugBlock *blocks, unsigned count) {
  umemDebugImpl *debug = umemDebug_impl(ctx);
  for (unsigned i = 0; i < count; i++)
    memset(blocks[i].overwritten, 0, sizeof blocks[i].overwritten);
  if (is_shared(debug)) return true;
  if (debug->direct) {
    for (unsigned i = 0; i < count; i++) look_directly(debug, &blocks[i]);
    return true;
  }
  uint64_t before = umem_thread.failures;
  if (!__atomic_exchange_n(&debug->buffer_taken, true, __ATOMIC_ACQUIRE)) {
    look_through(ctx, debug->buffer, buffer_size, blocks, count);
    __atomic_store_n(&debug->buffer_taken, false, __ATOMIC_RELEASE);
  } else {
    look_with_little(ctx, blocks, count);
  }
  return !umemAdaptor_failed(ctx, before);
}

bool umemDebug_open_buffer(umemVirtual *ctx) {
  umemDebugImpl *debug = umemDebug_impl(ctx);
  if (debug->direct || (debug->buffer = malloc(buffer_size))) return true;
  return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
}

/* ---- reports ---- */

typedef char BlockWords[100], ByteWords[150];

/* "the block of 100 bytes at 0x...". */
static char const *name_block(umemDebugFault const *finding, BlockWords words) {
  bool freed = finding->freed && finding->kind != umemDebugDoubleFree;
  snprintf(words, sizeof(BlockWords), "the %sblock of %zu byte%s at 0x%" PRIxPTR,
           freed ? "freed " : "", finding->nbytes, finding->nbytes == 1 ? "" : "s", finding->adr);
  return words;
}

/* "byte 100 of the block of 100 bytes at 0x..., past its end": where the wrong byte is, counted
 * from 0, as in the finding. */
static char const *name_byte(umemDebugFault const *finding, char const *block, ByteWords words) {
  int64_t offset = finding->offset, size = (int64_t)finding->nbytes;
  char const *where = offset < 0 ? ", before it" : offset < size ? "" : ", past its end";
  snprintf(words, sizeof(ByteWords), "byte %" PRIi64 " of %s%s", offset, block, where);
  return words;
}

static void write_finding(umemDebugFault const *finding, char *text, size_t size) {
  BlockWords block;
  ByteWords byte;
  name_block(finding, block);
  name_byte(finding, block, byte);
  uintptr_t adr = finding->adr + (uintptr_t)finding->offset;
  switch (finding->kind) {
  case umemDebugUnderflow:
  case umemDebugOverflow:
  case umemDebugWriteAfterFree:
    snprintf(text, size, "a wrong write to %s: 0x%02x instead of 0x%02x, %zu byte%s in all", byte,
             finding->found, finding->expected, finding->wrong, finding->wrong == 1 ? "" : "s");
    return;
  case umemDebugBadAccess:
    snprintf(text, size, "it touches %s", byte);
    return;
  case umemDebugDoubleFree:
    snprintf(text, size, "%s is free already", block);
    return;
  case umemDebugInnerFree:
    snprintf(text, size, "0x%" PRIxPTR " is %s", adr, byte);
    return;
  case umemDebugWrongFunction:
    snprintf(text, size, "%s is %sof umem_aligned_alloc: free it with %s", block,
             finding->aligned ? "" : "not ", finding->aligned ? "umem_aligned_free" : "umem_free");
    return;
  case umemDebugWrongSize:
    snprintf(text, size, "%s is resized as if it had %zu", block, finding->wrong);
    return;
  case umemDebugUnknownFree:
  case umemDebugNothing:
    break;
  }
  snprintf(text, size, "0x%" PRIxPTR " is in no block", adr);
}

/* "; allocated by main+0x1f < ...". */
static void write_site(char const *what, void *const *trace, unsigned frames, char *text,
                       size_t size) {
  char site[160];
  size_t used = strlen(text);
  if (!frames) return;
  umemSite_name(trace, frames, site, sizeof site);
  snprintf(text + used, size - used, "; %s by %s", what, site);
}

void umemDebug_refuse(umemVirtual *ctx, umemDebugFault *finding) {
  umemDebugImpl *debug = umemDebug_impl(ctx);
  finding->ctx = ctx;
  umemLock_acquire(&debug->table.records.lock);
  if (!debug->findings++) debug->first = *finding;
  umemLock_release(&debug->table.records.lock);
  char text[UMEM_MESSAGE_SIZE];
  write_finding(finding, text, sizeof text);
  write_site("allocated", finding->allocated_at, finding->allocated_frames, text, sizeof text);
  write_site("freed", finding->freed_at, finding->freed_frames, text, sizeof text);
  bool is_access = finding->kind <= umemDebugBadAccess;
  umemVirtual_fail(ctx, is_access ? umemIndexError : umemValueError, "%s", text);
}

bool umemDebug_report(umemVirtual *ctx, umemDebugBlock const *blocks, unsigned count) {
  bool nothing = true;
  for (unsigned i = 0; i < count; i++)
    for (umemDebugPart part = 0; part < umemDebugParts; part++) {
      umemDebugFault finding = UMEM_DEBUG_FAULT_INIT;
      if (!umemDebugTable_take_finding(&umemDebug_impl(ctx)->table, &blocks[i], part, &finding))
        continue;
      umemDebug_refuse(ctx, &finding);
      nothing = false;
    }
  return nothing;
}
