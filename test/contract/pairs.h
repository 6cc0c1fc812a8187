/* pairs.h - which pairs of rows a test of the contract takes where all of them take too long. */
#pragma once

#include <stdbool.h>

#include "backends.h"

/* The capabilities by which the router, and what stands around it, chooses a route. */
enum {
  routing_capabilities = umemCpuReadable | umemCpuWritable | umemDeviceAccessible |
                         umemDeviceShared | umemOrdered | umemConcurrent | umemOffsets |
                         umemFaultable
};

/* Whether the contract pairs these rows at all. */
typedef bool PairsAllowed(size_t src, size_t dst, void const *data);

/* Sets chosen[src * backend_count + dst] for a part of the allowed pairs: each allowed row is at
 * least once a source and once a destination, and each two classes of rows meet, as source and
 * destination, in one memory and in two. Rows of a class have the same routing capabilities and are
 * both, or neither, wrapped. The choice depends on the table, the capabilities and turn alone;
 * another turn chooses other pairs, with the same property. False without memory. */
bool pairs_choose(unsigned const *capabilities, PairsAllowed *allowed, void const *data,
                  size_t turn, bool *chosen);
