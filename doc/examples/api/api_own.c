/* Parts of this program are the examples for contexts of your own in the reference of C: a part
 * stands at each function that the comment before it names. umemOwn is memory of malloc, umemPass
 * an adaptor that counts blocks. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem.h>

typedef struct umemOwn {
  umemVirtual super;
  umemHost host;
  size_t zeroed, written; /* bytes */
} umemOwn;

/* [umemVirtual_fail] */
static uintptr_t own_alloc(umemVirtual *ctx, size_t nbytes) {
  void *memory = malloc(nbytes);
  if (memory) return (uintptr_t)memory;
  umemVirtual_fail(ctx, umemMemoryError, "no memory for %zu bytes", nbytes);
  return umem_null(ctx);
}
/* [/] */

static void own_free(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  free((void *)adr);
}

/* [umemVirtual_calloc] */
static uintptr_t own_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  ((umemOwn *)ctx)->zeroed += nmemb * size;    /* umem has checked that it does not overflow */
  return umemVirtual_calloc(ctx, nmemb, size); /* the default does the rest, and fails for ctx */
}
/* [/] */

/* [umemVirtual_set] */
static void own_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  ((umemOwn *)ctx)->written += nbytes;
  umemVirtual_set(ctx, adr, c, nbytes); /* calls copy_from; a failure is a status of ctx */
}
/* [/] */

/* [umemVirtual_aligned_alloc] */
static uintptr_t own_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  return umemVirtual_aligned_alloc(ctx, alignment < 64 ? 64 : alignment, size); /* cache lines */
}
/* [/] */

/* [umemVirtual_aligned_origin umemVirtual_aligned_free] */
static uintptr_t own_origin(umemVirtual *ctx, uintptr_t adr) {
  return umemVirtual_aligned_origin(ctx, adr);
}
static void own_aligned_free(umemVirtual *ctx, uintptr_t a) { umemVirtual_aligned_free(ctx, a); }
/* [/] */

static void own_copy_to(umemVirtual *ctx, uintptr_t src, umemVirtual *that, uintptr_t dst,
                        size_t nbytes) {
  (void)ctx, (void)that;
  memcpy((void *)dst, (void const *)src, nbytes);
}

static void own_copy_from(umemVirtual *ctx, uintptr_t dst, umemVirtual *that, uintptr_t src,
                          size_t nbytes) {
  (void)ctx, (void)that;
  memcpy((void *)dst, (void const *)src, nbytes);
}

/* [umemVirtual_dtor] */
static void own_dtor(umemVirtual *ctx) {
  umemVirtual_dtor(ctx); /* before the host, which the base borrows */
  umem_dtor(&((umemOwn *)ctx)->host);
}
/* [/] */

static umemStatusType own_ctor(umemOwn *ctx) {
  static struct umemVtbl const vtbl = {
      .dtor = own_dtor,
      .alloc = own_alloc,
      .calloc = own_calloc,
      .free = own_free,
      .aligned_alloc = own_aligned_alloc,
      .aligned_origin = own_origin,
      .aligned_free = own_aligned_free,
      .set = own_set,
      .copy_to = own_copy_to,
      .copy_from = own_copy_from,
  };
  /* [umemVirtual_ctor] */
  umemHost_ctor(&ctx->host);
  umemVirtual_ctor(&ctx->super, &ctx->host); /* a macro, which passes the size of the table */
  ctx->super.vptr = &vtbl, ctx->super.type = umemUserDevice, ctx->super.name = "Own";
  /* [/] */
  ctx->super.alignment = 16;
  return umemOK;
}

/* ---- an adaptor ---- */

typedef struct umemPass {
  umemVirtual super;
  umemVirtual *upstream; /* borrowed */
  int blocks;            /* live ones */
} umemPass;

static umemVirtual *pass_upstream(umemVirtual *ctx) { return ((umemPass *)ctx)->upstream; }

/* [umemVirtual_adopt] */
static uintptr_t pass_alloc(umemVirtual *ctx, size_t nbytes) {
  uint64_t before = umem_thread_failures();
  uintptr_t adr = umem_alloc(pass_upstream(ctx), nbytes);
  if (umemVirtual_adopt(ctx, before) != umemOK) return umem_null(ctx); /* it is on ctx, too */
  return ((umemPass *)ctx)->blocks++, adr;
}
/* [/] */

static void pass_free(umemVirtual *ctx, uintptr_t adr) {
  umem_free(pass_upstream(ctx), adr);
  ((umemPass *)ctx)->blocks--;
}

