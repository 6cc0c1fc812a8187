#!/usr/bin/env python3
"""Usage: parameters.py XML

Gives each function and each macro with arguments in Doxygen's XML a table of its parameters and its result. The rows come
from the comment in the header, and what is moved into a row is left out of the text:

  - a sentence like "device: the number of the GPU, from 0.", where device is a parameter, is the row of this parameter;
  - a paragraph that begins with "Returns", or with what is returned ("The number of ...", "Whether ..."), is the row of
    the result; in other paragraphs each sentence that begins with "Returns" is.

Other rows come from the files of doc/words, which say what a name means in all functions. The text "-" there means that the
name says everything: there is no row. A parameter that has neither, a result without a row, a row that only repeats the name
of its parameter, and a line of these files that no function needs, are errors.
"""
import fnmatch
import itertools
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

from check_pages import PRIVATE_MACROS

WORDS = pathlib.Path(__file__).parent / "words"
END = re.compile(r"(?<!\.)\.(?=\s|$)(?!\s+\.)\s*")
# What a paragraph begins with that is itself the description of a result.
RESULT = re.compile(r"Returns (?!at once)|(?:Whether|How many|For how many|Where|On which node|Bytes|Dimension|All dimensions|Elements"
                    r"|Indices|Extents|Rows|A|An|The(?! same(?: as| with| for| of| over| in| at| without| queued| on|[,.;:])))\b")
# What names of parameters are short for.
LONG = {"ctx": "context", "src": "source", "dst": "destination", "i": "index", "comm": "communicator", "adr": "address",
        "fd": "descriptor", "other": "other one", "n": "number", "nbytes": "bytes", "g": "function", "kind_": "rule"}
INLINE = {"ref", "computeroutput", "emphasis", "bold", "ulink"}


def repeats(name, text):
    """Whether the text of a row says no more than the name of the parameter: "the context" of ctx."""
    said = re.sub(r"^(the|an?|how many) ", "", text.strip().rstrip(".").lower())
    return said.replace(" ", "_") in (name.lower(), LONG.get(name, name).replace(" ", "_"))


class Words:
    """The lines of the files of a folder."""

    def __init__(self, folder):
        self.lines = []  # (pattern of headers, pattern of functions, parameter or "result", text, where the line is)
        self.used = set()
        for path in sorted(folder.glob("*.txt")):
            self._read(path)

    def _read(self, path):
        headers = "*"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("["):
                headers = line[1:-1]
            elif line and not line.startswith("#"):
                key, text = line.split(": ", 1)
                function, _, name = key.rpartition(".")
                self.lines.append((headers, function or "*", name, text, f"{path.name}:{number}: {key}"))

    def find(self, header, function, name, own):
        """The text of the last line that fits. own: only of lines with the name of the function itself."""
        for headers, pattern, key, text, place in reversed(self.lines):
            if key == name and not (own and set("*?[") & set(pattern)):
                if fnmatch.fnmatchcase(header, headers) and fnmatch.fnmatchcase(function, pattern):
                    self.used.add(place)
                    return text
        return None

    def unused(self):
        return [line[4] for line in self.lines if line[4] not in self.used]


def sentences(paragraph):
    """The sentences of a paragraph: lists of texts and elements. What is no text, as a list of items, is one by itself."""
    pieces = [paragraph.text or ""]
    for child in paragraph:
        tail, child.tail = child.tail or "", None
        pieces += [child, tail]
    result = [[]]
    for piece in pieces:
        if not isinstance(piece, str):
            if piece.tag in INLINE:
                result[-1].append(piece)
            else:
                result += [[piece], []]
            continue
        start = 0
        for end in END.finditer(piece):
            result[-1].append(piece[start : end.end()])
            result.append([])
            start = end.end()
        result[-1].append(piece[start:])
    return [sentence for sentence in result if any(not isinstance(piece, str) or piece.strip() for piece in sentence)]


