"""The algorithm pages agree with the code: symbols, abilities, logged columns and links to functions."""
import importlib
import inspect
import re
import sys
from typing import Any

import pytest

from meta_policy_search import meta_algos
from meta_policy_search.policies import GaussianRecurrentPolicy
from meta_policy_search.run import build_trainer
from meta_policy_search.utils import logger
from tests.documentation.test_execution import DOCS, PAGES, ROOT

pytest.importorskip("sphinx")
sys.path.insert(0, str(DOCS / "_ext"))
pages: Any = importlib.import_module("algorithm_pages")
sys.path.pop(0)

ALGORITHM_PAGES = sorted(path.name for path in (DOCS / "algorithms").glob("*.rst"))
ALGORITHMS = ("ProMP", "TRPOMAML", "VPGMAML", "DICEMAML", "RL2")
SAME = {"EMAML": "TRPOMAML", "VPG_DICEMAML": "DICEMAML"}
"""Subclasses with the abilities and columns of another algorithm."""
TINY = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 3}


def read(page):
    return (DOCS / "algorithms" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ALGORITHM_PAGES)
def test_every_symbol_of_an_algorithm_page_is_defined_on_it(page):
    assert ".. symbols::" in read(page)
    assert not pages.undefined_letters(read(page))


def test_undefined_symbols_are_found():
    equations = "With :math:`c \\zeta`:\n\n.. math::\n\n   \\theta_k = \\frac{w}{2} \\text{no}\n\n"
    text = ".. symbols::\n\n   c: coefficient\n\n" + equations
    assert pages.undefined_letters(text) == {r"\zeta", "w"}
    assert set(pages.symbols_of(text)) == {"c", r"\theta = \theta_0", r"\theta_k", r"k,\ K"}


def train(algo, env="MetaPointEnvCornerGoals", **settings):
    """Trains for one iteration; returns its row."""
    rows = []
    if "policy" in settings:
        assert settings["policy"] == "GaussianRecurrentPolicy"
        settings["policy"] = GaussianRecurrentPolicy
    else:
        settings["hidden_size" if algo == "RL2" else "hidden_sizes"] = 4 if algo == "RL2" else (4,)
    if "TRPO" not in algo:
        settings["target_kl"] = 1.0  # logs further columns
    trainer = build_trainer(env, getattr(meta_algos, algo), n_itr=1, callbacks=[lambda trainer, row: rows.append(row)],
                            **TINY, **settings)
    try:
        trainer.train()
    finally:
        trainer.sampler.close()
    return rows[0]


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.thorough
def test_abilities_and_columns_of_a_page_are_those_of_the_algorithm(algo):
    """A run that combines all possible settings works, each impossible one is an error, and the columns are logged."""
    logger.set_level(logger.DISABLED)
    cls = getattr(meta_algos, algo)
    possible, impossible = {}, []
    for ability, can_use in zip(pages.ABILITIES, pages.can_use(cls), strict=True):
        if can_use:
            possible.setdefault(ability.env, {}).update(ability.settings)
        else:
            impossible.append(ability)
    columns = [set(train(algo, env, **settings)) for env, settings in possible.items()]
    assert len(columns) == 2 and impossible
    for ability in impossible:
        with pytest.raises((TypeError, ValueError)):
            train(algo, ability.env, **ability.settings)
    every = set().union(*(pages.logged_columns(getattr(meta_algos, other)) for other in ALGORITHMS))
    for logged in columns:
        assert logged & every == set(pages.logged_columns(cls))


def test_pages_state_abilities_and_columns_of_every_algorithm():
    text = "".join(map(read, ALGORITHM_PAGES))
    stated = set(re.findall(r"^\.\. can-i-use:: (\w+)$", text, flags=re.MULTILINE))
    assert stated == set(re.findall(r"^\.\. logged-columns:: (\w+)$", text, flags=re.MULTILINE))
    assert stated == {*ALGORITHMS, "EMAML"}  # VPG_DICEMAML is on the page of DICEMAML
    for algo, other in SAME.items():
        first, second = getattr(meta_algos, algo), getattr(meta_algos, other)
        assert pages.can_use(first) == pages.can_use(second)
        assert pages.logged_columns(first) == pages.logged_columns(second)


