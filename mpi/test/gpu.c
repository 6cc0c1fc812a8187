/* gpu.c - copies between a rank and a GPU by an MPI that takes addresses of GPUs. No GPU and no
 * such MPI are needed: the program has functions of MPI of its own, one of which says that MPI
 * does, and a context whose addresses are no pointers, as those of a GPU. What umem hands to
 * MPI_Put and MPI_Get must be these addresses, after the work that is queued on the GPU.
 *
 *     mpirun -n 2 gpu */
#include "ranks.h"

#include <umem/virtual.h>

#if defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

int rank, ranks;
umemHost host;

/* ---- a GPU ---- */

/* No processor dereferences addresses with this bit. */
static uintptr_t const gpu_bit = (uintptr_t)1 << 62;

typedef struct Gpu {
  umemVirtual super;
  bool queued; /* work that is not done */
} Gpu;

static void *memory_at(uintptr_t adr) { return (void *)(adr & ~gpu_bit); }

static uintptr_t gpu_alloc(umemVirtual *ctx, size_t nbytes) {
  void *memory = malloc(nbytes);
  (void)ctx;
  return memory ? (uintptr_t)memory | gpu_bit : 0;
}
static void gpu_free(umemVirtual *ctx, uintptr_t adr) { (void)ctx, free(memory_at(adr)); }

static void gpu_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                        size_t nbytes) {
  (void)ctx, (void)that;
  memcpy((void *)dst_adr, memory_at(src_adr), nbytes);
}
static void gpu_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                          size_t nbytes) {
  (void)that;
  memcpy(memory_at(dst_adr), (void const *)src_adr, nbytes);
  ((Gpu *)ctx)->queued = true;
}
static void gpu_synchronize(umemVirtual *ctx) { ((Gpu *)ctx)->queued = false; }

static struct umemVtbl const gpu_vtbl = {.alloc = gpu_alloc,
                                         .free = gpu_free,
                                         .copy_to = gpu_copy_to,
                                         .copy_from = gpu_copy_from,
                                         .synchronize = gpu_synchronize};

static Gpu gpu;

static void make_gpu(void) {
  umemVirtual_ctor(&gpu.super, &host);
  gpu.super.vptr = &gpu_vtbl;
  gpu.super.type = umemUserDevice;
  gpu.super.capabilities = umemReadable | umemWritable | umemDeviceAccessible | umemOrdered;
}

/* ---- an MPI that takes its addresses ---- */

static bool is_aware;
static int puts_of_gpu, gets_of_gpu;

#if defined(MPIX_CUDA_AWARE_SUPPORT)
int MPIX_Query_cuda_support(void) { return is_aware; }
#elif defined(MPIX_GPU_SUPPORT_CUDA)
int MPIX_GPU_query_support(int gpu_type, int *is_supported) {
  *is_supported = is_aware && gpu_type == MPIX_GPU_SUPPORT_CUDA;
  return MPI_SUCCESS;
}
#endif

/* The pointer that MPI uses, which counts those of the GPU. */
static void *origin_of(void const *adr, int *count) {
  uintptr_t const address = (uintptr_t)adr;
  if (!(address & gpu_bit)) return (void *)address;
  CHECK(is_aware && !gpu.queued);
  ++*count;
  return memory_at(address);
}

int MPI_Put(void const *origin_addr, int origin_count, MPI_Datatype origin_datatype,
            int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
            MPI_Win win) {
  return PMPI_Put(origin_of(origin_addr, &puts_of_gpu), origin_count, origin_datatype, target_rank,
                  target_disp, target_count, target_datatype, win);
}

int MPI_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
            MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {
  return PMPI_Get(origin_of(origin_addr, &gets_of_gpu), origin_count, origin_datatype, target_rank,
                  target_disp, target_count, target_datatype, win);
}

/* ---- the test ---- */

enum { count = 600, rows = 20, row = 10, pitch = 30 };

static umemMpi next;

/* There and back: a run, and rows of a matrix with gaps at both sides. */
static void go_there_and_back(void) {
  uint32_t numbers[count], back[count] = {0};
  size_t const extents[2] = {rows, row};
  ptrdiff_t const strides[2] = {pitch * 4, 4};
  umemLayout const layout = {sizeof layout, 4, 2, extents, strides, strides};
  fill_random(numbers, sizeof numbers, (uint64_t)rank);
  uintptr_t one = umem_alloc(&gpu, sizeof numbers), other = umem_alloc(&gpu, sizeof numbers);
  uintptr_t there = umem_alloc(&next, sizeof numbers);
  CHECK(one && other && there != UINTPTR_MAX);
  CHECK_OK(umem_copy_to(&host, (uintptr_t)numbers, &gpu, one, sizeof numbers));
  gpu.queued = true;
  CHECK_OK(umem_copy_to(&gpu, one, &next, there, sizeof numbers));
  CHECK_OK(umem_copy_to(&next, there, &gpu, other, sizeof numbers));
  CHECK_OK(umem_copy_to(&gpu, other, &host, (uintptr_t)back, sizeof back));
  CHECK(!memcmp(numbers, back, sizeof back));
  for (int i = 0; i < count; i++) numbers[i] = i % pitch < row ? numbers[i] + 1 : numbers[i];
  CHECK_OK(umem_copy_to(&host, (uintptr_t)numbers, &gpu, one, sizeof numbers));
  gpu.queued = true;
  CHECK_OK(umem_copy_strided(&gpu, one, &next, there, &layout));
  CHECK_OK(umem_copy_strided(&next, there, &gpu, other, &layout));
  CHECK_OK(umem_copy_to(&gpu, other, &host, (uintptr_t)back, sizeof back));
  CHECK(!memcmp(numbers, back, sizeof back));
  /* Without gaps in the window: the CPU must not sort what it cannot read. */
  umemLayout gathered = layout, scattered = layout;
  gathered.dst_strides = scattered.src_strides = NULL;
  CHECK_OK(umem_copy_strided(&gpu, one, &next, there, &gathered));
  CHECK_OK(umem_copy_strided(&next, there, &gpu, other, &scattered));
  CHECK_OK(umem_copy_to(&gpu, other, &host, (uintptr_t)back, sizeof back));
  CHECK(!memcmp(numbers, back, sizeof back));
  umem_free(&gpu, one);
  umem_free(&gpu, other);
  umem_free(&next, there);
}

static void run(bool aware) {
  is_aware = aware;
  puts_of_gpu = gets_of_gpu = 0;
  start_window(1 << 16);
  CHECK_OK(umemMpi_ctor(&next, MPI_COMM_WORLD, (rank + 1) % ranks));
  go_there_and_back();
  bool const by_mpi =
      aware && !is_shared((rank + 1) % ranks); /* CUDA itself copies memory of a neighbour */
  CHECK(puts_of_gpu == (by_mpi ? 3 : 0) && gets_of_gpu == puts_of_gpu);
  barrier();
  umem_dtor(&next);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
  init_mpi(&argc, &argv);
  umemHost_ctor(&host);
  make_gpu();
  run(false);
#if defined(MPIX_CUDA_AWARE_SUPPORT) || defined(MPIX_GPU_SUPPORT_CUDA)
  run(true);
#endif
  umem_dtor(&gpu);
  umem_dtor(&host);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
