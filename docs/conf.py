"""Sphinx settings. `make docs` builds the documentation and treats warnings as errors."""
import inspect
import json
import os
import re
import sys
import typing
from pathlib import Path

from sphinx.util.inspect import stringify_signature

import meta_policy_search
from meta_policy_search.utils.serializable import Configurable, constructor_signature

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]  # local extensions, and `experiments`

project = "meta_policy_search"
author = "meta_policy_search developers"
copyright = f"{author}, MIT license"
version = release = meta_policy_search.__version__

extensions = [
    "algorithm_pages",
    "default_settings",
    "inherited",
    "myst_nb",  # Markdown and notebooks
    "public_names",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",  # one page per class
    "sphinx.ext.extlinks",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",  # cards
    "sphinx-mathjax-offline",  # equations without network access
]
extlinks = {  # places of the public code of ProMP
    "promp": ("https://github.com/jonasrothfuss/ProMP/blob/93ae339e23dfc6e1133f9538f2c7cc0ccee89d19/"
              "meta_policy_search/%s", "%s"),
}
exclude_patterns = ["_build", "images/README.md", "notebooks/README.md"]
templates_path = ["_templates"]
autosummary_imported_members = True
default_role = "literal"  # single backticks in docstrings mark code
nb_merge_streams = True  # one output block per cell
nb_execution_mode = "off"  # shows the saved outputs; tests/documentation/test_execution.py runs the notebooks
public_names_package = "meta_policy_search"
public_names_internal = [  # names that only modules of the package use
    "*.baselines.make_baseline",
    "*.samplers.errors.[a-z]*",
    "*.samplers.meta_sampler.make_executor",
    "*.cli.*",  # the page "Command line" documents the commands
    "*.actors.from_policy.vectorized_actor",
    "*.actors.parameters.*",
    "*.envs.*.Batched*",  # vectorized environments; the single environments are documented
    "*.envs.spaces.check_env_spec",
    "*.envs.compat.WrappingEnv", "*.envs.varied_env.parameters_from_json", "*.envs.varied_env.varied_parameters",
    "*.envs.varied_env.derived_assignments", "*.envs.varied_env.recompute", "*.envs.varied_env.walk",
    "*.envs.normalized_env.act_unscaled", "*.evaluation.evaluator.sample_deterministically",
    "*.envs.mujoco_envs.engines.[!b]*.*",
    "*.envs.mujoco_envs.engines.build.*",
    "*.envs.point_envs.*.distances",
    "*.envs.scenery.*",
    "*.envs.normalized_env.[a-z]*[a-z]s", "*.envs.normalized_env.check_wrapped_like",
    "*.envs.interface.WorldMetaEnv",
    "*.evaluation.loading.s*",
    "*.evaluation.evaluation.task_key", "*.evaluation.recording.next_start_rngs",
    "*.registry.Registry", "*.registry.import_name", "*.registry.search_current_folder", "*.envs.registry.tasks_of",
    "*.utils.ported_code.*",
    "*.evaluation.trial_evaluator.check_adapts", "*.evaluation.trial_evaluator.make_evaluator",
    "*.comparison.run_name", "*.parallel_runs.*",
    "*.optimizers.base.run_in_blocks", "*.optimizers.base.concatenate_blocks",
    "*.optimizers.base.first_non_finite", "*.optimizers.base.check_finite_params",
    "*.plotting.progress.*columns", "*.plotting.progress.number_of_last",
    "*.plotting.style.*",
    "*.samplers.vectorized_env_executor.[a-z]*.[a-z]*",
    "*.samplers.vectorized_env_executor.worker.*",
    "*.samplers.ray_executor.*",
    "*.samplers.rollout_loop.*",
    "*.samplers.single_task_sampler.[a-z]*",
    "*.training_loop.*",
    "*.utils.log_outputs.*",
    "*.utils.progress.*",
    "*.utils.video.*",
]

autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Observation", "Action", "Reward", "Tasks", "Start", "End", "Logs"]
viewcode_line_numbers = True

