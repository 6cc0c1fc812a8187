/* Shows the route of a copy, and the ledger of the process. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+");
  double values[100] = {0};
  uintptr_t array = umem_alloc(&file, sizeof values);

  /* [route] */
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = &route;
  umem_copy_to_with(&ram, (uintptr_t)values, &file, array, sizeof values, &options);

  char text[200];
  umemRoute_text(&route, text, sizeof text);
  printf("%s: %d bytes\n", text, (int)route.legs[0].bytes);
  /* [/route] */

  /* [ledger] */
  umem_ledger_start();
  for (int i = 0; i < 10; i++) umem_copy_to(&file, array, &ram, (uintptr_t)values, sizeof values);
  umem_ledger_stop();
  umemLedgerRecord record = UMEM_LEDGER_RECORD_INIT;
  size_t count = 1;
  umem_ledger_read(&record, &count);
  printf("%s: %d copies, %d bytes\n", record.route, (int)record.calls, (int)record.bytes);
  umem_ledger_print(2); /* the table, to stderr */
  /* [/ledger] */

  umem_free(&file, array);
  umem_dtor(&file);
  umem_dtor(&ram);
  return 0;
}
