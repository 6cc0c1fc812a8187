/* What umem decides by itself. */
#include <stdio.h>
#include <umem.h>

/* [hook] */
static void print_decision(void *ctx, umemDecision level, char const *message, void *data) {
  (void)ctx;
  fprintf(data, "%d: %s\n", (int)level, message);
}

static void copy(umemHost *ram, umemFile *file, uintptr_t adr) {
  umem_set_decision_hook(umemDecisionCopies, print_decision, stdout);
  unsigned char bytes[100];
  umem_copy_to(file, adr, ram, (uintptr_t)bytes, sizeof bytes);
  umem_set_decision_hook(umemDecisionNone, NULL, NULL);
}
/* [/hook] */

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  if (umemFile_ctor(&file, NULL, "w+") != umemOK) return puts(umem_thread_message()), 1;
  copy(&ram, &file, umem_calloc(&file, 1, 100));
  umem_dtor(&file);
  umem_dtor(&ram);
  return 0;
}
