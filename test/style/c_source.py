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


def tokens(text):
    """The comments, strings and characters of text, as matches."""
    return _TOKEN.finditer(text)


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


def _conjuncts(condition):
    """What holds when a condition does: the parts between its outermost &&, itself where there is an ||."""
    parts, depth = [""], 0
    for token in re.findall(r"&&|\|\||.", condition):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "||" and depth == 0:
            return {condition}
        if token == "&&" and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return set(parts)


def conditions(text):
    """What the #ifs around each line of text, free of comments, say: a set for each line. Without blanks:
    defined(X), !defined(X), or as it is written."""
    found, stack = [], [] # of each #if: what holds in this branch, and its condition where that was the first
    for line in text.splitlines():
        match = re.match(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)", line)
        word, rest = match.groups() if match else (None, "")
        rest = re.sub(r"\bdefined\s*(\w+)", r"defined(\1)", rest) if word in ("if", "elif") else rest
        rest = "".join(rest.split())
        if word in ("if", "ifdef", "ifndef"):
            rest = {"if": rest, "ifdef": f"defined({rest})", "ifndef": f"!defined({rest})"}[word]
            stack.append((_conjuncts(rest), rest))
        elif word == "elif":
            stack[-1] = (_conjuncts(rest), None)
        elif word == "else":
            first = stack[-1][1] or ""
            negated = first[1:] if re.fullmatch(r"!defined\(\w+\)", first) else f"!{first}"
            stack[-1] = ({negated} if re.fullmatch(r"!?defined\(\w+\)", first) else set(), None)
        elif word == "endif":
            stack.pop()
        found.append(set().union(*(holds for holds, _ in stack)))
    return found


def matches(text, pattern):
    """Where pattern occurs in text: [(line, what was found)]."""
    return [
        (text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()))
        for match in re.finditer(pattern, text)
    ]
