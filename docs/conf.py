"""The site: `make docs` builds it into `build/site`."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

project = "fnop"
author = "the authors of fnop"
copyright = author
release = version = version_of("fnop")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_copybutton",
]
exclude_patterns = ["pictures"]
# Decisions begin with their numbers; a parameter has a common name of attributes.
suppress_warnings = ["myst.header", "ref.python"]

# ----------------------------------------------------------------- the text

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4
# In docstrings, `name` is code.
default_role = "code"
# Options begin with two hyphens.
smartquotes = False
highlight_language = "text"  # a block in Python says so
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# ------------------------------------------------------------ the reference

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

# ----------------------------------------------------------------- the look

html_theme = "furo"
html_title = f"fnop {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#1f5fae",
        "color-brand-content": "#1f5fae",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab8f5",
        "color-brand-content": "#8ab8f5",
    },
}

# ------------------------------------------------- links into the repository

# Pages are read in the repository, too: there, links to files outside of docs/ work.
# The site has links to them if it knows the repository's address.
REPOSITORY = os.environ.get("FNOP_REPOSITORY", "").rstrip("/")
_OUTSIDE = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<file>\.\./[^)#\s]*)(?:#[^)\s]*)?\)")


# The words by which people look for a page, if its text has others.
_KEYWORDS = {
    "how-to/call-blocking-code": "requests, HTTP client, boto3, aiohttp, blocking",
    "how-to/clean-up-on-deletion": "finalizer, cloud resource, cleanup, delete",
    "how-to/deploy": "Dockerfile, image, Helm",
    "how-to/follow-related-objects": "watch Secrets, ConfigMaps, secondary resources",
    "how-to/grant-least-rights": "least privilege, minimal RBAC, permissions, roles",
    "how-to/probe-an-operator": "liveness, readiness, healthz",
    "how-to/run-on-a-cluster": "namespaces, label selector",
    "how-to/run-replicas": "high availability, HA, leader election, replicas",
    "how-to/serve-a-simulated-cluster": "fake cluster, mock API server, envtest",
    "how-to/test-a-story": "timers, fake clock, virtual time, mock",
    "how-to/unblock-a-deletion": "stuck, terminating, finalizer, hanging deletion",
    "how-to/wait-until-something-is-ready": "retry, requeue, backoff, poll",
    "reference/errors-and-retries": "retry, requeue, backoff, attempts",
    "reference/metrics": "queue length, Prometheus, monitoring",
    "reference/state": "storage, annotations, progress, persistence",
}


def _with_metadata(docname: str, text: str) -> str:
    """Add the keywords of a page; leave decisions out of the search."""
    if docname.startswith("decisions/"):
        return f"---\nnosearch: true\n---\n{text}"
    if docname in _KEYWORDS:
        words = _KEYWORDS[docname]
        return f"---\nmyst:\n  html_meta:\n    keywords: {words}\n---\n{text}"
    return text


def _link_outside(docname: str, text: str) -> str:
    """Replace links to files outside of docs/, by the repository's address or text."""

    def replaced(found: re.Match[str]) -> str:
        folder = (HERE / docname).parent
        path = os.path.normpath(folder / found["file"])
        if path.startswith(str(HERE)):
            return found[0]
        file = os.path.relpath(path, HERE.parent)
        if REPOSITORY:
            return f"[{found['text']}]({REPOSITORY}/blob/main/{file})"
        return found["text"]

    return _OUTSIDE.sub(replaced, text)


def _read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = _with_metadata(docname, _link_outside(docname, source[0]))


# Docstrings are Markdown of a simple kind: code is indented by four spaces.


