/* A block that is never freed, with the function that allocated it. */
#include <stdio.h>
#include <string.h>
#include <umem.h>

static uintptr_t make_table(void *ctx) { return umem_alloc(ctx, 1000); }

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);
  umemTrackOptions options = UMEM_TRACK_OPTIONS_INIT;
  options.frames = 8; /* of the stack, kept for each block */
  umemTrack tracked;
  umemTrack_ctor(&tracked, &ram, &options); /* the rest of the program uses tracked, not ram */

  uintptr_t table = make_table(&tracked);
  uintptr_t other = umem_alloc(&tracked, 24);
  umem_free(&tracked, other);

  umem_dtor(&tracked); /* records what was not freed */
  char const *report = umem_get_message(&tracked);
  printf("%.47s\n", strstr(report, "1 block"));
  fprintf(stderr, "%s\n", report); /* the call sites, too */

  umem_free(&ram, table);
  umem_dtor(&ram);
  return 0;
}
