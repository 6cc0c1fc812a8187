/* s3_help.h - what the tests of S3 share. */
#pragma once

#include <stdlib.h>

/* Requests go to endpoint, with credentials, whatever the user of this machine has set. */
static inline void set_s3_environment(char const *endpoint) {
  setenv("AWS_ENDPOINT_URL", endpoint, 1);
  setenv("AWS_ACCESS_KEY_ID", "key", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  setenv("HOME", "/nonexistent", 1);
  static char const *const others[] = {
      "AWS_SESSION_TOKEN",   "AWS_PROFILE", "AWS_CONFIG_FILE",    "AWS_SHARED_CREDENTIALS_FILE",
      "AWS_ENDPOINT_URL_S3", "AWS_REGION",  "AWS_DEFAULT_REGION", "http_proxy"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) unsetenv(others[i]);
}
