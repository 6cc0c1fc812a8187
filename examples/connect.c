/* connect.c - an array on a device, and its copy in RAM to work on.
 *
 * The device is first a scratch file, then RAM itself. For a GPU only the constructor would differ.
 * If both sides are the same memory, there is one array, and syncing it costs nothing. */
#include <stdio.h>
#include <umem.h>

enum { N = 8, ALIGNMENT = 64 };

static void print(char const *when, double const *x) {
  printf("%-22s", when);
  for (int i = 0; i < N; ++i) printf(" %g", x[i]);
  putchar('\n');
}

static void keep_in_sync(void *device) {
  size_t size = N * sizeof(double);
  umemHost host;
  umemHost_ctor(&host);

  uintptr_t on_device = umem_aligned_alloc(device, ALIGNMENT, size);
  umem_set(device, on_device, 0, size);
  uintptr_t on_host = umem_connect(device, on_device, size, &host, ALIGNMENT);
  if (on_host != umem_null(&host)) {
    double *x = (double *)on_host;
    printf("%s: %s\n", umem_get_device_name(device),
           umem_is_same_device(device, &host) ? "one array" : "two arrays");
    print("  connected", x);

    /* The host has changed its side: copy it to the device. */
    for (int i = 0; i < N; ++i) x[i] = i;
    umem_sync_from(device, on_device, &host, on_host, size);

    /* The device has changed its side: copy it to the host. */
    umem_set(device, on_device, 0, size / 2);
    umem_sync_to(device, on_device, &host, on_host, size);
    print("  changed on both sides", x);
  }

  umem_disconnect(device, on_device, &host, on_host, ALIGNMENT);
  umem_aligned_free(device, on_device);
  umem_dtor(&host);
}

/* Returns 0 if no call on device has failed. */
static int leave(void *device) {
  umem_dtor(device);
  if (umem_get_status(device) == umemOK) return 0;
  fprintf(stderr, "connect: %s\n", umem_get_message(device));
  return 1;
}

int main(void) {
  umemFile file; /* for a GPU: umemCuda gpu; umemCuda_ctor(&gpu, 0); */
  if (umemFile_ctor(&file, NULL, "w+") == umemOK) keep_in_sync(&file);
  int failures = leave(&file);

  umemHost ram;
  if (umemHost_ctor(&ram) == umemOK) keep_in_sync(&ram);
  failures += leave(&ram);
  return failures ? 1 : 0;
}
