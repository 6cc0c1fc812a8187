/* debug_finding.c - reports wrong writes and wrong calls. */
#include "adaptors/debug/debug.h"
#include "base/thread.h"
#include "adaptors/sites.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(UMEM_DEBUG_FRAMES == umemSiteFrames, "a site holds all frames");

typedef char BlockWords[100], ByteWords[150];

/* "the block of 100 bytes at 0x...". */
static char const *name_block(umemDebugFault const *finding, BlockWords words) {
  bool freed = finding->freed && finding->kind != umemDebugDoubleFree;
  snprintf(words, sizeof(BlockWords), "the %sblock of %zu byte%s at 0x%" PRIxPTR,
           freed ? "freed " : "", finding->nbytes, finding->nbytes == 1 ? "" : "s", finding->adr);
  return words;
}

/* "byte 100 of the block of 100 bytes at 0x..., past its end": where the wrong byte is, counted from 0,
 * as in the finding. */
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

static umemStatusType type_of(umemDebugKind kind) {
  return kind <= umemDebugBadAccess ? umemIndexError : umemValueError;
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
  umemVirtual_fail(ctx, type_of(finding->kind), "%s", text);
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
