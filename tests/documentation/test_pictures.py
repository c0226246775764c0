"""Every picture of the documentation is drawn by a command in `docs/images/README.md`, and the commands run."""
import re
import runpy
import sys

import pytest

from experiments.reproduction import entries, figures
from meta_policy_search.envs import make_env
from tests.documentation.test_execution import DOCS, PAGES, ROOT

TABLE = {command: re.findall(r"`([^`]+)`", pictures) for pictures, command in re.findall(
    r"^\| (.*) \| `(python .*)` \|$", (DOCS / "images" / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)}
SCRIPTS = [command for command in TABLE if "docs/draw_" in command]


def files_of(command):
    """Returns the pictures of a command, relative to the root of the checkout."""
    return {path.relative_to(ROOT).as_posix() for pattern in TABLE[command] for path in ROOT.glob(pattern)}


def pictures_of(page):
    """Returns the pictures that a page shows, relative to the root of the checkout."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names = re.findall(r"(?:image|figure):: (\S+)|:img-top: (\S+)|!\[[^]]*\]\((?!https?:)([^)\s]+)\)", text)
    return {((ROOT / page).parent / "".join(name)).resolve().relative_to(ROOT).as_posix() for name in names}


def test_every_picture_of_the_site_has_a_command():
    pages = [*PAGES, *(path.relative_to(ROOT).as_posix() for path in [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")])]
    shown = set().union(*map(pictures_of, pages))
    drawn = set().union(*map(files_of, TABLE))
    assert len(shown) > 40 and shown <= drawn
    stored = {path.relative_to(ROOT).as_posix() for path in (DOCS / "images").iterdir()
              if path.suffix in (".png", ".svg", ".webp")}
    assert stored <= shown


def draw(command, tmp_path, monkeypatch):
    """Runs a script with tiny sizes; returns the names of the pictures that it wrote."""
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    monkeypatch.delitem(sys.modules, "draw_adaptation", raising=False)
    runpy.run_path(str(ROOT / command.split()[1]))["main"](["--smoke", "--output", str(tmp_path)])
    for path in tmp_path.iterdir():
        assert path.stat().st_size > 500, path
    return {f"docs/images/{path.name}" for path in tmp_path.iterdir()}


@pytest.mark.documentation
@pytest.mark.parametrize("command", [command for command in SCRIPTS if "training_loop" not in command])
def test_command_draws_its_pictures(command, tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    if "tutorial" not in command:
        try:
            env = make_env("SwimmerRandVelEnv", render_mode="rgb_array")
            env.render()
            env.close()
        except RuntimeError as error:
            pytest.skip(str(error))
    assert draw(command, tmp_path, monkeypatch) == files_of(command)


def test_figures_equal_the_output_of_their_script():
    module = runpy.run_path(str(DOCS / "draw_training_loop.py"))
    for picture in module["PICTURES"]:
        assert (module["IMAGES"] / picture.file).read_text(encoding="utf-8") == module["draw"](picture), picture.file


def test_figures_of_results_show_every_trained_method():
    for name in entries.stored():
        methods, trained = entries.ENTRIES[name].methods, entries.read_training(name)
        labels = [method.label for method in methods if method.snapshot and method.name in trained]
        if labels:
            text = (figures.FIGURES / f"{name}.svg").read_text(encoding="utf-8")
            assert "<!-- environment steps -->" in text, name
            assert all(f"<!-- {label} -->" in text for label in labels if len(labels) > 1), name


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in entries.stored() if (figures.FIGURES / f"{name}.svg").exists()])
def test_command_draws_figures_of_results(name, tmp_path, monkeypatch):
    """The figures of an entry contain the stored values, but versions of Matplotlib place them differently."""
    old = (figures.FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    monkeypatch.setattr(figures, "FIGURES", tmp_path)
    monkeypatch.setattr(figures, "draw_paths", lambda name: None)
    figures.draw(name)
    (new,) = tmp_path.iterdir()
    assert re.findall("<!-- .* -->", new.read_text(encoding="utf-8")) == re.findall("<!-- .* -->", old)
