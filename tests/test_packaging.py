"""Tests packages, metadata, declared dependencies, the Makefile and the files that hosting sites and tools read."""
import ast
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import setuptools
import yaml

import meta_policy_search as mps
from experiments.reproduction.entries import ENTRIES

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = {"PIL": "pillow", "dateutil": "python_dateutil", "yaml": "pyyaml"}  # if the name of the import differs


@pytest.fixture
def metadata(monkeypatch):
    """Returns the arguments that `setup.py` passes to `setup` in a process that cannot import the package."""
    given = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", lambda **kwargs: given.update(kwargs))
    monkeypatch.setitem(sys.modules, "meta_policy_search", None)
    runpy.run_path("setup.py")
    return given


def test_folders_of_the_checkout_hide_no_packages_of_users(tmp_path):
    """An installation in place makes all folders of the checkout importable."""
    for name in ("benchmarks", "experiments", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").touch()
    script = "import benchmarks.mine, experiments.mine, tests.mine, experiments.pro_mp"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True)


def test_version_is_defined_once_and_quoted_correctly(metadata):
    version = mps.__version__
    assert metadata["version"] == version
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == version
    assert f"\n## [{version}] - {citation['date-released']}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_archive_and_citation_name_the_same_papers_and_keywords():
    citation, archive = read_yaml("CITATION.cff"), json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    papers = [reference["identifiers"][0]["value"] for reference in citation["references"]]
    assert papers == [paper["identifier"] for paper in archive["related_identifiers"]]
    assert (citation["title"], citation["keywords"]) == (archive["title"], archive["keywords"])


def test_references_of_the_paper_are_complete():
    cited = re.findall(r"@(\w+)", (ROOT / "paper" / "paper.md").read_text(encoding="utf-8"))
    listed = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(set(cited)) == sorted(listed)


def test_description_has_every_section_of_the_readme_but_no_relative_links(metadata):
    description, readme = metadata["long_description"], (ROOT / "README.md").read_text(encoding="utf-8")
    link = r"\]\((?!https:)"
    assert re.findall(link, readme) and not re.findall(link, description)
    assert "](docs/images" not in description and "Top: before adaptation" not in description
    assert "The license is MIT." in description  # the text of a link remains
    readme = re.sub(rf"\[([^]]*){link}[^)]*\)", r"\1", readme)
    for kept in (r"^#+ .*", r"^\|.*?\|", r"\]\(https:.*?\)"):
        assert re.findall(kept, description, re.MULTILINE) == re.findall(kept, readme, re.MULTILINE)


def test_badges_of_the_readme_equal_the_metadata(metadata):
    lowest, *_, highest = re.findall(r"Python :: (3\.\d+)", " ".join(metadata["classifiers"]))
    badges = re.findall(r"^!\[.*\]\(https://img\.shields\.io/badge/(.*)-blue\)$", (ROOT / "README.md").read_text(),
                        flags=re.MULTILINE)
    assert badges == [f"license-{metadata['license_expression']}", f"python-{lowest}_to_{highest}"]


OPTIONAL = {"envpool", "ipython", "pandas"}  # used in a benchmark, a notebook and `run.to_dataframe` if installed


def imported_names(folder):
    """Returns the top-level names of modules in a folder that are imported from outside the standard library."""
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names)


@pytest.mark.parametrize("folder", ["meta_policy_search", "experiments", "benchmarks", "tests"])
def test_imported_packages_are_declared_dependencies(metadata, folder):
    own = {"meta_policy_search", "experiments", "benchmarks", "tests",
           *(path.stem for path in (ROOT / folder).rglob("*.py"))}
    extras = {name: needed for name, needed in metadata["extras_require"].items() if name != "dev" or folder == "tests"}
    requirements = metadata["install_requires"] + sum(extras.values(), [])
    declared = {re.match(r"[\w-]+", requirement)[0].replace("-", "_").lower() for requirement in requirements}
    imported = {DISTRIBUTIONS.get(name, name).lower() for name in imported_names(ROOT / folder) - own}
    assert imported <= declared | OPTIONAL


