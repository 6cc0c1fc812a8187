/* Parts of this program are the examples of umemArray and umemBlocks in the reference of C: a part
 * stands at each function that the comment before it names. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem.h>

static void make(umemHost *ram, umemStatusType *status) {
  /* [umemArray_zeros umemArray_full umemArray_release] */
  int64_t const shape[] = {3, 4};
  double const half = 0.5;
  umemArray *a = umemArray_full(ram, umemDouble, 2, shape, NULL, &half, status);
  umemArray *b = umemArray_zeros(ram, umemDouble, 2, shape, NULL, status);
  if (*status != umemOK) fprintf(stderr, "%s\n", umem_thread_message()); /* of all calls above */
  umemArray_release(a), umemArray_release(b);                            /* NULL, too */
  /* [/] */

  /* [umemArray_borrow] */
  double mine[12] = {0}; /* must live longer than the array */
  umemArray *c = umemArray_borrow(ram, (uintptr_t)mine, umemDouble, 2, shape, NULL, status);
  umemArray_fill(c, &half, status);
  umemArray_release(c);
  assert(*status == umemOK && mine[11] == half);
  /* [/] */

  /* [umemArray_create umemArray_retain] */
  umemArray *d = umemArray_create(ram, umemFloat, 2, shape, NULL, status);
  umemArray *same = umemArray_retain(d); /* each of both has to be released */
  umemArray_release(d);
  umemArray_release(same);
  /* [/] */

  /* [umemArray_take] */
  double *x = calloc(4, sizeof *x);
  umemArray *e =
      umemArray_take(ram, (uintptr_t)x, umemDouble, 1, (int64_t[]){4}, NULL, free, x, status);
  if (!e) free(x);      /* a failure takes nothing over */
  umemArray_release(e); /* calls free(x) */
  /* [/] */
  assert(*status == umemOK);
}

static void views(umemHost *ram, umemStatusType *status) {
  int64_t const shape[] = {3, 4};
  umemArray *a = umemArray_zeros(ram, umemDouble, 2, shape, NULL, status);
  /* [umemArray_slice umemArray_select umemArray_permute umemArray_reshape umemArray_alias] */
  umemArray *row = umemArray_select(a, 0, 1, status);       /* shape (4) */
  umemArray *even = umemArray_slice(a, 1, 0, 2, 2, status); /* columns 0 and 2 */
  umemArray *flipped = umemArray_permute(a, NULL, status);  /* shape (4, 3) */
  umemArray *flat = umemArray_reshape(a, 1, &(int64_t){12}, status);
  umemArray *alias = umemArray_alias(a, status); /* the same shape; all have the same memory */
  /* [/] */

  /* [umemArray_rank umemArray_shape umemArray_strides umemArray_extent umemArray_stride] */
  assert(umemArray_rank(even) == 2 && umemArray_shape(even)[1] == 2);
  assert(umemArray_extent(even, 0) == 3 && umemArray_stride(even, 1) == 16); /* bytes */
  assert(umemArray_strides(even)[0] == 32);
  /* [/] */

  /* [umemArray_elements umemArray_nbytes umemArray_type umemArray_context umemArray_address] */
  assert(umemArray_elements(a) == 12 && umemArray_nbytes(a) == 96);
  assert(umemArray_type(a) == umemDouble && umemArray_context(a) == ram);
  assert(umemArray_address(row) == umemArray_address(a) + 32);
  /* [/] */

  /* [umemArray_is_c_contiguous umemArray_is_same_type umemArray_is_same_shape] */
  assert(umemArray_is_c_contiguous(flat) && !umemArray_is_c_contiguous(even));
  assert(umemArray_is_same_type(a, even) && !umemArray_is_same_shape(a, even));
  /* [/] */

  /* [umemArray_is_same_place umemArray_is_matching] */
  assert(umemArray_is_same_place(a, even));
  assert(umemArray_is_matching(a, alias, true)); /* type, shape and place */
  /* [/] */

  /* [umemArray_is_floating_point umemArray_is_complex umemArray_is_double umemArray_is_complex4] */
  assert(umemArray_is_floating_point(a) && umemArray_is_double(a));
  assert(!umemArray_is_complex(a) && !umemArray_is_complex4(a));
  /* [/] */

  /* [umemArray_set_read_only umemArray_is_read_only] */
  umemArray_set_read_only(alias, true, status);
  assert(umemArray_is_read_only(alias) && !umemArray_is_read_only(a));
  /* [/] */
  umemArray_release(alias), umemArray_release(flat), umemArray_release(flipped);
  umemArray_release(even), umemArray_release(row), umemArray_release(a);
}

