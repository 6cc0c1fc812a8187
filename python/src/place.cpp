#include "place.h"
#include "module.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <unordered_map>
#include <strings.h>
#include <string>
#include <unistd.h>

/* ---- contexts ---- */

void Context::construct(size_t size) {
  memory_.reset(new char[size]());
  ctx = memory_.get();
}

/* All contexts that have or had a Place, by the address of the C context, and their lock: contexts
 * end without the GIL. Kept for the life of the process. */
static std::mutex contexts_lock;
static std::unordered_map<void const *, Context *> &contexts =
    *new std::unordered_map<void const *, Context *>;

static void remember(Context *context) {
  std::lock_guard<std::mutex> lock(contexts_lock);
  contexts.emplace(context->ctx, context);
}

static void forget(Context *context) {
  std::lock_guard<std::mutex> lock(contexts_lock);
  auto found = contexts.find(context->ctx);
  if (found != contexts.end() && found->second == context) contexts.erase(found);
}

/* The context, with a use for the caller; NULL if there is none. */
static Context *find_known(void const *ctx) {
  std::lock_guard<std::mutex> lock(contexts_lock);
  auto found = contexts.find(ctx);
  return found != contexts.end() && found->second->try_use() ? found->second : nullptr;
}

void Context::finish() {
  void (*end)(Context *) = end_;
  end_ = nullptr;
  if (end) end(this);
}

/* Without the GIL perhaps, and perhaps after the interpreter. */
Context::~Context() {
  forget(this);
  uint64_t before = umem_thread_failures();
  finish();
  if (umem_thread_failures() != before && Py_IsInitialized()) {
    Gil gil;
    report_failure("the end of a umem.Place");
  }
  for (Context *below : below_) below->drop();
}

/* Nobody else has the object yet. */
void Place::begin(Context *of, PyObject *self) {
  context = of;
  kind = of->kind;
  remember(of);
  PyObject *reference = PyWeakref_NewRef(self, nullptr), *old;
  if (!reference) throw nb::python_error();
  {
    TablesLock lock(tables);
    old = std::exchange(of->self, reference);
  }
  Py_XDECREF(old); /* of a place that has ended while an extension uses the context */
}

Context *Place::take(bool permanent) {
  Context *taken;
  PyObject *self;
  {
    TablesLock lock(tables);
    taken = context;
    if (!taken || (taken->permanent && !permanent)) return nullptr;
    context = nullptr; /* from now on no thread begins to use it */
    self = taken->self;
    taken->self = nullptr;
  }
  Py_XDECREF(self);
  return taken;
}

Place::~Place() {
  Context *ended = take(true);
  if (!ended) return;
  Unlock unlock(!ended->quick);
  ended->drop();
}

Use Place::open() const {
  {
    TablesLock lock(tables);
    if (context) return Use(context);
  }
  raise(umemValueError, "the place is closed: %s", kind);
}

bool Place::is_closed() const {
  TablesLock lock(tables);
  return !context;
}

Place &place_of(nb::handle object) {
  Place *place;
  if (!nb::try_cast(object, place) || !place)
    raise(umemTypeError, "a umem.Place, or its name, is expected, not %s",
          type_text(object).c_str());
  return *place;
}

/* ---- Python objects ---- */

static PyObject *types; /* dict: the class of each kind; kept for the life of the process */
static std::atomic<PyObject *> the_host; /* the same */

nb::handle default_host() {
  PyObject *host = the_host.load(std::memory_order_acquire);
  if (host) return host;
  nb::object made = nb::object(nb::handle(types)["host"])();
  Context *context = place_of(made).context;
  context->permanent = true;
  /* Another thread may have been first: its place is the one. */
  if (!the_host.compare_exchange_strong(host, made.ptr())) return host;
  context->endless.store(true, std::memory_order_relaxed);
  return made.release().ptr();
}

nb::object wrap_context(Context *context, nb::handle upstream) {
  nb::dict known = nb::borrow<nb::dict>(types);
  nb::object type = known[known.contains(context->kind) ? context->kind : ""];
  nb::object self = nb::inst_alloc(type);
  (new (nb::inst_ptr<Place>(self)) Place)->begin(context, self.ptr());
  nb::inst_mark_ready(self);
  nb::setattr(self, "_upstream", upstream);
  return self;
}

/* The kind of a context that the library or another place has made. */
static char const *kind_of(void *ctx) {
  umemScheme const *scheme;
  for (size_t i = 0; (scheme = umem_scheme(i)); i++)
    if (scheme->vtbl && scheme->vtbl == static_cast<umemVirtual *>(ctx)->vptr) return scheme->name;
  char const *name = umem_get_device_name(ctx); /* a Host on nodes has methods of its own */
  for (size_t i = 0; (scheme = umem_scheme(i)); i++)
    if (!strcasecmp(scheme->name, name)) return scheme->name;
  return name;
}