def _mark_code(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Make literal blocks of indented code after a paragraph."""
    marked: list[str] = []
    in_code = False
    for number, line in enumerate(lines):
        indented, blank = line.startswith("    "), not line.strip()
        if not blank and not line.startswith(" "):
            in_code = False
        after_blank = number == 0 or not lines[number - 1].strip()
        if indented and after_blank and not in_code:
            in_code = True
            marked += [".. code-block:: python", ""]
        marked.append(line)
    lines[:] = marked


def _mark_calls(app: Sphinx, context: object, lines: list[str]) -> None:
    """Make literal blocks of the calls in a command's help.

    A block of lines that begins with a call of fnop is one example; its other lines are
    calls of other programs, or continue the line before.
    """
    marked: list[str] = []
    is_example = False
    for number, line in enumerate(lines):
        text = line.removeprefix("| ").strip()
        if not line.startswith("| "):
            marked += ["", line] if is_example else [line]
            is_example = False
            continue
        is_first = number == 0 or not lines[number - 1].startswith("| ")
        if is_first and text.startswith("fnop "):
            is_example = True
            marked += ["", ".. code-block:: console", ""]
        continues = not is_first and lines[number - 1].rstrip().endswith("\\")
        prompt = "   > " if continues else "   $ "
        marked.append(f"{prompt}{text}" if is_example else line)
    lines[:] = marked


def _mend_metavars(app: Sphinx, context: Any, lines: list[str]) -> None:
    """Restore the brackets that sphinx-click strips from both ends of metavars.

    `[NAMESPACE/]NAME` would lose its first one. `lines` describe all options of a
    command.
    """
    for each in context.command.params:
        given = each.metavar or ""
        shown = given.lstrip("<[{($").rstrip(">]})$")
        if given.count("[") == shown.count("["):
            continue
        directive = f".. option:: {', '.join(each.opts)} "
        for number, line in enumerate(lines):
            if line == f"{directive}<{shown}>":
                lines[number] = f"{directive}<{given}>"


# ---------------------------------------------------------------- diagrams

# An image cannot follow the theme that a reader chooses, but a part of the page can.
# So the site inlines the diagrams of `docs/pictures/diagrams.py`.


def _inline_diagrams(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        file = HERE / image["uri"]
        if file.suffix != ".svg" or not file.is_file():
            continue
        svg = file.read_text()
        if 'class="diagram"' in svg:
            image.replace_self(nodes.raw("", svg, format="html"))


# ------------------------------------------------------------ accessibility

# Captions of the navigation are headings without a level; blocks and tables that scroll
# cannot be reached by keys. `make look` finds both.
_REACHABLE = {
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


def _mend_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    tree = context.get("furo_navigation_tree", "")
    heading = 'role="heading"'
    context["furo_navigation_tree"] = tree.replace(heading, f'{heading} aria-level="2"')
    for before, after in _REACHABLE.items():
        context["body"] = context.get("body", "").replace(before, after)


# ---------------------------------------------------------------- llms.txt


def _write_llms(app: Sphinx, problem: Exception | None) -> None:
    """Write llms.txt, the list of all pages, and llms-full.txt, with their texts.

    The format is that of https://llmstxt.org: a link to each page, by its title.
    """
    if problem is not None or app.builder.name != "html":
        return
    pages = sorted(app.env.found_docs - {"index"})
    lines = ["# fnop", "", "> Kubernetes operators in Python as pure functions.", ""]
    texts = []
    for each in ("index", *pages):
        title = app.env.titles[each].astext()
        lines.append(f"- [{title}]({each}.html)")
        texts.append(_link_outside(each, (HERE / f"{each}.md").read_text()))
    out = Path(app.outdir)
    (out / "llms.txt").write_text("\n".join(lines) + "\n")
    (out / "llms-full.txt").write_text("\n\n".join(texts))


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the parts above with Sphinx."""
    app.connect("source-read", _read_source)
    app.connect("autodoc-process-docstring", _mark_code)
    app.connect("sphinx-click-process-description", _mark_calls)
    app.connect("sphinx-click-process-options", _mend_metavars)
    app.connect("doctree-resolved", _inline_diagrams)
    app.connect("html-page-context", _mend_page, priority=900)
    app.connect("build-finished", _write_llms)
    return {"parallel_read_safe": True}