def first_sentence(pieces):
    """What overloads without a comment of their own take over."""
    copies = [piece if isinstance(piece, str) else copied(piece) for piece in pieces]
    return sentences(filled(ElementTree.Element("para"), copies))[0]


def is_text(sentence):
    return all(isinstance(piece, str) or piece.tag in INLINE for piece in sentence)


def opening(sentence):
    return sentence[0] if isinstance(sentence[0], str) else ""


def filled(element, pieces):
    """element with these texts and elements in it."""
    last = None
    for piece in pieces:
        if not isinstance(piece, str):
            last = piece
            element.append(piece)
        elif last is None:
            element.text = (element.text or "") + piece
        else:
            last.tail = (last.tail or "") + piece
    return element


def capital(text, names):
    """The text with a capital, unless it begins with something that is in a program."""
    word = re.match(r"[\w:]*", text)[0]
    in_program = (word in names and text[len(word) : len(word) + 1] in set(".,;")) or "_" in word or word.startswith("umem") or text[len(word) : len(word) + 1] == "("
    return text if in_program else text[:1].upper() + text[1:]


class Function:
    """A function, or a macro with arguments, and the rows of its table."""

    def __init__(self, member, words):
        self.member, self.words = member, words
        self.name = (member.findtext("qualifiedname") or member.findtext("name")).replace("umem::", "", 1)
        self.header = member.find("location").get("file")
        self.type = "".join(member.find("type").itertext()).strip() if member.find("type") is not None else ""
        names = (param.findtext("declname") or param.findtext("defname") for param in member.findall("param"))
        self.parameters = [name for name in names if name and name != "..."]
        self.rows = {}  # name: pieces
        self.is_first = False  # whether the table stands before what is left of the text

    def has_result(self):
        """Constructors and destructors have no type; those that are constexpr have this as their type."""
        name = self.name.split("::")
        if len(name) > 1 and name[-1].lstrip("~") == name[-2]:
            return False
        return self.type not in ("", "void", "constexpr")

    def is_about_result(self, paragraph, sentence):
        """Whether a paragraph that begins with this sentence is: one about a call whose result is only a status is not."""
        begins = RESULT.match(opening(sentence).lstrip())
        is_status = self.type == "umemStatusType" and not opening(sentence).lstrip().startswith(("Returns ", "The type"))
        return begins is not None and not is_status and all(child.tag in INLINE for child in paragraph)

    def without_opening(self, sentence, length):
        """The sentence without its first characters."""
        return [capital(sentence[0][length:].lstrip(), self.parameters), *sentence[1:]]

    def move_rows(self):
        """Moves sentences of the description into rows."""
        description = self.member.find("detaileddescription")
        wants_result = self.has_result() and not self.words.find(self.header, self.name, "result", own=True)
        for number, paragraph in enumerate(description.findall("para")):
            told = [sentence for sentence in sentences(paragraph) if not self.move_parameter(sentence)]
            is_result = wants_result and number == 0 and bool(told) and self.is_about_result(paragraph, told[0])
            rest = told
            if wants_result:
                rest = [sentence for sentence in told if not self.move_result(sentence, is_result)]
            paragraph[:] = []
            paragraph.text = None
            filled(paragraph, itertools.chain(*rest))
            if not rest:
                description.remove(paragraph)
                self.is_first |= is_result
        return description

    def move_parameter(self, sentence):
        """Moves "device: the number of the GPU." into the row of device; returns whether it has."""
        name = re.match(r"\s*(\w+): (?=\S|$)", opening(sentence))
        if not name or name[1] not in self.parameters or name[1] in self.rows or not is_text(sentence):
            return False
        self.rows[name[1]] = self.without_opening(sentence, name.end())
        return True

    def move_result(self, sentence, is_result):
        """Moves "Returns ...", or any sentence of a paragraph about the result; returns whether it has."""
        said = re.match(r"\s*Returns (?!at once)", opening(sentence))
        if not is_text(sentence) or not (said or is_result):
            return False
        self.rows.setdefault("result", []).extend(self.without_opening(sentence, said.end()) if said else sentence)
        return True

    def complete(self, inherited, links):
        """Rows of the words, for what the comment says nothing about. Returns what has none."""
        for name in self.parameters + ["result"] * self.has_result():
            if name in self.rows:
                continue
            text = self.words.find(self.header, self.name, name, own=True)
            if text is None and name == "result" and (self.header, self.name) in inherited:
                self.rows[name] = inherited[self.header, self.name]
                continue
            text = text or self.words.find(self.header, self.name, name, own=False)
            if text == "-" and name != "result":
                continue
            if text is None and name == "result":
                text = self.words.find(self.header, self.name, f"result {self.type}", own=False)
            if text is None:
                yield name
            else:
                self.rows[name] = linked(capital(text, self.parameters) + ".", links)

    def table(self):
        names = [name for name in [*self.parameters, "result"] if name in self.rows]
        table = ElementTree.Element("table", rows=str(len(names)), cols="2")
        for name in names:
            row = ElementTree.SubElement(table, "row")
            first = ElementTree.SubElement(ElementTree.SubElement(row, "entry", thead="no"), "para")
            tag = "computeroutput" if name in self.parameters else "emphasis"
            ElementTree.SubElement(first, tag).text = name
            text = ElementTree.SubElement(ElementTree.SubElement(row, "entry", thead="no"), "para")
            filled(text, [piece if isinstance(piece, str) else copied(piece) for piece in self.rows[name]])
        paragraph = ElementTree.Element("para")
        paragraph.append(table)
        return paragraph


