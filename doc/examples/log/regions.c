/* Which chunks a pool has, and what keeps them: results that stay are allocated between temporary blocks. */
#include <inttypes.h>
#include <stdio.h>
#include <umem.h>

enum { steps = 12 };

int main(void) {
  umemFile file;
  umemPool pool;
  umemFile_ctor(&file, NULL, "w+"); /* a scratch file; a GPU works as well */
  umemPool_ctor(&pool, &file, NULL);
  for (size_t i = 1; i <= steps; i++) {
    uintptr_t temporary[] = {umem_alloc(&pool, i * (3 << 20)), umem_alloc(&pool, i << 20)};
    umem_alloc(&pool, i * 500000); /* the result */
    for (size_t k = 0; k < 2; k++) umem_free(&pool, temporary[k]);
  }

  /* [regions] */
  umemPoolRegion region = UMEM_POOL_REGION_INIT;
  printf("bytes,used,largest_free,ranges,age\n");
  for (uintptr_t adr = 0; umemPool_next_region(&pool, adr, &region); adr = region.adr + 1)
    printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", region.nbytes,
           region.used, region.largest_free, region.ranges, region.age);
  /* [/regions] */

  int failed = !umem_is_ok(&pool);
  umem_dtor(&pool);
  umem_dtor(&file);
  return failed;
}
