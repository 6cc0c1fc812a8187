/* output.cpp - standard output: checked writes, and tables. */
#include "output.hpp"

#include "failure.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <sys/ioctl.h>
#include <trace.h>
#include <unistd.h>

namespace umem::tool {

/* ---- writes ---- */

void fail_output() {
  int const error = errno;
  if (error == EPIPE) throw ClosedPipe();
  throw Failure(std::string("cannot write to the standard output: ") + std::strerror(error));
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) fail_output();
}

/* ---- the terminal ---- */

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

std::size_t columns_of(int descriptor) {
  if (!is_terminal(descriptor)) return no_limit;
  if (char const *columns = std::getenv("COLUMNS")) {
    long const n = std::strtol(columns, nullptr, 10);
    if (n > 0) return static_cast<std::size_t>(n);
  }
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string clipped(std::string const &text, std::size_t limit) {
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); end++)
    if ((text[end] & 0xC0) != 0x80 && columns++ == limit) break;
  return text.substr(0, end);
}

std::string plain(std::string const &text) {
  char *bytes = nullptr;
  std::size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  if (!out) throw std::bad_alloc();
  trace_write_message(out, text.c_str());
  bool const is_complete = std::fclose(out) == 0;
  std::unique_ptr<char, void (*)(void *)> const owner(bytes, std::free);
  if (!is_complete) throw std::bad_alloc();
  return {bytes, size};
}

std::string upper(std::string text) {
  for (char &c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<char const *, 7> units = {"B",   "KiB", "MiB", "GiB",
                                                        "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); unit++) value /= 1024;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4g %s", value, units[unit]);
  return text.data();
}

/* ---- lines ---- */

/* Words after what stands in the first line already, which takes up columns. */
static std::string fill(std::string const &text, std::size_t used, std::size_t indent,
                        std::size_t limit) {
  std::istringstream words(text);
  std::string lines;
  bool begins = true; /* of a line: no space before the word */
  for (std::string word; std::getline(words, word, ' '); begins = false) {
    std::size_t const width = display_width(word);
    if (!begins && used + 1 + width > limit) {
      lines += '\n' + std::string(indent, ' ');
      used = indent;
      begins = true;
    }
    lines += (begins ? "" : " ") + word;
    used += width + (begins ? 0 : 1);
  }
  return lines + '\n';
}

std::string wrapped(std::string const &text, std::size_t indent, std::size_t limit) {
  std::istringstream paragraphs(text);
  std::string lines;
  for (std::string one; std::getline(paragraphs, one);) {
    std::size_t const before = std::min(one.find_first_not_of(' '), one.size());
    lines += one.substr(0, before) + fill(one.substr(before), before, indent, limit);
  }
  return lines;
}

std::string entry(std::string const &head, std::string const &text, std::size_t column,
                  std::size_t limit) {
  constexpr std::size_t least = 30; /* columns for the text */
  std::size_t const before = std::min(head.find_first_not_of(' '), head.size());
  std::size_t const width = display_width(head);
  if (limit < column + least)
    return head + '\n' + std::string(before + 4, ' ') + fill(text, before + 4, before + 4, limit);
  if (width < column)
    return head + std::string(column - width, ' ') + fill(text, column, column, limit);
  return head + '\n' + std::string(column, ' ') + fill(text, column, column, limit);
}

/* ---- tables ---- */

static std::string padded(std::string const &cell, std::size_t width, Table::Align align) {
  std::string const space(width - display_width(cell), ' ');
  return align == Table::Align::right ? space + cell : cell + space;
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); i++) {
    std::size_t width = display_width(columns_[i].head);
    for (auto const &row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
  }
  return widths;
}

std::string Table::in_columns(std::vector<std::size_t> const &widths) const {
  std::string text;
  auto const add_line = [&](auto const &cell) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); i++)
      line += (i ? "  " : "") + padded(cell(i), widths[i], columns_[i].align);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  add_line([&](std::size_t i) { return columns_[i].head; });
  for (auto const &row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return text;
}

std::string Table::in_paragraphs(std::size_t limit) const {
  std::string text;
  for (auto const &row : rows_) {
    if (!text.empty()) text += '\n';
    for (std::size_t i = 0; i < columns_.size(); i++)
      if (!row[i].empty())
        text +=
            wrapped(columns_[i].head + (columns_[i].head.empty() ? "" : ": ") + row[i], 2, limit);
  }
  return text;
}

std::string Table::text(std::size_t limit) const {
  std::vector<std::size_t> const all = widths();
  std::size_t width = all.empty() ? 0 : 2 * (all.size() - 1);
  for (std::size_t const one : all) width += one;
  return width <= limit ? in_columns(all) : in_paragraphs(limit);
}

void Table::print() const { tool::print(text(columns_of(STDOUT_FILENO))); }

} // namespace umem::tool
