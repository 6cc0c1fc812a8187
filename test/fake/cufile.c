#include "cufile.h"

#include "cudart_state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { page = 4096, mostHandles = 32 };

/* A failure to come. */
typedef struct Plan {
  char const *function; /* NULL: any */
  unsigned long left;   /* calls until then; 0: none fails */
  int code;
  bool lasting;
} Plan;

static struct {
  pthread_mutex_t mutex;
  FakeCufileMachine machine;
  FakeCufileDone done;
  Plan plan;
  char const *failed;
  unsigned long before; /* transfers until run; 0: none */
  void (*run)(void *argument);
  void *argument;
  long uses;
  int fds[mostHandles]; /* of handles, whose addresses these are; 0: none */
  unsigned threads;     /* in transfers now */
} fake = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock(void) { pthread_mutex_lock(&fake.mutex); }
static void unlock(void) { pthread_mutex_unlock(&fake.mutex); }

static void complain(char const *what) {
  LOCKED(cudart_mutex());
  cudart_thread()->call = "cuFile";
  cudart_misuse("%s", what);
}

/* ---- settings, failures, records ---- */

void fake_cufile_reset(void) {
  LOCKED(&fake.mutex);
  fake.machine = (FakeCufileMachine){
      .properties = {.major = 2, .minor = 20, .file_systems = 1 << 4, .controls = 1},
      .most = SIZE_MAX};
  fake.done = (FakeCufileDone){0};
  fake.plan = (Plan){0};
  fake.failed = NULL;
  fake.before = 0;
  fake.uses = 0;
  memset(fake.fds, 0, sizeof fake.fds);
}

FakeCufileMachine *fake_cufile_machine(void) { return &fake.machine; }

void fake_cufile_fail_in(char const *function, unsigned long nth, int code, bool lasting) {
  LOCKED(&fake.mutex);
  fake.plan = (Plan){function, nth, code, lasting};
  fake.failed = NULL;
}

void fake_cufile_fail(unsigned long nth, int code, bool lasting) {
  fake_cufile_fail_in(NULL, nth, code, lasting);
}

char const *fake_cufile_failed(void) {
  LOCKED(&fake.mutex);
  return fake.failed;
}

void fake_cufile_before(unsigned long nth, void (*run)(void *argument), void *argument) {
  LOCKED(&fake.mutex);
  fake.before = nth;
  fake.run = run;
  fake.argument = argument;
}

FakeCufileDone fake_cufile_done(void) {
  LOCKED(&fake.mutex);
  return fake.done;
}

/* The code that a call of function must fail with, or 0. With the mutex. */
static int planned(char const *function) {
  Plan *plan = &fake.plan;
  if (!plan->left || (plan->function && strcmp(plan->function, function) != 0)) return 0;
  if (plan->left > 1) return plan->left--, 0;
  if (!plan->lasting) plan->left = 0;
  fake.failed = function;
  return plan->code;
}

/* ---- driver and handles ---- */

static umemCufileError with(int code) { return (umemCufileError){code, 12345}; }

static umemCufileError driver_open(void) {
  lock();
  int code = planned("driver_open");
  if (!code) fake.uses++, fake.done.opened++;
  unlock();
  return with(code);
}

static umemCufileError driver_close(void) {
  lock();
  int code = planned("driver_close");
  if (!code) fake.uses--, fake.done.closed++;
  unlock();
  return with(code);
}

static long use_count(void) {
  LOCKED(&fake.mutex);
  return fake.uses + fake.machine.open_by_program;
}

static umemCufileError driver_properties(umemCufileProperties *properties) {
  lock();
  int code = planned("driver_properties");
  if (!code) *properties = fake.machine.properties;
  unlock();
  return with(code);
}

/* Of a descriptor with the flags that cuFile asks for. */
static int refusal_of(int fd) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return umemCufileInvalidValue;
  if (flags & O_NONBLOCK) return umemCufileBadFlags;
  if (fake.machine.properties.controls & umemCufileAllowsCompat) return 0;
  if (!(flags & O_DIRECT)) return umemCufileNoDirectIO;
  return fake.machine.refuses_files ? umemCufileNoFile : 0;
}

static umemCufileError handle_register(void **handle, umemCufileFile *file) {
  int code = umemCufileInternal;
  lock();
  if (!fake.uses && !fake.machine.open_by_program)
    code = umemCufileNoDriver;
  else if (file->type == umemCufileDescriptor && !file->operations) {
    code = planned("handle_register");
    if (!code) code = refusal_of(file->handle.fd);
  }
  for (int i = 0; !code && i < mostHandles; i++)
    if (!fake.fds[i]) {
      fake.fds[i] = file->handle.fd;
      *handle = &fake.fds[i];
      fake.done.registered++;
      break;
    }
  unlock();
  return with(code);
}

