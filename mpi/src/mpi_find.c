/* mpi_find.c - which window a communicator has, and the numbers of communicators. The window is an
 * attribute of the communicator. MPI calls forget_window when the attribute is deleted, thus also
 * in MPI_Comm_free. MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while MPI still
 * works: there all windows end that are left. */
#include "mpi_state.h"

#include <stdlib.h>

static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static int window_key = MPI_KEYVAL_INVALID; /* under keys_lock */
static MpiWindow *all_windows;              /* under keys_lock */
static _Thread_local int end_error;         /* of the last window that this thread has ended */

static void add_to_all(MpiWindow *window) {
  MpiWindow **link = &all_windows;
  while (*link) link = &(*link)->next;
  window->next = NULL;
  *link = window;
}

static void remove_from_all(MpiWindow *window) {
  MpiWindow **link = &all_windows;
  while (*link && *link != window) link = &(*link)->next;
  if (*link) *link = window->next;
}

/* The calls of MPI that lead here are collective. It always succeeds: after a failure MPI would
 * keep the attribute, and with it a window that is freed. */
static int forget_window(MPI_Comm comm, int key, void *value, void *extra) {
  MpiWindow *window = value;
  (void)comm, (void)key, (void)extra;
  pthread_mutex_lock(&keys_lock);
  remove_from_all(window);
  pthread_mutex_unlock(&keys_lock);
  end_error = mpi_end_window(window);
  mpi_release_window(window);
  return MPI_SUCCESS;
}

/* All ranks have made their windows in the same order, and end them in that. */
static int end_all(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  for (;;) {
    pthread_mutex_lock(&keys_lock);
    MpiWindow *first = all_windows;
    pthread_mutex_unlock(&keys_lock);
    if (!first) return MPI_SUCCESS;
    int error = MPI_Comm_delete_attr(first->user, window_key);
    if (error != MPI_SUCCESS) return error;
  }
}

/* Makes the keys once. */
static int make_keys(void) {
  int end_key, error = MPI_SUCCESS;
  if (window_key != MPI_KEYVAL_INVALID) return MPI_SUCCESS;
  error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_all, &end_key, NULL);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_attr(MPI_COMM_SELF, end_key, NULL);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_window, &window_key, NULL);
  return error;
}

int mpi_attach_window(MPI_Comm comm, MpiWindow *window) {
  pthread_mutex_lock(&keys_lock);
  int error = make_keys();
  pthread_mutex_unlock(&keys_lock);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_attr(comm, window_key, window);
  if (error != MPI_SUCCESS) return error;
  pthread_mutex_lock(&keys_lock);
  add_to_all(window);
  pthread_mutex_unlock(&keys_lock);
  return MPI_SUCCESS;
}

int mpi_detach_window(MPI_Comm comm) {
  int error = MPI_Comm_delete_attr(comm, window_key);
  return error == MPI_SUCCESS ? end_error : error;
}

/* NULL if there is none. */
static MpiWindow *find(MPI_Comm comm) {
  MpiWindow *window = NULL;
  int found = 0;
  if (window_key == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL) return NULL;
  int error = MPI_Comm_get_attr(comm, window_key, &window, &found);
  return error == MPI_SUCCESS && found ? window : NULL;
}

/* MPI's own ABI has no types of Fortran. */
#if MPI_VERSION >= 5
uint32_t umemMpi_number(MPI_Comm comm) { return (uint32_t)MPI_Comm_toint(comm); }
MPI_Comm umemMpi_communicator(uint32_t number) { return MPI_Comm_fromint((int)number); }
#else
uint32_t umemMpi_number(MPI_Comm comm) { return (uint32_t)MPI_Comm_c2f(comm); }
MPI_Comm umemMpi_communicator(uint32_t number) { return MPI_Comm_f2c((MPI_Fint)number); }
#endif

bool mpi_has_window(MPI_Comm comm) { return find(comm) != NULL; }

MpiWindow *mpi_window_of(void *ctx, MPI_Comm comm) {
  if (!mpi_is_running(ctx, "umemMpi_ctor")) return NULL;
  MpiWindow *window = find(comm);
  if (window)
    __atomic_add_fetch(&window->holders, 1, __ATOMIC_RELAXED);
  else
    umemVirtual_fail(ctx, umemValueError,
                     "the communicator has no window: all ranks call umemMpi_start first");
  return window;
}

void mpi_release_window(MpiWindow *window) {
  if (__atomic_sub_fetch(&window->holders, 1, __ATOMIC_ACQ_REL)) return;
  free(window->capacities);
  free(window->parts);
  free(window->records);
  free(window);
}
