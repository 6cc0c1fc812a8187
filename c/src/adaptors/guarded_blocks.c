/* guarded_blocks.c - the blocks of a umemGuarded and their pages, and which of them an access has
 * hit when SIGSEGV comes.
 *
 * The handler of SIGSEGV runs in a thread that may hold any lock. So it waits for none: it
 * tries, and if another thread holds one of them for long, it prints nothing. It allocates
 * nothing and calls only functions that a handler may call. */
#include "adaptors/guarded_blocks.h"
#include "base/number.h"
#include "core/live.h"
#include "core/status.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { open_protection = PROT_READ | PROT_WRITE };

/* ---- the list of those that the report looks at ---- */

static umemGuardedBlocks *newest;
static bool busy; /* atomic: the list is being used */

static bool try_list(void) { return !__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE); }
static void leave_list(void) { __atomic_clear(&busy, __ATOMIC_RELEASE); }

static void enter_list(void) {
  while (!try_list()) usleep(1);
}

static void list(umemGuardedBlocks *blocks) {
  enter_list();
  UMEM_LIST_ADD(newest, blocks);
  leave_list();
}

void umemGuardedBlocks_unlist(umemGuardedBlocks *blocks) {
  enter_list();
  UMEM_LIST_REMOVE(newest, blocks);
  leave_list();
}

/* ---- construction and end ---- */

static umemGuardedBlock *block_at(umemGuardedBlocks const *blocks, uint32_t slot) {
  return slot ? umemRecords_at(&blocks->records, slot) : NULL;
}

/* The function removed of the records. */
static void end_block(umemRecords *records, uint32_t slot) {
  umemGuardedBlock *block = umemRecords_at(records, slot);
  umemRecords_uncount(records, block->nbytes);
  free(block->label);
}

bool umemGuardedBlocks_init(umemGuardedBlocks *blocks, umemVirtual *ctx) {
  if (!umemRecords_init(&blocks->records, sizeof(umemGuardedBlock), end_block)) return false;
  blocks->page = (size_t)sysconf(_SC_PAGESIZE);
  blocks->ctx = ctx;
  list(blocks);
  return true;
}

/* ---- blocks and their pages ---- */

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) & ~(unit - 1); }

bool umemGuardedBlocks_plan(umemGuardedBlocks const *blocks, size_t nbytes, size_t alignment,
                            size_t *total, size_t *origin_alignment) {
  *origin_alignment = umem_greater(alignment, blocks->page);
  return !__builtin_add_overflow(nbytes, *origin_alignment, total) &&
         !__builtin_add_overflow(*total, 2 * blocks->page, total) && *total <= PTRDIFF_MAX;
}

/* Closes the page on either side of those of block: both or none. */
static bool close_neighbours(umemGuardedBlock const *block, size_t page) {
  void *before = (void *)(block->first - page), *behind = (void *)(block->first + block->size);
  if (mprotect(before, page, PROT_NONE) != 0) return false;
  if (mprotect(behind, page, PROT_NONE) == 0) return true;
  int error = errno;
  mprotect(before, page, open_protection); /* joins pages that were one: this cannot lack memory */
  errno = error;
  return false;
}

umemGuardedBlock *umemGuardedBlocks_enter(umemGuardedBlocks *blocks, uintptr_t origin,
                                          size_t nbytes, size_t alignment) {
  bool by_pages = alignment >= blocks->page;
  uintptr_t first = origin + (by_pages ? alignment : blocks->page);
  size_t size = round_up(nbytes, blocks->page);
  uint32_t slot = umemRecords_enter(&blocks->records, first, size);
  umemGuardedBlock *block = block_at(blocks, slot);
  *block = (umemGuardedBlock){.head = {blocks->records.entered},
                              .name = {blocks->records.entered, slot},
                              .adr = by_pages ? first : first + size - round_up(nbytes, alignment),
                              .nbytes = nbytes,
                              .origin = origin,
                              .first = first,
                              .size = size,
                              .access = umemGuardedWrite,
                              .protection = open_protection};
  bool closed = close_neighbours(block, blocks->page);
  if (!closed) block->nbytes = 0; /* it counts for nothing */
  umemRecords_count(&blocks->records, block->nbytes);
  if (closed) return block;
  int error = errno;
  umemRecords_remove(&blocks->records, slot);
  errno = error;
  return NULL;
}

bool umemGuardedBlocks_remove(umemGuardedBlocks *blocks, umemGuardedBlock *block) {
  size_t page = blocks->page;
  if (mprotect((void *)(block->first - page), block->size + 2 * page, open_protection) != 0) {
    int error = errno; /* some of the pages may be open */
    mprotect((void *)block->first, block->size, block->protection);
    close_neighbours(block, page);
    errno = error;
    return false;
  }
  umemRecords_remove(&blocks->records, block->name.slot);
  return true;
}

bool umemGuardedBlock_apply(umemGuardedBlock *block) {
  int protection = PROT_NONE;
  if (block->access == umemGuardedRead || block->readers) protection = PROT_READ;
  if (block->access == umemGuardedWrite || block->writers) protection = open_protection;
  if (protection == block->protection) return true;
  if (mprotect((void *)block->first, block->size, protection) != 0) return false;
  block->protection = protection;
  return true;
}

/* ---- finding ---- */

static umemGuardedBlock *with_page(umemGuardedBlocks const *blocks, uintptr_t adr) {
  return block_at(blocks, umemRecords_inside(&blocks->records, adr));
}

umemGuardedBlock *umemGuardedBlocks_find(umemGuardedBlocks const *blocks, uintptr_t adr) {
  umemGuardedBlock *block = with_page(blocks, adr);
  return block && adr - block->adr < block->nbytes ? block : NULL;
}

