/* child.h - parts of a test that run in a process of their own. */
#ifndef UMEM_TEST_CHILD_H
#define UMEM_TEST_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#if defined __has_feature
#define UNDER(sanitizer) __has_feature(sanitizer)
#else
#define UNDER(sanitizer) 0
#endif

/* Sanitizers keep maps and threads of their own: limits on memory and some forks mean other
 * things. */
#if defined __SANITIZE_THREAD__ || UNDER(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#else
#define UNDER_THREAD_SANITIZER 0
#endif
#if UNDER_THREAD_SANITIZER || defined __SANITIZE_ADDRESS__ || UNDER(address_sanitizer)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

/* The exit status of a child that found the machine not to permit what it wanted to test. */
enum { child_not_permitted = 77, child_seconds = 120 };

/* In a child: ends it, and with it the parent's test, when the condition is false. */
void child_expect(bool condition, char const *text, char const *file, int line);
#define EXPECT(condition) child_expect((condition), #condition, __FILE__, __LINE__)

/* Starts function(argument) in a child, which ends with status 0 when it returns, and is killed
 * when it takes child_seconds: a deadlock is a failure, not a hang. */
pid_t child_start(void (*function)(void *), void *argument);

/* Waits for a child: its exit status, or minus the signal that killed it. */
int child_wait(pid_t child);

/* Both; fails the running test unless the child ended with 0 or child_not_permitted. Whether 0. */
bool child_run(void (*function)(void *), void *argument);

#endif
