/* Sees every failure when it happens: put a line of a log or a breakpoint here. */
#include <stdio.h>
#include <umem.h>

/* [hook] */
static void log_failure(void *ctx, umemStatusType type, char const *message, void *data) {
  fprintf(data, "%s on %s: %s\n", umem_get_status_name(type), umem_get_device_name(ctx), message);
}
/* [/hook] */

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  /* [set] */
  umem_set_failure_hook(log_failure, stdout);
  umem_set(&ram, 0, 0, 8); /* the address is null */
  umem_set_failure_hook(NULL, NULL);
  /* [/set] */

  umem_dtor(&ram);
  return 0;
}
