/* A pool, what goes over it, and contexts by name. */
#include <cstdio>
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

int main() {
  /* [pool] */
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.growth = 1 << 20; /* bytes of a chunk */
  umem::Pool pool(umem::File::scratch(), options);
  umem::Array<double, 2> u({51, 51}, pool); /* lives in the file */
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
  } catch (std::length_error const &error) { /* what the function has thrown */
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

  /* [default] */
  umem::set_default_context(place); /* keeps it alive */
  work(umem::default_context());
  umem::set_default_context(umem::Context()); /* what it was */
  /* [/default] */
}
