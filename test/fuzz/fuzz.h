/* fuzz.h - what the programs of libFuzzer share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <umem.h>

#include "../scoped.h"

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size);

static inline void expect(bool holds) {
  if (!holds) abort();
}