static void contents(umemHost *ram, umemFile *file, umemStatusType *status) {
  int64_t const shape[] = {3, 4};
  double const half = 0.5;
  umemArray *a = umemArray_zeros(ram, umemDouble, 2, shape, NULL, status);
  /* [umemArray_fill umemArray_clear umemArray_host_pointer] */
  umemArray_clear(a, status);                                 /* all bytes 0 */
  umemArray_fill(a, &half, status);                           /* on every place */
  double const *x = umemArray_host_pointer(a, false, status); /* NULL if the CPU cannot read it */
  assert(x && x[11] == 0.5);
  /* [/] */

  /* [umemArray_copy umemArray_assign umemArray_copy_contents] */
  umemArray *kept = umemArray_copy(a, file, umemOrderC, status); /* a new array in a file */
  umemArray_assign(a, kept, status);                             /* all elements, back */
  umemArray_copy_contents(a, kept, 8, 0, 4, status);             /* elements 0 ... 3 to 8 ... 11 */
  assert(*status == umemOK);
  /* [/] */

  /* [umemArray_random_uniform umemArray_random_normal] */
  umemArray_random_uniform(a, -1, 1, 42, status); /* seed 42: the same numbers on each place */
  umemArray_random_normal(kept, 0, 1, 42, status);
  /* [/] */

  /* [umemArray_convert] */
  umemArray *bytes = umemArray_zeros(ram, umemInt8, 2, shape, NULL, status);
  umemArray_fill(a, &(double){300}, status);
  umemArray_convert(bytes, a, 0, 0, umemArray_elements(a), status); /* 300 becomes 127 */
  int8_t const *n = umemArray_host_pointer(bytes, false, status);
  assert(n && n[0] == 127);
  /* [/] */

  /* [umemArray_convert_wrapping] */
  umemArray_convert_wrapping(bytes, a, 0, 0, umemArray_elements(a), status);
  int8_t const *wrapped = umemArray_host_pointer(bytes, false, status);
  assert(*status == umemOK && wrapped[0] == 44); /* 300 - 256 */
  /* [/] */
  umemArray_release(bytes), umemArray_release(kept), umemArray_release(a);
}

