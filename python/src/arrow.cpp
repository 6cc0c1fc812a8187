/* arrow.cpp - columns to and from other libraries by Arrow's C data and device interfaces. */
#include "array.h"

#include <memory>

namespace {

char const *const schema_name = "arrow_schema", *const array_name = "arrow_array",
                  *const device_array_name = "arrow_device_array",
                  *const stream_name = "arrow_array_stream";

/* Arrow's C stream interface: columns that follow one another. */
struct ArrowStream {
  int (*get_schema)(ArrowStream *, umemArrowSchema *);
  int (*get_next)(ArrowStream *, umemArrowArray *);
  char const *(*get_last_error)(ArrowStream *);
  void (*release)(ArrowStream *);
  void *private_data;
};

/* ---- capsules ---- */

/* What a consumer has not taken ends with its capsule. */
template <class Struct> void end_struct(Struct *ended) {
  if (ended->release) ended->release(ended);
}
template <> void end_struct(umemArrowDeviceArray *ended) { end_struct(&ended->array); }

template <class Struct> void end_capsule(PyObject *capsule) {
  auto *ended = static_cast<Struct *>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  end_struct(ended);
  delete ended;
}

/* A struct that ends if it is not moved to a capsule. */
template <class Struct> class Owner {
  std::unique_ptr<Struct> owned_ = std::make_unique<Struct>();

public:
  ~Owner() {
    if (owned_) end_struct(owned_.get());
  }
  Struct *get() { return owned_.get(); }
  nb::object capsule(char const *name) {
    PyObject *capsule = PyCapsule_New(owned_.get(), name, end_capsule<Struct>);
    if (!capsule) throw nb::python_error();
    static_cast<void>(owned_.release());
    return nb::steal(capsule);
  }
};

template <class Struct> Struct *open_capsule(nb::handle capsule, char const *name) {
  if (!PyCapsule_IsValid(capsule.ptr(), name))
    raise(umemTypeError, "a capsule \"%s\" of Arrow is expected, not %s", name,
          type_text(capsule).c_str());
  return static_cast<Struct *>(PyCapsule_GetPointer(capsule.ptr(), name));
}

/* ---- export ---- */

/* The capsules of schema and column. format: a text, or None. validity: an array, or None. */
nb::object export_column(Array &array, bool with_device, nb::handle format, nb::handle validity) {
  Hold hold(array);
  std::string const text = format.is_none() ? "" : nb::cast<std::string>(format);
  std::unique_ptr<Hold> flags;
  if (!validity.is_none()) flags = std::make_unique<Hold>(array_of(validity));
  umemArrowOptions options = UMEM_ARROW_OPTIONS_INIT;
  options.format = format.is_none() ? nullptr : text.c_str();
  options.validity = flags ? flags->get() : nullptr;
  options.ended = end_export;
  options.user = begin_export(hold.memory());
  Owner<umemArrowSchema> schema;
  Owner<umemArrowDeviceArray> column;
  bool made = false;
  Call call;
  {
    Unlock unlock(!hold.context()->quick);
    made = umemArray_to_arrow(hold.get(), &options, schema.get(), column.get(), nullptr);
  }
  if (!made) end_export(hold.memory());
  call.end();
  if (with_device)
    return nb::make_tuple(schema.capsule(schema_name), column.capsule(device_array_name));
  Owner<umemArrowArray> plain;
  std::swap(*plain.get(), column.get()->array);
  return nb::make_tuple(schema.capsule(schema_name), plain.capsule(array_name));
}

/* ---- import ---- */

/* (array, validity or None). place: None means RAM, or a umem.Cuda of its GPU. */
nb::object import_column(umemArrowSchema const *schema, umemArrowDeviceArray *column,
                         nb::handle make_place, bool wants_validity) {
  nb::object place = column->device_type == umemDLCPU || column->device_type == umemDLCUDAHost
                         ? nb::borrow(default_host())
                         : make_place(column->device_type, column->device_id);
  Use context = place_of(place).open();
  umemArray *handle = nullptr, *flags = nullptr;
  array_call(context->quick, [&](umemStatusType *status) {
    handle = umemArray_from_arrow(context->ctx, schema, column, wants_validity ? &flags : nullptr,
                                  status);
  });
  nb::object validity = flags ? wrap_array(flags, context.get(), place) : nb::none();
  return nb::make_tuple(wrap_array(handle, context.get(), place), validity);
}

nb::object import_capsules(nb::handle schema, nb::handle column, nb::handle make_place,
                           bool wants_validity) {
  auto *format = open_capsule<umemArrowSchema>(schema, schema_name);
  if (PyCapsule_IsValid(column.ptr(), device_array_name))
    return import_column(format, open_capsule<umemArrowDeviceArray>(column, device_array_name),
                         make_place, wants_validity);
  auto *plain = open_capsule<umemArrowArray>(column, array_name);
  umemArrowDeviceArray in_ram = {*plain, -1, umemDLCPU, nullptr, {0, 0, 0}};
  nb::object found = import_column(format, &in_ram, make_place, wants_validity);
  plain->release = nullptr; /* moved */
  return found;
}

void check_stream(ArrowStream *stream, int failed) {
  if (!failed) return;
  char const *text = stream->get_last_error ? stream->get_last_error(stream) : nullptr;
  raise(umemRuntimeError, "the stream of Arrow has failed (%d): %s", failed, text ? text : "");
}

/* The capsules (schema, array) of all columns of a stream, and the schema alone. */
nb::object read_stream(nb::handle capsule) {
  auto *stream = open_capsule<ArrowStream>(capsule, stream_name);
  if (!stream->release) raise(umemValueError, "the stream of Arrow was released");
  nb::list columns;
  auto new_schema = [&] {
    Owner<umemArrowSchema> schema;
    check_stream(stream, stream->get_schema(stream, schema.get()));
    return schema.capsule(schema_name);
  };
  nb::object schema = new_schema();
  for (;;) {
    Owner<umemArrowArray> column;
    check_stream(stream, stream->get_next(stream, column.get()));
    if (!column.get()->release) break;
    columns.append(nb::make_tuple(schema, column.capsule(array_name)));
  }
  return nb::make_tuple(schema, columns);
}

nb::object column_format(nb::handle schema) {
  char const *format = open_capsule<umemArrowSchema>(schema, schema_name)->format;
  return format ? nb::object(nb::str(format)) : nb::none();
}

} // namespace

void bind_arrow(nb::module_ &m) {
  m.def("_arrow_export", export_column, nb::arg("array"), nb::arg("with_device"),
        nb::arg("format").none(), nb::arg("validity").none(),
        nb::sig("def _arrow_export(array: ArrayType, with_device: bool, format: str | None, "
                "validity: ArrayType | None) -> tuple[typing.Any, typing.Any]"));
  m.def("_arrow_import", import_capsules, nb::arg("schema"), nb::arg("column"),
        nb::arg("make_place"), nb::arg("validity"),
        nb::sig("def _arrow_import(schema: object, column: object, make_place: object, validity: "
                "bool) -> tuple[ArrayType, ArrayType | None]"));
  m.def("_arrow_stream", read_stream, nb::arg("capsule"),
        nb::sig("def _arrow_stream(capsule: object) -> tuple[typing.Any, list[tuple[typing.Any, "
                "typing.Any]]]"));
  m.def("_arrow_format", column_format, nb::arg("schema"),
        nb::sig("def _arrow_format(schema: object) -> str | None"));
}