/* [umemVirtual_leave] */
static void pass_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  ((umemPass *)ctx)->blocks--; /* nobody will free the block */
  umemVirtual_leave(pass_upstream(ctx), adr, aligned);
}
/* [/] */

static void pass_ctor(umemPass *ctx, umemVirtual *upstream) {
  static struct umemVtbl const vtbl = {
      .alloc = pass_alloc, .free = pass_free, .upstream = pass_upstream, .leave = pass_leave};
  /* [umemVirtual_ctor_sized] */
  /* What the macro umemVirtual_ctor calls, for languages that have no macros of C. */
  umemVirtual_ctor_sized(&ctx->super, upstream->host, sizeof(struct umemVtbl));
  ctx->super.vptr = &vtbl, ctx->super.type = umemUserDevice, ctx->super.name = "Pass";
  /* [/] */
  ctx->super.alignment = upstream->alignment;
  ctx->upstream = upstream, ctx->blocks = 0;
}

/* ---- their use ---- */

/* [umemAttempt_begin umemAttempt_end] */
static uintptr_t alloc_or(void *first, void *second, size_t nbytes, umemAttempt *attempt) {
  umemAttempt_begin(attempt); /* from here on a failure is neither recorded nor reported */
  uintptr_t adr = umem_alloc(first, nbytes);
  umemAttempt_end(attempt);
  return adr != umem_null(first) ? adr : umem_alloc(second, nbytes);
}
/* [/] */

static void attempts(umemOwn *own, umemHost *ram) {
  umemAttempt attempt;
  umemLimit limit;
  umemLimit_ctor(&limit, ram, 100);
  uintptr_t adr = alloc_or(&limit, own, 1000, &attempt);
  assert(adr != umem_null(own) && umem_is_ok(&limit) && umem_thread_status() == umemOK);
  /* [umemAttempt_failed umemAttempt_record] */
  umemStatusType status = umemOK;
  if (umemAttempt_failed(&attempt)) status = umemAttempt_record(&attempt); /* on its context */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  assert(status == umemMemoryError && umem_get_status(&limit) == umemMemoryError);
  umem_free(own, adr);
  umem_dtor(&limit), umem_thread_clear();
}

static umemStatusType open_own(void *ctx, void *upstream, umemOptionValue const *place,
                               umemOptionValue const *options, void *user) {
  (void)upstream, (void)place, (void)options, (void)user;
  return own_ctor(ctx);
}

static void names(void) {
  static umemScheme const scheme = {.size = sizeof(umemScheme),
                                    .name = "own",
                                    .context_size = sizeof(umemOwn),
                                    .construct = open_own,
                                    .help = "memory of malloc"};
  /* [umem_register_scheme] */
  if (umem_register_scheme(&scheme) != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  void *ctx = umem_open("stats+own:"); /* scheme.name is "own" */
  if (!ctx) fprintf(stderr, "%s\n", umem_thread_message());
  umem_close(ctx);
  /* [/] */
  assert(ctx && umem_thread_status() == umemOK);
}

static void use(umemOwn *own) {
  umemPass pass;
  pass_ctor(&pass, &own->super);
  uintptr_t adr = umem_calloc(own, 10, 10), line = umem_aligned_alloc(own, 16, 10);
  assert(own->zeroed == 100 && own->written == 100 && line % 64 == 0);
  assert(umem_aligned_origin(own, line) != umem_null(own));
  umem_aligned_free(own, line), umem_free(own, adr);

  adr = umem_alloc(&pass, 100);
  assert(adr && pass.blocks == 1);
  umem_free(&pass, adr);
  adr = umem_alloc(&pass, 100);
  assert(umem_end_block(&pass, adr, false, true, umem_generation()) == umemOK);
  assert(umem_thread_status() == umemOK);
  assert(umem_alloc(&pass, SIZE_MAX / 2) == umem_null(&pass));
  assert(umem_get_status(&pass) == umemMemoryError && umem_get_status(own) == umemMemoryError);
  umem_clear_status(own), umem_thread_clear();
  umem_dtor(&pass);
}

int main(void) {
  umemHost ram;
  umemOwn own = {.zeroed = 0};
  umemHost_ctor(&ram);
  own_ctor(&own);
  use(&own);
  attempts(&own, &ram);
  names();
  umem_dtor(&own);
  umem_dtor(&ram);
}
