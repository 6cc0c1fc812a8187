/* place_make.cpp - constructs places: by the scheme of their kind (umem/scheme.h), with the options
 * that the library's table of kinds names, or by the constructors of the kinds that no name can
 * construct. */
#include "callbacks.h"
#include "module.h"
#include "place.h"

#include <cstring>
#include <optional>

static umemScheme const *scheme_named(char const *kind) {
  umemScheme const *scheme;
  for (size_t i = 0; (scheme = umem_scheme(i)); i++)
    if (!strcmp(scheme->name, kind)) return scheme;
  raise(umemValueError, "there is no kind of place '%s'", kind);
}

/* A value of Python, as (text, number, share), or None; text is borrowed from it. */
static umemOptionValue value_of(nb::handle object) {
  umemOptionValue value = {};
  if (object.is_none()) return value;
  nb::tuple parts = nb::cast<nb::tuple>(object);
  value.given = true;
  if (!parts[0].is_none()) value.text = PyBytes_AsString(nb::object(parts[0]).ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  value.number = nb::cast<uint64_t>(parts[1]);
  value.share = nb::cast<double>(parts[2]);
  return value;
}

/* Percent of what is free in the upstream become bytes. */
static void resolve(umemScheme const *scheme, Context *upstream, umemOptionValue *options) {
  for (size_t i = 0; i < scheme->option_count; i++) {
    if (scheme->options[i].kind != umemSizeOption || !(options[i].share > 0)) continue;
    if (!upstream)
      raise(umemValueError, "%s: percent are of what is free in the place below, and %s has none",
            scheme->options[i].name, scheme->name);
    double share = options[i].share;
    options[i].number = unlocked([&] { return umem_get_available_share(upstream->ctx, share); });
    options[i].share = 0;
  }
}

static void end_constructed(Context *context) { umem_dtor(context->ctx); }

/* Constructs the context, and carries out what the scheme has held back. */
static void construct_named(Context *context, umemScheme const *scheme, Context *upstream,
                            umemOptionValue const *place, umemOptionValue const *options) {
  umemStatusType status = scheme->construct(context->ctx, upstream ? upstream->ctx : nullptr, place,
                                            options, scheme->user);
  if (status == umemOK && scheme->commit) status = scheme->commit(context->ctx, scheme->user);
  if (status == umemOK && scheme->complete) scheme->complete(context->ctx, scheme->user);
}

static Context *construct_scheme(char const *kind, Context *upstream, nb::handle place,
                                 nb::tuple const &given) {
  umemScheme const *scheme = scheme_named(kind);
  if (scheme->decorates != (upstream != nullptr))
    raise(umemTypeError, scheme->decorates ? "%s needs an upstream" : "%s takes no upstream", kind);
  umemOptionValue options[UMEM_SCHEME_OPTIONS];
  for (size_t i = 0; i < scheme->option_count; i++) options[i] = value_of(given[i]);
  resolve(scheme, upstream, options);
  umemOptionValue where = value_of(place);
  std::unique_ptr<Context, void (*)(Context *)> context(new Context(nullptr, end_constructed),
                                                        [](Context *c) { c->drop(); });
  context->construct(scheme->context_size);
  context->kind = scheme->name;
  if (upstream) context->stand_over(upstream);
  unlocked([&] { construct_named(context.get(), scheme, upstream, &where, options); });
  return context.release();
}

/* The kinds that no name can construct. parts: places with a number each. */
static Context *construct_other(char const *kind, Context *upstream, nb::list const &parts) {
  if (!upstream) raise(umemTypeError, "%s needs an upstream", kind);
  std::unique_ptr<Context, void (*)(Context *)> owner(new Context(nullptr, end_constructed),
                                                      [](Context *c) { c->drop(); });
  Context *context = owner.get();
  std::vector<umemBin> bins;
  for (nb::handle part : parts) {
    Use bin = place_of(part[1]).open();
    bins.push_back({nb::cast<size_t>(part[0]), bin->ctx});
    context->stand_over(bin.get());
  }
  context->stand_over(upstream);
  bool is_retry = !strcmp(kind, "retry"), is_binning = !strcmp(kind, "binning");
  context->construct(is_retry     ? sizeof(umemRetry)
                     : is_binning ? sizeof(umemBinning)
                                  : sizeof(umemPoolOn));
  context->kind = is_retry ? "retry" : is_binning ? "binning" : "pool-on";
  unlocked([&] {
    if (is_retry)
      umemRetry_ctor(static_cast<umemRetry *>(context->ctx), upstream->ctx, call_retry, context);
    else if (is_binning)
      umemBinning_ctor(static_cast<umemBinning *>(context->ctx), upstream->ctx, bins.data(),
                       bins.size());
    else
      umemPoolOn_ctor(static_cast<umemPoolOn *>(context->ctx),
                      static_cast<umemPool *>(upstream->ctx), bins.at(0).ctx);
  });
  return owner.release();
}

/* A place of a stream that the program has made. given: the number of the GPU, the stream, and the
 * options in bytes. */
static Context *construct_on_stream(nb::tuple const &given) {
  std::unique_ptr<Context, void (*)(Context *)> owner(new Context(nullptr, end_constructed),
                                                      [](Context *c) { c->drop(); });
  int device = nb::cast<int>(given[0]);
  uintptr_t stream = nb::cast<uintptr_t>(given[1]);
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  if (!given[2].is_none()) options.maximum_size = nb::cast<size_t>(given[2]);
  if (!given[3].is_none()) options.release_threshold = nb::cast<uint64_t>(given[3]);
  options.share = nb::cast<bool>(given[4]);
  owner->construct(sizeof(umemCudaAsync));
  owner->kind = "cuda-async";
  umemCudaAsync *ctx = static_cast<umemCudaAsync *>(owner->ctx);
  unlocked([&] { umemCudaAsync_ctor_with(ctx, device, stream, &options); });
  return owner.release();
}

/* A place of functions of Python. given: the two functions, the alignment of all blocks or 0, and
 * whether they align further. */
static Context *construct_external(Context *upstream, nb::tuple const &given) {
  if (!upstream) raise(umemTypeError, "external needs an upstream");
  std::unique_ptr<Context, void (*)(Context *)> owner(new Context(nullptr, end_constructed),
                                                      [](Context *c) { c->drop(); });
  auto functions = std::make_unique<ExternalFunctions>(given[0], given[1]);
  umemExternalOptions options = UMEM_EXTERNAL_OPTIONS_INIT;
  functions->write(options);
  options.alignment = nb::cast<size_t>(given[2]);
  options.no_alignment = !nb::cast<bool>(given[3]);
  owner->construct(sizeof(umemExternal));
  owner->kind = "external";
  owner->stand_over(upstream);
  umemExternal *ctx = static_cast<umemExternal *>(owner->ctx);
  unlocked([&] { umemExternal_ctor(ctx, upstream->ctx, &options); });
  functions.release(); /* ctx owns them */
  return owner.release();
}

static Context *construct(char const *kind, Context *upstream, nb::handle place,
                          nb::tuple const &options, nb::handle parts) {
  if (parts.is_none()) return construct_scheme(kind, upstream, place, options);
  if (!strcmp(kind, "external")) return construct_external(upstream, nb::cast<nb::tuple>(parts));
  if (PyTuple_Check(parts.ptr())) return construct_on_stream(nb::cast<nb::tuple>(parts));
  return construct_other(kind, upstream, nb::cast<nb::list>(parts));
}

static void init_place(nb::pointer_and_handle<Place> self, char const *kind, nb::object named,
                       nb::object place, nb::typed<nb::tuple, nb::any, nb::ellipsis> const &options,
                       nb::object parts) {
  nb::object upstream = named.is_none() ? named : find_place(named);
  std::optional<Use> use;
  if (!upstream.is_none()) use.emplace(place_of(upstream).open());
  Context *below = use ? use->get() : nullptr;
  Context *context = construct(kind, below, place, options, parts);
  context->quick = is_plain_ram(context);
  (new (self.p) Place)->begin(context, self.h.ptr());
  nb::setattr(self.h, "_upstream", upstream);
}

/* ---- the table of kinds ---- */

static nb::object option_tuple(umemOption const *option) {
  if (!option) return nb::none();
  return nb::make_tuple(option->name, static_cast<int>(option->kind), option->required,
                        option->words ? option->words : "", option->help ? option->help : "");
}

static nb::list all_schemes() {
  nb::list list;
  umemScheme const *scheme;
  for (size_t i = 0; (scheme = umem_scheme(i)); i++) {
    nb::list options;
    for (size_t k = 0; k < scheme->option_count; k++)
      options.append(option_tuple(&scheme->options[k]));
    list.append(nb::make_tuple(scheme->name, scheme->decorates, option_tuple(scheme->place),
                               options, scheme->help ? scheme->help : ""));
  }
  return list;
}

void bind_place_makers(nb::module_ &m, nb::class_<Place> &type) {
  type.def("__init__", init_place, nb::arg("kind"), nb::arg("upstream").none(),
           nb::arg("place").none(), nb::arg("options"), nb::arg("parts").none() = nb::none());
  m.def("_schemes", all_schemes,
        nb::sig("def _schemes() -> list[tuple[str, bool, typing.Any, list[tuple[str, int, bool, "
                "str, str]], str]]"),
        "The kinds of places with their options, as tuples.");
}
