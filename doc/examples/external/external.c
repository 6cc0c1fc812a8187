/* The allocator of an application becomes a place. */
#include <stdio.h>
#include <stdlib.h>
#include <umem.h>

/* [allocator] */
static void *app_get(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)user, (void)stream;
  printf("get %zu bytes at a multiple of %zu\n", nbytes, alignment);
  return aligned_alloc(alignment, (nbytes + alignment - 1) / alignment * alignment);
}

static void app_give(void *user, void *block, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)user, (void)alignment, (void)stream;
  printf("give %zu bytes back\n", nbytes);
  free(block);
}

static umemStatusType open_app(umemExternal *ctx, umemHost *ram) {
  umemExternalOptions options = UMEM_EXTERNAL_OPTIONS_INIT;
  options.allocate = app_get;
  options.deallocate = app_give;
  options.alignment = 16;                       /* of every block */
  return umemExternal_ctor(ctx, ram, &options); /* ram copies the bytes */
}
/* [/allocator] */

int main(void) {
  umemHost ram;
  umemExternal app;
  umemLimit limit;
  umemHost_ctor(&ram);
  /* [use] */
  if (open_app(&app, &ram) != umemOK) return puts(umem_thread_message()), 1;
  umemLimit_ctor(&limit, &app, 1000); /* as over any context */
  uintptr_t adr = umem_alloc(&limit, 600);
  umem_set(&limit, adr, 7, 600);
  if (umem_alloc(&limit, 600) == umem_null(&limit)) puts(umem_thread_message());
  umem_free(&limit, adr);
  /* [/use] */
  umem_dtor(&limit);
  umem_dtor(&app);
  umem_dtor(&ram);
  return 0;
}
