/* Does this function leak if one of its allocations fails? Lets each allocation fail in turn. */
#include <stdio.h>
#include <umem.h>

/* [function] */
/* Allocates two arrays, or none. */
static bool open_arrays(void *ctx, uintptr_t arrays[2]) {
  uintptr_t null = umem_null(ctx);
  arrays[0] = umem_alloc(ctx, 100);
  arrays[1] = arrays[0] == null ? null : umem_calloc(ctx, 100, 8);
  if (arrays[1] != null) return true;
  umem_free(ctx, arrays[0]); /* without this line a block leaks */
  return false;
}
/* [/function] */

int main(void) {
  umemHost ram;
  umemTrack tracked;
  umemHost_ctor(&ram);
  umemTrack_ctor(&tracked, &ram, NULL);

  /* [fault] */
  umemFault failing;
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT; /* allocations fail with umemMemoryError */
  umemFault_ctor(&failing, &tracked, &plan); /* tracked is borrowed */

  for (plan.nth = 1;; plan.nth++) {
    uintptr_t arrays[2];
    umemFault_set_plan(&failing, &plan);
    bool opened = open_arrays(&failing, arrays);
    if (!umemFault_failures(&failing)) { /* each allocation has failed once */
      for (int i = 0; i < 2; i++) umem_free(&failing, arrays[i]);
      break;
    }
    printf("call %d fails: %s, %zu blocks left\n", (int)plan.nth, opened ? "opened" : "refused",
           umemTrack_count(&tracked, NULL));
  }
  /* [/fault] */

  umem_dtor(&failing);
  umem_dtor(&tracked);
  umem_dtor(&ram);
  return 0;
}
