/* trace.cpp - umem trace: its command line. */
#include "commands.hpp"
#include "trace_log.hpp"
#include "trace_run.hpp"

#include <CLI/CLI.hpp>
#include <memory>

namespace umem::tool {

struct TraceOptions {
  std::string file, chrome, csv, on = "host:", out = "-";
  unsigned context = 0;
  bool flows = false, replay = false;
};

static CLI::Option *add_context(CLI::App &app, TraceOptions &options) {
  return app.add_option("--context", options.context, "of the context with this number only")
      ->type_name("N")
      ->check(CLI::Range(1, umemLog_context_count - 1));
}

static CLI::App &add_reader(CLI::App &trace, char const *name, char const *help,
                            std::shared_ptr<TraceOptions> const &options) {
  CLI::App &app = *trace.add_subcommand(name, help);
  app.add_option("FILE", options->file, "a log")->required()->type_name("");
  add_context(app, *options);
  return app;
}

/* ---- the command without a further word ---- */

static void read_log(TraceOptions const &options) {
  Log const log(options.file, options.context);
  if (!options.chrome.empty()) log.write_chrome(options.chrome, options.flows);
  if (!options.csv.empty()) log.write_csv(options.csv);
  if (options.replay) log.replay(options.on);
  if (options.chrome.empty() && options.csv.empty() && !options.replay) log.write_summary();
}

static void add_options(CLI::App &trace, std::shared_ptr<TraceOptions> const &options) {
  trace.add_option("FILE", options->file, "a log; ./run for one that is called as a command below")
      ->type_name("");
  CLI::Option *chrome =
      trace
          .add_option("--chrome", options->chrome,
                      "write JSON for Perfetto and chrome://tracing; - is the standard output")
          ->type_name("OUT");
  trace
      .add_flag("--flows", options->flows,
                "with arrows from each copy into a block to those that then read from it")
      ->needs(chrome);
  trace
      .add_option("--csv", options->csv,
                  "write allocations and frees in the columns of RMM; - is the standard output")
      ->type_name("OUT");
  CLI::Option *replay = trace.add_flag("--replay", options->replay,
                                       "run the log again, in one thread; print time and peak");
  trace.add_option("--on", options->on, "replay on the context of this name")
      ->capture_default_str()
      ->type_name("NAME")
      ->needs(replay);
  add_context(trace, *options);
  trace.callback([options, &trace] {
    if (!trace.get_subcommands().empty()) {
      if (!options->file.empty()) throw CLI::ValidationError("FILE", "stands behind the command");
      return;
    }
    if (options->file.empty()) throw CLI::ValidationError("FILE", "no log is given");
    read_log(*options);
  });
}

/* ---- commands ---- */

static void add_run(CLI::App &trace) {
  CLI::App &app = *trace.add_subcommand(
      "run",
      "Run a program whose default context writes a log, and make a trace for Perfetto of it. "
      "The exit code is that of the program if it fails.");
  auto const wanted = std::make_shared<TraceRun>();
  app.add_option("-o,--output", wanted->out,
                 "the trace, as JSON; - is the standard output, and the program then prints to the "
                 "standard error")
      ->capture_default_str()
      ->type_name("OUT");
  app.add_flag("--flows", wanted->flows,
               "with arrows from each copy into a block to those that then read from it");
  app.add_option("--log", wanted->keep, "keep the log as this file")->type_name("FILE");
  app.add_option("--on", wanted->on,
                 "the default context of the program; default: that of UMEM_DEFAULT, else host:")
      ->type_name("NAME");
  app.add_option("--max", wanted->size, "bytes of the log, as 64M: older records are overwritten")
      ->type_name("SIZE");
  app.add_option("PROGRAM", wanted->program, "and its arguments, behind --")
      ->required()
      ->type_name("");
  app.callback([wanted] { run_traced(*wanted); });
}

static void add_replay(CLI::App &trace) {
  auto const options = std::make_shared<TraceOptions>();
  CLI::App &app =
      add_reader(trace, "replay", "Run a log again, in one thread; print time and peak.", options);
  app.add_option("--on", options->on, "on the context of this name")
      ->capture_default_str()
      ->type_name("NAME");
  app.callback([options] { Log(options->file, options->context).replay(options->on); });
}

static void add_csv(CLI::App &trace) {
  auto const options = std::make_shared<TraceOptions>();
  CLI::App &app =
      add_reader(trace, "csv", "Write allocations and frees in the columns of RMM.", options);
  app.add_option("-o,--output", options->out, "where to; - is the standard output")
      ->capture_default_str()
      ->type_name("OUT");
  app.callback([options] { Log(options->file, options->context).write_csv(options->out); });
}

static void add_summary(CLI::App &trace) {
  auto const options = std::make_shared<TraceOptions>();
  CLI::App &app = add_reader(trace, "summary", "Print what a log holds.", options);
  app.callback([options] { Log(options->file, options->context).write_summary(); });
}

void add_trace(CLI::App &app) {
  CLI::App &trace = *app.add_subcommand(
      "trace",
      "Read a log of umemLog: print what it holds, write it for other programs, run it again. "
      "umem-trace is another name of this command.");
  trace.require_subcommand(0, 1);
  add_options(trace, std::make_shared<TraceOptions>());
  add_run(trace);
  add_replay(trace);
  add_csv(trace);
  add_summary(trace);
}

} // namespace umem::tool