def test_each_implementation_detail_links_to_the_code():
    for page in ALGORITHM_PAGES:
        details = read(page).partition("Implementation details\n")[2].partition("\n\n\n")[0]
        if page != "estimators.rst":  # compares settings that the other pages describe
            assert details.count("\n#. ") >= 4 and ":source:`" in details, page
    places = re.findall(r":promp:`([^`]+)`", "".join(map(read, ALGORITHM_PAGES)))
    assert len(places) > 30 and all(re.fullmatch(r"[\w/]+\.py#L\d+(-L\d+)?", place) for place in places)


def test_links_to_source_code_name_symbols_that_exist():
    symbols = {symbol for text in PAGES.values() for symbol in re.findall(r":source:`([^`]+)`", text)}
    assert len(symbols) > 30
    for symbol in symbols:
        module, name, line = pages.find_source(symbol)
        text = inspect.getsource(importlib.import_module(module)).splitlines()[line - 1]
        assert re.match(rf" *(@|def {name.split('.')[-1]}\(|class {name}\b)", text), symbol
    for symbol in ("ops.losses.dice_los", "ops.los.dice_loss", "meta_algos.pro_mp.ProMP.adapted", "ops"):
        with pytest.raises(ValueError, match="expected a function, class or method"):
            pages.find_source(symbol)


@pytest.mark.parametrize("name", ["promp", "rl2", "trpo_maml"])
def test_each_numbered_comment_of_a_single_file_is_linked_in_order(name):
    text = (ROOT / "experiments" / "single_file" / f"{name}.py").read_text(encoding="utf-8")
    numbers = re.findall(r"# \[(\d+)\] ", text)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)] and len(numbers) >= 12
    assert re.findall(rf":single:`{name} (\d+)`", read(f"{name}.rst")) == numbers
    _, line = pages.find_comment(f"{name} 12")
    assert "# [12] " in text.splitlines()[line - 1]
    with pytest.raises(ValueError, match="expected one comment"):
        pages.find_comment(f"{name} 99")


def test_lines_of_source_code_have_anchors():
    context = {"body": '<span class="linenos"> 9</span>a\n<span class="linenos">10</span>b'}
    pages.mark_lines(None, "other", "page.html", context, None)
    assert "id=" not in context["body"]
    pages.mark_lines(None, "single_files/a", "page.html", context, None)
    assert re.findall(r'id="(.*?)"', context["body"]) == ["line-9", "line-10"]


def test_cross_references_name_objects_that_exist():
    """Sphinx does not report references to objects of the package that do not exist."""
    role = re.compile(r":(?:class|func|meth|attr|mod|data|obj):`(?:[^`<]*<)?~?(meta_policy_search[\w.]*)")
    names = {name for text in PAGES.values() for name in role.findall(text)}
    assert len(names) > 50
    for name in names:
        assert exists(name), name
    assert not exists("meta_policy_search.meta_algos.ProMPP") and not exists("meta_policy_search.nothing")


def exists(name):
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            annotated = getattr(found, "__annotations__", {})
            if not hasattr(found, part) and part not in annotated:
                return False
            found = getattr(found, part, None)
        return True
    return False


def test_arxiv_numbers_become_links():
    nodes, core = pytest.importorskip("docutils.nodes"), pytest.importorskip("docutils.core")
    document = core.publish_doctree("See arXiv:1810.06784, section 5 (arXiv:1703.03400), and ``arXiv:1707.06347``.")
    pages.ArxivLinks(document).apply()
    links = {node.astext(): node["refuri"] for node in document.findall(nodes.reference)}
    assert links == {f"arXiv:{number}": f"https://arxiv.org/abs/{number}" for number in ("1810.06784", "1703.03400")}
    assert document.astext() == "See arXiv:1810.06784, section 5 (arXiv:1703.03400), and arXiv:1707.06347."
