/* each_backend.h - calls a test with an open context of each row of the table. */
#pragma once

#include "backends.h"
#include "settings.h"
#include "cases.h"

/* Calls test(row, ctx) for each row that this machine can open, and closes the context. Fails if
 * the thread or the context has a failure then, or if a block is left. Returns how many there
 * were. */
static inline size_t for_each_backend(void (*test)(Backend const *row, umemVirtual *ctx)) {
  size_t opened = 0;
  for (size_t i = 0; i < backend_count; i++) {
    Backend const *row = &backends[i];
    if (setting_leaves_out(row->name)) continue;
    umemVirtual *ctx = backend_open(row);
    if (!ctx && (row->traits & backendMayLack)) {
      umem_thread_clear();
      continue;
    }
    if (!ctx) fail_msg("%s: %s", row->name, umem_thread_message());
    test(row, ctx);
    if (umem_thread_status() != umemOK) fail_msg("%s: %s", row->name, umem_thread_message());
    if (!umem_is_ok(ctx)) fail_msg("%s: %s", row->name, umem_get_message(ctx));
    if (row->records && row->records(ctx).blocks) fail_msg("%s: a block is left", row->name);
    backend_close(row, ctx);
    opened++;
  }
  return opened;
}

/* How often a random test is repeated with a context, of so many times in all: half of them with
 * RAM, and with each at least so often. */
static inline int rounds_of(umemVirtual *ctx, int all, int least) {
  int each = all / 2 / (int)backend_count + least;
  return ctx->host == ctx && all ? all / 2 + each : each;
}
