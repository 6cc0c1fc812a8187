/* url_bucket.h - the S3 of tests: a bucket with one object, behind a server of url_server.h. */
#ifndef TEST_URL_BUCKET_H
#define TEST_URL_BUCKET_H

#include "url_server.h"

#include <pthread.h>

enum { url_parts_most = 32 };

/* All zero, but for the lock, at first. */
typedef struct UrlBucket {
  pthread_mutex_t lock;                          /* of the rest */
  unsigned char *object, *parts[url_parts_most]; /* owned; NULL: none */
  size_t object_size, sizes[url_parts_most];
  unsigned begun, aborted, completed, puts; /* requests */
  char mark[64]; /* metadata of the upload, and of the object that it becomes */
  char object_mark[64];
} UrlBucket;

/* The text of a request; owned by the caller. */
unsigned char *url_read_body(UrlRequest *request, size_t *size);
bool url_answer_text(UrlRequest *request, int status, char const *text);

/* Answers PUT, POST, HEAD and DELETE, as S3 does. Takes over the body. */
bool url_bucket_answer(UrlBucket *bucket, UrlRequest *request, unsigned char *body, size_t size);

/* Makes the object of the parts. */
void url_bucket_join(UrlBucket *bucket);
/* Replaces the object, and takes over the bytes. */
void url_bucket_take(UrlBucket *bucket, unsigned char *bytes, size_t size);
/* Frees what it has: no object, and no part, is there. */
void url_bucket_clear(UrlBucket *bucket);

/* An answer of url_server_start, whose user is the bucket. */
bool url_bucket_serve(void *user, UrlRequest *request);

#endif
