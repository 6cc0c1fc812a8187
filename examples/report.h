/* report.h - the output of the program for people. */
#ifndef REPORT_H
#define REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "hop.h"
#include "npy.h"

/* One line on standard output about the array. */
void report_array(char const *path, Npy const *npy);

/* The progress, on one line that the next message replaces. Only on a terminal. */
void report_progress(char const *from, char const *to, uint64_t done, uint64_t total);

/* One line about a failure on standard error, with a format as for printf. */
__attribute__((format(printf, 1, 2))) void report_problem(char const *format, ...);

/* The table of routes on standard output. Returns how many are not identical in all size bytes. */
size_t report_table(Route const *routes, size_t count, uint64_t size);

/* A place that this machine does not have. */
typedef struct LeftOut {
  char const *name;
  char why[UMEM_MESSAGE_SIZE];
} LeftOut;

/* On standard output, for each reason, the places that are left out for it. */
void report_left_out(LeftOut const *left_out, size_t count);

#endif
