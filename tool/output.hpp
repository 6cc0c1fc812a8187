/* output.hpp - the one way to standard output: each write is checked, and tables fit the
 * terminal. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace umem::tool {

/* Writes text to standard output. Throws ClosedPipe when the reader is gone, and Failure for any
 * other error. */
void print(std::string_view text);

/* Hands what is buffered to the system; throws as print does. main calls it before it exits with
 * success. */
void flush_output();

/* Throws for the error that errno names, as print does: for code that writes to stdout itself. */
[[noreturn]] void fail_output();

/* Whether a person sees the output of this descriptor, 1 or 2. */
bool is_terminal(int descriptor);

/* Columns of the terminal that this descriptor is; no_limit when it is none. The variable COLUMNS
 * of the environment goes first. */
std::size_t columns_of(int descriptor);
inline constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

/* The number of columns that text takes, for UTF-8 without wide characters. */
std::size_t display_width(std::string_view text);

/* The first characters of text, which take at most limit columns. */
std::string clipped(std::string const &text, std::size_t limit);

/* Names of files and contexts may hold anything: what would act on a terminal becomes \xNN. */
std::string plain(std::string const &text);

/* The text with letters of ASCII in upper case. */
std::string upper(std::string text);

/* "512 MiB", "1.5 GiB", "17 B". */
std::string size_text(std::uint64_t bytes);

/* The words of text in lines of at most limit columns, as far as words allow. Further lines are
 * indented. Each line feed of the text stays. */
std::string wrapped(std::string const &text, std::size_t indent, std::size_t limit);

/* A line with a head, and a text that begins in this column and is wrapped. Where lines are too
 * short for that, the text is below the head. */
std::string entry(std::string const &head, std::string const &text, std::size_t column,
                  std::size_t limit);

/* Rows of text below a line of heads. Where a row does not fit the terminal, each becomes a
 * paragraph with a line "head: cell" for each cell that is not empty. */
class Table {
public:
  enum class Align { left, right };
  struct Column {
    std::string head;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /* As many cells as there are columns. */
  void add(std::vector<std::string> cells);

  /* The text with lines of at most limit columns, as far as words allow. */
  std::string text(std::size_t limit) const;

  /* To standard output, as wide as it is. */
  void print() const;

private:
  std::vector<std::size_t> widths() const;
  std::string in_columns(std::vector<std::size_t> const &widths) const;
  std::string in_paragraphs(std::size_t limit) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

} // namespace umem::tool
