/* full.c - no room, for real: limits of the process, and a file system that is full.
 *
 * Each case runs in a child, whose limits and mounts end with it. */
#include <sys/resource.h>

#include "fault/trial.h"

enum { room = 1 << 20, block = 100000, too_much = 4 << 20 };

typedef struct Case {
  Place const *place;
  char path[256];
  umemHost host;
  Any own;
} Case;

static unsigned char bytes[too_much], found[too_much];
static Case c; /* of the child */

static void begin(void const *place) {
  c.place = place;
  temporary_name(c.path, sizeof c.path);
}

static umemStatusType construct(Case *it) {
  char const *name = it->place->scratch ? NULL : it->path;
  return it->place->kind == kindFile ? umemFile_ctor(&it->own.file, name, it->place->mode)
                                     : umemMMap_ctor(&it->own.mmap, name, it->place->mode);
}

static void open_case(Case *it) {
  EXPECT(umemHost_ctor(&it->host) == umemOK);
  EXPECT(construct(it) == umemOK);
}

/* Writes nbytes of a pattern to adr. */
static void put(Case *it, uintptr_t adr, size_t nbytes) {
  EXPECT(umem_copy_from(&it->own, adr, &it->host, (uintptr_t)bytes, nbytes) == umemOK);
}

static void expect_bytes(Case *it, uintptr_t adr, size_t nbytes) {
  EXPECT(umem_copy_to(&it->own, adr, &it->host, (uintptr_t)found, nbytes) == umemOK);
  EXPECT(!memcmp(bytes, found, nbytes));
}

/* A refused allocation: null, a memory error on thread and context, and the file as long as
 * before. */
static void expect_refused(Case *it, uintptr_t adr, size_t length, char const *words) {
  EXPECT(adr == umem_null(&it->own));
  EXPECT(umem_thread_status() == umemMemoryError);
  EXPECT(umem_get_status(&it->own) == umemMemoryError);
  EXPECT(strstr(umem_get_message(&it->own), words));
  if (!it->place->scratch) EXPECT(file_length(it->path) == length);
  EXPECT(umem_clear_status(&it->own) == umemOK);
  umem_thread_clear();
}

/* Asks for more than there is in every way, with data in an earlier block. */
static void exhaust(Case *it, char const *words) {
  for (size_t i = 0; i < too_much; i++) bytes[i] = (unsigned char)(i * 31 >> 2);
  uintptr_t first = umem_alloc(&it->own, block);
  EXPECT(first != umem_null(&it->own));
  put(it, first, block);
  size_t length = it->place->scratch ? 0 : file_length(it->path);
  expect_refused(it, umem_alloc(&it->own, too_much), length, words);
  expect_refused(it, umem_calloc(&it->own, 4, too_much / 4), length, words);
  expect_refused(it, umem_aligned_alloc(&it->own, 4096, too_much), length, words);
  expect_refused(it, umem_realloc(&it->own, first, block, too_much), length, words);
  expect_bytes(it, first, block);

  uintptr_t second = umem_alloc(&it->own, block);
  EXPECT(second != umem_null(&it->own));
  put(it, second, block);
  expect_bytes(it, second, block);
  expect_bytes(it, first, block);
  EXPECT(umem_flush(&it->own) == umemOK);
}

/* The bytes that were in the file before, but for those under blocks. */
static void expect_old_bytes(Case *it, size_t from) {
  EXPECT(read_file(it->path, found, old_size) >= old_size);
  for (size_t i = from; i < old_size; i++) EXPECT(found[i] == old_byte(i));
}

static void exhaust_place(Case *it, char const *words) {
  if (!it->place->scratch) write_file(it->path, old_size);
  open_case(it);
  exhaust(it, words);
  umem_dtor(&it->own);
  EXPECT(umem_thread_status() == umemOK);
  if (it->place->mode[0] == 'a') expect_old_bytes(it, 0);
  unlink(it->path);
}

static bool is_grown_and_read(Place const *place) {
  return place->mode && !place->adopts && !place->fresh && strchr(place->mode, '+');
}

#ifdef __GLIBC__
typedef __rlimit_resource_t Resource;
#else
typedef int Resource;
#endif

static void limit(Resource resource, rlim_t value) {
  struct rlimit old;
  EXPECT(getrlimit(resource, &old) == 0);
  old.rlim_cur = value;
  EXPECT(setrlimit(resource, &old) == 0);
}

/* ---- RLIMIT_FSIZE, beyond which the kernel kills with SIGXFSZ ---- */

