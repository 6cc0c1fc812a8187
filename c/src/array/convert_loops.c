/* convert_loops.c - conversions by the instructions that every machine of its kind has. */
#define LOOPS_TABLE umem_convert_loops
#define LOOPS_TARGET
#include "array/convert_loops.h"
