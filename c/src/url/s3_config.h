/* s3_config.h - what a request to S3 needs to know: from options, variables of the environment and
 * AWS's files. */
#ifndef UMEM_URL_S3_CONFIG_H
#define UMEM_URL_S3_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <umem/s3.h>

enum { umemS3UrlSize = 4096, umemS3BucketMost = 255, umemS3KeyMost = 1024 };

/* Holds secrets: clear it with umemS3Config_clear. */
typedef struct umemS3Config {
  bool anonymous;
  umemS3Style style;
  char region[64];     /* no more than libcurl's signature takes */
  char endpoint[512];  /* "https://host", without a slash at its end; "": AWS */
  char key_id[257], secret[257];
  char token[8193];    /* "": none */
} umemS3Config;

/* Fills in *config. Returns false, with a status of the thread, after a failure. */
bool umemS3Config_read(umemS3Config *config, umemS3Options const *options);
void umemS3Config_clear(umemS3Config *config);

/* Writes the URL of requests for the object at url, "s3://BUCKET/KEY", to out: umemS3UrlSize bytes.
 * False, with a status of the thread, after a failure. */
bool umemS3Config_url(umemS3Config const *config, char const *url, char *out);

#endif
