/* Opens names that the program does not trust. */
#define _XOPEN_SOURCE 700 /* mkdir */
#include <stdio.h>
#include <sys/stat.h>
#include <umem.h>

/* [open] */
static void open_request(char const *name) {
  char const *folders[] = {"arrays"};
  umemOpenOptions options = UMEM_OPEN_OPTIONS_INIT;
  options.schemes = "file mmap pool limit";
  options.folders = folders;
  options.folder_count = 1;
  void *ctx = umem_open_with(name, &options);
  printf("%s\n", ctx ? umem_get_device_name(ctx) : umem_thread_message());
  umem_close(ctx);
}
/* [/open] */

int main(void) {
  mkdir("arrays", 0777);
  open_request("pool+file:arrays/a.bin?mode=w");
  open_request("file:arrays/../b.bin?mode=w");
  open_request("log+file:arrays/a.bin?log.file=arrays/a.umem");
  return 0;
}
