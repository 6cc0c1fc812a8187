/* neighbours.c - ranks of one machine in a window of several machines. They use each other's parts
 * without MPI, and MPI and the CPUs see the same bytes. The program has functions of MPI of its
 * own, which count calls and objects that are not freed, and fail when a test asks for it.
 *
 *     UMEM_TEST_MPI_MACHINES=0101 mpirun -n 4 neighbours [short]
 *     (see machines.c; or ranks on several hosts)
 *
 * short: without failures, which take long over TCP. */
#include "ranks.h"

int rank, ranks;
umemHost host;

/* ---- functions of MPI ---- */

static int calls;            /* of functions for bytes in a window */
static int objects;          /* communicators, windows and groups that are not freed */
static char const *fault;    /* the function that fails */
static int fault_turn;       /* its call that fails */
static bool faulty;          /* it has failed */
static MPI_Win hidden_win;   /* what a function that fails has made with the other ranks, */
static MPI_Comm hidden_comm; /* and must end with them */
static bool hides_win, hides_comm;

/* Whether this call fails. */
static bool fails(char const *function) {
  if (!fault || strcmp(function, fault) || --fault_turn) return false;
  return faulty = true;
}

static void end_hidden(void) {
  if (hides_win) PMPI_Win_free(&hidden_win);
  if (hides_comm) PMPI_Comm_free(&hidden_comm);
  hides_win = hides_comm = false;
}

static int made_comm(char const *function, int error, MPI_Comm *comm) {
  if (error == MPI_SUCCESS && fails(function)) {
    hides_comm = true;
    hidden_comm = *comm;
    *comm = MPI_COMM_NULL;
    return MPI_ERR_OTHER;
  }
  objects += error == MPI_SUCCESS;
  return error;
}

static int made_win(char const *function, int error, MPI_Win *win) {
  if (error == MPI_SUCCESS && fails(function)) {
    hides_win = true;
    hidden_win = *win;
    *win = MPI_WIN_NULL;
    return MPI_ERR_OTHER;
  }
  objects += error == MPI_SUCCESS;
  return error;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm) {
  return made_comm("MPI_Comm_dup", PMPI_Comm_dup(comm, newcomm), newcomm);
}
int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm) {
  char const *words = getenv("UMEM_TEST_MPI_MACHINES");
  int error = words ? PMPI_Comm_split(comm, words[rank], key, newcomm)
                    : PMPI_Comm_split_type(comm, split_type, key, info, newcomm);
  return made_comm("MPI_Comm_split_type", error, newcomm);
}
int MPI_Comm_free(MPI_Comm *comm) {
  end_hidden();
  objects--;
  return PMPI_Comm_free(comm);
}
int MPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                            void *baseptr, MPI_Win *win) {
  int error = PMPI_Win_allocate_shared(size, disp_unit, info, comm, baseptr, win);
  return made_win("MPI_Win_allocate_shared", error, win);
}
int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
                     MPI_Win *win) {
  int error = PMPI_Win_allocate(size, disp_unit, info, comm, baseptr, win);
  return made_win("MPI_Win_allocate", error, win);
}
int MPI_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win *win) {
  int error = PMPI_Win_create(base, size, disp_unit, info, comm, win);
  return made_win("MPI_Win_create", error, win);
}
int MPI_Win_free(MPI_Win *win) {
  end_hidden();
  objects--;
  return PMPI_Win_free(win);
}
int MPI_Comm_group(MPI_Comm comm, MPI_Group *group) {
  if (fails("MPI_Comm_group")) return MPI_ERR_OTHER;
  objects++;
  return PMPI_Comm_group(comm, group);
}
int MPI_Group_free(MPI_Group *group) {
  objects--;
  return PMPI_Group_free(group);
}
int MPI_Group_translate_ranks(MPI_Group group1, int n, int const ranks1[], MPI_Group group2,
                              int ranks2[]) {
  if (fails("MPI_Group_translate_ranks")) return MPI_ERR_OTHER;
  return PMPI_Group_translate_ranks(group1, n, ranks1, group2, ranks2);
}
int MPI_Win_shared_query(MPI_Win win, int of, MPI_Aint *size, int *disp_unit, void *baseptr) {
  if (fails("MPI_Win_shared_query")) return MPI_ERR_OTHER;
  return PMPI_Win_shared_query(win, of, size, disp_unit, baseptr);
}
int MPI_Win_lock_all(int mode, MPI_Win win) {
  int error = PMPI_Win_lock_all(mode, win);
  return fails("MPI_Win_lock_all") ? MPI_ERR_OTHER : error;
}
int MPI_Allreduce(void const *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm) {
  int error = PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
  return op == MPI_MAX && fails("MPI_Allreduce") ? MPI_ERR_OTHER : error;
}