python_maximum_signature_line_length = 90  # longer signatures have one line per argument
toc_object_entries_show_parents = "hide"  # the right column is narrow
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = [] if "READTHEDOCS" in os.environ else [("versions.js", {"type": "module"})]  # it has its own switcher
html_title = f"meta_policy_search {release}"
html_show_sphinx = False
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")  # Read the Docs sets it and adds a version switcher
if os.environ.get("READTHEDOCS_VERSION_TYPE") == "branch":  # files of a tag cannot be edited
    html_theme_options = {  # shows links to edit a page
        "source_repository": os.environ["READTHEDOCS_GIT_CLONE_URL"].removesuffix(".git"),
        "source_branch": os.environ["READTHEDOCS_GIT_IDENTIFIER"],
        "source_directory": "docs/",
    }


def benchmark_figures() -> str:
    """Returns a substitution for each benchmark result, such as `|iteration.point.promp.total_s|`."""
    figures = json.loads((HERE.parent / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    return "".join(f".. |{key}| replace:: {_as_text(key, value)}\n" for key, value in figures.items())


def _as_text(key: str, value: typing.Any) -> str:
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if key.endswith("_steps_per_s"):
        return f"{round(value, -3 if value > 1e5 else -2):,.0f}"
    if key.endswith("_share"):
        return f"{100 * value:.0f}%"
    if key.endswith(("_scaling", "_over_arrays")):
        return f"{value:.2f}"
    return f"{value:,.0f} MiB" if key.endswith("_mib") else f"{value:#.2g} s" if value < 10 else f"{value:.0f} s"


rst_epilog = "\n" + benchmark_figures()

_FIELD = re.compile(r"    (\w+): [^#]*(?:# (.*))?")


def _has_fields(obj):
    return inspect.isclass(obj) and (typing.is_typeddict(obj) or (issubclass(obj, tuple) and hasattr(obj, "_fields")))


def list_fields(app, what, name, obj, options, lines):
    """Adds the fields of a NamedTuple or TypedDict to its docstring, with the comments on the same lines."""
    if _has_fields(obj):
        fields = [match for match in map(_FIELD.match, inspect.getsource(obj).splitlines()) if match]
        lines += ["Attributes:", *[f"    {field}: {comment or ''}" for field, comment in map(re.Match.groups, fields)]]


def keep_descriptions_whole(app, what, name, obj, options, lines):
    """Keeps napoleon from taking the text before a colon as a type, in `Returns:` and in docstrings of attributes."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = f": {lines[0]}"
    for number, line in enumerate(lines[:-1]):
        if line.strip() in ("Returns:", "Yields:"):
            lines[number + 1] = re.sub(r"^( +)(?=\S)", r"\1: ", lines[number + 1])


def skip_field(app, what, name, obj, skip, options):
    """Skips the fields of a NamedTuple as members, whose docstrings are 'alias for field number 0'."""
    return skip or type(obj).__name__ == "_tuplegetter" or None


def repair_signature(app, what, name, obj, options, signature, return_annotation):
    """Repairs signatures.

    Functions and classes in default values are shortened to their names. Protocols get no signature. Other classes show
    the arguments of `__init__`, where Sphinx would show those of `Configurable.__new__`.
    """
    if inspect.isclass(obj) and vars(obj).get("_is_protocol"):
        return "", None
    if inspect.isclass(obj) and issubclass(obj, Configurable):
        signature = stringify_signature(constructor_signature(obj), unqualified_typehints=True)
    return signature and re.sub(r"<(?:function|class) '?(?:\w+\.)*(\w+)'?>", r"\1", signature), return_annotation


_TITLE = re.compile(r"(?<=<h1>)[^<]+")
_WITHIN_NAMES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_.])(?=\w)|(?<=[A-Z]{4})(?=[A-Z][a-z])")


def break_titles(app, pagename, templatename, context, doctree):
    """Allows line breaks between the words of names in page titles, such as `MetaCategoricalMLPPolicy`."""
    if "body" in context:
        context["body"] = _TITLE.sub(lambda match: _WITHIN_NAMES.sub("<wbr>", match[0]), context["body"], count=1)


def hide_edit_link(app, pagename, templatename, context, doctree):
    """Removes the link that edits the page from generated pages, which are not in the repository."""
    if pagename.startswith("api/generated/"):
        context["page_source_suffix"] = ""


def setup(app):
    """Connects the functions above; those for docstrings run before napoleon."""
    app.connect("html-page-context", hide_edit_link)
    app.connect("html-page-context", break_titles)
    app.connect("autodoc-process-docstring", list_fields, priority=400)
    app.connect("autodoc-process-docstring", keep_descriptions_whole, priority=400)
    app.connect("autodoc-process-signature", repair_signature)
    app.connect("autodoc-skip-member", skip_field)