static void handle_deregister(void *handle) {
  lock();
  int *fd = handle;
  bool known = fd >= fake.fds && fd < fake.fds + mostHandles && *fd;
  if (known) *fd = 0, fake.done.released++;
  unlock();
  if (!known) complain("a handle that is none");
}

/* ---- transfers ---- */

/* Whether the calling thread is in the context of the device whose memory begins at adr, which is
 * allocated. */
static bool is_at_home(uintptr_t adr, size_t size) {
  LOCKED(cudart_mutex());
  Thread const *thread = cudart_thread();
  Block const *block = cudart_block_at(adr);
  bool good = thread->depth && block && block->kind == umemCudaDeviceMemory && block->ready &&
              !block->freed && size <= block->size - (adr - block->start) &&
              thread->stack[thread->depth - 1]->ordinal == block->device;
  return good;
}

/* Moves whole pages, as the descriptor asks for, and reports fewer bytes where the settings limit
 * them. */
static bool move_bytes(int fd, char *buffer, size_t size, off_t offset, uintptr_t adr, bool reads,
                       ssize_t *moved) {
  if (!reads && !fake_cudart_peek(adr, buffer, size)) return false;
  *moved = reads ? pread(fd, buffer, size, offset) : pwrite(fd, buffer, size, offset);
  if (*moved > 0 && (size_t)*moved > fake.machine.most) *moved = (ssize_t)fake.machine.most;
  return !reads || *moved <= 0 || fake_cudart_poke(adr, buffer, (size_t)*moved);
}

static void run_before(void) {
  lock();
  bool now = fake.before && --fake.before == 0;
  unlock();
  if (now) fake.run(fake.argument);
}

static ssize_t begin_transfer(int const *fd, char const *function) {
  run_before();
  lock();
  int code = planned(function);
  bool known = fd >= fake.fds && fd < fake.fds + mostHandles && *fd;
  if (++fake.threads > fake.done.threads) fake.done.threads = fake.threads;
  unlock();
  if (!known) code = umemCufileNotRegistered;
  errno = code;
  return !code ? 0 : code > umemCufileBase ? -code : -1;
}

static void end_transfer(ssize_t moved, bool reads) {
  int error = errno;
  lock();
  fake.threads--;
  size_t bytes = moved > 0 ? (size_t)moved : 0;
  if (reads)
    fake.done.reads++, fake.done.bytes_read += bytes;
  else
    fake.done.writes++, fake.done.bytes_written += bytes;
  unlock();
  errno = error;
}

static ssize_t transfer(void *handle, uintptr_t base, size_t size, off_t offset, off_t base_offset,
                        bool reads) {
  int const *fd = handle;
  uintptr_t adr = base + (uintptr_t)base_offset;
  ssize_t moved = begin_transfer(fd, reads ? "read" : "write");
  if (moved == 0) {
    if (offset % page || size % page) complain("parts of pages are slow");
    if (!is_at_home(adr, size)) complain("memory that is not of the current context");
    size_t pages = fake.machine.most / page + (fake.machine.most % page != 0);
    if (size / page > pages) size = pages * page;
    char *buffer = aligned_alloc(page, size);
    if (!buffer || !move_bytes(*fd, buffer, size, offset, adr, reads, &moved))
      moved = -umemCufileInternal;
    free(buffer);
  }
  end_transfer(moved, reads);
  return moved;
}

static ssize_t cufile_read(void *handle, void *base, size_t size, off_t file_offset,
                           off_t base_offset) {
  return transfer(handle, (uintptr_t)base, size, file_offset, base_offset, true);
}

static ssize_t cufile_write(void *handle, void const *base, size_t size, off_t file_offset,
                            off_t base_offset) {
  return transfer(handle, (uintptr_t)base, size, file_offset, base_offset, false);
}

umemCufileRt const *fake_cufile(void) {
  static umemCufileRt const table = {
      .driver_open = driver_open,
      .driver_close = driver_close,
      .use_count = use_count,
      .driver_properties = driver_properties,
      .handle_register = handle_register,
      .handle_deregister = handle_deregister,
      .read = cufile_read,
      .write = cufile_write,
  };
  lock();
  bool installed = fake.machine.installed;
  fake.done.asked++;
  unlock();
  return installed ? &table : NULL;
}
