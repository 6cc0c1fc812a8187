/* cufile.h - a cuFile that exists in tests only: a double of the table umemCufileRt, between files
 * and the memory of the CUDA double.
 *
 * The CUDA double answers the question for cuFile with it where the settings say that it is
 * installed. Its transfers take no notice of streams, as cuFile's. It reads and writes through the
 * descriptor that it was given, so that what the file system does not allow fails. Where the
 * settings allow the compatibility mode, it transfers whatever it gets, as cuFile does, and counts
 * that. What a program must not do is kept as misuse of the CUDA double.
 *
 * Everything here is thread-safe but for the settings. */
#pragma once

#include <stdbool.h>

#include "cuda/cuda_rt.h"

/* What umemCudaRt.cufile of the CUDA double answers. */
umemCufileRt const *fake_cufile(void);

/* ---- settings ---- */

typedef struct FakeCufileMachine {
  bool installed;                  /* false: fake_cufile returns NULL */
  umemCufileProperties properties; /* nvidia-fs 2.20 with one kind of storage and no detour */
  bool refuses_files;              /* no direct path to any file */
  long open_by_program;            /* how often the program itself has opened the driver */
  size_t most;                     /* bytes at most that a transfer moves */
} FakeCufileMachine;

/* Everything as it was at first: not installed; no handles, no failures. */
void fake_cufile_reset(void);
FakeCufileMachine *fake_cufile_machine(void);

/* ---- failures ---- */

/* The nth call from now (1: the next) of any function that can fail does nothing and fails with
 * code: a transfer returns -code, or -1 with errno if code is not greater than umemCufileBase. nth
 * 0: none fails. Each later one fails, too, if lasting. */
void fake_cufile_fail(unsigned long nth, int code, bool lasting);

/* Fails calls of one function, a member of the table. */
void fake_cufile_fail_in(char const *function, unsigned long nth, int code, bool lasting);

/* The name of the function that was made to fail last, or NULL. */
char const *fake_cufile_failed(void);

/* Before the nth transfer from now (1: the next) runs run(argument) once, in the calling thread. */
void fake_cufile_before(unsigned long nth, void (*run)(void *argument), void *argument);

/* ---- records ---- */

typedef struct FakeCufileDone {
  unsigned long asked;                /* calls of fake_cufile */
  unsigned long opened, closed;       /* the driver */
  unsigned long registered, released; /* files */
  unsigned long reads, writes;
  size_t bytes_read, bytes_written;
  unsigned threads; /* that were in transfers at the same time, at most */
} FakeCufileDone;

FakeCufileDone fake_cufile_done(void);