bool is_plain_ram(Context const *context) {
  void *layer = context->ctx;
  if (!strcmp(context->kind, "host")) return true;
  while (layer && !strcmp(kind_of(layer), "pool")) layer = umem_get_upstream(layer);
  return layer && !strcmp(kind_of(layer), "host");
}

static void name_kind(Context *context) {
  context->kind = kind_of(context->ctx);
  context->quick = is_plain_ram(context);
}

/* The place of a context, whose use it drops; not valid if it has ended. */
static nb::object living_place(Context *context) {
  nb::object reference;
  {
    TablesLock lock(tables);
    reference = nb::borrow(context->self);
  }
  nb::object place = reference.is_valid() ? nb::object(reference()) : nb::object();
  if (!place.is_valid() || place.is_none()) return {};
  context->drop();
  return place;
}

nb::object place_of_context(umemVirtual *ctx, std::shared_ptr<void> owner) {
  Context *context = find_known(ctx);
  if (context) {
    nb::object place = living_place(context);
    if (place.is_valid()) return place;
  } else {
    context = new Context(ctx, nullptr);
    context->permanent = !owner;
    context->owner = std::move(owner);
    name_kind(context);
  }
  return wrap_context(context, nb::none());
}

static nb::object upstream_of(Place &place) {
  Use context = place.open();
  Call call;
  void *below = umem_get_upstream(context->ctx);
  call.end();
  if (!below) return nb::none();
  Context *layer = new Context(below, nullptr);
  layer->stand_over(context.get()); /* which owns the layer */
  name_kind(layer);
  return wrap_context(layer, nb::none());
}

/* ---- contexts of the library ---- */

static nb::object open_named(char const *name) {
  void *ctx = unlocked([&] { return umem_open(name); });
  Context *context = new Context(ctx, [](Context *self) { umem_close(self->ctx); });
  name_kind(context);
  return wrap_context(context, nb::none());
}

nb::object find_place(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return open_named(nb::cast<std::string>(object).c_str());
  place_of(object);
  return nb::borrow(object);
}

/* Whether an option begins like this among those from options on. */
static bool has_option(std::string const &name, size_t options, char const *begin) {
  size_t at = name.find(begin, options);
  while (at != std::string::npos && name[at - 1] != '?' && name[at - 1] != '&')
    at = name.find(begin, at + 1);
  return at != std::string::npos;
}

/* The path of a text that names a file and no mode; empty for others. */
static std::string path_without_mode(std::string const &name) {
  size_t colon = name.find(':'), options = name.find('?');
  if (colon == std::string::npos || options < colon) return {};
  size_t plus = name.rfind('+', colon), scheme = plus == std::string::npos ? 0 : plus + 1;
  std::string const kind = name.substr(scheme, colon - scheme);
  if (kind != "file" && kind != "mmap") return {};
  if (options != std::string::npos && has_option(name, options, "mode=")) return {};
  return name.substr(colon + 1, options == std::string::npos ? options : options - colon - 1);
}

nb::object find_new_place(nb::handle object) {
  if (!PyUnicode_Check(object.ptr())) return find_place(object);
  std::string name = nb::cast<std::string>(object);
  std::string const path = path_without_mode(name);
  if (path.empty()) return find_place(object);
  int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) /* also if another process has just made it */
    raise(umemIOError,
          "\"%s\" says no mode, such as mode=w+ to replace the file or mode=a+ to write behind its "
          "end: cannot make \"%s\": %s",
          name.c_str(), path.c_str(), strerror(EEXIST));
  if (fd >= 0) close(fd);
  name += name.find('?') == std::string::npos ? "?mode=w+" : "&mode=w+";
  try {
    return open_named(name.c_str());
  } catch (nb::python_error &) {
    if (fd >= 0) unlink(path.c_str());
    throw;
  }
}

static nb::object default_place(int device) {
  void *ctx = unlocked([&] { return device < 0 ? umem_default() : umem_default_of(device); });
  Context *context = new Context(ctx, nullptr);
  context->permanent = true;
  name_kind(context);
  return wrap_context(context, nb::none());
}

/* What arrays are made on that name no place, also those of C and C++ in this process. */
static void set_default(nb::handle place) {
  static Context *current; /* a user of it; under tables */
  Context *context = place.is_none() ? nullptr : place_of(place).open()->use();
  unlocked([&] { umem_set_default(context ? context->ctx : nullptr); });
  {
    TablesLock lock(tables);
    std::swap(current, context);
  }
  Unlock unlock;
  if (context) context->drop();
}

