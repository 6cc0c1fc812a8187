/* umem/with/python_table.hpp - what the package umem of Python gives to extensions.
 *
 * One library of umem serves a process: an extension has none of its own, and calls the one in the
 * package. So contexts, arrays, failures and defaults are the same in Python and in the extension,
 * whichever compilers and binding libraries made the two. The capsule UMEM_PYTHON_CAPSULE holds a
 * umemPythonTable. Programs use umem/with/nanobind.hpp or umem/with/pybind11.hpp.
 *
 * Structs keep size and offsets, and functions are only appended, as long as UMEM_PYTHON_ABI is the
 * same. All functions but end and drop_place need the GIL, and a failure is an exception of Python
 * that is set. */
#ifndef UMEM_WITH_PYTHON_TABLE_HPP
#define UMEM_WITH_PYTHON_TABLE_HPP

#include <Python.h>
#include <umem.h>

#define UMEM_PYTHON_CAPSULE "umem._core._extension"
#define UMEM_PYTHON_ABI 1

/* The elements of an object, until end. The memory stays as long, also if the array is released. */
typedef struct umemPythonHold {
  void *room[2];          /* of the package */
  umemArray *array;       /* borrowed from the hold; NULL for a buffer that is not kept */
  void *data;             /* for the CPU, complete; NULL where it has no pointers */
  int64_t const *shape;   /* [rank] numbers of elements */
  int64_t const *strides; /* [rank] bytes */
  umemElementType type;
  int rank;
  unsigned capabilities; /* of the context: bits of umemCapability */
  bool read_only;
  bool kept;
  bool lent; /* of the package */
  bool reserved[5];
} umemPythonHold;

typedef struct umemPythonTable {
  unsigned abi;        /* UMEM_PYTHON_ABI of the package */
  char const *version; /* UMEM_VERSION of the package */

  /* A function of the C API; NULL if the package lacks it. */
  void (*(*find_function)(char const *name))(void);

  /* Takes the elements of a umem.Array, or without a copy those of an object with a buffer of
   * Python or __dlpack__ (NumPy, PyTorch, ...). writes: they will be written. kept: beyond the
   * call, so that array.release() raises. Returns 1; 0 for an object that is no array; -1 with an
   * exception. */
  int (*hold)(PyObject *object, bool writes, bool kept, umemPythonHold *hold);

  /* Ends a hold once, in any thread; one that is not kept with the GIL. */
  void (*end)(umemPythonHold *hold);

  /* The context of an object that is a umem.Place or its name. *use keeps it, until drop_place.
   * Returns 1; 0 for another object; -1 with an exception. */
  int (*find_place)(PyObject *object, umemVirtual **context, void **use);
  void *(*use_place)(umemPythonHold const *hold, umemVirtual **context); /* of one that is kept */
  void (*drop_place)(void *use);

  /* The umem.Place of a context: the one that it has already, or a new one. release(owner) is
   * called once, in any thread, when nothing of Python uses the context any more; release NULL:
   * the context lives as long as the process. */
  PyObject *(*wrap_place)(umemVirtual *context, void (*release)(void *owner), void *owner);

  /* A umem.Array of array, whose reference it takes over. release and owner keep its context, as
   * for wrap_place. Both are gone also after an exception. */
  PyObject *(*wrap_array)(umemArray *array, void (*release)(void *owner), void *owner);

  /* Which arguments of functions a text in their docstrings describes, as a text; None where an
   * object that does not fit may be for another function of the same name, which takes what one of
   * others describes. */
  PyObject *(*explain)(char const *text, char const *const *others, size_t count);

  /* Sets the exception of Python that stands for a failure. */
  void (*set_exception)(umemStatusType type, char const *message);
} umemPythonTable;

#endif