static void keep(umemStatusType *status) {
  umemFile file;
  umemFile_ctor(&file, "column.bin", "w+");
  /* [umemArray_set_keeps] */
  umemArray *column = umemArray_zeros(&file, umemDouble, 1, (int64_t[]){100}, NULL, status);
  umemArray_set_keeps(column, true); /* of a file with a name: no later block takes its bytes */
  umemArray_release(column);
  if (*status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  assert(umem_alloc(&file, 1) >= 800);
  umem_dtor(&file);
}

/* [umemArray_check_writeable umemArray_check_location umemArray_check_type
 * umemArray_check_same_shape] */
static void add(umemArray *out, umemArray *in, umemStatusType *status) {
  umemArray_check_writeable(out, status);
  umemArray_check_location(out, umemCpuReadable | umemCpuWritable, status);
  umemArray_check_type(out, umemDouble, status);
  umemArray_check_same_shape(in, out, status); /* the message names both arrays */
  if (*status != umemOK) return;               /* whatever has failed */
  /* [/] */
  /* [umemArray_check_rank umemArray_check_extent umemArray_check_shape
   * umemArray_check_same_type] */
  umemArray_check_rank(out, 2, status);
  umemArray_check_extent(out, 1, 4, status); /* four columns */
  int64_t const shape[] = {3, 4};
  umemArray_check_shape(out, 2, shape, status);
  umemArray_check_same_type(in, out, status);
  /* [/] */
  /* [umemArray_check_c_contiguity umemArray_check_same_extent] */
  umemArray_check_c_contiguity(in, status);
  umemArray_check_same_extent(in, 1, out, 1, status); /* as many columns */
  /* [/] */
}

/* [umemArray_check_writeable_at umemArray_check_location_at umemArray_check_type_at
 * umemArray_check_same_shape_at] */
/* For another language: file and line of its caller, and the names of the arrays there. */
static void add_at(umemArray *out, umemArray *in, umemStatusType *status, char const *file, int n) {
  umemArray_check_writeable_at(out, status, "out", "add", file, n);
  umemArray_check_location_at(out, umemCpuWritable, status, "out", "add", file, n);
  umemArray_check_type_at(out, umemDouble, status, "out", "add", file, n);
  umemArray_check_same_shape_at(in, out, status, "out", "in", "add", file, n);
  if (*status != umemOK) return; /* the message begins with "add: line n of file" */
  /* [/] */
  /* [umemArray_check_rank_at umemArray_check_extent_at umemArray_check_shape_at
   * umemArray_check_same_type_at] */
  umemArray_check_rank_at(out, 2, status, "out", "add", file, n);
  umemArray_check_extent_at(out, 1, 4, status, "out", "add", file, n); /* four columns */
  umemArray_check_shape_at(out, 2, (int64_t[]){3, 4}, status, "out", "add", file, n);
  umemArray_check_same_type_at(in, out, status, "out", "in", "add", file, n);
  if (*status != umemOK) return; /* whatever has failed */
  /* [/] */
  /* [umemArray_check_c_contiguity_at umemArray_check_same_extent_at] */
  umemArray_check_c_contiguity_at(in, status, "in", "add", file, n);
  umemArray_check_same_extent_at(in, 1, out, 1, status, "out", "in", "add", file, n);
  if (*status != umemOK) return;
  /* [/] */
}

static void checks(umemHost *ram, umemStatusType *status) {
  umemArray *a = umemArray_zeros(ram, umemDouble, 2, (int64_t[]){3, 4}, NULL, status);
  add(a, a, status);
  add_at(a, a, status, "add.f90", 7);
  assert(*status == umemOK);
  umemStatusType refused = umemOK;
  umemArray_set_read_only(a, true, status);
  add_at(a, a, &refused, "add.f90", 7);
  assert(refused == umemNotSupportedError && strstr(umem_thread_message(), "line 7 of add.f90"));
  umem_thread_clear();
  umemArray_release(a);
}

static void npy(umemHost *ram) {
  static char const text[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }\n";
  char file[10 + sizeof text - 1 + 96] = "\x93NUMPY\x01";
  file[8] = sizeof text - 1;
  memcpy(file + 10, text, sizeof text - 1);
  /* [umem_npy_read_header] */
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  umemStatusType status = umem_npy_read_header(ram, (uintptr_t)file, sizeof file, &header);
  if (status != umemOK) return (void)puts(umem_get_message(ram)); /* what is wrong with the file */
  printf("%s, %d dimensions, from byte %d on\n", header.descr, header.rank, (int)header.offset);
  /* [/] */
  assert(header.type == umemDouble && header.shape[1] == 4);
}

static void elements(void) {
  /* [umem_element_size umem_element_name umem_element_by_name] */
  char name[40];
  umem_element_name(umemDouble, name, sizeof name);
  assert(umem_element_by_name(name) == umemDouble && umem_element_size(umemDouble) == 8);
  /* [/] */

  /* [umem_element_is_floating_point umem_element_is_complex umem_element_code umem_element_bits
   * umem_element_lanes] */
  assert(umem_element_is_floating_point(umemDouble) && !umem_element_is_complex(umemDouble));
  assert(umem_element_code(umemDouble) == umemCodeFloat);
  assert(umem_element_bits(umemDouble) == 64 && umem_element_lanes(umemDouble) == 1);
  /* [/] */
}

static int export_object(void *object, umemDLManagedTensorVersioned **tensor) {
  (void)object;
  (void)tensor;
  return -1;
}

static void dlpack(umemHost *ram, umemStatusType *status) {
  umemArray *a = umemArray_zeros(ram, umemDouble, 1, (int64_t[]){8}, NULL, status);
  /* [umemArray_to_dlpack umemArray_from_dlpack] */
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, NULL, status);
  umemArray *b = umemArray_from_dlpack(ram, tensor, status);    /* the same memory, no copy */
  if (!b && tensor && tensor->deleter) tensor->deleter(tensor); /* it is still ours */
  umemArray_release(b);                                         /* calls the deleter */
  /* [/] */

  /* [umemArray_describe_dlpack] */
  umemDLTensor view; /* for a function that needs the array until it returns */
  if (umemArray_describe_dlpack(a, UMEM_DLPACK_DEFAULT_STREAM, &view, status))
    assert(view.ndim == 1 && view.shape[0] == 8 && view.strides[0] == 1);
  /* [/] */

  /* [umem_find_dlpack_exchange] */
  umemDLPackExchange theirs = {.header.version = {1, 3},
                               .managed_tensor_from_py_object_no_sync = export_object};
  umemDLPackExchange const *table = umem_find_dlpack_exchange(&theirs.header, status);
  /* [/] */
  assert(table == &theirs);

  /* [umemArray_to_dlpack_unversioned umemArray_from_dlpack_unversioned] */
  umemDLManagedTensor *old = umemArray_to_dlpack_unversioned(a, NULL, status);
  umemArray *c = umemArray_from_dlpack_unversioned(ram, old, status);
  if (!c && old && old->deleter) old->deleter(old);
  umemArray_release(c);
  /* [/] */
  umemArray_release(a);
}

