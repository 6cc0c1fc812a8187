/* plugin.c - a user's library that a program opens at run time. */
#include <umem.h>

__attribute__((visibility("default"))) int plugin_run(void);

int plugin_run(void) {
  umemHost host;
  if (umemHost_ctor(&host) != umemOK) return 1;
  umem_free(&host, umem_alloc(&host, 100));
  int status = umem_get_status(&host);
  umem_dtor(&host);
  return status;
}
