/* A pool, adaptors, and contexts by name. */
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <umem.hpp>
#include <umem/adaptors.hpp>
#include <umem/open.hpp>
#include <umem/pool.hpp>

/* Works on any context. */
static void work(umem::Context const &place) {
  for (int step = 0; step < 1000; step++) umem::Buffer buffer(place, 800);
}

/* [hook] */
/* The message, which this program does not print, names the byte and the block. */
static void tell(void *, umemStatusType type, char const *, void *) {
  std::printf("hook: %s\n", umem_get_status_name(type));
}
/* [/hook] */

int main() {
  /* [pool] */
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.growth = 1 << 20; /* bytes of a chunk */
  umem::Pool pool(umem::File::scratch(), options);
  umem::Array<double, 2> u({51, 51}, pool); /* in the file */
  std::printf("%d chunk\n", static_cast<int>(pool.stats().chunks));
  /* [/pool] */

  /* [binning] */
  umem::Host ram;
  umem::Binning binning(ram, {{256, umem::Fixed(ram, 256)}, {65536, umem::Pool(ram)}});
  work(binning);
  /* [/binning] */

  /* [stats] */
  umem::Stats stats(pool);
  umem::StatsScope scope(stats);
  work(stats);
  umemStatsFigures figures = scope.end();
  std::printf("%d blocks, at most %d bytes at once\n", static_cast<int>(figures.total_count),
              static_cast<int>(figures.peak_bytes));
  /* [/stats] */

  /* [track] */
  umem::Track track{umem::Host()};
  umem::Buffer buffer(track, 100);
  track.for_each([](umemTrackBlock const &block) {
    std::printf("block %d has %zu bytes\n", static_cast<int>(block.number), block.nbytes);
  });
  std::printf("inside of a block: %d\n", track.find(buffer.adr() + 50).has_value());
  /* [/track] */

  /* [debug] */
  umem::Debug debug{umem::Host()};
  umem_set_failure_hook(tell, nullptr);
  {
    umem::Buffer name(debug, 5);
    std::strcpy(static_cast<char *>(name.data()), "hello"); /* and a zero: one byte too many */
  } /* the destructor does not throw; umem calls the hook */
  umem_set_failure_hook(nullptr, nullptr);

  umem::Buffer name(debug, 5);
  std::strcpy(static_cast<char *>(name.data()), "world");
  try {
    debug.check(); /* checks all blocks now */
  } catch (umem::index_error const &) {
    std::printf("%d faults\n", static_cast<int>(debug.figures().faults));
  }
  if (std::optional<umemDebugFault> fault = debug.first())
    std::printf("the first: byte %d of %zu\n", static_cast<int>(fault->offset), fault->nbytes);
  /* [/debug] */

  /* [retry] */
  umem::Buffer spare;
  umem::Retry retry(umem::Limit(umem::Host(), 1000), [&](umem::RetryRequest const &request) {
    if (!spare) throw std::length_error(std::to_string(request.nbytes) + " bytes are too many");
    spare = umem::Buffer(); /* makes room */
    return true;
  });
  spare = umem::Buffer(retry, 600);
  umem::Buffer urgent(retry, 900);
  try {
    umem::Buffer another(retry, 900);
  } catch (std::length_error const &error) { /* the exception of the function */
    std::printf("%s\n", error.what());
  }
  /* [/retry] */

  /* [open] */
  umem::Context place = umem::open("stats+pool+host:?max=1M");
  work(place);
  try {
    umem::open("limit+host:?limt=1M");
  } catch (umem::value_error const &error) {
    std::printf("%s\n", error.what());
  }
  /* [/open] */

  /* [upstream] */
  for (umem::Context layer = place; layer; layer = layer.upstream())
    std::printf("%s\n", layer.name());

  umem::Pool below = umem::Pool::of(place);
  std::printf("%d chunk\n", static_cast<int>(below.stats().chunks));
  /* [/upstream] */

  /* [default] */
  umem::set_default_context(place); /* keeps it alive */
  work(umem::default_context());
  umem::set_default_context(umem::Context()); /* the default as before */
  /* [/default] */
}
