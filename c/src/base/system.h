/* system.h - what files and calls of the kernel report: memory that is left, memory nodes,
 * processors near them; calls that a C library may lack; and copies that some processors do
 * slowly. */
#ifndef UMEM_SYSTEM_H
#define UMEM_SYSTEM_H

#include "base/thread.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* ==== calls of Linux that a C library may lack ====
 *
 * glibc has all of them; the build defines UMEM_LACKS_... where another one, such as musl, does
 * not. */

#if defined UMEM_LACKS_PREADV2 || defined UMEM_LACKS_RENAMEAT2
#include <linux/fs.h> /* RWF_NOWAIT, RENAME_NOREPLACE */
#include <sys/syscall.h>
#include <sys/uio.h>
#endif

#ifdef UMEM_LACKS_PREADV2
static inline ssize_t preadv2(int fd, struct iovec const *pieces, int count, off_t at, int flags) {
  return syscall(SYS_preadv2, fd, pieces, count, at, 0, flags);
}
static inline ssize_t pwritev2(int fd, struct iovec const *pieces, int count, off_t at, int flags) {
  return syscall(SYS_pwritev2, fd, pieces, count, at, 0, flags);
}
#endif

#ifdef UMEM_LACKS_RENAMEAT2
static inline int renameat2(int from, char const *old, int to, char const *name, unsigned flags) {
  return (int)syscall(SYS_renameat2, from, old, to, name, flags);
}
#endif

/* ==== files of the kernel ==== */

/* Reads the beginning of a file, at most size - 1 bytes, and ends it with a zero. False if there is
 * nothing to read. Puts cancellation off: contexts in RAM come here, too. */