static void close_place(Place &place) {
  Context *context = place.take(false);
  if (!context && !place.is_closed())
    raise(umemValueError, "this place lives as long as the process: it cannot be closed");
  if (!context) return;
  release_arrays(context);
  Call call;
  {
    Unlock unlock;
    if (context->users() == 1) context->finish();
    context->drop();
  }
  call.end();
}

/* ---- finding ---- */

/* Labels are bytes of the program, perhaps of its C code. */
static nb::object text_of(char const *text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(strlen(text)), "surrogateescape"));
}

static nb::object found_tuple(bool is_found, umemFound const &found) {
  if (!is_found) return nb::none();
  return nb::make_tuple(nb::str(found.name), text_of(found.label), found.adr, found.nbytes,
                        text_of(found.block_label));
}

static nb::object find_in(Place &place, uintptr_t adr) {
  Use context = place.open();
  umemFound found = UMEM_FOUND_INIT;
  bool is_found = unlocked([&] { return umem_find_in(context->ctx, adr, &found); });
  return found_tuple(is_found, found);
}

static nb::object find_all(uintptr_t adr) {
  umemFound found = UMEM_FOUND_INIT;
  bool is_found = unlocked([&] { return umem_find(adr, &found); });
  return found_tuple(is_found, found);
}

/* Memory that only CUDA knows. */
static nb::object find_foreign(uintptr_t adr) {
  static char const *const kinds[] = {"", "pinned", "gpu", "managed"};
  umemFound found = UMEM_FOUND_INIT;
  bool is_found = unlocked([&] { return umem_find(adr, &found); });
  size_t const kind = found.foreign;
  if (is_found || kind == umemForeignNone || kind >= sizeof kinds / sizeof *kinds)
    return nb::none();
  nb::object device =
      found.device < 0 ? nb::object(nb::none()) : nb::object(nb::int_(found.device));
  return nb::make_tuple(nb::str(kinds[kind]), found.adr, found.nbytes, device);
}

/* ---- what places are and do ---- */

static nb::tuple info_of(Place &place) {
  Use context = place.open();
  umemInfo info = UMEM_INFO_INIT;
  unlocked([&] { umem_get_info(context->ctx, &info); });
  auto known = [](uint64_t value) {
    return value == UMEM_UNKNOWN ? nb::object(nb::none()) : nb::object(nb::int_(value));
  };
  nb::object ordinal =
      info.ordinal < 0 ? nb::object(nb::none()) : nb::object(nb::int_(info.ordinal));
  nb::object name = nb::steal(PyUnicode_DecodeUTF8(
      info.name, static_cast<Py_ssize_t>(strlen(info.name)), "surrogateescape"));
  return nb::make_tuple(name, known(info.capacity), known(info.available), known(info.page_size),
                        info.alignment, ordinal, known(info.stream), known(info.nodes));
}