static void arrow(umemHost *ram, umemStatusType *status) {
  umemArray *a = umemArray_zeros(ram, umemDouble, 1, (int64_t[]){8}, NULL, status);
  /* [umemArray_to_arrow umemArray_from_arrow] */
  umemArrowSchema schema;
  umemArrowDeviceArray column;
  umemArray_to_arrow(a, NULL, &schema, &column, status); /* the same memory, no copy */
  umemArray *b = umemArray_from_arrow(ram, &schema, &column, NULL, status); /* moves column */
  schema.release(&schema);
  umemArray_release(b);
  /* [/] */
  umemArray_release(a);
}

/* [umemBlocks_run] */
static int add_up(void *sum, umemBlock const *block) {
  for (size_t i = 0; i < block->rows; i++) *(double *)sum += ((double const *)block->adr)[i];
  return 0; /* go on */
}
static umemStatusType sum_all(umemBlocksOptions const *options, double *sum) {
  return umemBlocks_run(options, add_up, sum, NULL);
}
/* [/] */

static void blocks(umemHost *ram, umemFile *file) {
  umemRows const rows = {file, umem_calloc(file, 1000, sizeof(double)), sizeof(double), 0};
  /* [umemBlocks_ctor umemBlocks_info] */
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = rows, options.count = 1000, options.place = ram, options.rows = 100;
  umemBlocks all;
  umemBlocksInfo info = UMEM_BLOCKS_INFO_INIT;
  umemStatusType status = umemBlocks_ctor(&all, &options);
  if (umemBlocks_info(&all, &info) == umemOK) printf("%zu blocks\n", info.blocks);
  /* [/] */
  assert(status == umemOK && info.blocks == 10);

  /* [umemBlocks_next umemBlocks_end] */
  umemBlock block = UMEM_BLOCK_INIT;
  while (umemBlocks_next(&all, &block)) assert(((double *)block.adr)[block.rows - 1] == 0);
  status = umemBlocks_end(&all); /* the first failure of all calls, also of the constructor */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  double sum = 1;
  assert(status == umemOK && sum_all(&options, &sum) == umemOK && sum == 1);

  assert(umemBlocks_ctor(&all, &options) == umemOK);
  /* [umemBlocks_cancel] */
  while (umemBlocks_next(&all, &block))
    if (block.number == 3)
      umemBlocks_cancel(&all); /* any thread may; the next call returns false */
  if (umemBlocks_end(&all) == umemCancelledError) printf("cancelled\n");
  /* [/] */
  assert(umem_get_status(ram) == umemCancelledError && block.number == 3);
  umem_clear_status(ram), umem_thread_clear();
  umem_free(file, rows.adr);
}

int main(void) {
  umemHost ram;
  umemFile file;
  umemStatusType status = umemOK;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+");
  make(&ram, &status);
  views(&ram, &status);
  contents(&ram, &file, &status);
  keep(&status);
  checks(&ram, &status);
  npy(&ram);
  elements();
  dlpack(&ram, &status);
  arrow(&ram, &status);
  blocks(&ram, &file);
  umem_dtor(&file);
  umem_dtor(&ram);
  return status != umemOK;
}
