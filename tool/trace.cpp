/* trace.cpp - umem trace: its command line. */
#include "commands.hpp"
#include "trace_log.hpp"
#include "trace_run.hpp"

#include <memory>

namespace umem::tool {

struct TraceOptions {
  std::string file, chrome, csv, on = "host:", out = "-";
  unsigned context = 0;
  bool flows = false, replay = false;
};

static void add_context(Command const &command, TraceOptions &options) {
  command.add_option("--context", options.context, "of the context with this number only")
      .named("N")
      .between(1, umemLog_context_count - 1);
}

static Command add_reader(Command const &trace, char const *name, char const *help,
                          std::shared_ptr<TraceOptions> const &options) {
  Command const command = trace.add_command(name, help);
  command.add_option("FILE", options->file, "a log").required().named("");
  add_context(command, *options);
  return command;
}

/* ---- the command without a further word ---- */

static void read_log(TraceOptions const &options) {
  Log const log(options.file, options.context);
  if (!options.chrome.empty()) log.write_chrome(options.chrome, options.flows);
  if (!options.csv.empty()) log.write_csv(options.csv);
  if (options.replay) log.replay(options.on);
  if (options.chrome.empty() && options.csv.empty() && !options.replay) log.write_summary();
}

static void add_options(Command const &trace, std::shared_ptr<TraceOptions> const &options) {
  trace.add_option("FILE", options->file, "a log; ./run for one that is called as a command below")
      .named("");
  Option const chrome =
      trace
          .add_option("--chrome", options->chrome,
                      "write JSON for Perfetto and chrome://tracing; - is the standard output")
          .named("OUT");
  trace
      .add_flag("--flows", options->flows,
                "with arrows from each copy into a block to those that then read from it")
      .needing(chrome);
  trace
      .add_option("--csv", options->csv,
                  "write allocations and frees in the columns of RMM; - is the standard output")
      .named("OUT");
  Option const replay = trace.add_flag("--replay", options->replay,
                                       "run the log again, in one thread; print time and peak");
  trace.add_option("--on", options->on, "replay on the context of this name")
      .showing_default()
      .named("NAME")
      .needing(replay);
  add_context(trace, *options);
  trace.runs([options, trace] {
    if (trace.parsed()) {
      if (!options->file.empty()) throw WrongUse("FILE: stands behind the command");
      return;
    }
    if (options->file.empty()) throw WrongUse("FILE: no log is given");
    read_log(*options);
  });
}

/* ---- commands ---- */

static void add_run(Command const &trace) {
  Command const command = trace.add_command(
      "run",
      "Run a program whose default context writes a log, and make a trace for Perfetto of it. "
      "The exit code is that of the program if it fails.");
  auto const wanted = std::make_shared<TraceRun>();
  command
      .add_option(
          "-o,--output", wanted->out,
          "the trace, as JSON; - is the standard output, and the program then prints to the "
          "standard error")
      .showing_default()
      .named("OUT");
  command.add_flag("--flows", wanted->flows,
                   "with arrows from each copy into a block to those that then read from it");
  command.add_option("--log", wanted->keep, "keep the log as this file").named("FILE");
  command
      .add_option("--on", wanted->on,
                  "the default context of the program; default: that of UMEM_DEFAULT, else host:")
      .named("NAME");
  command
      .add_option("--max", wanted->size, "bytes of the log, as 64M: older records are overwritten")
      .named("SIZE");
  command.add_option("PROGRAM", wanted->program, "and its arguments, behind --")
      .required()
      .named("");
  command.runs([wanted] { run_traced(*wanted); });
}

static void add_replay(Command const &trace) {
  auto const options = std::make_shared<TraceOptions>();
  Command const command =
      add_reader(trace, "replay", "Run a log again, in one thread; print time and peak.", options);
  command.add_option("--on", options->on, "on the context of this name")
      .showing_default()
      .named("NAME");
  command.runs([options] { Log(options->file, options->context).replay(options->on); });
}

static void add_csv(Command const &trace) {
  auto const options = std::make_shared<TraceOptions>();
  Command const command =
      add_reader(trace, "csv", "Write allocations and frees in the columns of RMM.", options);
  command.add_option("-o,--output", options->out, "where to; - is the standard output")
      .showing_default()
      .named("OUT");
  command.runs([options] { Log(options->file, options->context).write_csv(options->out); });
}

static void add_summary(Command const &trace) {
  auto const options = std::make_shared<TraceOptions>();
  Command const command = add_reader(trace, "summary", "Print what a log holds.", options);
  command.runs([options] { Log(options->file, options->context).write_summary(); });
}

void add_trace(Command const &program) {
  Command const trace = program.add_command(
      "trace",
      "Read a log of umemLog: print what it holds, write it for other programs, run it again. "
      "umem-trace is another name of this command.");
  trace.require_commands(0);
  add_options(trace, std::make_shared<TraceOptions>());
  add_run(trace);
  add_replay(trace);
  add_csv(trace);
  add_summary(trace);
}

} // namespace umem::tool
