/* Lists the contexts of a program, with what each of them holds, and asks whose address one is. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemTrack fields, particles; /* each keeps the records of a part of the program */
  umemHost_ctor(&ram);
  umemTrack_ctor(&fields, &ram, NULL);
  umemTrack_ctor(&particles, &ram, NULL);
  umem_set_label(&fields, "fields");
  umem_set_label(&particles, "particles");

  uintptr_t velocity = umem_alloc(&fields, 3000000);
  uintptr_t pressure = umem_alloc(&fields, 1000000);
  uintptr_t positions = umem_alloc(&particles, 240000);

  char list[2000];
  umem_describe_contexts(list, sizeof list); /* those that hold most come first */
  printf("%s\n", list);
  umemFound found = UMEM_FOUND_INIT;
  if (umem_find(pressure + 999, &found))
    printf("the address is in a block of \"%s\"\n", found.label);

  umem_free(&particles, positions);
  umem_free(&fields, pressure);
  umem_free(&fields, velocity);
  umem_dtor(&particles);
  umem_dtor(&fields);
  umem_dtor(&ram);
  return 0;
}
