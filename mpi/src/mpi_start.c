/* mpi_start.c - makes and ends windows. What may fail in one rank alone is tried first, and all
 * ranks agree on it before the next collective call: so a failure is one of all ranks. */
#include "mpi_units.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

static char const *const start = "umemMpi_start";

/* ---- what the caller wants ---- */

static bool refuse(umemStatusType type, char const *text) {
  umemVirtual_fail(NULL, type, "%s: %s", start, text);
  return false;
}

/* Reads the options into *full. */
static bool read_options(umemMpiOptions *full, umemMpiOptions const *options) {
  *full = (umemMpiOptions)UMEM_MPI_OPTIONS_INIT;
  if (!options) return refuse(umemValueError, "the options are NULL");
  if (options->size < sizeof *full) return refuse(umemValueError, "the options' size is too small");
  memcpy(full, options, sizeof *full);
  if (full->capacity > PTRDIFF_MAX / 2) return refuse(umemValueError, "the capacity is too large");
  if (full->unit && (full->unit < 64 || full->unit & (full->unit - 1)))
    return refuse(umemValueError, "the unit must be a power of two from 64 on");
  if ((unsigned)full->memory > umemMpiMemoryCreate)
    return refuse(umemValueError, "there is no such kind of memory");
  if ((unsigned)full->progress > umemMpiProgressThread)
    return refuse(umemValueError, "there is no such kind of progress");
  return true;
}

static bool check_communicator(MPI_Comm comm) {
  int between = 0;
  if (comm == MPI_COMM_NULL) return refuse(umemValueError, "the communicator is MPI_COMM_NULL");
  int error = MPI_Comm_test_inter(comm, &between);
  if (error != MPI_SUCCESS) return mpi_fail(NULL, error, "umemMpi_start: MPI_Comm_test_inter");
  if (between) return refuse(umemValueError, "an intercommunicator has no window");
  if (mpi_has_window(comm)) return refuse(umemValueError, "the communicator has a window already");
  return true;
}

/* ---- agreeing ---- */

/* Whether all ranks are well. Where this one is, another one's failure is recorded. */
static bool agree(MPI_Comm comm, bool well) {
  int mine = well ? INT_MAX : 0, rank = 0, least = 0;
  int error = MPI_Comm_rank(comm, &rank);
  if (!well) mine = rank;
  if (error == MPI_SUCCESS) error = MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm);
  if (error != MPI_SUCCESS) return mpi_fail(NULL, error, "umemMpi_start: MPI_Allreduce");
  if (least == INT_MAX) return true;
  if (well)
    umemVirtual_fail(NULL, umemRuntimeError, "%s: it failed in rank %d, which knows why", start,
                     least);
  return false;
}

/* Whether all ranks have given the same unit, memory and progress. */
static bool agree_on_options(MPI_Comm comm, umemMpiOptions const *options) {
  int64_t const mine[6] = {(int64_t)options->unit,     -(int64_t)options->unit,
                           (int64_t)options->memory,   -(int64_t)options->memory,
                           (int64_t)options->progress, -(int64_t)options->progress};
  int64_t least[6];
  int error = MPI_Allreduce(mine, least, 6, MPI_INT64_T, MPI_MIN, comm);
  if (error != MPI_SUCCESS) return mpi_fail(NULL, error, "umemMpi_start: MPI_Allreduce");
  for (int i = 0; i < 6; i += 2)
    if (least[i] != -least[i + 1])
      return refuse(umemValueError,
                    "the ranks have given different options: unit, memory and progress must be "
                    "the same in all");
  return true;
}

/* ---- room ---- */

/* MPI puts what the ranks of a machine share into /dev/shm, and would crash at the first access if
 * that were too small. */
static bool has_room(uint64_t sum) {
  struct statvfs disk;
  if (statvfs("/dev/shm", &disk) != 0) return true; /* it uses something else */
  uint64_t const left = (uint64_t)disk.f_bavail * disk.f_frsize;
  if (sum <= left) return true;
  umemVirtual_fail(NULL, umemMemoryError,
                   "%s: %" PRIu64 " bytes for the ranks of this machine, but /dev/shm has only "
                   "%" PRIu64
                   " left; with the option memory=create only MPI itself needs it, about "
                   "5 MB for each rank",
                   start, sum, left);
  return false;
}

