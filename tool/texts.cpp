/* texts.cpp - see texts.hpp. */
#include "texts.hpp"

#include "failure.hpp"
#include "help.hpp"

#include <CLI/CLI.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <umem.h>
#include <vector>

namespace umem::tool {

/* ---- what the command line has ---- */

/* Calls visit for the program, "" , and each command: "/trace", "/trace/run", ... */
static void walk(CLI::App const &app, std::string const &path,
                 std::function<void(std::string const &path, CLI::App const &app)> const &visit) {
  visit(path, app);
  for (CLI::App const *command : commands_of(app))
    walk(*command, path + '/' + command->get_name(), visit);
}

/* ---- manual pages ---- */

static std::string roff(std::string const &text) {
  std::string escaped;
  for (char const c : text) {
    bool const begins = escaped.empty() || escaped.back() == '\n';
    if (begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

static std::string upper(std::string text) {
  for (char &c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/* The first sentence of a help, as man shows it after the name. */
static std::string summary_of(CLI::App const &app) {
  std::string text = app.get_description();
  text = text.substr(0, text.find_first_of(".:"));
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

static std::string synopsis(std::string const &words, CLI::App const &app) {
  return ".B " + roff(words) + '\n' + roff(arguments_of(app)) + '\n';
}

static std::string list_of_options(CLI::App const &app) {
  std::string text;
  for (bool const positional : {true, false})
    for (CLI::Option const *option : options_of(app, positional)) {
      std::string const value = value_of(*option);
      text += ".TP\n.B " + roff(words_of(*option)) + (value.empty() ? "" : ' ' + roff(value));
      text += '\n' + roff(help_of(*option)) + '\n';
    }
  return text;
}

static std::string section_of(CLI::App const &command, std::string const &words) {
  return ".SS " + roff(words) + '\n' + synopsis(words, command) + ".PP\n" +
         roff(command.get_description()) + '\n' + list_of_options(command);
}

std::string man_page(CLI::App const &app, CLI::App const *command) {
  CLI::App const &shown = command ? *command : app;
  std::string const words = command ? "umem " + command->get_name() : "umem";
  std::string const name = command ? "umem-" + command->get_name() : "umem";
  std::string text = ".TH " + upper(name) + " 1 \"\" \"umem " UMEM_VERSION "\" \"User Commands\"\n";
  text += ".SH NAME\n" + name + " \\- " + roff(summary_of(shown)) + '\n';
  text += ".SH SYNOPSIS\n" + synopsis(words, shown);
  text += ".SH DESCRIPTION\n" + roff(shown.get_description()) + '\n';
  text += ".SH OPTIONS\n" + list_of_options(shown);
  std::vector<CLI::App const *> const commands = commands_of(shown);
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (CLI::App const *one : commands)
    if (command)
      text += section_of(*one, words + ' ' + one->get_name());
    else
      text += ".TP\n.B " + roff(one->get_name()) + '\n' + roff(one->get_description()) + '\n';
  text += ".SH EXIT STATUS\n" + roff(app.get_footer()) + '\n';
  text += ".SH SEE ALSO\n";
  std::string others;
  for (CLI::App const *one : commands_of(app))
    if (one != command)
      others += (others.empty() ? "" : ", ") + ("umem-" + one->get_name()) + "(1)";
  if (command) others = "umem(1)" + (others.empty() ? "" : ", " + others);
  return text + roff(others) + '\n';
}

/* ---- completions ---- */

/* Writes a word and what it means into a list of a shell. */
using Show = std::function<std::string(std::string const &word, std::string const &help)>;

static std::string command_words(CLI::App const &app, Show const &show) {
  std::string text;
  for (CLI::App const *command : commands_of(app))
    text += (text.empty() ? "" : " ") + show(command->get_name(), summary_of(*command));
  return text;
}

static std::string option_words(CLI::App const &app, Show const &show) {
  std::string text;
  for (CLI::Option const *option : options_of(app, false))
    for (std::string const &word : spellings(*option))
      text += (text.empty() ? "" : " ") + show(word, option->get_description());
  return text;
}

static std::string all_commands(CLI::App const &app) {
  std::string paths;
  walk(app, "", [&](std::string const &path, CLI::App const &) {
    paths += path.empty() ? "" : (paths.empty() ? "" : " | ") + path;
  });
  return paths;
}

/* A program behind "--" has the completion of its own. */
std::string bash_completion(CLI::App const &app) {
  Show const word_only = [](auto const &word, auto const &) { return word; };
  std::string cases;
  walk(app, "", [&](std::string const &path, CLI::App const &command) {
    std::string const commands = command_words(command, word_only);
    cases += "    '" + path + "') known='" + commands + (commands.empty() ? "" : " ") +
             option_words(command, word_only) + "' ;;\n";
  });
  return "# Completion of umem and umem-trace for bash, written by umem itself.\n"
         "_umem() {\n"
         "  local command= known= i word=${COMP_WORDS[COMP_CWORD]}\n"
         "  [ \"${COMP_WORDS[0]##*/}\" != umem-trace ] || command=/trace\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case $command/${COMP_WORDS[i]} in\n"
         "      " +
         all_commands(app) +
         ") command+=/${COMP_WORDS[i]} ;;\n"
         "      /trace/run/--)\n"
         "        if ((i + 1 == COMP_CWORD)); then\n"
         "          mapfile -t COMPREPLY < <(compgen -c -f -- \"$word\")\n"
         "        elif declare -F _command_offset > /dev/null; then\n"
         "          _command_offset $((i + 1))\n"
         "        else\n"
         "          mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "        fi\n"
         "        return ;;\n"
         "    esac\n"
         "  done\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$known\" -- \"$word\"; [[ $word == -* ]] || "
         "compgen -f -- \"$word\")\n"
         "}\n"
         "complete -o filenames -F _umem umem umem-trace\n";
}

/* 'word:help' in quotes. */
static std::string described(std::string const &word, std::string const &help) {
  std::string text = "'";
  std::string whole = word;
  whole.append(1, ':').append(help);
  for (char const c : whole) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + '\'';
}

/* Files are also completed behind the colon of a name. */
std::string zsh_completion(CLI::App const &app) {
  std::string cases;
  walk(app, "", [&](std::string const &path, CLI::App const &command) {
    cases += "  ('" + path + "')\n    commands=(" + command_words(command, described) +
             ")\n    options=(" + option_words(command, described) + ") ;;\n";
  });
  return "#compdef umem umem-trace\n"
         "# Completion of umem and umem-trace for zsh, written by umem itself.\n"
         "local command= i\n"
         "local -a commands options\n"
         "[[ $service != umem-trace ]] || command=/trace\n"
         "for ((i = 2; i < CURRENT; i++)); do\n"
         "  case $command/${words[i]} in\n"
         "    (" +
         all_commands(app) +
         ") command+=/${words[i]} ;;\n"
         "    (/trace/run/--)\n"
         "      shift $i words\n"
         "      ((CURRENT -= i))\n"
         "      _normal\n"
         "      return ;;\n"
         "  esac\n"
         "done\n"
         "case $command in\n" +
         cases +
         "esac\n"
         "if [[ $PREFIX == -* ]]; then\n"
         "  _describe -o option options\n"
         "else\n"
         "  _describe command commands\n"
         "  compset -P '*:'\n"
         "  _files\n"
         "fi\n";
}

/* ---- files ---- */

static void write_file(std::filesystem::path const &path, std::string const &text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Failure("cannot write " + path.string());
}

void write_texts(CLI::App const &app, std::string const &folder) {
  std::filesystem::path const root(folder);
  write_file(root / "man1/umem.1", man_page(app, nullptr));
  for (CLI::App const *command : commands_of(app))
    write_file(root / ("man1/umem-" + command->get_name() + ".1"), man_page(app, command));
  for (char const *name : {"umem", "umem-trace"})
    write_file(root / "bash" / name, bash_completion(app));
  write_file(root / "zsh/_umem", zsh_completion(app));
}

} // namespace umem::tool
