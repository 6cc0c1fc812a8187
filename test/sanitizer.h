/* sanitizer.h - which sanitizer watches this program: they keep maps and threads of their own, so
 * that limits on memory and some forks mean other things. */
#pragma once

#if defined __has_feature
#define UNDER(sanitizer) __has_feature(sanitizer)
#else
#define UNDER(sanitizer) 0
#endif
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
