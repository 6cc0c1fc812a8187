/* What layers report depends on their order. */
#include <stdio.h>
#include <umem.h>

/* [layers] */
/* Runs work on the context of this name, and prints the first failure of the run. */
static void run(char const *name, void (*work)(void *ctx)) {
  void *ctx = umem_open(name);
  work(ctx);
  umemStatusType worked = umem_get_status(ctx), closed = umem_close(ctx);
  printf("%s -> %s\n", name, umem_get_status_name(worked != umemOK ? worked : closed));
}

static void leak(void *ctx) { umem_alloc(ctx, 100); }

static void take_all(void *ctx) { umem_free(ctx, umem_alloc(ctx, 1000)); }

static void write_past(void *ctx) {
  uintptr_t block = umem_alloc(ctx, 16), next = umem_alloc(ctx, 16);
  *((char *)block + 16) = 1;
  umem_free(ctx, block);
  umem_free(ctx, next);
}

int main(void) {
  run("track+debug+host:", leak);
  run("debug+track+host:", leak); /* umemDebug frees the block at its end */

  run("limit+debug+host:?limit=1000", take_all);
  run("debug+limit+host:?limit=1000", take_all); /* the limit counts guards */

  run("debug+pool+host:", write_past);
  run("pool+debug+host:", write_past); /* umemDebug puts guards around chunks */

  run("log+stats+limit+track+debug+pool+host:?log.file=run.umem&limit.limit=1M", write_past);
  return 0;
}
/* [/layers] */
