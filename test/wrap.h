/* wrap.h - functions of the C library in whose place a test has its own: the linker sends their
 * calls to those (--wrap=NAME). */
#pragma once

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker gives */

/* Stands before the body of the test's own function, which may call __real_NAME. */
#define WRAPPED(type, name, parameters)                                                            \
  type __real_##name parameters;                                                                   \
  type __wrap_##name parameters;                                                                   \
  type __wrap_##name parameters

/* The function returns failure where fails is true, and does its work otherwise. Workers of the
 * library may ask, too: what fails reads belongs to one thread, or is atomic. */
#define WRAP(fails, failure, type, name, parameters, arguments)                                    \
  WRAPPED(type, name, parameters) { return (fails) ? (failure) : __real_##name arguments; }

/* NOLINTEND(bugprone-reserved-identifier) */
