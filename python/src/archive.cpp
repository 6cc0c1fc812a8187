/* archive.cpp - files of named arrays, in a package that was built with the component formats. */
#include "array.h"
#include "callbacks.h"
#include "module.h"

#if defined(UMEM_WITH_FORMATS)

#include <umem/file.h>
#include <umem/formats.h>

#include <nanobind/stl/vector.h>

#include <deque>

/* An archive, which its places own, too. */
class Archive {
  std::shared_ptr<umemArchive> archive_;
  nb::object bytes_; /* the array whose bytes the file is; none: the archive has mapped a file */
  bool has_compressed_ = true; /* perhaps, until names has looked */

public:
  Archive(umemArchive *archive, nb::object bytes)
      : archive_(archive, umemArchive_release), bytes_(std::move(bytes)) {}

  umemArchive *get() const { return archive_.get(); }

  /* A dict whose keys are the names. */
  nb::dict names() {
    nb::dict found;
    has_compressed_ = false;
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    array_call(true, [&](umemStatusType *status) {
      size_t const count = umemArchive_count(get());
      for (size_t i = 0; i < count && umemArchive_info(get(), i, &info, status); i++) {
        found[nb::str(info.name)] = nb::none();
        has_compressed_ |= info.compressed;
      }
    });
    return found;
  }

  /* What the file says of array i. */
  umemArchiveInfo info(size_t i) const {
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    array_call(true, [&](umemStatusType *status) { umemArchive_info(get(), i, &info, status); });
    return info;
  }

  umemArchiveInfo info(std::string const &name) const {
    size_t i = 0;
    array_call(true,
               [&](umemStatusType *status) { i = umemArchive_find(get(), name.c_str(), status); });
    return info(i);
  }

  /* Whether the array with this name takes long to get. */
  bool inflates(std::string const &name) const { return has_compressed_ && info(name).compressed; }

  /* The array where its bytes are, or inflated. */
  nb::object array(std::string const &name) const {
    umemArray *array = nullptr;
    array_call(!inflates(name), [&](umemStatusType *status) {
      array = umemArchive_get(get(), name.c_str(), status);
    });
    void *ctx = umemArray_context(array);
    if (!bytes_.is_none() && umemArray_context(Hold(array_of(bytes_)).get()) == ctx) {
      Array &bytes = array_of(bytes_);
      return wrap_view(array, Hold(bytes), bytes);
    }
    nb::object place = place_of_context(static_cast<umemVirtual *>(ctx), archive_);
    Use use = place_of(place).open();
    return wrap_array(array, use.get(), place);
  }
};

static Archive open_archive(nb::bytes path) {
  umemArchive *archive = nullptr;
  array_call(false,
             [&](umemStatusType *status) { archive = umemArchive_open(path.c_str(), status); });
  return Archive(archive, nb::none());
}

/* The file whose bytes an array in C order has. */
static Archive read_archive(nb::object bytes) {
  Hold hold(array_of(bytes));
  umemArchive *archive = nullptr;
  array_call(false, [&](umemStatusType *status) {
    archive = umemArchive_read(umemArray_context(hold.get()), umemArray_address(hold.get()),
                               umemArray_nbytes(hold.get()), status);
  });
  return Archive(archive, bytes);
}

/* (type, shape, strides, offset, bytes, file, compressed, problem, big_endian) of an array. */
static nb::tuple describe(Archive const &archive, std::string const &name) {
  umemArchiveInfo const info = archive.info(name);
  nb::object file = nb::steal(PyUnicode_DecodeFSDefault(info.file));
  nb::object problem = info.problem ? nb::object(nb::str(info.problem)) : nb::none();
  return nb::make_tuple(info.type, Shape::tuple(info.rank, info.shape),
                        Shape::tuple(info.rank, info.strides), info.offset, info.nbytes, file,
                        info.compressed, problem, info.big_endian);
}

static nb::dict list_metadata(Archive const &archive) {
  nb::dict found;
  char const *value, *key;
  for (size_t i = 0; (key = umemArchive_metadata(archive.get(), i, &value)); i++)
    found[nb::str(key)] = nb::str(value);
  return found;
}

static std::vector<char const *> pointers_to(std::vector<std::string> const &texts) {
  std::vector<char const *> pointers;
  for (std::string const &text : texts) {
    if (text.find('\0') != text.npos) raise(umemValueError, "a name or a text has a zero byte");
    pointers.push_back(text.c_str());
  }
  return pointers;
}

/* The handles of arrays for the time of a call. */
class Holds {
  std::deque<Hold> holds_;

public:
  std::vector<umemArray *> handles;

  Holds(nb::list const &arrays, bool writes) {
    for (nb::handle array : arrays) {
      holds_.emplace_back(array_of(array), writes);
      handles.push_back(holds_.back().get());
    }
  }
};

/* A call without progress looks for Ctrl-C alone. */
static umemArchiveOptions options_with(Progress &progress, size_t step) {
  umemArchiveOptions options = UMEM_ARCHIVE_OPTIONS_INIT;
  options.progress = Progress::step;
  options.user = &progress;
  options.step = step;
  return options;
}

static Progress progress_of(nb::handle function) {
  return {function.is_none() ? nullptr : function.ptr()};
}

