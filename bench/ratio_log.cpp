/* ratio_log.cpp - what a logged event costs, compared with the same calls without a log. */
#include "ratio.h"

#include "heaps.h"

#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t pairs_per_round = 500'000; /* some rounds of the ring */
constexpr std::size_t pair_size = 64;

/* A log that vanishes with the program. */
class Log {
public:
  explicit Log(umemHost *host) {
    char const *folder = std::getenv("TMPDIR");
    std::string path = std::string(folder && *folder ? folder : "/tmp") + "/umem-bench-XXXXXX";
    int fd = mkstemp(path.data());
    if (fd < 0) throw std::runtime_error("cannot create " + path);
    close(fd);
    umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
    options.filename = path.c_str();
    umemStatusType status = umemLog_ctor(&log_, host, &options);
    unlink(path.c_str());
    check(status);
  }
  Log(Log const &) = delete;
  Log &operator=(Log const &) = delete;
  ~Log() { umem_dtor(&log_); }
  Umem heap() { return {&log_}; }

private:
  umemLog log_;
};

/* Seconds for each event: an allocation is one, and its free another. */
double time_events(Umem heap) {
  double seconds = seconds_of([heap] {
    for (std::size_t i = 0; i < pairs_per_round; i++) {
      std::uintptr_t address = heap.alloc(pair_size);
      use(address);
      heap.free(address);
    }
  });
  return seconds / (2 * pairs_per_round);
}

} // namespace

void measure_log(Effort const &effort, std::vector<Ratio> &rows) {
  umemHost host;
  check(umemHost_ctor(&host));
  {
    Log log(&host);
    Umem logged = log.heap(), plain{&host};
    Samples events = alternate(effort.short_rounds, {[&] { return time_events(logged); },
                                                     [&] { return time_events(plain); }});
    rows.push_back({"log(host) alloc or free of 64 B", "host alloc or free", Measure::nanoseconds,
                    40, events[0], events[1]});
  }
  umem_dtor(&host);
}

} // namespace bench