static void in_limited_file(void *argument) {
  begin(argument);
  limit(RLIMIT_FSIZE, room);
  exhaust_place(&c, "RLIMIT_FSIZE");
}

TEST_CASE(file_size_limit) {
  for (size_t i = 0; i < place_count; i++)
    if (is_grown_and_read(&places[i])) child_run(in_limited_file, (void *)&places[i]);
}

/* A limit that falls into a file that is already longer: writing beyond would kill even there, so
 * no block is given out. */
static void past_limit(void *argument) {
  enum { allowed = 20000, within = 16000 };
  begin(argument);
  write_file(c.path, old_size);
  limit(RLIMIT_FSIZE, allowed);
  open_case(&c);
  expect_refused(&c, umem_alloc(&c.own, old_size), old_size, "RLIMIT_FSIZE");
  uintptr_t adr = umem_alloc(&c.own, within);
  EXPECT(adr != umem_null(&c.own));
  expect_refused(&c, umem_realloc(&c.own, adr, within, allowed), old_size, "RLIMIT_FSIZE");
  put(&c, adr, within);
  expect_bytes(&c, adr, within);
  umem_dtor(&c.own);
  expect_old_bytes(&c, within);
  unlink(c.path);
}

TEST_CASE(file_longer_than_its_limit) {
  for (size_t i = 0; i < place_count; i++)
    if (is_grown_and_read(&places[i]) && !strcmp(places[i].mode, "r+"))
      child_run(past_limit, (void *)&places[i]);
}

/* ---- a file system that is full ---- */

static SmallDisk disk;

/* A tmpfs of `room` bytes is where temporary files are. */
static void mount_small(void) {
  if (!small_disk_mount(&disk, "tmpfs", 1)) _exit(child_not_permitted);
  EXPECT(setenv("TMPDIR", disk.folder, 1) == 0);
}

static void in_small_filesystem(void *argument) {
  mount_small();
  begin(argument);
  exhaust_place(&c, strerror(ENOSPC));
  small_disk_unmount(&disk);
}

TEST_CASE(full_filesystem) {
  for (size_t i = 0; i < place_count; i++)
    if (is_grown_and_read(&places[i]) && !child_run(in_small_filesystem, (void *)&places[i])) {
      print_message("mounting is not permitted here\n");
      skip();
    }
}

/* The file of the place exists, and is longer than there is room. */
static void begin_with_hole(void const *place) {
  mount_small();
  begin(place);
  int fd = open(c.path, O_RDWR | O_CREAT, 0600);
  EXPECT(fd >= 0 && ftruncate(fd, too_much) == 0 && close(fd) == 0);
}

/* A hole in an existing file gets its room when a block is laid over it. */
static void in_hole(void *argument) {
  begin_with_hole(argument);
  open_case(&c);
  expect_refused(&c, umem_alloc(&c.own, too_much), too_much, strerror(ENOSPC));
  uintptr_t adr = umem_alloc(&c.own, room / 2);
  EXPECT(adr != umem_null(&c.own));
  expect_refused(&c, umem_alloc(&c.own, room), too_much, strerror(ENOSPC));
  put(&c, adr, room / 2);
  expect_bytes(&c, adr, room / 2);
  umem_dtor(&c.own);
  unlink(c.path);
  small_disk_unmount(&disk);
}

/* Without reservation, writing there may fail, and says so. */
static void in_sparse_hole(void *argument) {
  umemFileOptions options = {.size = sizeof options, .reserve = umemReserveNone};
  begin_with_hole(argument);
  EXPECT(umemHost_ctor(&c.host) == umemOK);
  EXPECT((c.place->kind == kindFile
              ? umemFile_ctor_with(&c.own.file, c.path, "r+", &options)
              : umemMMap_ctor_with(&c.own.mmap, c.path, "r+", &options)) == umemOK);
  uintptr_t adr = umem_alloc(&c.own, too_much);
  EXPECT(adr != umem_null(&c.own));
  put(&c, adr, block);
  EXPECT(umem_copy_from(&c.own, adr + block, &c.host, (uintptr_t)bytes, too_much - block) ==
         umemIOError);
  EXPECT(strstr(umem_get_message(&c.own), strerror(ENOSPC)));
  EXPECT(umem_set(&c.own, adr + too_much - block, 1, block) == umemIOError);
  umem_clear_status(&c.own);
  expect_bytes(&c, adr, block);
  EXPECT(file_length(c.path) == too_much);
  umem_dtor(&c.own);
  unlink(c.path);
  small_disk_unmount(&disk);
}