/* New arrays on a place with the elements of those with these names. */
static nb::list load(Archive const &archive, std::vector<std::string> const &names,
                     nb::handle place, nb::handle function, size_t step) {
  std::vector<char const *> const pointers = pointers_to(names);
  std::vector<umemArray *> made(names.size());
  Use const context = place_of(place).open();
  Progress progress = progress_of(function);
  umemArchiveOptions const options = options_with(progress, step);
  array_call(false, [&](umemStatusType *status) {
    umemArchive_load(archive.get(), names.size(), pointers.data(), context->ctx, made.data(),
                     &options, status);
  });
  nb::list arrays;
  for (umemArray *array : made) {
    umemArray_set_keeps(array, true);
    arrays.append(wrap_array(array, context.get(), place));
  }
  return arrays;
}

static void load_into(Archive const &archive, std::vector<std::string> const &names,
                      nb::list const &arrays, nb::handle function, size_t step) {
  std::vector<char const *> const pointers = pointers_to(names);
  Holds const holds(arrays, true);
  if (holds.handles.size() != pointers.size())
    raise(umemValueError, "there are %zu names and %zu arrays", pointers.size(),
          holds.handles.size());
  Progress progress = progress_of(function);
  umemArchiveOptions const options = options_with(progress, step);
  array_call(false, [&](umemStatusType *status) {
    umemArchive_load_into(archive.get(), pointers.size(), pointers.data(), holds.handles.data(),
                          &options, status);
  });
}

static void check_sums(Archive const &archive, std::vector<std::string> const &names,
                       nb::handle function, size_t step) {
  std::vector<char const *> const pointers = pointers_to(names);
  Progress progress = progress_of(function);
  umemArchiveOptions const options = options_with(progress, step);
  array_call(false, [&](umemStatusType *status) {
    umemArchive_check(archive.get(), pointers.size(), pointers.data(), &options, status);
  });
}

/* format, reserve and direct: numbers of their enumerations. */
static void save_archive(nb::bytes path, std::vector<std::string> const &names,
                         nb::list const &arrays, nb::list const &big_endian,
                         std::vector<std::string> const &keys,
                         std::vector<std::string> const &values, int format, int reserve,
                         int direct, bool durable, nb::handle function, size_t step) {
  std::vector<char const *> const of_names = pointers_to(names), of_keys = pointers_to(keys),
                                  of_values = pointers_to(values);
  Holds const holds(arrays, false);
  umemFileOptions file = UMEM_FILE_OPTIONS_INIT;
  file.reserve = static_cast<umemReserve>(reserve);
  file.direct = static_cast<umemDirect>(direct);
  file.durable = durable ? umemDurableAuto : umemDurableNo;
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  options.metadata_count = of_keys.size();
  options.metadata_keys = of_keys.data();
  options.metadata_values = of_values.data();
  options.file = &file;
  options.format = static_cast<umemArchiveFormat>(format);
  Progress progress = progress_of(function);
  options.progress = Progress::step;
  options.user = &progress;
  options.step = step;
  std::unique_ptr<bool[]> const are_big(new bool[holds.handles.size() + 1]);
  for (size_t k = 0; k < holds.handles.size(); k++) are_big[k] = nb::cast<bool>(big_endian[k]);
  options.big_endian = are_big.get();
  array_call(false, [&](umemStatusType *status) {
    umemArchive_save(path.c_str(), of_names.size(), of_names.data(), holds.handles.data(), &options,
                     status);
  });
}

static void bind(nb::module_ &m) {
  nb::class_<Archive>(m, "Archive")
      .def("array", &Archive::array, nb::arg("name"),
           nb::sig("def array(self, name: str) -> ArrayType"))
      .def("load", load, nb::arg("names"), nb::arg("place"), nb::arg("progress").none(),
           nb::arg("step"),
           nb::sig("def load(self, names: list[str], place: Place, progress: object, step: int) -> "
                   "list[ArrayType]"))
      .def("load_into", load_into, nb::arg("names"), nb::arg("arrays"), nb::arg("progress").none(),
           nb::arg("step"),
           nb::sig("def load_into(self, names: list[str], arrays: list[ArrayType], progress: "
                   "object, step: int) -> None"))
      .def("check", check_sums, nb::arg("names"), nb::arg("progress").none(), nb::arg("step"),
           nb::sig("def check(self, names: list[str], progress: object, step: int) -> None"))
      .def("names", &Archive::names, nb::sig("def names(self) -> dict[str, None]"))
      .def("info", describe, nb::arg("name"),
           nb::sig("def info(self, name: str) -> tuple[int, tuple[int, ...], tuple[int, ...], int, "
                   "int, str, bool, str | None, bool]"))
      .def("metadata", list_metadata, nb::sig("def metadata(self) -> dict[str, str]"));
  m.def("_open_archive", open_archive, nb::arg("path"));
  m.def("_read_archive", read_archive, nb::arg("bytes"));
  m.def("_save_archive", save_archive, nb::arg("path"), nb::arg("names"), nb::arg("arrays"),
        nb::arg("big_endian"), nb::arg("keys"), nb::arg("values"), nb::arg("format"),
        nb::arg("reserve"), nb::arg("direct"), nb::arg("durable"), nb::arg("progress").none(),
        nb::arg("step"),
        nb::sig("def _save_archive(path: bytes, names: list[str], arrays: list[ArrayType], "
                "big_endian: list[bool], keys: "
                "list[str], values: list[str], format: int, reserve: int, direct: int, durable: "
                "bool, progress: object, step: int) -> None"));
}

#endif

void bind_archives(nb::module_ &m) {
#if defined(UMEM_WITH_FORMATS)
  bind(m);
  m.attr("_has_formats") = true;
#else
  m.attr("_has_formats") = false;
#endif
}
