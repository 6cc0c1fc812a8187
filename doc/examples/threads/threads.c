/* Four threads write their parts of one array in one file. */
#include <pthread.h>
#include <stdio.h>
#include <umem.h>

enum { thread_count = 4, part = 1000 };

static umemFile file; /* umemConcurrent: the threads need no lock */
static uintptr_t array;

/* [part] */
static void *write_part(void *argument) {
  size_t number = *(size_t *)argument;
  umemHost ram;
  umemHost_ctor(&ram);
  int x[part];
  for (size_t i = 0; i < part; i++) x[i] = (int)(number * part + i);

  uintptr_t there = array + number * sizeof x;
  umemStatusType status = umem_copy_from(&file, there, &ram, (uintptr_t)x, sizeof x);
  if (status != umemOK) fprintf(stderr, "%zu: %s\n", number, umem_thread_message());
  umem_dtor(&ram);
  return NULL;
}
/* [/part] */

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+");
  array = umem_alloc(&file, thread_count * part * sizeof(int));

  pthread_t threads[thread_count];
  size_t numbers[thread_count];
  int running = 0;
  for (; running < thread_count; running++) {
    numbers[running] = (size_t)running;
    if (pthread_create(&threads[running], NULL, write_part, &numbers[running])) break;
  }
  for (int i = 0; i < running; i++) pthread_join(threads[i], NULL);

  static int x[thread_count * part];
  umem_copy_to(&file, array, &ram, (uintptr_t)x, sizeof x);
  int right = 0;
  for (int i = 0; i < thread_count * part; i++) right += x[i] == i;
  printf("%d of %d\n", right, thread_count * part);

  int failed = !umem_is_ok(&file);
  umem_dtor(&file);
  umem_dtor(&ram);
  return failed;
}
