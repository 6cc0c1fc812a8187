/* numbers.h - what programs of fuzzers do with their bytes. */
#pragma once

#include "fuzz.h"

/* Small numbers, which pass more often, and whole ones. */
static int64_t number(unsigned char const **data, size_t *size) {
  int64_t value = 0;
  size_t bytes = *size && **data & 1 ? sizeof value : 1;
  if (*size < bytes) bytes = *size;
  memcpy(&value, *data, bytes);
  *data += bytes;
  *size -= bytes;
  return bytes == 1 ? value >> 1 : value;
}