/* The kernel grants more memory than there is, and ends processes that touch it. */
static bool has_memory(uint64_t sum) {
  umemHost host;
  umemInfo info = UMEM_INFO_INIT;
  umemHost_ctor(&host);
  bool known = umem_get_info(&host, &info) == umemOK;
  umem_dtor(&host);
  if (!known || sum <= info.available) return true;
  umemVirtual_fail(NULL, umemMemoryError,
                   "%s: %" PRIu64 " bytes for the ranks of this machine, but it has only %" PRIu64
                   " left",
                   start, sum, info.available);
  return false;
}

/* What the ranks of this machine need together. */
static bool is_there(MPI_Comm machine, int ranks, uint64_t nbytes, umemMpiMemory memory) {
  uint64_t const most = UINT64_MAX / (uint64_t)ranks; /* so that the sum does not overflow */
  uint64_t sum = 0;
  if (nbytes > most) nbytes = most;
  int error = MPI_Allreduce(&nbytes, &sum, 1, MPI_UINT64_T, MPI_SUM, machine);
  if (error != MPI_SUCCESS) return mpi_fail(NULL, error, "umemMpi_start: MPI_Allreduce");
  return (memory == umemMpiMemoryCreate || has_room(sum)) && has_memory(sum);
}

/* Finds the ranks of this machine, and decides about the memory where the options do not. */
static bool look_at_machine(MpiWindow *window, uint64_t nbytes, umemMpiOptions *options) {
  int most = 0; /* ranks of a machine */
  int error =
      MPI_Comm_split_type(window->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &window->machine);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(window->machine, MPI_ERRORS_RETURN);
  bool well = error == MPI_SUCCESS || mpi_fail(NULL, error, "umemMpi_start: MPI_Comm_split_type");
  if (!agree(window->comm, well)) return false;
  MPI_Comm_size(window->machine, &window->here);
  error = MPI_Allreduce(&window->here, &most, 1, MPI_INT, MPI_MAX, window->comm);
  if (error != MPI_SUCCESS) mpi_fail(NULL, error, "umemMpi_start: MPI_Allreduce");
  bool const apart = most == 1 && window->ranks > 1;
  if (options->memory == umemMpiMemoryAuto)
    options->memory = apart ? umemMpiMemoryAllocate : umemMpiMemoryShared;
  well = is_there(window->machine, window->here, nbytes, options->memory);
  return agree(window->comm, error == MPI_SUCCESS && well);
}

/* ---- the windows of MPI ---- */

static uint64_t control_size(uint64_t capacity, uint64_t unit) {
  return mpi_words(mpi_units_in(capacity, mpi_unit_of(capacity, unit))) * sizeof(uint64_t);
}

static uint64_t whole_units(uint64_t capacity, uint64_t asked) {
  uint64_t const unit = mpi_unit_of(capacity, asked);
  return (capacity + unit - 1) / unit * unit;
}

static uint64_t page_round(uint64_t nbytes) { return (nbytes + 4095) & ~UINT64_C(4095); }

/* Memory of umem for both windows. */
static bool map_memory(MpiWindow *window, uint64_t nbytes) {
  window->memory_size = nbytes ? nbytes : 1;
  void *memory =
      mmap(NULL, window->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) window->memory = memory;
  if (window->memory) return true;
  return refuse(umemMemoryError, "the system has no memory for this capacity");
}

/* One window of MPI, of the ranks of comm. Sets *base to this rank's part. All ranks of the window
 * call it, for as many communicators as comm may be. */
