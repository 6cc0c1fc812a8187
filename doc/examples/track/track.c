/* Which block is this address in, and what was never freed? */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  /* [track] */
  umemTrackOptions options = UMEM_TRACK_OPTIONS_INIT;
  options.frames = 16; /* keep 16 frames of the stack for each block, for the message at the end */
  umemTrack tracked;
  umemTrack_ctor(&tracked, &ram, &options); /* ram is borrowed */

  uintptr_t array = umem_alloc(&tracked, 1000);
  uintptr_t adr = array + 100;

  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  if (umemTrack_find(&tracked, adr, &block))
    printf("byte %zu of the %zu bytes of allocation %d\n", (size_t)(adr - block.adr), block.nbytes,
           (int)block.number);

  umem_free(&tracked, adr); /* fails: no block begins there */
  printf("%s\n", umem_get_status_name(umem_get_status(&tracked)));
  umem_clear_status(&tracked);

  umem_dtor(&tracked); /* 1 block, 1000 bytes in all, was not freed: 1000 at ... by main+... */
  printf("%s\n", umem_get_status_name(umem_get_status(&tracked)));
  /* [/track] */

  umem_free(&ram, array);
  umem_dtor(&ram);
  return 0;
}