int MPI_Put(void const *origin_addr, int origin_count, MPI_Datatype origin_datatype,
            int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
            MPI_Win win) {
  calls++;
  return PMPI_Put(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                  target_count, target_datatype, win);
}
int MPI_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
            MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {
  calls++;
  return PMPI_Get(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                  target_count, target_datatype, win);
}
int MPI_Rput(void const *origin_addr, int origin_count, MPI_Datatype origin_datatype,
             int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
             MPI_Win win, MPI_Request *request) {
  calls++;
  return PMPI_Rput(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                   target_count, target_datatype, win, request);
}
int MPI_Rget(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
             MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win,
             MPI_Request *request) {
  calls++;
  return PMPI_Rget(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                   target_count, target_datatype, win, request);
}
int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  calls++;
  return PMPI_Wait(request, status);
}
int MPI_Win_flush(int of, MPI_Win win) {
  calls++;
  return PMPI_Win_flush(of, win);
}
int MPI_Win_sync(MPI_Win win) {
  calls++;
  return PMPI_Win_sync(win);
}
int MPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                            MPI_Datatype *newtype) {
  calls++;
  return PMPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

/* ---- the tests ---- */

enum { part = 1 << 16, slot = 4096 }; /* each rank has a slot in each part */

static umemMpi *all;

static void begin(void) {
  start_window(part);
  all = open_all();
  barrier();
}

static void end(void) {
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  CHECK(objects == 0);
}

static uintptr_t slot_of(int r) { return (uintptr_t)r * slot; }

/* A run, a set and rows of a matrix with gaps, there and back. */
static void use(umemMpi *ctx) {
  unsigned char bytes[slot / 2], back[slot / 2];
  size_t const extents[2] = {20, 5};
  ptrdiff_t const strides[2] = {60, 8};
  umemLayout const layout = {sizeof layout, 4, 2, extents, strides, strides};
  uintptr_t const adr = slot_of(rank);
  fill_random(bytes, sizeof bytes, (uint64_t)rank);
  CHECK_OK(umem_copy_to(&host, (uintptr_t)bytes, ctx, adr, sizeof bytes));
  CHECK_OK(umem_copy_strided(&host, (uintptr_t)bytes + 4, ctx, adr, &layout));
  for (int i = 0; i < 20; i++)
    for (int j = 0; j < 5; j++) memcpy(bytes + 60 * i + 8 * j, bytes + 60 * i + 8 * j + 4, 4);
  CHECK_OK(umem_set(ctx, adr + 1300, 7, 100));
  memset(bytes + 1300, 7, 100);
  CHECK_OK(umem_copy_from(&host, (uintptr_t)back, ctx, adr, sizeof back));
  CHECK(!memcmp(bytes, back, sizeof back));
  memset(back, 0, 1300);
  CHECK_OK(umem_copy_strided(ctx, adr, &host, (uintptr_t)back, &layout));
  for (int i = 0; i < 20; i++)
    for (int j = 0; j < 5; j++) CHECK(!memcmp(bytes + 60 * i + 8 * j, back + 60 * i + 8 * j, 4));
}

static void neighbours_use_memory_without_mpi(void) {
  begin();
  for (int r = 0; r < ranks; r++) {
    bool const near = r != rank && are_neighbours(r, rank);
    calls = 0;
    use(&all[r]);
    CHECK(near ? calls == 0 : calls > 0);
    calls = 0;
    CHECK_OK(umemMpi_sync(&all[r]));
    CHECK(near == (calls == 0));
    for (int other = 0; other < ranks; other++) {
      bool const both = near && other != rank && are_neighbours(other, rank);
      calls = 0;
      CHECK_OK(umem_copy_to(&all[r], slot_of(rank), &all[other], slot_of(rank) + slot / 2, 100));
      CHECK(both == (calls == 0));
    }
  }
  end();
}

/* To ranks of other machines each run is one call, and all are waited for once. */
static void lists_are_waited_for_once(void) {
  enum { count = 10, length = 50 };
  unsigned char bytes[count * length], back[count * length];
  umemCopyItem items[count];
  begin();
  fill_random(bytes, sizeof bytes, (uint64_t)rank);
  for (int r = 0; r < ranks; r++) {
    if (r == rank) continue;
    for (int puts = 1; puts >= 0; puts--) {
      for (size_t i = 0; i < count; i++) {
        uintptr_t const there = slot_of(rank) + i * 2 * length;
        items[i] =
            puts ? (umemCopyItem){&host, (uintptr_t)bytes + i * length, &all[r], there, length}
                 : (umemCopyItem){&all[r], there, &host, (uintptr_t)back + i * length, length};
      }
      calls = 0;
      CHECK_OK(umem_copy_many(items, count, NULL));
      CHECK(calls == (are_neighbours(r, rank) ? 0 : count + 1));
    }
    CHECK(!memcmp(bytes, back, sizeof back));
  }
  end();
}

/* The value that rank r writes to a part in a round. */
static uint64_t mark(int r, int where, int round) {
  return (uint64_t)round << 32 | (uint64_t)r << 16 | (uint64_t)where;
}

/* Whoever writes to a part, and by whatever route: the others see it after a barrier. */
static void all_see_what_others_write(void) {
  begin();
  for (int round = 0; round < 20; round++) {
    for (int r = 0; r < ranks; r++) {
      uint64_t const value = mark(rank, r, round);
      uint64_t *pointer = round % 2 ? umemMpi_pointer(&all[r], slot_of(rank)) : NULL;
      if (pointer) {
        *pointer = value;
        CHECK_OK(umemMpi_sync(&all[r]));
      } else {
        umem_thread_clear();
        umem_clear_status(&all[r]);
        CHECK_OK(umem_copy_to(&host, (uintptr_t)&value, &all[r], slot_of(rank), sizeof value));
      }
    }
    barrier();
    for (int r = 0; r < ranks; r++) {
      CHECK_OK(umemMpi_sync(&all[r]));
      for (int from = 0; from < ranks; from++) {
        uint64_t seen = 0;
        CHECK_OK(umem_copy_to(&all[r], slot_of(from), &host, (uintptr_t)&seen, sizeof seen));
        CHECK(seen == mark(from, r, round));
        uint64_t const *pointer = is_shared(r) ? umemMpi_pointer(&all[r], slot_of(from)) : NULL;
        CHECK(!pointer || *pointer == seen);
      }
    }
    barrier();
  }
  end();
}

/* Bytes and boxes between any two parts, by each rank. */
static void parts_are_copied_to_parts(void) {
  enum { n = 600 };
  size_t const extents[2] = {10, 5};
  ptrdiff_t const strides[2] = {60, 8};
  umemLayout const layout = {sizeof layout, 8, 2, extents, strides, strides};
  begin();
  for (int from = 0; from < ranks; from++)
    for (int to = 0; to < ranks; to++) {
      unsigned char bytes[n], expected[n] = {0}, back[n];
      uintptr_t const src = slot_of(rank), dst = slot_of(rank) + slot / 2;
      fill_random(bytes, n, (uint64_t)from * 64 + (uint64_t)to);
      CHECK_OK(umem_copy_to(&host, (uintptr_t)bytes, &all[from], src, n));
      CHECK_OK(umem_copy_to(&all[from], src, &all[to], dst, n));
      CHECK_OK(umem_copy_to(&all[to], dst, &host, (uintptr_t)back, n));
      CHECK(!memcmp(bytes, back, n));
      CHECK_OK(umem_set(&all[to], dst, 0, n));
      CHECK_OK(umem_copy_strided(&all[from], src, &all[to], dst, &layout));
      CHECK_OK(umem_copy_to(&all[to], dst, &host, (uintptr_t)back, n));
      for (int i = 0; i < 10; i++) memcpy(expected + 60 * i, bytes + 60 * i, 40);
      CHECK(!memcmp(expected, back, n));
    }
  end();
}

/* Each machine needs room for its own ranks. */
static void room_is_that_of_a_machine(void) {
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = rank == 0 ? (size_t)1 << 45 : 4096;
  bool const here = are_neighbours(rank, 0);
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == (here ? umemMemoryError : umemRuntimeError));
  expect(NULL, here ? umemMemoryError : umemRuntimeError,
         here ? "for the ranks of this machine, but /dev/shm has only" : "it failed in rank 0");
  CHECK(objects == 0);
}

