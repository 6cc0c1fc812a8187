/* url_rows.c - makes the contexts, with a server for each. */
#include "url_rows.h"
#include "settings.h"
#include "url_bucket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t const mirror_size = (size_t)1 << 30;

/* They take no memory before they are used. */
static unsigned char *map_bytes(void) {
  void *bytes = mmap(NULL, mirror_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return bytes == MAP_FAILED ? NULL : bytes;
}

/* ---- an object of a web server, which the test itself writes to, behind the back of umem ---- */

typedef struct Mirror {
  umemUrl url;
  struct umemVtbl table; /* that of umemUrl, with methods that write */
  UrlServer *server;
  unsigned char *bytes;
} Mirror;
_Static_assert(sizeof(Mirror) <= BACKEND_ROOM, "it is in an Opened");

static void mirror_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  url_server_settle(((Mirror *)ctx)->server);
  memset(((Mirror *)ctx)->bytes + adr, c, nbytes);
}

static void mirror_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                             uintptr_t src_adr, size_t nbytes) {
  (void)that;
  url_server_settle(((Mirror *)ctx)->server);
  memcpy(((Mirror *)ctx)->bytes + dst_adr, (void const *)src_adr, nbytes);
}

void end_http(umemVirtual *ctx) {
  Mirror *self = (Mirror *)ctx;
  umem_dtor(ctx);
  url_server_stop(self->server);
  if (self->bytes) munmap(self->bytes, mirror_size);
}

umemStatusType make_http(void *ctx, void *upstream) {
  (void)upstream;
  Mirror *self = ctx;
  void *bytes = map_bytes();
  if (!bytes) return umemMemoryError;
  self->bytes = bytes;
  self->server = url_server_start(bytes, mirror_size, NULL, NULL);
  umemStatusType status = umemUrl_ctor(&self->url, url_server_url(self->server), NULL);
  if (status != umemOK) return status;
  self->table = *self->url.super.vptr;
  self->table.set = mirror_set;
  self->table.copy_from = mirror_copy_from;
  self->table.realloc = NULL; /* that of a place of mode "r" moves no bytes */
  self->url.super.vptr = &self->table;
  self->url.super.capabilities |= umemWritable;
  return umemOK;
}

/* ---- an object that umem writes, which the test itself reads ---- */

typedef struct Written {
  umemS3 place;
  struct umemVtbl table; /* that of umemS3 in mode w, with methods that read */
  struct umemVtbl const *own;
  UrlServer *server;
  UrlBucket bucket;
  unsigned char *bytes; /* that the object will have */
  size_t end;           /* of those that were written; atomic */
} Written;
_Static_assert(sizeof(Written) <= BACKEND_ROOM, "it is in an Opened");

/* False if umem has refused the write. */
static bool note_end(Written *self, uint64_t before, size_t end) {
  size_t known = __atomic_load_n(&self->end, __ATOMIC_RELAXED);
  if (umem_thread_failures() != before) return false;
  while (known < end && !__atomic_compare_exchange_n(&self->end, &known, end, false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  return true;
}

static void written_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  Written *self = (Written *)ctx;
  uint64_t before = umem_thread_failures();
  self->own->set(ctx, adr, c, nbytes);
  if (note_end(self, before, adr + nbytes)) memset(self->bytes + adr, c, nbytes);
}

static void written_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *host,
                              uintptr_t src_adr, size_t nbytes) {
  Written *self = (Written *)ctx;
  uint64_t before = umem_thread_failures();
  self->own->copy_from(ctx, dst_adr, host, src_adr, nbytes);
  if (note_end(self, before, dst_adr + nbytes))
    memcpy(self->bytes + dst_adr, (void const *)src_adr, nbytes);
}

static void written_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *host,
                            uintptr_t dst_adr, size_t nbytes) {
  (void)host;
  if (src_adr > mirror_size || nbytes > mirror_size - src_adr)
    umemVirtual_fail(ctx, umemIndexError, "read of %zu bytes past the end", nbytes);
  else
    memcpy((void *)dst_adr, ((Written *)ctx)->bytes + src_adr, nbytes);
}

/* All that a test has written must be on the server, byte for byte. */
static void expect_object(Written *self) {
  UrlBucket const *bucket = &self->bucket;
  if (umem_flush(&self->place) == umemOK && bucket->object_size >= self->end &&
      !memcmp(bucket->object, self->bytes, bucket->object_size))
    return;
  fprintf(stderr, "the object is not what was written: %s\n", umem_thread_message());
  abort();
}

void end_s3(umemVirtual *ctx) {
  Written *self = (Written *)ctx;
  if (ctx->vptr && umem_is_ok(ctx)) expect_object(self);
  umem_dtor(ctx);
  url_server_stop(self->server);
  url_bucket_clear(&self->bucket);
  if (self->bytes) munmap(self->bytes, mirror_size);
}

umemStatusType make_s3(void *ctx, void *upstream) {
  (void)upstream;
  Written *self = ctx;
  char endpoint[64];
  umemS3Options options = UMEM_S3_OPTIONS_INIT;
  self->bytes = map_bytes();
  if (!self->bytes) return umemMemoryError;
  pthread_mutex_init(&self->bucket.lock, NULL);
  self->server = url_server_start("", 0, url_bucket_serve, &self->bucket);
  snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", url_server_port(self->server));
  /* Bytes of a part that is sent cannot be written again, as the contract does. */
  options.endpoint = endpoint, options.anonymous = 1;
  options.part = (size_t)(setting_small() ? 16 : 64) << 20;
  umemStatusType status = umemS3_ctor_with(&self->place, "s3://bucket/key", "w", &options);
  if (status != umemOK) return status;
  umemVirtual *own = ctx;
  self->own = own->vptr;
  self->table = *own->vptr;
  self->table.set = written_set;
  self->table.copy_from = written_copy_from;
  self->table.copy_to = written_copy_to;
  self->table.realloc = NULL; /* that of mode "w" makes no block longer */
  own->vptr = &self->table;
  own->capabilities |= umemReadable;
  return umemOK;
}
