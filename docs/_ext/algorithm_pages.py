"""Sphinx extension for the algorithm pages.

    .. symbols::              table of the symbols in the equations of the page; the content adds rows `MATH: meaning`
    .. symbols:: all          table of the symbols that several pages share
    .. can-i-use:: ProMP      what the algorithm works with, derived from its class
    .. logged-columns:: ProMP columns of its meta-update, from the page "Columns of progress.csv"
    :source:`ops.losses.clipped_surrogate`      link to the source code of a function, class or method
    :single:`promp 3`         link to the numbered comment `# [3]` of a single file (experiments/single_file)
    arXiv:1810.06784                            in any text: link to the paper

A `:source:` link to a symbol that does not exist is an error.
"""
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

from meta_policy_search.policies.recurrent_policy import RecurrentPolicy
from meta_policy_search.utils.serializable import constructor_signature

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent.parent
PACKAGE = "meta_policy_search"

# Symbols ---------------------------------------------------------------------------------------------------------

SYMBOLS = {  # shared by several pages
    r"m,\ M": "index of a task, number of tasks (``meta_batch_size``)",
    r"p,\ P": "index of a path, number of paths per task (``rollouts_per_meta_task``)",
    r"t,\ T": "index of a step, maximum number of steps of a path (``max_path_length``)",
    r"u": "index of an earlier step of the same path",
    r"n,\ N": "index of a sample (one step of one path), number of samples of a task",
    r"k,\ K": "index of an adaptation step, number of adaptation steps (``num_inner_grad_steps``)",
    r"o_t,\ a_t,\ r_t": "observation, action and reward",
    r"\theta = \theta_0": "parameters before adaptation",
    r"\theta_k": "parameters of a task after :math:`k` adaptation steps",
    r"\pi_\theta(a \mid o)": "probability (density) of action :math:`a` given observation :math:`o`",
    r"\pi_\text{old}": "policy that collected the samples",
    r"D_k": "samples of a task, collected with :math:`\\theta_k`: :math:`P` paths. Adaptation uses "
            r":math:`D_0, \dots, D_{K-1}`, the meta-update uses :math:`D_0, \dots, D_K`",
    r"\alpha": "step size of an adaptation step (``inner_lr``)",
    r"\gamma": "discount factor (``discount``)",
    r"L,\ L_\text{inner},\ L_\text{outer}": "loss, loss of an adaptation step, loss of the adapted policies",
    r"R(\theta)": "expected sum of the rewards of a path, divided by ``max_path_length``",
    r"J,\ J^\circ": "expectation of :math:`R` at the adapted parameters; the same for steps along exact gradients",
    r"A_t": "advantage of an action: sum of the following rewards minus a baseline",
    r"Q_t": "expected sum of the rewards from step :math:`t` on, given observation and action",
    r"\rho_t": r"likelihood ratio :math:`\pi_\theta(a_t \mid o_t) / \pi_\text{old}(a_t \mid o_t)`",
    r"s_t": r"score of an action, :math:`\nabla_\theta \log \pi_\theta(a_t \mid o_t)`",
    r"H_1,\ H_2,\ H_3": r"parts of the Hessian :math:`\nabla^2 R` of the return (:doc:`/algorithms/maml`)",
    r"\square_t": r"magic box: 1, with the derivatives of :math:`\prod_{u \le t} \pi_\theta(a_u \mid o_u)`, divided by "
                  r"its value (:doc:`/algorithms/dice`)",
    r"\varepsilon": "half-width of the clipping interval (``clip_eps``)",
    r"\overline{\mathrm{KL}}": "Kullback-Leibler divergence, mean over samples, in nats",
    r"\mathbb{E}": "expectation over samples",
    r"\mathbb{R}": "real numbers",
    r"I": "identity matrix",
    r"O(\cdot),\ \Theta(\cdot)": "order of magnitude: at most, or exactly up to a constant factor",
}
OPERATORS = set("""
    Big big bigg left right frac tfrac sqrt sum prod min max log exp tanh text mathrm mathbb mathcal overline quad qquad
    mid le ge in to cdot cdots dots circ top odot nabla partial operatorname
""".split())
"""Commands of LaTeX that are not symbols."""


def math_of(text: str) -> Iterator[str]:
    """Yields the equations of a page in reStructuredText."""
    yield from re.findall(r":math:`([^`]+)`", text)
    for first, rest in re.findall(r"^\.\. math::(.*)\n((?:\n|   .*\n)+)", text, flags=re.MULTILINE):
        yield first + rest


def letters_of(equation: str) -> Set[str]:
    """Returns the letters and named symbols of an equation, without words, operators and blackboard letters."""
    equation = re.sub(r"\\(text|mathrm|operatorname)\{[^}]*\}", "", equation)
    equation = re.sub(r"\\(mathbb|mathcal)\{?(\w)\}?", r"\\\1\2 ", equation)
    found = set(re.findall(r"\\[A-Za-z]+|[A-Za-z]", equation))
    return {letter for letter in found if letter.lstrip("\\") not in OPERATORS}


