/* cancel_hooks.c - machine code in the place of functions of the C library. */
#include "fault/core/cancel_hooks.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

/* What a hook knows of its function; its code is made at run time. The assembler below uses
 * real. */
typedef struct Hook {
  void *real;
  char const *name;
} Hook;

enum { hooks_most = 1024, code_size = 32 };

static Hook hooks[hooks_most];
static size_t hook_count;

_Thread_local bool inside;
_Thread_local unsigned cancel_at, passed;
char const *last_name, *found_name;

void cancel_point(Hook const *hook) __attribute__((visibility("hidden")));
void cancel_point(Hook const *hook) {
  int state, ignored;
  if (!inside) return;
  if (cancel_at) {
    last_name = hook->name;
    if (++passed == cancel_at) pthread_cancel(pthread_self());
    if (passed >= cancel_at) pthread_testcancel();
    return;
  }
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  pthread_setcancelstate(state, &ignored);
  if (state == PTHREAD_CANCEL_ENABLE && !found_name) found_name = hook->name;
}

/* Calls cancel_point with the Hook in r11, and goes on in its function, with all arguments as they
 * were. */
void enter_hook(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden enter_hook\n"
        ".type enter_hook, @function\n"
        "enter_hook:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "sub $192, %rsp\n"
        "mov %rax, (%rsp)\n"
        "mov %rdi, 8(%rsp)\n"
        "mov %rsi, 16(%rsp)\n"
        "mov %rdx, 24(%rsp)\n"
        "mov %rcx, 32(%rsp)\n"
        "mov %r8, 40(%rsp)\n"
        "mov %r9, 48(%rsp)\n"
        "mov %r11, 56(%rsp)\n"
        "movups %xmm0, 64(%rsp)\n"
        "movups %xmm1, 80(%rsp)\n"
        "movups %xmm2, 96(%rsp)\n"
        "movups %xmm3, 112(%rsp)\n"
        "movups %xmm4, 128(%rsp)\n"
        "movups %xmm5, 144(%rsp)\n"
        "movups %xmm6, 160(%rsp)\n"
        "movups %xmm7, 176(%rsp)\n"
        "mov %r11, %rdi\n"
        "call cancel_point\n"
        "mov (%rsp), %rax\n"
        "mov 8(%rsp), %rdi\n"
        "mov 16(%rsp), %rsi\n"
        "mov 24(%rsp), %rdx\n"
        "mov 32(%rsp), %rcx\n"
        "mov 40(%rsp), %r8\n"
        "mov 48(%rsp), %r9\n"
        "mov 56(%rsp), %r11\n"
        "movups 64(%rsp), %xmm0\n"
        "movups 80(%rsp), %xmm1\n"
        "movups 96(%rsp), %xmm2\n"
        "movups 112(%rsp), %xmm3\n"
        "movups 128(%rsp), %xmm4\n"
        "movups 144(%rsp), %xmm5\n"
        "movups 160(%rsp), %xmm6\n"
        "movups 176(%rsp), %xmm7\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "jmp *(%r11)\n"
        ".cfi_endproc\n"
        ".size enter_hook, .-enter_hook\n");

/* mov hook, %r11; mov enter_hook, %r10; jmp *%r10 */
static void write_code(unsigned char *code, Hook const *hook) {
  uintptr_t const words[] = {(uintptr_t)hook, (uintptr_t)enter_hook};
  memcpy(code, "\x49\xBB", 2);
  memcpy(code + 2, &words[0], 8);
  memcpy(code + 10, "\x49\xBA", 2);
  memcpy(code + 12, &words[1], 8);
  memcpy(code + 20, "\x41\xFF\xE2", 3);
}

/* Functions that POSIX forbids to be cancellation points. Names that begin with "_" are of
 * compilers and of the C library itself. A name that ends with "*" stands for all that begin so. */
static char const never[] =
    "_* malloc* calloc realloc free memcpy memmove memset memcmp memchr memrchr aligned_alloc "
    "posix_memalign strlen strnlen strchr* strrchr strstr strcmp strncmp strcpy strncpy "
    "strdup strto* strspn strcspn stpcpy qsort sscanf snprintf vsnprintf sigsetjmp syscall "
    "siglongjmp getpid sysconf mmap munmap madvise mprotect mremap sched_* clock_gettime "
    "pthread_mutex_* pthread_self pthread_setcancelstate pthread_testcancel pthread_cancel "
    "pthread_once pthread_key_* pthread_setspecific pthread_cond_signal "
    "pthread_cond_broadcast pthread_cond_init pthread_cond_destroy ";

static bool is_never(char const *name) {
  size_t length;
  for (char const *at = never; *at; at += length + 1) {
    length = strcspn(at, " ");
    bool begins = at[length - 1] == '*';
    if (begins ? !strncmp(name, at, length - 1)
               : strlen(name) == length && !strncmp(name, at, length))
      return true;
  }
  return false;
}

/* What the dynamic section of this program holds. */
static uintptr_t dynamic_of(struct dl_phdr_info const *info, Elf64_Sxword tag) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    Elf64_Dyn const *at = (Elf64_Dyn const *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; at->d_tag != DT_NULL; at++)
      if (at->d_tag == tag) return at->d_un.d_val;
  }
  return 0;
}

/* Puts a hook in the place of the function that slot leads to. */
static void hook_slot(void **slot, char const *name, unsigned char *code) {
  void *real = dlsym(RTLD_DEFAULT, name);
  if (!real || is_never(name) || hook_count == hooks_most) return;
  hooks[hook_count] = (Hook){real, name};
  write_code(code + hook_count * code_size, &hooks[hook_count]);
  *slot = code + hook_count++ * code_size;
}

static void hook_table(struct dl_phdr_info const *info, uintptr_t table, size_t size,
                       unsigned char *code) {
  Elf64_Sym const *symbols = (Elf64_Sym const *)dynamic_of(info, DT_SYMTAB);
  char const *names = (char const *)dynamic_of(info, DT_STRTAB);
  Elf64_Rela const *entries = (Elf64_Rela const *)table;
  for (size_t i = 0; i < size / sizeof *entries; i++) {
    Elf64_Sym const *symbol = &symbols[ELF64_R_SYM(entries[i].r_info)];
    unsigned type = ELF64_R_TYPE(entries[i].r_info);
    bool jumps = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
    if (!jumps || symbol->st_shndx != SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
      continue;
    void **slot = (void **)(info->dlpi_addr + entries[i].r_offset);
    uintptr_t page = (uintptr_t)slot & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    assert_int_equal(mprotect((void *)page, 4096, PROT_READ | PROT_WRITE), 0);
    hook_slot(slot, names + symbol->st_name, code);
  }
}

/* The first object is the program. */
static int hook_program(struct dl_phdr_info *info, size_t size, void *code) {
  (void)size;
  hook_table(info, dynamic_of(info, DT_JMPREL), dynamic_of(info, DT_PLTRELSZ), code);
  hook_table(info, dynamic_of(info, DT_RELA), dynamic_of(info, DT_RELASZ), code);
  return 1;
}

void hook_all(void **state UNUSED) {
  unsigned char *code = mmap(NULL, hooks_most * code_size, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(code, MAP_FAILED);
  dl_iterate_phdr(hook_program, code);
}
