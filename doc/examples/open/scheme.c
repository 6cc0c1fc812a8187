/* Gives a context of your own a scheme. */
#include <stdio.h>
#include "mymem.h"

/* [scheme] */
static umemOption const options[] = {
    {.name = "size", .kind = umemSizeOption, .required = true, .help = "of the arena"},
};

static umemStatusType open_mymem(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)upstream, (void)place, (void)user;
  return umemMyMem_ctor(ctx, given[0].number);
}

static umemScheme const mymem_scheme = {
    .size = sizeof(umemScheme),
    .name = "mymem",
    .context_size = sizeof(umemMyMem),
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_mymem,
    .help = "memory inside one private arena",
};
/* [/scheme] */

/* [use] */
static void use(char const *name) {
  void *ctx = umem_open(name);
  printf("%s\n", ctx ? umem_get_device_name(ctx) : umem_thread_message());
  umem_close(ctx);
}

int main(void) {
  umem_register_scheme(&mymem_scheme);
  use("stats+mymem:?size=64K");
  use("mymem:?size=64000k");
  use("mymem:");
  return 0;
}
/* [/use] */