static bool make_one(MpiWindow *window, MPI_Comm comm, umemMpiMemory how, uint64_t nbytes,
                     int disp_unit, unsigned char *memory, MPI_Win *made, unsigned char **base) {
  static char const *const calls[] = {"", "umemMpi_start: MPI_Win_allocate_shared",
                                      "umemMpi_start: MPI_Win_allocate",
                                      "umemMpi_start: MPI_Win_create"};
  MPI_Aint const size = (MPI_Aint)nbytes;
  char const *what = calls[how];
  MPI_Info info = MPI_INFO_NULL;
  int error = MPI_Info_create(&info);
  if (error == MPI_SUCCESS) error = MPI_Info_set(info, "alloc_shared_noncontig", "true");
  if (error == MPI_SUCCESS && how == umemMpiMemoryCreate)
    error = MPI_Win_create(memory, size, disp_unit, info, comm, made);
  else if (error == MPI_SUCCESS && how == umemMpiMemoryAllocate)
    error = MPI_Win_allocate(size, disp_unit, info, comm, &memory, made);
  else if (error == MPI_SUCCESS)
    error = MPI_Win_allocate_shared(size, disp_unit, info, comm, &memory, made);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  if (error != MPI_SUCCESS) return agree(window->comm, mpi_fail(NULL, error, what));
  *base = memory;
  MPI_Win_set_errhandler(*made, MPI_ERRORS_RETURN);
  error = MPI_Win_lock_all(MPI_MODE_NOCHECK, *made);
  return agree(window->comm,
               error == MPI_SUCCESS || mpi_fail(NULL, error, "umemMpi_start: MPI_Win_lock_all"));
}

/* Whether the CPU and MPI see the same memory. */
static bool is_unified(MPI_Win made) {
  int *model = NULL, found = 0;
  int error = MPI_Win_get_attr(made, MPI_WIN_MODEL, &model, &found);
  return error == MPI_SUCCESS && found && *model == MPI_WIN_UNIFIED;
}

/* Fills the records of this rank before others see them. */
static bool begin_records(MpiWindow *window, unsigned char *control) {
  uint64_t const capacity = window->capacities[window->rank];
  uint64_t const units = mpi_units_in(capacity, mpi_unit_of(capacity, window->unit));
  if (units) mpi_units_clear((uint64_t *)(void *)control, units);
  int error = MPI_Win_sync(window->control);
  bool well = error == MPI_SUCCESS || mpi_fail(NULL, error, "umemMpi_start: MPI_Win_sync");
  if (!agree(window->comm, well)) return false;
  error = MPI_Win_sync(window->control);
  well = error == MPI_SUCCESS || mpi_fail(NULL, error, "umemMpi_start: MPI_Win_sync");
  return agree(window->comm, well);
}

/* Where the part of a rank of this machine is in this process, and its records if all ranks are on
 * this machine. */
static int find_neighbour(MpiWindow *window, int here, int rank) {
  bool const is_all = window->neighbours == MPI_WIN_NULL;
  MPI_Win const parts = is_all ? window->data : window->neighbours;
  MPI_Aint size;
  int unit;
  int error = MPI_Win_shared_query(parts, here, &size, &unit, &window->parts[rank]);
  if (error != MPI_SUCCESS || !is_all) return error;
  return MPI_Win_shared_query(window->control, here, &size, &unit, &window->records[rank]);
}

static int find_neighbours(MpiWindow *window) {
  MPI_Group machine = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  int error = MPI_Comm_group(window->machine, &machine);
  if (error == MPI_SUCCESS) error = MPI_Comm_group(window->comm, &all);
  for (int here = 0; here < window->here && error == MPI_SUCCESS; here++) {
    int rank;
    error = MPI_Group_translate_ranks(machine, 1, &here, all, &rank);
    if (error == MPI_SUCCESS) error = find_neighbour(window, here, rank);
  }
  if (machine != MPI_GROUP_NULL) MPI_Group_free(&machine);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  return error;
}

/* What the ranks of this machine share. */
static bool find_shared(MpiWindow *window) {
  if (window->neighbours == MPI_WIN_NULL) {
    window->records = calloc((size_t)window->ranks, sizeof *window->records);
    if (!window->records) return refuse(umemMemoryError, "no memory for the records of the window");
  }
  int error = find_neighbours(window);
  return error == MPI_SUCCESS || mpi_fail(NULL, error, "umemMpi_start: the parts of this machine");
}

/* The windows of data and of records; *data and *control are this rank's parts. With shared memory
 * on several machines the window of data is made of those of all machines. CPUs and MPI must not
 * change the same records, because MPI's atomic operations need not be those of the CPU: the window
 * of records is MPI's alone there. */
