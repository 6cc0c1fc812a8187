/* status.h - what the library itself asks of failures and their texts. */
#ifndef UMEM_CORE_STATUS_H
#define UMEM_CORE_STATUS_H

#include <umem/base.h>

/* umemVirtual_fail as an expression, for functions that return whether they have succeeded, and for those that
 * return a pointer. */
#define UMEM_FAIL(...) (umemVirtual_fail(__VA_ARGS__), false)
#define UMEM_FAIL_NULL(...) (umemVirtual_fail(__VA_ARGS__), NULL)

/* Copies what was recorded on ctx to text, UMEM_MESSAGE_SIZE bytes. Unlike umem_get_message it uses up
 * none of the texts that were handed out to the program. */
void umem_copy_message(umemVirtual const *ctx, char *text);

/* A copy of text that stays valid as that of umem_get_message. */
char const *umem_keep_text(char const *text);

/* The system's words for error, as strerror. Uses buffer; thread-safe. */
char const *umem_system_words(int error, char *buffer, size_t size);

/* umemVirtual_adopt for ctx and each layer between it and from, innermost first. from: the context that has
 * done the work for them, ctx itself or one below it; NULL: none has, so all layers down to the innermost
 * one. */
umemStatusType umem_adopt_from(umemVirtual *from, umemVirtual *ctx, uint64_t before);

/* Writes text and a newline to the standard error output: the only output of the library, for what no call can return. A
 * failure has no effect, nor has a reader that has gone (SIGPIPE). */
void umem_print_line(char const *text);

/* Makes the calling thread as one that is in no function of umem. Only for test programs, which leave a call
 * by longjmp when a check or a signal ends a test. What the call held, locks of its contexts too, it holds
 * for ever. Returns whether the thread left a call. */
bool umem_leave_all(void);

#endif
