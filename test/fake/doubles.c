#include "doubles.h"

#include "cudart.h"
#include "settings.h"

#include <dlfcn.h>
#include <stdio.h>

static int used;
static bool abandoned, misused; /* misused: reported already */

#ifndef FAKE_DRIVER /* which has no driver below */

static char const *(*driver_complaint)(void);

static struct umemCufileRt const *no_cufile(void) { return NULL; }

static void use_driver(void) {
  umemCudaRt_replace(umemCudaDriver_get(no_cufile));
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *found = library ? dlsym(library, "fake_driver_complaint") : NULL;
  memcpy(&driver_complaint, &found, sizeof found);
}

#endif

void doubles_use(void) {
#ifndef FAKE_DRIVER
  if (setting_driver()) use_driver();
  if (setting_driver()) return;
#endif
  if (setting_gpu()) return;
  umemCudaRt_replace(fake_cudart());
  used = 1;
}

void doubles_abandon(void) {
  abandoned = true;
  misused = used && fake_cudart_misuse();
}

char const *doubles_complaint(void) {
  static char text[512];
#ifndef FAKE_DRIVER
  if (driver_complaint && !abandoned) return driver_complaint();
#endif
  if (abandoned) {
    char const *misuse = used && !misused ? fake_cudart_misuse() : NULL;
    misused = misused || misuse;
    return misuse;
  }
  if (!used) return NULL;
  if (fake_cudart_is_clean() && !fake_cudart_misuse()) {
    fake_cudart_reset(); /* its tables keep what is destroyed, and each call looks through them */
    return NULL;
  }
  FakeCudartLive left = fake_cudart_live();
  char const *misuse = fake_cudart_misuse();
  snprintf(text, sizeof text,
           "%s; left behind: %zu blocks, %zu managed, %zu pinned, %zu registered, %zu streams, %zu "
           "events, %zu pools, %zu pages, %zu ranges, %zu contexts",
           misuse ? misuse : "no misuse", left.blocks, left.managed, left.pinned, left.registered,
           left.streams, left.events, left.pools, left.pages, left.ranges, left.primaries);
  fake_cudart_reset();
  return text;
}