/* A function fails in the last rank alone: there is no window, nothing is left, and the next start
 * makes one. */
static void a_rank_fails(char const *function, int turn) {
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = part;
  bool const me = rank == ranks - 1;
  if (me) {
    fault = function;
    fault_turn = turn;
    faulty = false;
  }
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == (me ? umemIOError : umemRuntimeError));
  expect(NULL, me ? umemIOError : umemRuntimeError, me ? "umemMpi_start: " : "it failed in rank");
  CHECK(objects == 0 && faulty == me);
  fault = NULL;
  barrier();
}

static void failures_of_one_rank_are_those_of_all(void) {
  static char const *const functions[] = {"MPI_Comm_split_type",     "MPI_Allreduce",
                                          "MPI_Win_allocate_shared", "MPI_Win_create",
                                          "MPI_Win_allocate",        "MPI_Comm_group",
                                          "MPI_Comm_group",          "MPI_Group_translate_ranks",
                                          "MPI_Win_shared_query",    "MPI_Win_lock_all",
                                          "MPI_Win_lock_all",        "MPI_Win_lock_all"};
  static int const turns[] = {1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 2, 3};
  for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) a_rank_fails(functions[i], turns[i]);
  begin();
  end();
}

int main(int argc, char **argv) {
  init_mpi(&argc, &argv);
  umemHost_ctor(&host);
  objects = 0;
  CHECK(ranks > 1 && is_apart());
  neighbours_use_memory_without_mpi();
  lists_are_waited_for_once();
  all_see_what_others_write();
  parts_are_copied_to_parts();
  room_is_that_of_a_machine();
  if (argc < 2) failures_of_one_rank_are_those_of_all();
  CHECK(umem_is_ok(&host));
  umem_dtor(&host);
  if (rank == 0) printf("ok\n");
  end_mpi();
  return 0;
}