static bool make_windows(MpiWindow *window, umemMpiOptions const *options, unsigned char **data,
                         unsigned char **control) {
  uint64_t const nbytes = options->capacity, records = control_size(nbytes, options->unit);
  bool const divided = options->memory == umemMpiMemoryShared && window->here < window->ranks;
  umemMpiMemory const how = divided ? umemMpiMemoryCreate : options->memory;
  umemMpiMemory const how_records = divided ? umemMpiMemoryAllocate : options->memory;
  unsigned char *memory = NULL, *memory_of_records = NULL;
  if (options->memory == umemMpiMemoryCreate) {
    if (!agree(window->comm, map_memory(window, page_round(nbytes) + records + 4096))) return false;
    memory = window->memory;
    memory_of_records = memory + page_round(nbytes);
  }
  if (divided && !make_one(window, window->machine, umemMpiMemoryShared, nbytes, 1, NULL,
                           &window->neighbours, &memory))
    return false;
  return make_one(window, window->comm, how, nbytes, 1, memory, &window->data, data) &&
         make_one(window, window->comm, how_records, records, 8, memory_of_records,
                  &window->control, control);
}

static bool make_memory(MpiWindow *window, umemMpiOptions const *options) {
  unsigned char *data = NULL, *control = NULL;
  if (!make_windows(window, options, &data, &control)) return false;
  bool const unified = is_unified(window->data);
  if (unified) window->parts[window->rank] = data;
  bool shares =
      options->memory == umemMpiMemoryShared && (unified || window->neighbours == MPI_WIN_NULL);
  if (!agree(window->comm, !shares || find_shared(window))) return false;
  return begin_records(window, control);
}

/* ---- progress ---- */

static bool start_progress(MpiWindow *window, umemMpiOptions const *options) {
  bool needed = !window->records; /* in shared memory no rank needs the help of another one */
  bool wanted = options->progress == umemMpiProgressThread ||
                (options->progress == umemMpiProgressAuto && needed && window->threads);
  int error = 0;
  if (wanted && !window->threads)
    return agree(window->comm,
                 refuse(umemNotSupportedError, "a thread for progress needs MPI_THREAD_MULTIPLE"));
  if (wanted && !(window->progress = mpi_progress_start(window->comm, &error)))
    umemVirtual_fail(NULL, umemRuntimeError, "%s: cannot start a thread: %s", start,
                     strerror(error));
  return agree(window->comm, !error);
}

/* ---- start and end ---- */

static void end_one(MPI_Win *made, int *result) {
  if (*made == MPI_WIN_NULL) return;
  int error = MPI_Win_unlock_all(*made);
  if (*result == MPI_SUCCESS) *result = error;
  error = MPI_Win_free(made);
  if (*result == MPI_SUCCESS) *result = error;
}

int mpi_end_window(MpiWindow *window) {
  int result = MPI_SUCCESS;
  __atomic_store_n(&window->open, false, __ATOMIC_RELEASE);
  mpi_progress_stop(window->progress);
  window->progress = NULL;
  if (window->comm == MPI_COMM_NULL) return MPI_SUCCESS;
  end_one(&window->control, &result);
  end_one(&window->data, &result);
  end_one(&window->neighbours, &result); /* the memory of data */
  if (window->machine != MPI_COMM_NULL) MPI_Comm_free(&window->machine);
  int error = MPI_Comm_free(&window->comm);
  if (window->memory) munmap(window->memory, window->memory_size);
  window->memory = NULL;
  return result == MPI_SUCCESS ? error : result;
}

/* The capacities of all ranks. */
static bool gather(MpiWindow *window, uint64_t capacity) {
  MPI_Comm_rank(window->comm, &window->rank);
  MPI_Comm_size(window->comm, &window->ranks);
  window->capacities = calloc((size_t)window->ranks, sizeof *window->capacities);
  window->parts = calloc((size_t)window->ranks, sizeof *window->parts);
  bool well = window->capacities && window->parts;
  if (!well) refuse(umemMemoryError, "no memory for the records of the window");
  if (!agree(window->comm, well)) return false;
  int error =
      MPI_Allgather(&capacity, 1, MPI_UINT64_T, window->capacities, 1, MPI_UINT64_T, window->comm);
  return error == MPI_SUCCESS || mpi_fail(NULL, error, "umemMpi_start: MPI_Allgather");
}

