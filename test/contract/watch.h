/* watch.h - a crash in one case of the contract fails that case alone.
 *
 * The cases run in a child process, which notes in shared memory which one it is in. When it ends
 * in the middle of one, by a signal or because a sanitizer ends it, that case has failed, and
 * another child goes on with the next. So a case costs no process of its own. */
#pragma once

#include <stddef.h>

/* Runs the cases from first on; returns the exit status. */
typedef int WatchedRun(size_t first, void *data);

/* Runs all cases in children. Returns the exit status: 0 if all passed; what the last child
 * returned if that is not 0; or 1. */
int watch_cases(WatchedRun *run, void *data);

/* Runs it in this process, for debuggers: nothing goes on after a crash. */
int run_unwatched(WatchedRun *run, void *data);

/* Before and after the case with this number and name. One that takes four minutes ends by a
 * signal. */
void watch_begin(size_t number, char const *name);
void watch_end(void);

/* At the beginning of what CMocka calls: a signal then ends the process, and not the function
 * alone. */
void watch_signals(void);