def make(*arguments, **variables):
    """Returns the output of `make`, run without this process's make variables."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    result = subprocess.run(["make", "--no-print-directory", *arguments], cwd=ROOT, env={**environment, **variables},
                            capture_output=True, text=True, check=True)
    return result.stdout


def test_help_lists_every_target_and_variable():
    """Plain `make` explains every phony target and every variable in one line."""
    makefile, said = (ROOT / "Makefile").read_text(), make()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)[1].split()
    assert sorted(re.findall(r"^  ([a-z-]+) +\S", said, flags=re.MULTILINE)) == sorted(targets)
    settable = {*re.findall(r"^([A-Z_]+) \?=", makefile, flags=re.MULTILINE), "ENV"}
    assert set(re.findall(r"^  ([A-Z_]+) +\S", said, flags=re.MULTILINE)) == settable


def train_command(*arguments, **variables):
    return shlex.split(make("-n", "train", *arguments, **variables).splitlines()[-1])[1:]


def test_make_train_passes_its_variables_to_the_script():
    """The half cheetah has the settings of an entry in the results; some shells export a variable ENV."""
    default = train_command(ENV="/etc/some-shell-startup-file")
    assert default[:3] == ["experiments/pro_mp.py", "--env", "HalfCheetahRandDirecEnv"] and "--smoke" not in default
    preset = json.loads((ROOT / default[default.index("--config_file") + 1]).read_text())
    entry = ENTRIES["minutes_half_cheetah_direction"]
    settings = {**entry.settings, **next(each for each in entry.methods if each.name == "few_tasks").settings}
    assert settings == {**preset, "plot_gap": settings["plot_gap"], "eval_every": 0}
    given = train_command("ENV=MetaPointEnv", "SEED=2", "ITERATIONS=400", "DUMP_PATH=a b",
                          "ARGS=--inner_lr 0.2", SMOKE="1")
    assert given[1:] == ["--env", "MetaPointEnv", "--seed", "2", "--config_file", "experiments/configs/make_train.json",
                         "--n_itr", "400", "--dump_path", "a b", "--smoke", "--inner_lr", "0.2"]


@pytest.mark.parametrize("status", [0, 1])
def test_pip_output_goes_to_a_file_whose_end_is_shown_on_failure(status, tmp_path):
    """A successful pip prints nothing; a failing pip prints its last twenty lines."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\n[ "$2" = pip ] || exit 0\nseq -f "line %g" 100\nexit {status}\n')
    python.chmod(0o755)
    if status == 0:
        assert "line" not in make("extras", f"VENV={tmp_path}", "EXTRAS=video,ray")
        assert (tmp_path / ".installed-video,ray").exists()
    else:
        with pytest.raises(subprocess.CalledProcessError) as failure:
            make("extras", f"VENV={tmp_path}")
        assert re.findall(r"line (\d+)", failure.value.stdout) == [str(i) for i in range(81, 101)]
        assert f"complete output: {tmp_path}/install.log" in failure.value.stdout
        assert not (tmp_path / ".installed-video").exists()
    assert (tmp_path / "install.log").read_text().count("\n") == 100


def test_unknown_extra_is_reported(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "WARNING: meta_policy_search 1.0 does not provide the extra \'vidoe\'"\n')
    python.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError) as failure:
        make("extras", f"VENV={tmp_path}", "EXTRAS=vidoe")
    assert "does not provide the extra 'vidoe'" in failure.value.stdout
    assert not (tmp_path / ".installed-vidoe").exists()


def read_yaml(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_workflow_runs_all_checks_with_every_supported_python(metadata):
    job = read_yaml(".github/workflows/ci.yml")["jobs"]["checks"]
    supported = [name.split()[-1] for name in metadata["classifiers"] if "Python :: 3." in name]
    assert job["strategy"]["matrix"]["python"] == supported
    *_, install, run = job["steps"]
    assert run["run"] == "bash .ci/run --thorough" and (ROOT / ".ci" / "run").is_file()
    assert "libegl1 libgl1-mesa-dri" in install["run"]


def test_actions_are_pinned_by_hash_with_the_version_in_a_comment():
    used = [line for path in (ROOT / ".github" / "workflows").glob("*.yml")
            for line in re.findall(r"uses: (?!\./)(.*)", path.read_text())]
    assert used and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+", line) for line in used)


def test_release_publishes_the_packages_that_passed_all_checks():
    jobs = read_yaml(".github/workflows/release.yml")["jobs"]
    assert jobs["checks"]["uses"] == "./.github/workflows/ci.yml"
    assert [jobs[name]["needs"] for name in ("build", "publish", "release")] == ["checks", "build", "publish"]
    assert 'bash .ci/release "$GITHUB_REF_NAME"' in [step.get("run") for step in jobs["build"]["steps"]]
    assert not [step for step in jobs["publish"]["steps"] if "run" in step]  # the job that may publish runs no code


def test_pre_commit_runs_commands_of_make_lint_in_supported_versions(metadata):
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    lint = make("-n", "lint")
    for hook in repository["hooks"]:
        assert hook["entry"].removesuffix(" --force-exclude") in lint
        (pinned,) = hook["additional_dependencies"]
        name, version = pinned.split("==")
        (lowest,) = [bound for bound in metadata["extras_require"]["dev"] if bound.startswith(f"{name}>=")]
        assert list(map(int, version.split("."))) >= list(map(int, lowest.split(">=")[1].split(".")))


def test_image_contains_the_files_that_its_commands_need():
    """The image gets the listed files, installs the package with the documented command and shows existing flags."""
    lines = re.findall(r"^([A-Z]+) (.*)$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    steps = dict(lines)
    copied = set(re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE))
    assert [name for name, _ in lines] == ["FROM", "ENV", "WORKDIR", "COPY", "RUN", "CMD"] and steps["COPY"] == ". ."
    assert copied >= {"setup.py", "pyproject.toml", "meta_policy_search"}
    assert all((ROOT / name).exists() for name in copied)
    assert set(re.findall(r'ROOT / "([\w.]+)"', (ROOT / "setup.py").read_text())) <= copied
    assert f"   $ {steps['RUN']}\n" in (ROOT / "docs" / "installation.rst").read_text()
    _, script, _ = ast.literal_eval(steps["CMD"])
    assert (ROOT / script).is_file() and Path(script).parts[0] in copied