TEST_CASE(full_filesystem_and_a_hole) {
  for (size_t i = 0; i < place_count; i++)
    if (is_grown_and_read(&places[i]) && !strcmp(places[i].mode, "r+") &&
        !(child_run(in_hole, (void *)&places[i]) && child_run(in_sparse_hole, (void *)&places[i])))
      skip();
}

/* What a scratch file frees, another file can have at once. */
static void scratch_gives_back(void *argument) {
  static Case scratch;
  mount_small();
  scratch.place = argument;
  begin(place_by_name("file w+"));
  open_case(&scratch);
  open_case(&c);
  uintptr_t most = umem_alloc(&scratch.own, room - block);
  EXPECT(most != umem_null(&scratch.own));
  put(&scratch, most, room - block);
  EXPECT(umem_alloc(&c.own, room / 2) == umem_null(&c.own));
  umem_clear_status(&c.own);
  umem_free(&scratch.own, most);
  uintptr_t half = umem_alloc(&c.own, room / 2);
  EXPECT(half != umem_null(&c.own));
  put(&c, half, room / 2);
  DESTRUCT(&scratch.own, &c.own);
  unlink(c.path);
  small_disk_unmount(&disk);
}

TEST_CASE(full_filesystem_and_a_scratch_file) {
  for (size_t i = 0; i < place_count; i++)
    if (places[i].scratch && !child_run(scratch_gives_back, (void *)&places[i])) skip();
}

/* ---- RLIMIT_NOFILE ---- */

static void without_descriptors(void *argument) {
  begin(argument);
  write_file(c.path, old_size);

  limit(RLIMIT_NOFILE, 0);
  EXPECT(construct(&c) == umemIOError);
  EXPECT(umem_get_status(&c.own) == umemIOError);
  EXPECT(strstr(umem_get_message(&c.own), strerror(EMFILE)));
  EXPECT(umem_alloc(&c.own, 8) == umem_null(&c.own));
  umem_dtor(&c.own);

  limit(RLIMIT_NOFILE, 100);
  EXPECT(file_length(c.path) == old_size);
  EXPECT(construct(&c) == umemOK);
  EXPECT(umem_is_ok(&c.own));
  umem_dtor(&c.own);
  unlink(c.path);
}

TEST_CASE(no_descriptors_left) {
  for (size_t i = 0; i < place_count; i++)
    if (places[i].mode && !places[i].adopts && !places[i].fresh)
      child_run(without_descriptors, (void *)&places[i]);
}

/* ---- RLIMIT_AS ---- */

static rlim_t address_space_used(void) {
  FILE *status = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  EXPECT(status && fscanf(status, "%lu", &pages) == 1);
  fclose(status);
  return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Room for 64 MiB more: a mapping reserves less than it would like to, and works. */
static void in_small_address_space(void *argument) {
  begin(argument);
  limit(RLIMIT_AS, address_space_used() + (64 << 20));
  open_case(&c);
  umemHost *host = &c.host;
  EXPECT(umem_alloc(host, (size_t)1 << 30) == 0);
  EXPECT(umem_get_status(host) == umemMemoryError);
  EXPECT(umem_realloc(host, umem_null(host), 0, (size_t)1 << 30) == 0);
  EXPECT(umem_calloc(host, 1 << 10, 1 << 20) == 0);
  EXPECT(umem_aligned_alloc(host, 4096, (size_t)1 << 30) == 0);
  umem_clear_status(host);

  uintptr_t adr = umem_alloc(&c.own, block);
  EXPECT(adr != umem_null(&c.own));
  put(&c, adr, block);
  expect_bytes(&c, adr, block);
  if (c.place->kind == kindMMap) {
    EXPECT(umem_alloc(&c.own, (size_t)1 << 30) == umem_null(&c.own));
    EXPECT(umem_get_status(&c.own) == umemMemoryError);
    EXPECT(file_length(c.path) < (1 << 30));
  }
  expect_bytes(&c, adr, block);
  umem_dtor(&c.own);
  unlink(c.path);
}

TEST_CASE(address_space_limit) {
  if (UNDER_SANITIZER) {
    print_message("sanitizers do not run with little address space\n");
    skip();
  }
  for (size_t i = 0; i < place_count; i++)
    if (is_grown_and_read(&places[i]) && !strcmp(places[i].mode, "w+") && !places[i].scratch)
      child_run(in_small_address_space, (void *)&places[i]);
}
