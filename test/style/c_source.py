"""Reading C text without a compiler, well enough for the checks."""
import re

_TOKEN = re.compile(
    r"""//[^\n]*                  # a comment to the end of the line
      | /\*.*?\*/                 # a comment
      | "(?:\\.|[^"\\\n])*"       # a string
      | '(?:\\.|[^'\\\n])*'       # a character
    """,
    re.DOTALL | re.VERBOSE,
)


def without_comments(text):
    """text with each comment replaced by a space and the line ends that it held."""

    def replace(match):
        token = match[0]
        return " " + "\n" * token.count("\n") if token.startswith("/") else token

    return _TOKEN.sub(replace, text)


def without_strings(text):
    """text, free of comments, with the contents of its strings and characters removed. The names of
    #include lines stay."""

    def replace(match):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        return match[0] if re.match(r"\s*#\s*include\b", line) else match[0][0] * 2

    return _TOKEN.sub(replace, text)


def without_directives(text):
    """text without preprocessor lines, those that they continue on included."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.MULTILINE)


def includes(text):
    """The headers that text, free of comments, includes: [(line, name)]."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match:
            found.append((number, match[1]))
    return found


def matches(text, pattern):
    """Where pattern occurs in text: [(line, what was found)]."""
    return [
        (text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()))
        for match in re.finditer(pattern, text)
    ]
