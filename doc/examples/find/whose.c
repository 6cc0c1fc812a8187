/* Finds the block of a pointer, in each layer of a stack; lists the contexts when memory is out. */
#include <stdio.h>
#include <string.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemTrack below;
  umemPool pool;
  umemHost_ctor(&ram);
  umemTrack_ctor(&below, &ram, NULL);
  umemPool_ctor(&pool, &below, NULL);
  umem_set_label(&pool, "fields");
  char *field = (char *)umem_alloc(&pool, 4096);

  /* [find] */
  char *pointer = field + 100; /* from somewhere */
  umemFound found = UMEM_FOUND_INIT;
  if (umem_find((uintptr_t)pointer, &found))
    printf("%zu bytes into a block of %zu bytes of the %s \"%s\"\n",
           (size_t)((uintptr_t)pointer - found.adr), found.nbytes, found.name, found.label);
  /* [/find] */

  /* [layers] */
  for (void *layer = &pool; layer; layer = umem_get_upstream(layer))
    if (umem_find_in(layer, (uintptr_t)pointer, &found) && found.ctx == layer)
      printf("%s has it in a block of %s\n", found.name,
             found.nbytes > 4096 ? "more bytes: the chunk of the pool" : "4096 bytes");
  /* [/layers] */

  /* [block] */
  uintptr_t adr = umem_alloc(&below, 24);
  umem_set_block_label(&below, adr, "salinity");
  umem_find(adr + 23, &found);
  printf("block \"%s\" of the %s\n", found.block_label, found.name);
  umem_free(&below, adr);
  /* [/block] */

  /* [list] */
  umem_list_when_out_of_memory(8);
  umem_alloc(&ram, SIZE_MAX / 2);
  char const *list = strstr(umem_thread_message(), "Pool \"fields\"");
  printf("%s\n", list);
  /* [/list] */

  umem_free(&pool, (uintptr_t)field);
  umem_dtor(&pool);
  umem_dtor(&below);
  umem_dtor(&ram);
  return 0;
}
