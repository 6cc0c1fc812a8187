/* report.h - the one thing that the library writes by itself: what the contexts of UMEM_DEFAULT find
 * when the process ends. Then no call is there to return it, nobody will look at a status, and what the
 * hook for failures uses may be gone. */
#ifndef UMEM_REPORT_H
#define UMEM_REPORT_H

/* Writes the text and the end of the line to the standard error output. Neither a failure nor a reader
 * that is gone (SIGPIPE) has any effect. */
void umem_report(char const *text);

#endif