void bind_places(nb::module_ &m) {
  nb::class_<Place> type(m, "Place", nb::is_weak_referenceable(),
                         "A place where arrays are: see umem.Place.");
  bind_place_makers(m, type);
  type.def("close", close_place,
           "Releases the arrays of the place, and ends it.\n\n"
           "Later use of the place and of its arrays raises ValueError. If NumPy or another "
           "library still uses\n"
           "memory of the place, or another place stands over it, the place ends when the last of "
           "them does.\n"
           "A failure of the end is raised, or given to sys.unraisablehook where it comes later.")
      .def_prop_ro(
          "closed", [](Place &place) { return place.is_closed(); }, "Whether close() was called.")
      .def_prop_ro(
          "kind", [](Place &place) { return place.kind; },
          "The name of the kind in umem.open: 'host', 'file', ...")
      .def_prop_ro(
          "capabilities",
          [](Place &place) { return static_cast<umemVirtual *>(place.open()->ctx)->capabilities; },
          "Bits of umemCapability.")
      .def_prop_ro(
          "alignment",
          [](Place &place) { return static_cast<umemVirtual *>(place.open()->ctx)->alignment; },
          "Bytes: blocks begin at multiples of this.")
      .def_prop_rw(
          "label", [](Place &place) { return text_of(umem_get_label(place.open()->ctx)); },
          [](Place &place, nb::handle label) {
            if (!PyUnicode_Check(label.ptr()))
              raise(umemTypeError, "a label is a text, not %s", type_text(label).c_str());
            std::string const text = nb::cast<std::string>(label);
            Use context = place.open();
            unlocked([&] { umem_set_label(context->ctx, text.c_str()); });
          },
          nb::for_setter(nb::arg("label").none()),
          nb::for_getter(nb::sig("def label(self) -> str")),
          nb::for_setter(nb::sig("def label(self, label: str, /) -> None")),
          "A name that the program gives to the place, for messages and umem.find; \"\" without "
          "one. At most 63 "
          "bytes.")
      .def("_find", find_in, nb::arg("address"),
           nb::sig("def _find(self, address: int) -> tuple[str, str, int, int, str] | None"))
      .def(
          "_set_block_label",
          [](Place &place, uintptr_t adr, std::string const &label) {
            Use context = place.open();
            unlocked([&] { umem_set_block_label(context->ctx, adr, label.c_str()); });
          },
          nb::arg("address"), nb::arg("label"))
      .def(
          "_advise",
          [](Place &place, uintptr_t adr, size_t nbytes, int advice, int device) {
            Use context = place.open();
            unlocked([&] {
              umem_advise(context->ctx, adr, nbytes, static_cast<umemAdvice>(advice), device);
            });
          },
          nb::arg("address"), nb::arg("nbytes"), nb::arg("advice"), nb::arg("device"))
      .def("_info", info_of,
           nb::sig("def _info(self) -> tuple[str, int | None, int | None, int | None, int, int | "
                   "None, int | None, int | None]"))
      .def("_layer_below", upstream_of, nb::sig("def _layer_below(self) -> PlaceType | None"))
      .def(
          "synchronize",
          [](Place &place) {
            Use context = place.open();
            unlocked([&] { umem_synchronize(context->ctx); });
          },
          "Waits until all work that is queued on the place is done.")
      .def(
          "wait",
          [](Place &place, nb::handle other) {
            Use context = place.open(), first = place_of(other).open();
            unlocked([&] { umem_wait(context->ctx, first->ctx); });
          },
          nb::arg("other"),
          "Lets later work of the place start after what other has queued so far.")
      .def(
          "flush",
          [](Place &place) {
            Use context = place.open();
            unlocked([&] { umem_flush(context->ctx); });
          },
          "Makes what was written to a file durable.")
      .def(
          "trim",
          [](Place &place, size_t keep) {
            Use context = place.open();
            unlocked([&] { umem_trim(context->ctx, keep); });
          },
          nb::arg("keep") = 0, "Gives unused storage back, except about keep bytes.")
      .def(
          "is_same_memory",
          [](Place &place, nb::handle other) {
            Call call;
            bool same = umem_is_same_device(place.open()->ctx, place_of(other).open()->ctx);
            call.end();
            return same;
          },
          nb::arg("other"), "Whether an address means the same byte in both places.");
  m.def("_find", find_all, nb::arg("address"),
        nb::sig("def _find(address: int) -> tuple[str, str, int, int, str] | None"));
  m.def("_find_foreign", find_foreign, nb::arg("address"),
        nb::sig("def _find_foreign(address: int) -> tuple[str, int, int, int | None] | None"));
  m.def("_describe_places", [] {
    std::string text(4096, 0);
    umem_describe_contexts(text.data(), text.size());
    return text_of(text.c_str());
  });
  m.def(
      "_list_when_out_of_memory", [](unsigned most) { umem_list_when_out_of_memory(most); },
      nb::arg("most"));
  m.def(
      "_set_places",
      [](nb::typed<nb::dict, nb::str, nb::any> kinds) { types = nb::dict(kinds).release().ptr(); },
      nb::arg("kinds"), "Sets the class of each kind of place.");
  m.def("_open", open_named, nb::arg("name"), nb::sig("def _open(name: str) -> PlaceType"),
        "See umem.open.");
  m.def("_find_place", find_place, nb::arg("place").none(),
        nb::sig("def _find_place(place: PlaceType | str) -> PlaceType"),
        "The place that a text names, or the object itself.");
  m.def("_find_new_place", find_new_place, nb::arg("place").none(),
        nb::sig("def _find_new_place(place: PlaceType | str) -> PlaceType"),
        "As _find_place; a text that names a file and no mode makes the file, and raises if it is "
        "there.");
  m.def("_set_default", set_default, nb::arg("place").none(),
        nb::sig("def _set_default(place: PlaceType | None) -> None"), "See umem.set_default.");
  m.def("_default", default_place, nb::arg("device"),
        nb::sig("def _default(device: int) -> PlaceType"), "See umem.default.");
  m.def(
      "_host", [] { return nb::borrow(default_host()); }, nb::sig("def _host() -> HostType"),
      "The place of RAM where none is named.");
}