umemGuardedBlock *umemGuardedBlocks_at(umemGuardedBlocks const *blocks, uintptr_t adr) {
  umemGuardedBlock *block = with_page(blocks, adr);
  return block && adr == block->adr ? block : NULL;
}

umemGuardedBlock *umemGuardedBlocks_named(umemGuardedBlocks const *blocks, umemRecordName name) {
  return block_at(blocks, umemRecords_named(&blocks->records, name));
}

umemGuardedBlock *umemGuardedBlocks_any(umemGuardedBlocks const *blocks) {
  return block_at(blocks, umemRecords_next(&blocks->records, 0));
}

/* The block whose pages, or the closed page on either side of them, contain adr; NULL if there
 * is none. */
static umemGuardedBlock *find_near(umemGuardedBlocks const *blocks, uintptr_t adr) {
  umemGuardedBlock *block = with_page(blocks, adr);
  if (!block && adr >= blocks->page) block = with_page(blocks, adr - blocks->page);
  if (!block && adr <= UINTPTR_MAX - blocks->page) block = with_page(blocks, adr + blocks->page);
  return block;
}

/* ---- the line ---- */

typedef struct Line {
  char text[512];
  size_t used;
} Line;

static void add(Line *line, char const *text) {
  size_t length = strlen(text), room = sizeof line->text - line->used;
  if (length > room) length = room;
  memcpy(line->text + line->used, text, length);
  line->used += length;
}

static void add_number(Line *line, uintptr_t number, unsigned base) {
  char digits[24], *first = digits + sizeof digits - 1;
  *first = 0;
  do *--first = "0123456789abcdef"[number % base];
  while (number /= base);
  if (base == 16) add(line, "0x");
  add(line, first);
}

static void add_label(Line *line, char const *label) {
  if (!label || !*label) return;
  add(line, " \"");
  add(line, label);
  add(line, "\"");
}

static void add_place(Line *line, umemGuardedBlock const *block, uintptr_t adr) {
  add(line, "umem: SIGSEGV at ");
  if (adr - block->adr < block->nbytes) {
    add(line, "byte ");
    add_number(line, adr - block->adr, 10);
    add(line, " of");
  } else if (adr < block->adr) {
    add_number(line, block->adr - adr, 10);
    add(line, " bytes before");
  } else {
    add_number(line, adr - block->adr - block->nbytes, 10);
    add(line, " bytes behind the end of");
  }
}

static void add_reason(Line *line, umemGuardedBlock const *block, uintptr_t adr) {
  if (adr - block->adr >= block->nbytes)
    add(line, ": the access is outside of the block\n");
  else if (block->access == umemGuardedRead)
    add(line, ": it is open only for reading, and the access writes. No guard to write lives on "
              "this side\n");
  else
    add(line, ": it is closed. The other side of the array is in use, or the guard has ended\n");
}

/* With the lock of the records. */
static void report(umemGuardedBlocks const *blocks, umemGuardedBlock const *block, uintptr_t adr) {
  Line line = {.used = 0};
  umemExtra const *extra =
      blocks->ctx->base; /* as good as it is: the global lock is out of reach */
  add_place(&line, block, adr);
  add(&line, " the block");
  add_label(&line, block->label);
  add(&line, " of ");
  add_number(&line, block->nbytes, 10);
  add(&line, " bytes at ");
  add_number(&line, block->adr, 16);
  add(&line, " of a Guarded");
  add_label(&line, extra ? extra->label : NULL);
  add_reason(&line, block, adr);
  ssize_t written = write(STDERR_FILENO, line.text, line.used);
  (void)written;
}

/* Returns false if another thread holds the lock. */
static bool look_at(umemGuardedBlocks *blocks, uintptr_t adr, bool *found) {
  if (!umemLock_try(&blocks->records.lock)) return false;
  umemGuardedBlock const *block = find_near(blocks, adr);
  if (block) report(blocks, block, adr);
  *found = block != NULL;
  umemLock_release(&blocks->records.lock);
  return true;
}

static void look(uintptr_t adr) {
  enum { tries = 1000 };
  bool found = false, entered = false;
  for (int i = 0; i < tries && !(entered = try_list()); i++) usleep(100);
  if (!entered) return;
  for (umemGuardedBlocks *blocks = newest; blocks && !found; blocks = blocks->older)
    for (int i = 0; i < tries && !look_at(blocks, adr, &found); i++) usleep(100);
  leave_list();
}

/* ---- the handler ---- */

static struct sigaction before; /* the handler that was there before ours */

/* The access is repeated when this returns: it then meets the handler that was there before. */
static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  int error = errno;
  bool is_fault = info->si_code > 0;
  if (is_fault) look((uintptr_t)info->si_addr);
  sigaction(number, &before, NULL);
  if (!is_fault) raise(number); /* it was sent, and does not come again by itself */
  errno = error;
}

static bool is_ours(struct sigaction const *action) {
  return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

/* With the global lock. A handler that the program has installed over ours remains. */
static bool change(bool on) {
  struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  ours.sa_sigaction = on_fault;
  sigemptyset(&ours.sa_mask);
  if (sigaction(SIGSEGV, NULL, &now) != 0) return false;
  if (on == is_ours(&now)) return true;
  if (on) before = now;
  return sigaction(SIGSEGV, on ? &ours : &before, NULL) == 0;
}

umemStatusType umemGuarded_report(bool on) {
  UMEM_ENTER();
  umemLock_acquire(&umem_global_lock);
  bool done = change(on);
  int error = errno;
  umemLock_release(&umem_global_lock);
  if (done) return umemOK;
  return umemVirtual_fail(NULL, umemRuntimeError, "cannot change the handler of SIGSEGV: %s",
                          UMEM_WORDS(error));
}
