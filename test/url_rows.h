/* url_rows.h - the rows of places behind a URL: a test reads and writes each of them, one way
 * by umem and the other one behind its back. */
#ifndef TEST_URL_ROWS_H
#define TEST_URL_ROWS_H

#include <umem.h>

enum { BACKEND_ROOM = 4096 }; /* bytes of a context and what its construct needs beside it */

/* An object of a web server, which the test writes. */
umemStatusType make_http(void *ctx, void *upstream);
void end_http(umemVirtual *ctx);

/* A new object in a bucket. What is read of it is what was written; at the end the object of
 * the server must be the same. */
umemStatusType make_s3(void *ctx, void *upstream);
void end_s3(umemVirtual *ctx);

#endif
