"""Pretty printers of GDB for the C++ classes of umem: views, guards, arrays, contexts and extents.

GDB loads this file with libumem.so if the library is installed below the prefix of GDB (/usr). Otherwise:

    (gdb) source PREFIX/share/umem/umem_printers.py

A view, a guard or an array shows its shape and its elements, as many as "set print elements" allows. An array whose
elements are current only on a device shows no elements. Tested with GDB 13; needs a GDB with Python 3.
"""
import re

import gdb
import gdb.printing


def numbers(extents):
    """The numbers of an Extents<N>."""
    return [int(extents["at"][k]) for k in range(int(extents.type.strip_typedefs().template_argument(0)))]


def in_words(values):
    return "(" + ", ".join(str(value) for value in values) + ("," if len(values) == 1 else "") + ")"


def shape_in_words(extents):
    return " x ".join(str(extent) for extent in extents) if extents else "one element"


def ghosts_of(ghosts):
    """The numbers of ghost cells before and after each dimension: an Extents<N> is for both."""
    if any(field.name == "below" for field in ghosts.type.strip_typedefs().fields()):
        return numbers(ghosts["below"]), numbers(ghosts["above"])
    return numbers(ghosts), numbers(ghosts)


def ghosts_in_words(below, above):
    """What follows the shape; nothing if there are no ghost cells."""
    if not any(below + above):
        return ""
    if below == above:
        return f", ghosts {in_words(below)}"
    return f", ghosts {in_words(below)} before and {in_words(above)} after"


def c_strides(extents):
    strides, stride = [], 1
    for extent in reversed(extents):
        strides.insert(0, stride)
        stride *= max(extent, 1)
    return strides


def shared_pointer(value):
    """What a std::shared_ptr holds: of libstdc++ or of libc++."""
    for field in ("_M_ptr", "__ptr_"):
        try:
            return value[field]
        except gdb.error:
            pass
    raise gdb.error("a std::shared_ptr of an unknown library")


def is_readable(pointer):
    try:
        pointer.dereference().fetch_lazy()
    except gdb.error:
        return False
    return True


def elements(data, extents, strides):
    """The children of a view: the name of each element is its indices."""
    if 0 in extents or not int(data):
        return
    at = [0] * len(extents)
    while True:
        offset = sum(index * stride for index, stride in zip(at, strides))
        yield in_words(at) if at else "()", (data + offset).dereference()
        k = len(at) - 1
        while k >= 0 and at[k] + 1 == extents[k]:
            at[k] = 0
            k -= 1
        if k < 0:
            return
        at[k] += 1


def context_name(context):
    """The name of the kind of a umem::Context: "Host", "File", ..."""
    virtual = shared_pointer(context["context_"])
    if not int(virtual):
        return "no context"
    name = virtual["name"]
    return name.string() if int(name) else "User"


def short_name(kind):
    """The name of a type without the third argument of a guard, which is a number, and without a layout that knows
    nothing."""
    name = str(kind.strip_typedefs().unqualified()).replace(", umem::Strided>", ">")
    return re.sub(r", \(?umem::Side\)?.*>$", ">", name)


class View:
    """umem::View<double, 2> of 3 x 4 = {(0, 0) = 1, (0, 1) = 2, ...}"""

    def __init__(self, value, title=None):
        self.title = title or short_name(value.type)
        self.data = value["data"]
        self.extents = numbers(value["extents"])
        self.strides = numbers(value["strides"])
        self.ghosts = ghosts_of(value["ghosts"])
        self.readable = 0 in self.extents or not int(self.data) or is_readable(self.data)

    def to_string(self):
        text = f"{self.title} of {shape_in_words(self.extents)}"
        if 0 not in self.extents and self.strides != c_strides(self.extents):
            text += f", strides {in_words(self.strides)}"
        text += ghosts_in_words(*self.ghosts)
        if not self.readable:
            text += f", at {int(self.data):#x}, which is not memory of the CPU"
        return text

    def children(self):
        return elements(self.data, self.extents, self.strides) if self.readable else iter(())


