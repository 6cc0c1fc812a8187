/* extension.cpp - the table for extensions in C++ that take and return arrays and places:
 * cxx/include/umem/with/python_table.hpp. */
#include "array.h"
#include "module.h"

#include <cstring>
#include <umem/with/python_table.hpp>

namespace {

/* ---- functions of C ---- */

struct NamedFunction {
  char const *name;
  void (*function)();
};

/* In the order of strcmp. */
NamedFunction const functions[] = {
#define UMEM_PYTHON_FUNCTION(Result, name, parameters, arguments)                                  \
  {#name, reinterpret_cast<void (*)()>(name)},
#include <umem/with/python_functions.inc>
#undef UMEM_PYTHON_FUNCTION
};

void (*find_function(char const *name))() {
  for (NamedFunction const &one : functions)
    if (!strcmp(one.name, name)) return one.function;
  return strcmp(name, "umemVirtual_fail") ? nullptr
                                          : reinterpret_cast<void (*)()>(umemVirtual_fail);
}

/* ---- elements ---- */

static_assert(sizeof(Hold) <= sizeof umemPythonHold::room && alignof(Hold) <= alignof(void *));

Hold &hold_in(umemPythonHold *hold) { return *reinterpret_cast<Hold *>(hold->room); }

/* Where the CPU finds the elements, once they are complete. */
void *host_data(Context const *context, umemArray *array) {
  if (context->quick) return reinterpret_cast<void *>(umemArray_address(array));
  if (!context->can(umemCpuReadable) || context->can(umemOffsets)) return nullptr;
  void *data;
  array_call(false,
             [&](umemStatusType *status) { data = umemArray_host_pointer(array, false, status); });
  return data;
}

void describe(umemPythonHold *hold, Context const *context, umemArray *array, bool kept) {
  hold->data = host_data(context, array);
  hold->array = array;
  hold->type = umemArray_type(array);
  hold->rank = umemArray_rank(array);
  hold->shape = umemArray_shape(array);
  hold->strides = umemArray_strides(array);
  hold->capabilities = static_cast<umemVirtual *>(context->ctx)->capabilities;
  hold->read_only = umemArray_is_read_only(array);
  hold->kept = kept;
  hold->lent = false;
}

/* hold: in its room is a Hold. */
int describe_held(umemPythonHold *hold, bool kept) {
  Hold &in = hold_in(hold);
  try {
    describe(hold, in.context(), in.get(), kept);
  } catch (nb::python_error &) {
    in.~Hold();
    throw;
  }
  if (kept) in.memory()->begin_export();
  return 1;
}

/* ---- arrays for the time of a call ---- */

#if defined(NB_FREE_THREADED)
void end_lent(umemPythonHold *) {}

int lend_array(nb::handle, Array &array, bool writes, umemPythonHold *hold) {
  new (hold->room) Hold(array, writes);
  return describe_held(hold, false);
}
#else
static_assert(sizeof(Lent) <= sizeof umemPythonHold::room);

void end_lent(umemPythonHold *hold) { reinterpret_cast<Lent *>(hold->room)->~Lent(); }

int lend_array(nb::handle object, Array &array, bool writes, umemPythonHold *hold) {
  Look look(array, writes);
  umemArray *handle = look.get();
  new (hold->room) Lent(object, array);
  try {
    describe(hold, look.context(), handle, false);
  } catch (nb::python_error &) {
    end_lent(hold);
    throw;
  }
  hold->lent = true;
  return 1;
}
#endif

/* The elements of a buffer for the time of a call, without an array: a Py_buffer is in the room. */
bool lend_buffer(PyObject *object, umemPythonHold *hold) {
  if (!PyObject_CheckBuffer(object)) return false;
  std::unique_ptr<Py_buffer> view(new Py_buffer);
  if (PyObject_GetBuffer(object, view.get(), PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear(); /* another way may do */
    return false;
  }
  umemElementType type = type_of_buffer(*view);
  if (!type) {
    PyBuffer_Release(view.get());
    return false;
  }
  hold->array = nullptr;
  hold->data = view->buf;
  hold->type = type;
  hold->rank = view->ndim;
  hold->shape = reinterpret_cast<int64_t const *>(view->shape);
  hold->strides = reinterpret_cast<int64_t const *>(view->strides);
  hold->capabilities =
      static_cast<umemVirtual *>(place_of(default_host()).context->ctx)->capabilities;
  hold->read_only = view->readonly;
  hold->kept = hold->lent = false;
  hold->room[0] = view.release();
  return true;
}

/* The elements of a buffer of Python; false without an exception where it has none that umem
 * knows. */
bool hold_buffer(PyObject *object, umemPythonHold *hold) {
  if (!PyObject_CheckBuffer(object)) return false;
  umemArray *array = share_buffer(object);
  if (!array) return false;
  new (hold->room) Hold(array, new Memory(place_of(default_host()).context));
  return true;
}

/* The elements of a tensor of DLPack. */
bool hold_tensor(PyObject *object, bool writes, umemPythonHold *hold) {
  if (PyType_Check(object) || !nb::hasattr(object, "__dlpack__")) return false;
  nb::object array = share_dlpack(object);
  new (hold->room) Hold(array_of(array), writes);
  return true;
}

int hold_object(PyObject *object, bool writes, bool kept, umemPythonHold *hold) noexcept {
  try {
    Array *array = find_array(object);
    if (array && !kept) return lend_array(object, *array, writes, hold);
    if (!array && !kept && lend_buffer(object, hold)) return 1;
    if (array)
      new (hold->room) Hold(*array, writes);
    else if (!hold_buffer(object, hold) && !hold_tensor(object, writes, hold))
      return 0;
    return describe_held(hold, kept);
  } catch (nb::python_error &error) {
    error.restore();
  } catch (std::bad_alloc const &) {
    PyErr_NoMemory();
  }
  return -1;
}

void end_hold(umemPythonHold *hold) noexcept {
  if (hold->lent) {
    end_lent(hold);
  } else if (hold->array) {
    Hold &in = hold_in(hold);
    if (hold->kept) in.memory()->end_export();
    in.~Hold();
  } else {
    auto *view = static_cast<Py_buffer *>(hold->room[0]);
    PyBuffer_Release(view);
    delete view;
  }
}

/* ---- places ---- */

int find_place_of(PyObject *object, umemVirtual **context, void **use) noexcept {
  Place *place;
  try {
    if (!PyUnicode_Check(object) && (!nb::try_cast(nb::handle(object), place) || !place)) return 0;
    Use found = place_of(find_place(object)).open();
    *context = static_cast<umemVirtual *>(found->ctx);
    *use = found->use();
    return 1;
  } catch (nb::python_error &error) {
    error.restore();
    return -1;
  }
}

void *use_place(umemPythonHold const *hold, umemVirtual **context) noexcept {
  Context *found = reinterpret_cast<Hold const *>(hold->room)->context();
  *context = static_cast<umemVirtual *>(found->ctx);
  return found->use();
}

void drop_place(void *use) noexcept { static_cast<Context *>(use)->drop(); }

/* Whether every array there may as well be on umem.host(). */
bool is_default_host(umemVirtual const *context) {
  return context->vptr == static_cast<umemVirtual *>(place_of(default_host()).context->ctx)->vptr;
}

/* The place of a context of an extension. Takes owner over, also if it throws. */
nb::object place_of_context(umemVirtual *context, void (*release)(void *), void *owner) {
  std::shared_ptr<void> kept;
  if (release) kept.reset(owner, release);
  return is_default_host(context) ? nb::borrow(default_host())
                                  : place_of_context(context, std::move(kept));
}

PyObject *wrap_place(umemVirtual *context, void (*release)(void *), void *owner) noexcept {
  return raised([&] { return place_of_context(context, release, owner); });
}

PyObject *wrap_elements(umemArray *array, void (*release)(void *), void *owner) noexcept {
  PyObject *made = raised([&] {
    auto *context = static_cast<umemVirtual *>(umemArray_context(array));
    nb::object place = place_of_context(context, release, owner);
    Use use = place_of(place).open();
    return wrap_array(array, use.get(), place);
  });
  if (!made) umemArray_release(array);
  return made;
}

PyObject *explain(char const *text, char const *const *others, size_t count) noexcept {
  return raised([&] {
    nb::list texts;
    for (size_t i = 0; i < count; i++) texts.append(others[i]);
    return nb::module_::import_("umem._extensions").attr("explain")(text, texts);
  });
}

umemPythonTable const table = {UMEM_PYTHON_ABI, UMEM_VERSION,  find_function, hold_object,
                               end_hold,        find_place_of, use_place,     drop_place,
                               wrap_place,      wrap_elements, explain,       set_exception};

} // namespace

void bind_extension(nb::module_ &m) {
  PyObject *capsule =
      PyCapsule_New(const_cast<umemPythonTable *>(&table), UMEM_PYTHON_CAPSULE, nullptr);
  if (!capsule) throw nb::python_error();
  m.attr("_extension") = nb::steal(capsule);
}
