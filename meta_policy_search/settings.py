"""Settings of a training: the arguments of the classes that it consists of, by name.

An argument is declared once, in the class that uses it: its name, type, default and description. The function
`meta_policy_search.train` passes each setting to every class that has an argument of this name. The command line, JSON
files, sweeps and `compare` translate text into such a call.
"""
import difflib
import functools
import inspect
import json
import re
import typing
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple, Union

from meta_policy_search.utils.checks import did_you_mean
from meta_policy_search.utils.files import user_path
from meta_policy_search.utils.serializable import constructor_signature, is_without_effect, type_hints

SUPPLIED = frozenset({
    "env", "env_spec", "obs_dim", "action_dim", "policy", "qf", "replay_buffer", "exploration_policy", "sampler",
    "sample_processor", "algo", "algo_class", "name", "n_itr", "start_itr", "sess", "callbacks",
    "is_discrete"})
"""Arguments of the classes that `train` supplies; they are not settings."""

SMOKE = {"n_itr": 2, "eval_every": 0, "meta_batch_size": 2, "rollouts_per_meta_task": 2, "envs_per_task": None,
         "max_path_length": 10, "hidden_sizes": (8,), "hidden_size": 8, "num_minibatches": 1, "n_samples": 20,
         "batch_size": 10, "steps_per_epoch": 2, "n_train_steps": 2, "min_buffer_size": 10}
"""Settings of a smoke test, which takes seconds and only checks that everything works."""

_ELSEWHERE = {name: here for here, names in {
    "discount": "gamma discount_factor", "env": "environment env_name env_id",
    "learning_rate": "meta_lr outer_lr meta_learning_rate",
    "mps.compare with seeds, or the key 'seed' of the grid of mps.sweep": "seeds n_seeds num_seeds",
    "mps.train, which takes callbacks": "callbacks",
    "algo": "algorithm", "n_itr": "total_timesteps num_iterations n_iterations iterations num_batches",
    "n_itr (iterations) or num_ppo_steps of promp (passes per iteration)": "n_epochs num_epochs epochs",
    "num_ppo_steps of promp": "maml_optimizer_steps",
    "entropy_coef": "ent_coef entropy_weight", "parallel": "n_workers num_workers n_cpu num_cpu",
    "parallel (or processes of compare)": "n_jobs",
    "envs_per_task": "n_envs num_envs", "log_formats": "verbose", "clip_eps": "clip_range clip_param",
    "max_path_length": "horizon max_episode_steps episode_length max_steps",
    "meta_batch_size": "num_tasks n_tasks tasks tasks_per_batch meta_bsz",
    "hidden_sizes": "num_layers hidden_layers net_arch layers", "hidden_sizes and hidden_nonlinearity": "model",
    "rollouts_per_meta_task": "rollouts num_rollouts episodes_per_task fast_batch_size adapt_batch_size",
    "num_inner_grad_steps": "num_updates num_grad_updates adapt_steps adaptation_steps inner_steps "
                            "inner_adaptation_steps",
    "folder": "dump_path output", "init_inner_kl_penalty of promp": "kl_coeff",
    "the arguments of the policy, such as hidden_sizes": "policy_kwargs",
    "eval_every": "eval_freq eval_interval", "scale_reward": "reward_scale", "init_std": "sigma",
    "normalize_obs": "obs_norm", "callbacks=[mps.EarlyStopping(...)]": "early_stopping",
    'the argument tasks="test" of the method evaluate of the run': "test_tasks",
    "the arguments of the file: mps.train(env, **settings)": "config_file",
    "inner_lr": "inner_step_size alpha adapt_lr fast_lr inner_loop_lr",
    "hidden_nonlinearity": "activation activation_fn",
    "dump_path": "folder log_dir logdir save_dir", "resume=True or another dump_path": "overwrite",
    "meta_batch_size (tasks) and rollouts_per_meta_task (paths per task)": "batch_size n_steps",
    "the environment variable CUDA_VISIBLE_DEVICES": "device gpu use_gpu cuda", "step_size of trpo_maml": "max_kl",
    "log_formats=['csv', 'tensorboard']": "tensorboard_log",
    "the argument sample_processor_cls of an own algorithm (documentation page 'Custom sample processors')":
        "sample_processor sample_processor_cls",
    "an own policy (documentation page 'Custom policies')": "layer_norm"}.items() for name in names.split()}
"""Names of settings in other libraries, and what to use here."""

Owners = Callable[[str], Iterable[str]]

Component = Union[type, Callable[..., Any]]
"""A class or function whose arguments are settings."""


class Setting(NamedTuple):
    """An argument of a class or function."""

    name: str
    hint: Any  # type hint without marks; the type of the default if there is no hint
    default: Any  # `inspect.Parameter.empty` if the argument is required
    help: str  # description in the docstring; empty if there is none
    affects_result: bool  # False for arguments whose type hint is marked with `types.WithoutEffect`


def inherit_default_settings(cls: Any) -> None:
    """Extends the `default_settings` of a new class by those of its base classes, in the order of inheritance."""
    cls._own_default_settings = vars(cls).get("default_settings", {})
    cls.default_settings = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).get(
        "_own_default_settings", vars(base).get("default_settings", {})).items()}


