"""The search of the documentation finds the right page for common questions."""
import json
import subprocess
import sys

import pytest

from tests.documentation.test_execution import DOCS

PAGES = {  # query: the page that answers it
    "train": "api/train", "mps.train": "api/train", "save model": "resume", "checkpoint": "resume",
    "hyperparameters": "default_settings", "callback": "howto/callbacks", "own environment": "howto/own_environment",
    "learning rate": "default_settings", "tensorboard": "howto/callbacks",
    # questions of first-time users
    "network size": "default_settings", "zero gain": "not_learning", "slurm": "cluster", "test tasks": "use_policy",
    "gradient steps at test time": "use_policy", "nan": "not_learning", "replay an iteration": "howto/replay",
    "sample processor": "howto/own_sample_processor", "add a setting": "howto/own_sample_processor", "carl": "carl",
    "video": "pictures", "gpu": "installation", "why does it not learn": "not_learning", "several seeds": "api/train",
    "first-order maml": "algorithms/maml", "best policy": "use_policy", "reproduce": "results",
    "crash": "resume", "own baseline": "howto/own_baseline", "negative return": "not_learning",
}


@pytest.fixture(scope="module")
def index():
    """Returns the search index of the documentation, which is built unless `make docs` has just built it."""
    pytest.importorskip("furo")
    file, texts = DOCS / "_build" / "html" / "searchindex.js", [*DOCS.glob("*.rst"), *DOCS.glob("[!_]*/*.rst")]
    if not file.exists() or file.stat().st_mtime < max(path.stat().st_mtime for path in texts):
        subprocess.run([sys.executable, "-m", "sphinx", "-E", "-q", "-b", "html", DOCS, file.parent], check=True)
    text = file.read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def search(index, query):
    """Returns the names of the pages that Sphinx finds, best first, with the scores of its `searchtools.js`."""
    from sphinx.search.en import SearchEnglish

    query, english = query.lower(), SearchEnglish({})
    words = query.replace(".", " ").split()
    found = []  # sorted by score and title; of equal results, the last one is first

    def add(page, score, title=None):
        found.append((-score, (title or index["titles"][page]).lower(), -len(found), index["docnames"][page]))

    for title, places in index["alltitles"].items():
        if query in title.lower() and len(query) >= len(title) / 2:
            for page, _ in places:
                of_page = index["titles"][page]
                add(page, round(15 * len(query) / len(title)) + (of_page == title),
                    title if of_page == title else f"{of_page} > {title}")
    for entry, places in index["indexentries"].items():
        if query in entry and len(query) >= len(entry) / 2:
            for page, _, is_main in places:
                add(page, round(100 * len(query) / len(entry)) if is_main else -1)
    for word in words:
        for prefix, objects in index["objects"].items():
            for page, kind, priority, _, name in objects:
                full = f"{prefix}.{name}".lstrip(".").lower()
                text = f"{full} {index['objnames'][str(kind)][2]} {index['titles'][page]}".lower()
                if word in full and all(other in text for other in words):
                    last = full.rpartition(".")[2]
                    exact = 11 if word in (full, last) else 6 if word in last else 0
                    add(page, exact + {0: 15, 1: 5, 2: -5}[priority], full)
    scores = {}  # score of each page in the full-text search, by word
    stems = {english.stem(word) for word in words if word not in english.stopwords}
    for word in stems:
        for terms, whole, part in ((index["terms"], 5, 2), (index["titleterms"], 15, 7)):
            matches = [(terms[word], whole)] if word in terms else [
                (pages, part) for term, pages in terms.items() if word in term]
            for pages, score in matches:
                for page in pages if isinstance(pages, list) else [pages]:
                    scores.setdefault(page, {})[word] = score
    for page, by_word in scores.items():
        if by_word.keys() == stems:
            add(page, max(by_word.values()))
    return list(dict.fromkeys(page for *_, page in sorted(found)))


@pytest.mark.documentation
@pytest.mark.parametrize("query, page", PAGES.items())
def test_search_finds_the_page_among_the_first_three(query, page, index):
    assert page in search(index, query)[:3]