def own_symbols(text: str) -> Dict[str, str]:
    """Returns the rows that a page adds to the table of symbols, by symbol."""
    match = re.search(r"^\.\. symbols::\n((?:\n|   .*\n)+)", text, flags=re.MULTILINE)
    lines = re.sub(r"\n {6,}", " ", match[1] if match else "").split("\n")
    return dict(line.strip().split(": ", 1) for line in lines if line.strip())


def symbols_of(text: str) -> Dict[str, str]:
    """Returns the symbols of a page and their meanings: shared ones that its equations contain, and its own ones."""
    own = own_symbols(text)
    missing = set().union(*map(letters_of, math_of(text))) - set().union(*map(_named, own))
    return {**{symbol: meaning for symbol, meaning in SYMBOLS.items() if _named(symbol) & missing}, **own}


def _named(symbol: str) -> Set[str]:
    """Returns the letters that a row defines: those outside of indices, of arguments and of the right side of `=`."""
    return letters_of(re.sub(r"_(\\text\{\w+\}|\\?\w+|\{[^}]*\})|\([^)]*\)|= .*", "", symbol))


def undefined_letters(text: str) -> Set[str]:
    """Returns the letters in the equations of a page that its table of symbols does not contain."""
    rows = symbols_of(text)
    return set().union(*map(letters_of, math_of(text))) - set().union(*map(letters_of, rows))


# Facts about algorithms ------------------------------------------------------------------------------------------


class Ability(NamedTuple):
    """A question about an algorithm, an environment and the settings of a run that needs the ability."""

    question: str
    env: str
    settings: Mapping[str, Any]


ABILITIES = (
    Ability("continuous actions", "MetaPointEnvCornerGoals", {}),
    Ability("discrete actions", "MetaTabularMDPEnv", {}),
    Ability("several adaptation steps (K > 1)", "MetaPointEnvCornerGoals", {"num_inner_grad_steps": 2}),
    Ability("recurrent policy", "MetaPointEnvCornerGoals", {"policy": "GaussianRecurrentPolicy"}),
    Ability("worker processes", "MetaPointEnvCornerGoals", {"parallel": True}),
    Ability("trained step sizes", "MetaPointEnvCornerGoals", {"trainable_inner_step_size": True}),
)


def can_use(cls: type) -> List[bool]:
    """Returns for each of `ABILITIES` whether an algorithm has it, according to its class."""
    algo: Any = cls
    arguments = constructor_signature(cls).parameters
    recurrent = issubclass(algo.policy_cls(False), RecurrentPolicy)
    return [True, True, "num_inner_grad_steps" in arguments, recurrent, True, "trainable_inner_step_size" in arguments]


def _how(cls: Any, ability: Ability) -> str:
    """Returns how to use an ability: the default policy for the actions, or the settings."""
    if ability.settings:
        return ", ".join(f"``{name}={value}``" for name, value in ability.settings.items())
    return f"``{cls.policy_cls('discrete' in ability.question).__name__}``"


def algorithm(name: str) -> type:
    """Returns the class of an algorithm."""
    return getattr(importlib.import_module(f"{PACKAGE}.meta_algos"), name)


def logged_columns(cls: type) -> Dict[str, str]:
    """Returns the columns of an algorithm's meta-update and their meanings, from the page "Columns of progress.csv"."""
    page = (DOCS / "columns.rst").read_text(encoding="utf-8")
    section = page.partition("\nThe meta-update\n")[2].partition("\nGradient diagnostics\n")[0]
    row = r"^   \* - ``(\w+)``\n     - (.*)\n     - ((?:.*\n)(?:       .*\n)*)"
    rows = re.findall(row, section, flags=re.MULTILINE)
    bases = {base.__name__ for base in cls.__mro__}
    return {column: re.sub(r"\s+", " ", meaning).strip() for column, classes, meaning in rows
            if classes == "all" or bases & set(classes.split(", "))}


# Directives and roles --------------------------------------------------------------------------------------------


class _Table(SphinxDirective):
    """A directive that is replaced by a table."""

    has_content = True
    optional_arguments = 1
    widths: Sequence[int] = ()
    before: Tuple[str, ...] = ()

    def rows(self) -> Iterator[Sequence[str]]:
        """Yields the rows; the first one is the header."""
        raise NotImplementedError

    def run(self) -> List[nodes.Node]:
        """Returns the table."""
        indent = "   " if self.before else ""
        lines = [*self.before, *(f"{indent}{line}" for line in self._list_table())]
        node = nodes.Element()
        self.state.nested_parse(StringList(lines, source=__file__), 0, node)
        return node.children

    def _list_table(self) -> Iterator[str]:
        yield from (".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, self.widths))}", "")
        for row in self.rows():
            for number, cell in enumerate(row):
                yield f"   {' ' if number else '*'} - {cell}"


class Symbols(_Table):
    """The symbols of the page."""

    widths = (22, 78)

    def run(self) -> List[nodes.Node]:
        """Returns the table; that of a single page is folded."""
        if not self.arguments:
            self.before = (".. dropdown:: Symbols", "")
        return super().run()

    def rows(self) -> Iterator[Sequence[str]]:
        """Yields the symbols and their meanings."""
        yield "symbol", "meaning"
        text = Path(self.state.document["source"]).read_text(encoding="utf-8")
        for symbol, meaning in (SYMBOLS if self.arguments else symbols_of(text)).items():
            yield f":math:`{symbol}`", meaning


