/* name.c - names for umem_open, as libFuzzer makes them up. */
#include "unit/open/name_help.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  static char text[UMEM_NAME_SIZE + 8];
  size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
  memcpy(text, data, length);
  text[length] = 0;
  check(text);
  return 0;
}
