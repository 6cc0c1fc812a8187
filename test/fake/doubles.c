#include "doubles.h"

#include "cudart.h"
#include "settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int used;
static bool abandoned, misused; /* misused: reported already */

void doubles_use(void) {
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
           "events, %zu pools, %zu contexts",
           misuse ? misuse : "no misuse", left.blocks, left.managed, left.pinned, left.registered,
           left.streams, left.events, left.pools, left.primaries);
  fake_cudart_reset();
  return text;
}