static inline bool umem_read_text(char const *path, char *text, size_t size) {
  umem_defer_cancel();
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, size - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

/* ==== libraries that are opened at run time ==== */

/* dlopen with these flags. NULL, and why in *error, which may be NULL; also in a program that is
 * linked with -static: dlopen of glibc may crash there. */
void *umem_open_library(char const *name, int flags, char const **error);

/* ==== addresses ==== */

/* Addresses without memory at a multiple of alignment, which is a power of two and at least a page.
 * NULL with errno. */
void *umem_reserve(size_t nbytes, size_t alignment);

/* Maps so many bytes of the file at such a multiple, readable, and writable if it says so. how:
 * more flags of mmap. NULL with errno. */
void *umem_map_aligned(int fd, size_t nbytes, size_t alignment, bool writable, int how);

/* ==== memory that is left ==== */

/* Smaller requests are not compared. */
enum { umemMemoryLeast = 4 << 20 };

/* Bytes of RAM: of the machine, and of the groups (cgroups) of the process that have a limit, as
 * those of containers have. UINT64_MAX where the system does not say. An estimate: others take
 * memory meanwhile. */
uint64_t umemMemory_available(void);

/* With swap, as far as the groups may use it. */
uint64_t umemMemory_left(void);

/* Whether so many bytes are left. Sets *left if they are not. Reads files of the system: no more
 * often than ten times a second, unless it has granted as much as was left then. */
bool umemMemory_has(uint64_t nbytes, uint64_t *left);

/* ==== nodes of memory (NUMA), by system calls of Linux: libnuma is not needed ====
 *
 * A set of nodes is a number whose bit n stands for node n. Functions that return an int return an
 * errno: 0 is success, ENOSYS a kernel without NUMA, EPERM a container that forbids the call. */

enum { umemNumaMost = 64 }; /* nodes that umem knows: 0 to 63 */

/* The numbers of the kernel. */
typedef enum umemNumaPolicy {
  /* One node, the others when it is full; with no node, that of the thread that touches a page. */
  umemNumaPrefer = 1,
  umemNumaBind = 2,      /* these nodes alone */
  umemNumaInterleave = 3 /* page after page, from node to node */
} umemNumaPolicy;

/* The nodes on which this thread may have memory. */
int umemNuma_allowed(uint64_t *nodes);

/* Where pages of a mapping will be, that have no memory yet. */
int umemNuma_place(void *adr, size_t nbytes, umemNumaPolicy policy, uint64_t nodes);

/* Where the page at adr is: -1 as long as it has no memory. */
int umemNuma_find(uintptr_t adr, int *node);

/* Bytes that the nodes have, and of them free ones, with those of caches that give way. huge_page:
 * bytes of a page of hugetlbfs, of which those that are set aside count; 0: all memory. Returns
 * false if the kernel does not list one of the nodes. */
bool umemNuma_sizes(uint64_t nodes, uint64_t huge_page, uint64_t *capacity, uint64_t *available);

/* Reads a list as of numactl: "0", "0,2", "0-3,6". Returns 0 for what is none. */
uint64_t umemNuma_read(char const *text);

/* Writes such a list: at most size bytes. Returns text. */
char *umemNuma_write(uint64_t nodes, char *text, size_t size);

/* ==== threads that run on the processors of one node ====
 *
 * A copy between RAM and a GPU goes through memory that the threads of the library fill and empty.
 * On a machine with several nodes they do this faster on the node to which the GPU is connected. A
 * page of RAM comes to the node of the thread that touches it first: threads that share a copy or a
 * set run on the node of the thread that has called it. */

/* Reads from the system which processors are near the device of this address, such as
 * "0000:3B:00.0". False where the system does not say, or where all that the calling thread may use
 * are near. Records nothing. */
bool umemNear_find(char const *address, cpu_set_t *near);

/* umemNear_find for the node on which the calling thread runs. */
bool umemNear_here(cpu_set_t *near);

/* Lets the calling thread run on those of near that it may use, until umemNear_leave. False where
 * there are none: then there is nothing to leave, and it runs where it did. */
bool umemNear_enter(cpu_set_t const *near, cpu_set_t *before);
void umemNear_leave(cpu_set_t const *before);

/* For tests: reads below root in place of "/sys"; NULL: "/sys" again. */
void umemNear_read_below(char const *root);

/* ==== copies that AMD's processors do slowly ====
 *
 * Where the destination begins 1 to 31 bytes after the source, modulo the size of a page, their
 * `rep movsb` takes up to twenty times as long as elsewhere (glibc's bug 30994). Some C libraries
 * copy runs with it that fit into the second cache, and Linux the bytes of every read and write.
 * Large blocks of malloc begin 16 bytes after the start of a page. */

enum {
  umemShortRun = 1024,    /* bytes that every C library copies by loads and stores */
  umemCachedRun = 1 << 20 /* so do they with longer runs, past the caches */
};

/* For tests: every processor takes the way of AMD's. */
extern bool umem_all_are_slow __attribute__((visibility("hidden")));

/* Whether this processor copies slowly from src to dst: others than AMD's copy at all distances
 * alike. */
static inline bool umem_is_slow(uintptr_t dst, uintptr_t src) {
  bool is_ahead = (dst - src) % 4096 - 1 < 31;
#ifdef __x86_64__
  return is_ahead && (umem_all_are_slow || __builtin_cpu_is("amd"));
#else
  return is_ahead && umem_all_are_slow;
#endif
}

/* As memcpy. Where that may be slow, in short runs. */
static inline void umem_copy_bytes(char *dst, char const *src, size_t n) {
  if (n > umemShortRun && n <= umemCachedRun && umem_is_slow((uintptr_t)dst, (uintptr_t)src)) {
    size_t run = umemShortRun;
    /* Of a memcpy whose size it knows, GCC makes `rep movsq` (test/style/long_copies.py). */
    __asm__("" : "+r"(run));
    for (; n > run; n -= run, dst += run, src += run) memcpy(dst, src, run);
  }
  memcpy(dst, src, n);
}

#endif