class Guard(View):
    """The view of a guard."""

    def __init__(self, value):
        super().__init__(value["view_"], short_name(value.type))


class Array:
    """umem::Array<double, 2> of 3 x 4 on Host, current: both = {...}"""

    def __init__(self, value):
        self.title = short_name(value.type)
        self.mirror = shared_pointer(value["mirror_"])
        self.extents = numbers(value["extents_"])
        self.ghosts = ghosts_of(value["ghosts_"])
        access = next(field.type for field in value.type.strip_typedefs().fields() if field.is_base_class)
        self.element = access.strip_typedefs().template_argument(0)
        cells = [sum(cells) for cells in zip(self.extents, *self.ghosts)]
        self.is_column_major = int(value["order_"]) == 1
        self.strides = c_strides(cells[::-1])[::-1] if self.is_column_major else c_strides(cells)

    def host_address(self):
        """The address of the first element for the CPU, a ghost cell if there are any; 0 if there is none."""
        if bool(self.mirror["is_shared_"]):
            return int(self.mirror["device_"]["adr"])
        if str(self.mirror["now_"]["current"]).endswith("device"):
            return 0
        return int(self.mirror["host_"]["adr"])

    def to_string(self):
        if not int(self.mirror):
            return f"{self.title}, empty"
        text = f"{self.title} of {shape_in_words(self.extents)} on {context_name(self.mirror['device_']['context'])}"
        text += ghosts_in_words(*self.ghosts)
        text += ", column-major" if self.is_column_major else ""
        side = str(self.mirror["now_"]["current"]).rpartition("::")[2]
        return text + f", current: {side}"

    def children(self):
        if not int(self.mirror) or not self.host_address():
            return iter(())
        offset = sum(ghost * stride for ghost, stride in zip(self.ghosts[0], self.strides))
        data = gdb.Value(self.host_address()).cast(self.element.pointer()) + offset
        if 0 not in self.extents and not is_readable(data):
            return iter(())
        return elements(data, self.extents, self.strides)


class Context:
    """umem::Context of a File = {status = umemOK, alignment = 16}"""

    def __init__(self, value):
        self.title = str(value.type.strip_typedefs().unqualified())
        self.context = value
        self.virtual = shared_pointer(value["context_"])

    def to_string(self):
        if not int(self.virtual):
            return f"{self.title}, empty"
        return f"{self.title} of kind {context_name(self.context)}"

    def children(self):
        if int(self.virtual):
            yield "status", self.virtual["status"]["type"]
            if int(self.virtual["status"]["message"]):
                yield "message", self.virtual["status"]["message"]
            yield "alignment", self.virtual["alignment"]


class Extents:
    """(3, 4)"""

    def __init__(self, value):
        self.values = numbers(value)

    def to_string(self):
        return in_words(self.values)


PRINTERS = {
    "umem::View": View,
    "umem::Guard": Guard,
    "umem::Array": Array,
    "umem::ArrayLock": Array,
    "umem::Context": Context,
    "umem::Extents": Extents,
}


def bases(kind):
    """The type and all that it is derived from, itself first."""
    yield kind
    for field in kind.fields():
        if field.is_base_class:
            yield from bases(field.type.strip_typedefs())


class Printers(gdb.printing.PrettyPrinter):
    """Finds the printer of a value, also for classes derived from those of umem, such as umem::File."""

    def __init__(self):
        super().__init__("umem", [gdb.printing.SubPrettyPrinter(name) for name in PRINTERS])

    def __call__(self, value):
        kind = value.type
        if kind.code == gdb.TYPE_CODE_REF:
            value = value.referenced_value()
            kind = value.type
        kind = kind.unqualified().strip_typedefs()
        if kind.code != gdb.TYPE_CODE_STRUCT:
            return None
        for base in bases(kind):
            name = (base.tag or "").partition("<")[0]
            if name in PRINTERS:
                enabled = all(printer.enabled for printer in self.subprinters if printer.name == name)
                return PRINTERS[name](value) if enabled else None
        return None


gdb.printing.register_pretty_printer(None, Printers(), replace=True)
