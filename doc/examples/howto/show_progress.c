/* Shows how far a long copy is, and ends it if the user presses Ctrl-C. */
#include <signal.h>
#include <stdio.h>
#include <umem.h>

static volatile sig_atomic_t interrupted;
static void interrupt(int number) { interrupted = number; }

/* A copy calls this about every 100 ms, and at its end. false ends the copy. */
static bool show(void *user, uint64_t done, uint64_t total) {
  (void)user;
  fprintf(stderr, "\r%3d %%", (int)(100 * done / total));
  if (done == total) fprintf(stderr, "\n");
  return !interrupted;
}

int main(void) {
  signal(SIGINT, interrupt);
  enum { nbytes = 64 << 20 };
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, "copy.bin", "w");
  uintptr_t from = umem_calloc(&ram, nbytes, 1), to = umem_alloc(&file, nbytes);

  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = show;
  umemStatusType status = umem_copy_to_with(&ram, from, &file, to, nbytes, &options);
  printf("%s\n", status == umemOK ? "copied" : umem_thread_message());

  umem_free(&ram, from);
  umem_dtor(&file);
  umem_dtor(&ram);
  return status != umemOK;
}
