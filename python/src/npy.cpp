/* npy.cpp - .npy files: reads headers, and writes a file of an array behind the header that
 * umem/npy.py makes. */
#include "array.h"
#include "callbacks.h"
#include "module.h"

/* A file that has its name only when it is complete. */
class NewFile {
  umemFile file_ = {};

public:
  NewFile(char const *path, umemFileOptions const &options) {
    umemFile_replace_with(&file_, path, &options);
  }
  ~NewFile() { umem_dtor(&file_); }
  NewFile(NewFile const &) = delete;
  NewFile &operator=(NewFile const &) = delete;
  umemFile *get() { return &file_; }
};

static bool copy_elements(umemFile *file, uintptr_t adr, umemArray *array) {
  if (umemArray_elements(array) == 0) return true;
  if (umemArray_is_c_contiguous(array)) {
    Progress progress = {nullptr};
    umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
    options.progress = Progress::step;
    options.user = &progress;
    return umem_copy_to_with(umemArray_context(array), umemArray_address(array), file, adr,
                             umemArray_nbytes(array), &options) == umemOK;
  }
  umemStatusType status = umemOK;
  umemArray *dst = umemArray_borrow(file, adr, umemArray_type(array), umemArray_rank(array),
                                    umemArray_shape(array), nullptr, &status);
  umemArray_assign(dst, array, &status);
  umemArray_release(dst);
  return status == umemOK;
}

static void write(char const *path, umemFileOptions const &options, nb::bytes const &header,
                  umemHost *ram, umemArray *array) {
  NewFile file(path, options);
  if (!umem_is_ok(file.get())) return;
  uintptr_t adr = umem_alloc(file.get(), header.size() + umemArray_nbytes(array));
  if (adr == umem_null(file.get())) return;
  if (umem_copy_from(file.get(), adr, ram, reinterpret_cast<uintptr_t>(header.data()),
                     header.size()))
    return;
  if (copy_elements(file.get(), adr + header.size(), array)) umemFile_commit(file.get());
}

/* reserve and direct: numbers of the words that the options of a file have, as those of the
 * enumerations are. */
static void save(nb::bytes path, nb::bytes header, nb::handle array, int reserve, int direct,
                 bool durable) {
  Hold hold(array_of(array));
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  options.reserve = static_cast<umemReserve>(reserve);
  options.direct = static_cast<umemDirect>(direct);
  options.durable = durable ? umemDurableAuto : umemDurableNo;
  umemHost *ram = static_cast<umemHost *>(place_of(default_host()).context->ctx);
  unlocked([&] { write(path.c_str(), options, header, ram, hold.get()); });
}

/* Raises what is wrong with a header, with the name of the file before it; other failures as they
 * are. */
[[noreturn]] static void refuse(umemStatusType status, char const *path) {
  static char const function[] = "umem_npy_read_header: ";
  if (status != umemValueError && status != umemTypeError) raise_failure();
  std::string const text = umem_thread_message();
  bool named = text.compare(0, sizeof function - 1, function) == 0;
  umem_thread_clear();
  raise(status, "%s: %s", path, text.c_str() + (named ? sizeof function - 1 : 0));
}

/* The type, shape and strides of the elements, where they begin, and the type's name in NumPy; of a
 * whole file. */
static nb::tuple read_header(nb::handle place, char const *path) {
  Use context = place_of(place).open();
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  umemInfo info = UMEM_INFO_INIT;
  umemStatusType status;
  {
    Unlock unlock;
    umem_get_info(context->ctx, &info);
    status = umem_npy_read_header(context->ctx, 0, info.capacity, &header);
  }
  if (status != umemOK) refuse(status, path);
  return nb::make_tuple(header.type, Shape::tuple(header.rank, header.shape),
                        Shape::tuple(header.rank, header.strides), header.offset, header.nbytes,
                        nb::str(header.descr));
}

void bind_npy(nb::module_ &m) {
  m.def("_read_npy_header", read_header, nb::arg("place"), nb::arg("path"),
        nb::sig("def _read_npy_header(place: PlaceType, path: str) -> tuple[int, tuple[int, ...], "
                "tuple[int, ...], int, int, str]"));
  m.def("_save", save, nb::arg("path"), nb::arg("header"), nb::arg("array").none(),
        nb::arg("reserve"), nb::arg("direct"), nb::arg("durable"));
}