class CanIUse(_Table):
    """What an algorithm works with."""

    widths = (36, 12, 52)

    def rows(self) -> Iterator[Sequence[str]]:
        """Yields questions and answers."""
        yield "with", "possible", "how"
        cls = algorithm(self.arguments[0])
        for ability, possible in zip(ABILITIES, can_use(cls), strict=True):
            yield ability.question, "yes" if possible else "no", _how(cls, ability) if possible else ""


class LoggedColumns(_Table):
    """The columns of an algorithm's meta-update."""

    widths = (22, 78)

    def rows(self) -> Iterator[Sequence[str]]:
        """Yields the columns and their meanings."""
        yield "column", "meaning"
        for column, meaning in logged_columns(algorithm(self.arguments[0])).items():
            yield f"``{column}``", meaning


def find_source(symbol: str) -> Tuple[str, str, int]:
    """Returns module, name within it and line of a function, class or method, such as `ops.losses.dice_loss`.

    Raises:
        ValueError: the package does not define the symbol.
    """
    parts = symbol.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module, name = ".".join([PACKAGE, *parts[:count]]), ".".join(parts[count:])
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        tags = ModuleAnalyzer.for_module(module).find_tags()
        if name in tags:
            return module, name, tags[name][1]
    raise ValueError(f"source: expected a function, class or method of {PACKAGE}, got {symbol!r}")


class Source(SphinxRole):
    """A link to the line of a symbol in the page with the source code that `sphinx.ext.viewcode` creates."""

    def run(self) -> Tuple[List[nodes.Node], List[nodes.system_message]]:
        """Returns the link."""
        try:
            module, name, line = find_source(self.text)
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]
        page = self.env.app.builder.get_relative_uri(self.env.docname, f"_modules/{module.replace('.', '/')}")
        link = nodes.reference(self.rawtext, "", nodes.literal(name, name), internal=True, refuri=f"{page}#line-{line}")
        return [link], []


def find_comment(text: str) -> Tuple[str, int]:
    """Returns the page and the line of a numbered comment of a single file, such as `promp 3`.

    Raises:
        ValueError: the file does not contain the comment exactly once.
    """
    name, number = text.split()
    lines = (DOCS.parent / "experiments" / "single_file" / f"{name}.py").read_text(encoding="utf-8").splitlines()
    found = [line for line, code in enumerate(lines, 1) if f"# [{number}] " in code]
    if len(found) != 1:
        raise ValueError(f"single: expected one comment [{number}] in {name}.py, got {len(found)}")
    return f"single_files/{name}", found[0]


class Single(SphinxRole):
    """A link to a line of a single file."""

    def run(self) -> Tuple[List[nodes.Node], List[nodes.system_message]]:
        """Returns the link."""
        try:
            page, line = find_comment(self.text)
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]
        uri = f"{self.env.app.builder.get_relative_uri(self.env.docname, page)}#line-{line}"
        return [nodes.reference(self.rawtext, f"line {line}", internal=True, refuri=uri)], []


def mark_lines(app: "Sphinx", pagename: str, templatename: str, context: Dict[str, Any], doctree: Any) -> None:
    """Adds an anchor to each line of a page with source code."""
    if pagename.startswith(("_modules/", "single_files/")) and "body" in context:
        context["body"] = re.sub(r'<span class="linenos">( *)(\d+)</span>',
                                 r'<span class="linenos" id="line-\2">\1\2</span>', context["body"])


class ArxivLinks(SphinxTransform):
    """Turns each arXiv number in a text into a link."""

    default_priority = 500
    without_links = (nodes.reference, nodes.literal, nodes.literal_block)
    number = re.compile(r"arXiv:(\d{4}\.\d{4,5})")

    def apply(self, **arguments: Any) -> None:
        """Replaces the numbers."""
        for text in list(self.document.findall(nodes.Text)):
            ancestor: Any = text.parent
            while ancestor is not None and not isinstance(ancestor, self.without_links):
                ancestor = ancestor.parent
            if ancestor is not None or not self.number.search(text):
                continue
            parts: List[nodes.Node] = []
            for number, piece in enumerate(self.number.split(text)):
                if number % 2:
                    parts.append(nodes.reference("", f"arXiv:{piece}", refuri=f"https://arxiv.org/abs/{piece}"))
                elif piece:
                    parts.append(nodes.Text(piece))
            text.parent.replace(text, parts)


def setup(app: "Sphinx") -> Dict[str, Any]:
    """Adds directives, role and transform."""
    app.add_directive("symbols", Symbols)
    app.add_directive("can-i-use", CanIUse)
    app.add_directive("logged-columns", LoggedColumns)
    app.add_role("source", Source())
    app.add_role("single", Single())
    app.add_transform(ArxivLinks)
    app.connect("html-page-context", mark_lines)
    return {"version": "1", "parallel_read_safe": True}
