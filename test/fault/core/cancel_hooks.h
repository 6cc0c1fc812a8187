/* cancel_hooks.h - hooks that find out whether the thread could be cancelled where a program calls
 * the C library, or cancel it there.
 *
 * The calls of the program into the C library, and so those of umem, which is linked into it, go
 * through hooks, but for the functions that POSIX forbids to be cancellation points. */
#pragma once

#include "cases.h"

extern _Thread_local bool inside;        /* of a call of umem that is tested */
extern _Thread_local unsigned cancel_at; /* the hook that cancels the thread; 0: none */
extern _Thread_local unsigned passed;    /* hooks */
extern char const *last_name;            /* of the last function that has been called so */
extern char const *found_name; /* of a function in which the thread could be cancelled; or NULL */

/* A fixture of the program: puts hooks in the place of all functions. */
void hook_all(void **state);
