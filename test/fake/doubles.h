/* doubles.h - doubles of what a machine may lack, put in the place of the real thing for a program
 * that links the static library. So far that is the CUDA runtime. */
#pragma once

/* Puts the doubles in place; not when the environment variable UMEM_TEST_GPU is set, for then the
 * real thing is to be tested; where UMEM_TEST_DRIVER is set, the driver's library takes the place
 * of the runtime. Before the first context. */
void doubles_use(void);

/* When no context lives: what is wrong with what the contexts did or left behind; NULL when all is
 * well. Resets the doubles, their settings too. */
char const *doubles_complaint(void);

/* From here on what is left behind is no complaint, and nothing is reset: contexts that a test
 * could not close hold it, and what they share with those of later tests. */
void doubles_abandon(void);
