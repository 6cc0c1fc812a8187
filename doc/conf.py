"""Settings of Sphinx. doc/build runs it, after Doxygen has written XML for Breathe."""
import os
import pathlib
import re
import sys
import textwrap

from docutils import nodes

_here = pathlib.Path(__file__).parent
sys.path.insert(0, str(_here))
_config = (_here.parent / "c/include/umem/config.h").read_text(encoding="utf-8")

project = "umem"
copyright = "the umem developers"
version = release = re.search(r'UMEM_VERSION "(.+)"', _config).group(1)

extensions = ["breathe", "quick_build", "myst_parser", "pictures.directive", "snippets", "sources", "sphinx_copybutton", "sphinx_inline_tabs"]
exclude_patterns = ["examples"]
myst_heading_anchors = 3
source_suffix = {".rst": "restructuredtext"}
primary_domain = "c"
highlight_language = "c"

breathe_projects = {"umem": os.environ["UMEM_DOC_XML"]}
breathe_default_project = "umem"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False

# Every name must lead somewhere, but for those of the C library.
nitpicky = True
nitpick_ignore = [
    ("c:identifier", name)
    for name in ("int32_t", "int64_t", "ptrdiff_t", "size_t", "uint8_t", "uint32_t", "uint64_t", "uintptr_t", "MPI_Comm")
]
# Nor those of C, of the standard library, of umem::detail and of other libraries in C++.
nitpick_ignore_regex = [
    ("cpp:identifier", r"umem|(std|detail)(::.*)?|umem[A-Z]\w*|UMEM_\w+"),
    ("cpp:identifier", r"(Eigen|Kokkos|cuda|thrust)(::.*)?|cublas\w+|MPI_\w+"),
    # What doxygen-filter writes for names of umem::detail.
    ("cpp:identifier", r"Rank|AllocatorMemory|value_type|real_type|IsTrue|element_type_of.*|LayoutOfArrays<.*|(Accumulator|Eigen\w+|KokkosData|NestedList)<.*"),
]

smartquotes_action = "qe"  # dashes are options of commands

html_theme = "furo"
html_title = f"umem {version}"
html_static_path = ["_static"]
html_css_files = ["umem.css"]
html_show_sphinx = False
html_copy_source = False


def _tidy_code(app, doctree):
    """Parts of files are shown without their margin and the empty lines around them."""
    for block in doctree.findall(nodes.literal_block):
        text = textwrap.dedent(block.astext()).strip("\n")
        block.rawsource = text
        block.children = []
        block += nodes.Text(text)


def setup(app):
    app.connect("doctree-read", _tidy_code)