def copied(element):
    return ElementTree.fromstring(ElementTree.tostring(element))


def linked(text, links):
    """A line of the words, with references to the functions of C that it names."""
    pieces = []
    for part in re.split(r"(\bumem\w+\(\))", text):
        if part[:-2] in links:
            reference = ElementTree.Element("ref", refid=links[part[:-2]], kindref="member")
            reference.text = part
            pieces.append(reference)
        else:
            pieces.append(part)
    return pieces


def is_documented(member):
    if member.get("prot") != "public" or member.get("kind") not in ("function", "define"):
        return False
    if member.findtext("name") in PRIVATE_MACROS:
        return False
    return member.get("kind") == "function" or member.find("param/defname") is not None


def main():
    folder, words = pathlib.Path(sys.argv[1]), Words(WORDS)
    trees = {path: ElementTree.parse(path) for path in sorted(folder.glob("*.xml")) if path.name != "index.xml"}
    members = {}  # id: all elements with it; a group and a header both have it
    for tree in trees.values():
        for member in tree.getroot().iter("memberdef"):
            if is_documented(member):
                members.setdefault(member.get("id"), []).append(member)
    links = {all_[0].findtext("name"): refid for refid, all_ in members.items() if all_[0].find("location").get("file").endswith(".h")}
    failures, inherited = [], {}
    for same in members.values():
        for member in same:
            function = Function(member, words)
            description = function.move_rows()
            missing = list(function.complete(inherited, links))
            failures += [f"{function.header}: {function.name}: {name} ({function.type if name == 'result' else 'parameter'})"
                         f" has no meaning, neither in its comment nor in doc/words" for name in missing]
            texts = {name: "".join(piece if isinstance(piece, str) else "".join(piece.itertext()) for piece in row)
                     for name, row in function.rows.items()}
            failures += [f"{function.header}: {function.name}: the row of {name} only repeats its name: say more, or -"
                         for name in function.parameters if repeats(name, texts.get(name, ""))]
            if "result" in function.rows:
                inherited.setdefault((function.header, function.name), first_sentence(function.rows["result"]))
            if function.rows:
                description.insert(0 if function.is_first else len(description), function.table())
    for path, tree in trees.items():
        tree.write(path, encoding="utf-8", xml_declaration=True)
    failures += [f"{line}: no function needs this line" for line in words.unused()]
    for failure in dict.fromkeys(failures):
        print(f"doc/parameters.py: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
