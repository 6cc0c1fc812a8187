/* cufile_rt.c - how cuFile is looked for: when, how often, and what must be there. The linker sends
 * the calls of the dynamic linker, and the question for the module nvidia-fs, to this file. Each
 * case is a process of its own, because the library is looked for once in each. */
#include <dlfcn.h>

#include "child_help.h"

#include "cuda/cuda_rt.h"

/* ---- a system in place of the real one ---- */

static struct {
  bool module;            /* nvidia-fs is loaded */
  char const *library;    /* the only name under which there is one; NULL: none */
  char const *missing;    /* a function that it lacks; NULL: none */
  unsigned asked, opened; /* calls */
  char names[256];        /* that were looked for, each followed by a blank */
} machine;

static char library; /* its address is the handle */

WRAPPED(int, access, (char const *path, int mode)) {
  if (strncmp(path, "/proc/driver/nvidia-fs", 22) != 0) return __real_access(path, mode);
  machine.asked++;
  return machine.module ? 0 : -1;
}

WRAPPED(void *, dlopen, (char const *name, int flags)) {
  (void)flags;
  machine.opened++;
  strncat(machine.names, name, sizeof machine.names - strlen(machine.names) - 1);
  strncat(machine.names, " ", sizeof machine.names - strlen(machine.names) - 1);
  return machine.library && !strcmp(name, machine.library) ? &library : NULL;
}

/* A function's address is that of its name: each is another one. */
WRAPPED(void *, dlsym, (void *handle, char const *name)) {
  if (handle == RTLD_DEFAULT) return __real_dlsym(handle, name);
  if (handle != &library || (machine.missing && !strcmp(name, machine.missing))) return NULL;
  return (void *)(uintptr_t)name;
}

static bool is(void const *function, char const *name) {
  char const *found;
  memcpy(&found, function, sizeof found);
  return found && !strcmp(found, name);
}

/* ---- cases, each in a child ---- */

PROCESS_TEST(nothing_is_looked_for_at_the_start) {
  umemHost host;
  umemFile file;
  EXPECT(umemHost_ctor(&host) == umemOK && umemFile_ctor(&file, NULL, "w+") == umemOK);
  DESTRUCT(&file, &host);
  EXPECT(machine.asked + machine.opened == 0);
  EXPECT(umemCudaRt_get() && umemCudaRt_get()->cufile == umemCufileRt_get);
  EXPECT(machine.asked == 0 && !strstr(machine.names, "cufile"));
}

PROCESS_TEST(no_library_is_opened_without_the_module) {
  machine.library = "libcufile.so.0";
  for (int i = 0; i < 3; i++) EXPECT(!umemCufileRt_get());
  EXPECT(machine.asked == 1 && machine.opened == 0);
}

PROCESS_TEST(a_machine_without_the_library_is_asked_once) {
  machine.module = true;
  for (int i = 0; i < 3; i++) EXPECT(!umemCufileRt_get());
  EXPECT(!strcmp(machine.names, "libcufile.so.0 libcufile.so "));
}

static void find_all(char const *name) {
  machine.module = true;
  machine.library = name;
  umemCufileRt const *rt = umemCufileRt_get();
  EXPECT(rt && umemCufileRt_get() == rt);
  EXPECT(is(&rt->driver_open, "cuFileDriverOpen"));
  EXPECT(is(&rt->use_count, "cuFileUseCount"));
  EXPECT(is(&rt->driver_properties, "cuFileDriverGetProperties"));
  EXPECT(is(&rt->handle_register, "cuFileHandleRegister"));
  EXPECT(is(&rt->handle_deregister, "cuFileHandleDeregister"));
  EXPECT(is(&rt->read, "cuFileRead"));
  EXPECT(is(&rt->write, "cuFileWrite"));
  bool old = machine.missing;
  EXPECT(is(&rt->driver_close, old ? "cuFileDriverClose" : "cuFileDriverClose_v2"));
}

PROCESS_TEST(all_functions_are_found) {
  find_all("libcufile.so.0");
  EXPECT(machine.opened == 1);
}

PROCESS_TEST(all_functions_are_found_by_the_other_name) {
  find_all("libcufile.so");
  EXPECT(machine.opened == 2);
}

PROCESS_TEST(the_functions_of_an_old_library_are_found) {
  machine.missing = "cuFileDriverClose_v2";
  find_all("libcufile.so.0");
}

static void find_one_that_lacks_a_function(void) {
  machine.module = true;
  machine.library = "libcufile.so.0";
  for (int i = 0; i < 2; i++) EXPECT(!umemCufileRt_get());
  EXPECT(machine.opened == 1);
}

static void *look(void *unused UNUSED) { return (void *)(uintptr_t)umemCufileRt_get(); }

PROCESS_TEST(many_threads_look_once) {
  pthread_t looking[8];
  machine.module = true;
  machine.library = "libcufile.so.0";
  for (int i = 0; i < 8; i++) looking[i] = start_thread(look, NULL);
  for (int i = 0; i < 8; i++) EXPECT(join_thread(looking[i]) == umemCufileRt_get());
  EXPECT(umemCufileRt_get());
  EXPECT(machine.opened == 1);
}

TEST_CASE(a_library_that_lacks_one_is_none) {
  char const *const names[] = {"cuFileDriverOpen",         "cuFileUseCount", "cuFileHandleRegister",
                               "cuFileHandleDeregister",   "cuFileRead",     "cuFileWrite",
                               "cuFileDriverGetProperties"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    machine.missing = names[i];
    in_a_process(find_one_that_lacks_a_function);
  }
  machine.missing = NULL;
}