def settings_of(parts: Iterable[Component], supplied: Iterable[str] = SUPPLIED) -> Dict[str, Setting]:
    """Returns the settings of classes and functions by name.

    Args:
        parts: the classes and functions. An argument `**kwargs` of a class stands for the arguments of its base class.
            If several have the same argument, the first one that declares a type or a default is used.
        supplied: names of arguments that are not settings; default `SUPPLIED`.
    """
    found: Dict[str, Setting] = {}
    for part in parts:
        for name, setting in _arguments(part).items():
            if name not in supplied and (name not in found or found[name].hint is type):  # neither type nor default
                found[name] = setting
    return found


@functools.lru_cache(maxsize=None)
def _arguments(part: Component) -> Dict[str, Setting]:
    function: Any = part.__init__ if isinstance(part, type) else part  # type: ignore[misc]
    signature = constructor_signature(part) if isinstance(part, type) else inspect.signature(part)
    hints = type_hints(function)
    texts: Dict[str, str] = {}
    for documented in reversed(inspect.getmro(part) if isinstance(part, type) else [part]):  # a subclass may add some
        texts.update(describe_arguments(inspect.cleandoc(documented.__doc__ or "")))
    found: Dict[str, Setting] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and isinstance(part, type):
            found.update({key: value for key, value in _arguments(part.__mro__[1]).items() if key not in found})
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        hint = hints.get(name, type(parameter.default))
        without_effect = is_without_effect(hint)
        found[name] = Setting(name, typing.get_args(hint)[0] if without_effect else hint, parameter.default,
                              texts.get(name, ""), not without_effect)
    return found


def describe_arguments(doc: str) -> Dict[str, str]:
    """Returns the descriptions in the section `Args:` of a docstring, by name of the argument.

    Args:
        doc: a docstring in Google style, without indentation (`inspect.getdoc`).
    """
    section = re.search(r"^Args:\n((?: .*\n|\n)+)", doc + "\n", re.MULTILINE)
    entries = re.findall(r"^    (\w[\w, ]*?)(?: \([^)]*\))?: (.*\n(?:        .*\n|\n)*)", section[1] if section else "",
                         re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def check_names(settings: Iterable[str], known: Iterable[str], what: str, owners: Owners = lambda name: ()) -> None:
    """Raises `TypeError` if a setting is not known.

    Args:
        settings: names of the settings.
        known: valid names.
        what: end of the message after the name, such as "for ProMP".
        owners: function that returns the names of the algorithms that have a setting. Default: none has it.
    """
    known = set(known)
    for name in settings:
        if name not in known:
            raise TypeError(f"unknown setting {name!r} {what}{advise(name, known, owners)}")


def advise(name: str, known: Iterable[str], owners: Owners) -> str:
    """Returns the end of a message about an unknown setting: what to use instead; for arguments, see `check_names`."""
    plain = name.lstrip("-").replace("-", "_")
    if (here := _ELSEWHERE.get(plain)) and (here in known or here not in ("folder", "dump_path")):
        return f"; use {here}"
    if plain in ("lr", "learning_rate") and "step_size" in known:
        outer = "learning_rate or " * ("learning_rate" in known)
        return f"; use {outer}step_size (trust region of the meta-update) or inner_lr (adaptation)"
    if algorithms := ", ".join(owners(plain)):
        return f"; it is a setting of {algorithms}" + "".join(
            f"; did you mean {other!r}?" for other in difflib.get_close_matches(name, known, n=1, cutoff=0.9))
    return did_you_mean(name, known) or ("; `meta-policy-search train ALGORITHM --help` lists the settings. Pass "
                                         "arguments of the environment in env_kwargs or vary. For a setting of your "
                                         "own policy or algorithm, also give that class (command line: MODULE:NAME)")


def differences(before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]) -> str:
    """Returns the settings that differ, such as "inner_lr 0.1 (snapshot), 0.2 (trainer)"; empty if there are none.

    Args:
        before: settings by name; those that only one mapping has are ignored.
        now: other settings.
        names: what the values before and now belong to, such as `("snapshot", "trainer")`.
    """
    return "; ".join(f"{name} {before[name]!r} ({names[0]}), {value!r} ({names[1]})" for name, value in now.items()
                     if name in before and before[name] != value)


def _without_repetitions(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    if repeated := [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]:
        raise ValueError(f"expected each key once, got {repeated[0]!r} several times")
    return dict(pairs)


def read_json(path: str) -> Dict[str, Any]:
    """Reads an object from a JSON file.

    Raises:
        ValueError: the file is missing, or its content is not a JSON object.
    """
    try:
        with open(user_path("path", path), encoding="utf-8") as file:
            content = json.loads(file.read(), object_pairs_hook=_without_repetitions)
    except (OSError, ValueError, RecursionError) as error:  # missing, invalid JSON, or nested too deeply
        kind = "" if isinstance(error, OSError) else " as JSON"
        raise ValueError(f"could not read {path}{kind}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content
