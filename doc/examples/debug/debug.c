/* Who has written past the end of my block, and into a freed block? */
#include <stdio.h>
#include <string.h>
#include <umem.h>

/* [debug] */
static void tell(umemDebug *watched) {
  umemDebugFault fault = UMEM_DEBUG_FAULT_INIT;
  if (!umemDebug_first(watched, &fault)) return;
  printf("byte %d of the %s block of %zu bytes, allocation %d\n", (int)fault.offset,
         fault.freed ? "freed" : "live", fault.nbytes, (int)fault.number);
}

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  options.frames = 16; /* keep 16 frames of the stack of each allocation and free, for messages */
  umemDebug watched;
  umemDebug_ctor(&watched, &ram, &options); /* ram is borrowed */

  uintptr_t text = umem_alloc(&watched, 11), other = umem_alloc(&watched, 8);
  strcpy((char *)text, "hello world"); /* and a zero: one byte too many */

  umem_free(&watched, text); /* umem_free: a wrong write to byte 11 of the block of 11 ... */
  tell(&watched);
  umem_free(&watched, text); /* debug reports it once; now the block is freed */

  umem_free(&watched, text); /* is free already; allocated by main+..., freed by main+... */
  printf("%s\n", umem_get_status_name(umem_thread_status()));

  umem_free(&watched, other);
  *(char *)other = 0;        /* the block is freed */
  umemDebug_check(&watched); /* a wrong write to byte 0 of the freed block of 8 bytes ... */
  printf("%s\n", umem_get_status_name(umem_thread_status()));

  umem_dtor(&watched);
  umem_dtor(&ram);
  return 0;
}
/* [/debug] */
