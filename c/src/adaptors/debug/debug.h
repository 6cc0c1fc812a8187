/* debug.h - what the files of umemDebug share.
 *
 *   debug.c          the methods, construction
 *   debug_bytes.c    fills and looks at memory
 *   debug_finding.c  reports what is wrong
 *   debug_table.c    the blocks */
#ifndef UMEM_DEBUG_PRIVATE_H
#define UMEM_DEBUG_PRIVATE_H

#include "core/adaptor.h"
#include "adaptors/debug/debug_table.h"

#include <umem/host.h>

enum { umemDebugBatch = 64 }; /* blocks that are looked at together, at most */

typedef struct umemDebugImpl {
  umemAdaptor adaptor;
  umemDebugTable table;
  umemHost host; /* the destination of copies to check bytes */
  size_t guard;
  unsigned forks; /* between the process that loaded the library and the one that made this */
  bool fills;
  bool direct;           /* upstream's memory is the CPU's, and nothing is queued */
  bool at_once;          /* the program can write through pointers, so that each free looks */
  bool buffer_taken;     /* atomic */
  unsigned char *buffer; /* owned; NULL when direct */
  uint64_t findings;     /* with first, under the lock of the records */
  umemDebugFault first;
} umemDebugImpl;

static inline umemDebugImpl *umemDebug_impl(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- debug_bytes.c ---- */

/* Allocates the buffer into which upstream's bytes are copied. Returns false, and records a status, if it is out of
 * memory. */
bool umemDebug_open_buffer(umemVirtual *ctx);

/* Fills the guards of a new block; what is between too, if it should be. False with a status when
 * upstream fails. */
bool umemDebug_dress(umemVirtual *ctx, umemDebugBlock const *block, bool fill);

/* Fills a freed block. False with a status when upstream fails. */
bool umemDebug_poison(umemVirtual *ctx, umemDebugBlock const *block);

/* Looks at count blocks: guards, and the inside of what is poisoned; records in each what is wrong.
 * False with a status when upstream fails: then nothing is known. */
bool umemDebug_inspect(umemVirtual *ctx, umemDebugBlock *blocks, unsigned count);

/* ---- debug_finding.c ---- */

/* Reports what umemDebug_inspect has found wrong with blocks, each thing once. Whether there was
 * nothing. */
bool umemDebug_report(umemVirtual *ctx, umemDebugBlock const *blocks, unsigned count);

/* Records a finding in the call that has led to it. */
void umemDebug_refuse(umemVirtual *ctx, umemDebugFault *finding);

#endif