static bool fill(MpiWindow *window, umemMpiOptions *options) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  window->threads = level == MPI_THREAD_MULTIPLE;
  window->unit = options->unit;
  window->cuda_aware = mpi_takes_gpu_addresses();
  options->capacity = whole_units(options->capacity, options->unit);
  uint64_t const all = options->capacity + control_size(options->capacity, options->unit);
  if (!agree_on_options(window->comm, options) || !gather(window, options->capacity) ||
      !look_at_machine(window, all, options) || !make_memory(window, options) ||
      !start_progress(window, options))
    return false;
  int error = mpi_attach_window(window->user, window);
  bool well = error == MPI_SUCCESS || mpi_fail(NULL, error, "umemMpi_start: MPI_Comm_set_attr");
  if (!agree(window->comm, well)) return false;
  __atomic_store_n(&window->open, true, __ATOMIC_RELEASE);
  return true;
}

/* comm returns errors. */
static bool start_on(MPI_Comm comm, umemMpiOptions const *options) {
  umemMpiOptions full;
  MpiWindow *window = calloc(1, sizeof *window);
  bool well = read_options(&full, options);
  if (!window) well = refuse(umemMemoryError, "no memory for the records of the window");
  if (!agree(comm, well && check_communicator(comm))) {
    free(window);
    return false;
  }
  window->user = comm;
  window->comm = window->machine = MPI_COMM_NULL;
  window->data = window->control = window->neighbours = MPI_WIN_NULL;
  window->holders = 1;
  int error = MPI_Comm_dup(comm, &window->comm);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(window->comm, MPI_ERRORS_RETURN);
  if (error != MPI_SUCCESS) mpi_fail(NULL, error, "umemMpi_start: MPI_Comm_dup");
  if (error == MPI_SUCCESS && fill(window, &full)) return true;
  if (mpi_has_window(comm)) { /* another rank could not attach it */
    mpi_detach_window(comm);
    return false;
  }
  mpi_end_window(window);
  mpi_release_window(window);
  return false;
}

/* From now on comm returns errors; *before is for end_errors. A status if it fails. */
static bool begin_errors(MPI_Comm comm, MPI_Errhandler *before) {
  int error = MPI_Comm_get_errhandler(comm, before);
  if (error != MPI_SUCCESS) return mpi_fail(NULL, error, "MPI_Comm_get_errhandler");
  error = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS) return true;
  MPI_Errhandler_free(before);
  return mpi_fail(NULL, error, "MPI_Comm_set_errhandler");
}

static void end_errors(MPI_Comm comm, MPI_Errhandler *before) {
  MPI_Comm_set_errhandler(comm, *before);
  MPI_Errhandler_free(before);
}

umemStatusType umemMpi_start(MPI_Comm comm, umemMpiOptions const *options) {
  MPI_DEFER_CANCEL();
  MPI_Errhandler handler;
  if (!mpi_is_running(NULL, start)) return umem_thread_status();
  if (umemMpi_register() != umemOK) return umem_thread_status();
  if (comm == MPI_COMM_NULL) {
    check_communicator(comm);
    return umem_thread_status();
  }
  if (!begin_errors(comm, &handler)) return umem_thread_status();
  bool well = start_on(comm, options);
  end_errors(comm, &handler);
  return well ? umemOK : umem_thread_status();
}

umemStatusType umemMpi_stop(MPI_Comm comm) {
  MPI_DEFER_CANCEL();
  MPI_Errhandler handler;
  if (!mpi_is_running(NULL, "umemMpi_stop")) return umem_thread_status();
  if (!mpi_has_window(comm))
    return umemVirtual_fail(NULL, umemValueError, "umemMpi_stop: the communicator has no window");
  if (!begin_errors(comm, &handler)) return umem_thread_status();
  int error = mpi_detach_window(comm);
  end_errors(comm, &handler);
  if (error == MPI_SUCCESS) return umemOK;
  mpi_fail(NULL, error, "umemMpi_stop");
  return umem_thread_status();
}
