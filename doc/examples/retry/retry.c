/* A cache frees memory when memory is out. */
#include <stdio.h>
#include <umem.h>

/* [callback] */
/* Frees one block of the cache for each attempt, as long as there are blocks. */
typedef struct Cache {
  uintptr_t blocks[3];
  int count;
} Cache;

static bool make_room(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  Cache *cache = user;
  (void)alignment;
  if (!cache->count) return false; /* give up: the allocation fails */
  printf("attempt %u for %zu bytes failed\n", attempt, nbytes);
  umem_free(ctx, cache->blocks[--cache->count]);
  return true;
}
/* [/callback] */

int main(void) {
  umemHost ram;
  umemLimit share;
  umemHost_ctor(&ram);
  umemLimit_ctor(&share, &ram, 1000); /* so that memory runs out */

  /* [retry] */
  Cache cache = {.count = 0};
  umemRetry patient;
  umemRetry_ctor(&patient, &share, make_room, &cache); /* share is borrowed */
  for (; cache.count < 3; cache.count++) cache.blocks[cache.count] = umem_alloc(&patient, 300);

  uintptr_t large = umem_alloc(&patient, 600);
  printf("%s\n", umem_get_status_name(umem_get_status(&patient)));
  /* [/retry] */

  umem_free(&patient, large);
  while (cache.count) umem_free(&patient, cache.blocks[--cache.count]);
  umem_dtor(&patient);
  umem_dtor(&share);
  umem_dtor(&ram);
  return 0;
}
