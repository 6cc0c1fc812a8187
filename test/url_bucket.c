/* url_bucket.c - what S3 does with the requests of an upload. */
#include "url_bucket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void *checked(void *memory) {
  if (memory) return memory;
  perror("a bucket");
  abort();
}

unsigned char *url_read_body(UrlRequest *request, size_t *size) {
  char const *text = strcasestr(request->head, "\r\nContent-Length:");
  *size = text ? strtoul(text + 17, NULL, 10) : 0;
  unsigned char *body = checked(malloc(*size + 1));
  if (strcasestr(request->head, "\r\nExpect: 100-continue"))
    url_head(request, "HTTP/1.1 100 Continue\r\n");
  for (size_t done = 0; done < *size;) {
    ssize_t n = recv(request->fd, body + done, *size - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += (size_t)n;
  }
  body[*size] = 0;
  return body;
}

bool url_answer_text(UrlRequest *request, int status, char const *text) {
  return url_head(request, "HTTP/1.1 %d Status\r\nContent-Length: %zu\r\n", status, strlen(text)) &&
         url_send(request, text, strlen(text));
}

void url_bucket_take(UrlBucket *bucket, unsigned char *bytes, size_t size) {
  free(bucket->object);
  bucket->object = bytes;
  bucket->object_size = size;
  *bucket->object_mark = 0;
}

void url_bucket_join(UrlBucket *bucket) {
  size_t size = 0, at = 0;
  for (unsigned i = 0; i < url_parts_most && bucket->parts[i]; i++) size += bucket->sizes[i];
  unsigned char *bytes = checked(malloc(size + 1));
  for (unsigned i = 0; i < url_parts_most && bucket->parts[i]; at += bucket->sizes[i++])
    memcpy(bytes + at, bucket->parts[i], bucket->sizes[i]);
  url_bucket_take(bucket, bytes, size);
  strcpy(bucket->object_mark, bucket->mark);
}

void url_bucket_clear(UrlBucket *bucket) {
  url_bucket_take(bucket, NULL, 0);
  for (unsigned i = 0; i < url_parts_most; i++) {
    free(bucket->parts[i]);
    bucket->parts[i] = NULL;
  }
}

static void fail(char const *what) {
  fprintf(stderr, "%s\n", what);
  abort();
}

static void note_mark(UrlBucket *bucket, UrlRequest const *request) {
  char const *mark = strcasestr(request->head, "\r\nx-amz-meta-umem-upload: ");
  if (!mark || sscanf(mark + 26, "%63[^\r]", bucket->mark) != 1) fail("an upload has no mark");
}

/* Takes over the body. */
static bool put(UrlBucket *bucket, UrlRequest *request, unsigned char *body, size_t size) {
  unsigned part = 0;
  char const *query = strstr(request->path, "?partNumber=");
  bucket->puts++;
  if (query && sscanf(query, "?partNumber=%u&uploadId=id", &part) == 1) {
    if (part < 1 || part > url_parts_most) fail("the number of a part is wrong");
    free(bucket->parts[part - 1]);
    bucket->parts[part - 1] = body;
    bucket->sizes[part - 1] = size;
  } else {
    url_bucket_take(bucket, body, size);
  }
  return url_head(request, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"tag%u\"\r\n", part);
}

static bool post(UrlBucket *bucket, UrlRequest *request) {
  bool begins = strstr(request->path, "?uploads=");
  bucket->begun += begins;
  bucket->completed += !begins;
  if (begins) note_mark(bucket, request);
  if (!begins) url_bucket_join(bucket);
  return url_answer_text(request, 200,
                         begins
                             ? "<R><UploadId>id</UploadId></R>"
                             : "  <CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
}

static bool answer(UrlBucket *bucket, UrlRequest *request) {
  if (!strcmp(request->method, "POST")) return post(bucket, request);
  if (!strcmp(request->method, "HEAD"))
    return url_head(request,
                    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nETag: \"tag-3\"\r\n"
                    "X-Amz-Meta-Umem-Upload:  %s \r\n",
                    bucket->object_size, bucket->object_mark);
  if (strcmp(request->method, "DELETE")) fail("a request of another method");
  bucket->aborted++;
  return url_head(request, "HTTP/1.1 204 No Content\r\n");
}

bool url_bucket_answer(UrlBucket *bucket, UrlRequest *request, unsigned char *body, size_t size) {
  bool puts = !strcmp(request->method, "PUT");
  pthread_mutex_lock(&bucket->lock);
  bool open = puts ? put(bucket, request, body, size) : answer(bucket, request);
  pthread_mutex_unlock(&bucket->lock);
  if (!puts) free(body);
  return open;
}

bool url_bucket_serve(void *user, UrlRequest *request) {
  size_t size;
  unsigned char *body = url_read_body(request, &size);
  return url_bucket_answer(user, request, body, size);
}
