/* dlpack.h - arrays as tensors of DLPack and back: what capsules (dlpack.cpp) and tables of
 * functions (dlpack_table.cpp) share. */
#ifndef UMEM_PYTHON_DLPACK_H
#define UMEM_PYTHON_DLPACK_H

#include "array.h"

template <class Tensor> void end_tensor(Tensor *tensor) {
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}

/* ---- dlpack.cpp ---- */

/* Refuses types that only NumPy has. */
void check_dlpack_type(Array &array);

/* The tensor of handle, as a user of memory. */
umemDLManagedTensorVersioned *make_versioned(umemArray *handle, Memory *memory,
                                             umemDLPackOptions &options);
umemDLManagedTensorVersioned *export_versioned(Array &array, umemDLPackOptions &options);

/* The array of a tensor, which becomes NULL where the array has it. place: or None. */
nb::object import_versioned(umemDLManagedTensorVersioned *&tensor, nb::handle place);

/* The place of memory that names none. */
nb::object place_of_device(umemDLDevice device);

/* ---- dlpack_table.cpp ---- */

/* The table of the class of an object; NULL if it has none. */
umemDLPackExchange const *dlpack_table_of(nb::handle object);

/* The array of an object whose class has this table. place: or None. */
nb::object share_by_table(umemDLPackExchange const *table, nb::handle object, nb::handle place);

/* work, after: functions of umem/exchange.py. */
void set_table_imports(nb::object work, nb::object after);

/* Gives umem.Array its table. */
void add_dlpack_table(nb::class_<Array> &type);

#endif
