/* report.h - the only output of the library: what the contexts of UMEM_DEFAULT find when the process ends. At that
 * time no call can return it, nobody looks at a status any more, and what the hook for failures uses may have
 * ended. */
#ifndef UMEM_REPORT_H
#define UMEM_REPORT_H

/* Writes text and a newline to the standard error output. A failure has no effect, nor has a reader that has
 * gone (SIGPIPE). */
void umem_report(char const *text);

#endif
