"""High-level API: one function call each to train, load, evaluate, plot or resume a run."""
import contextlib
import copy
import functools
import hashlib
import os
import reprlib
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from meta_policy_search import run_folder
from meta_policy_search.envs import MetaEnv, SingleTaskEnv, TrialEnv, VariedEnv, find_env, get_env_class, make_env
from meta_policy_search.envs.compat import (
    adapt_env,
    check_has_spaces,
    check_steppable,
    copy_env,
    has_tasks,
    layers,
    name_of_env,
)
from meta_policy_search.envs.normalized_env import act_unscaled
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.envs.varied_env import parameters_from_json, varied_parameters
from meta_policy_search.evaluation import EvalCallback, Evaluation
from meta_policy_search.evaluation.adapted_policy import AdaptedPolicy, adapt_with
from meta_policy_search.evaluation.trial_evaluator import make_evaluator
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.meta_algos import MetaAlgo
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import RLAlgorithm
from meta_policy_search.plotting import draw_pictures, final_returns, mean_gain, plot_learning_curve, read_progress
from meta_policy_search.plotting.progress import number_of_last
from meta_policy_search.plotting.style import Figure
from meta_policy_search.policies import MetaPolicy, Policy
from meta_policy_search.registry import available_algorithms, get_algorithm, import_name, name_of, title_of
from meta_policy_search.run_spec import RunSpec, as_json, spec_of
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.samplers.ray_executor import Parallel
from meta_policy_search.settings import Setting, check_names, differences, settings_of
from meta_policy_search.tf_compat import tf
from meta_policy_search.training_loop import check_callbacks, check_replaced
from meta_policy_search.types import Task, WithoutEffect
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.callbacks import Callback, StatefulCallback
from meta_policy_search.utils.checks import check_bool, check_int_at_least, check_not_replaced, check_positive_int
from meta_policy_search.utils.files import PathLike, lock_folder, user_path
from meta_policy_search.utils.log_outputs import Row, check_formats
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.snapshotter import BEST, LAST, check_mode, load_snapshot, snapshot_paths, state_of
from meta_policy_search.utils.statistics import exact_mean, mean_interval
from meta_policy_search.utils.threads import training_lock
from meta_policy_search.utils.utils import set_seed

_LOG_FORMATS = ("line", "log", "csv")
_FINAL_PATHS = 20  # paths that measure the final policy of a single-task algorithm


@training_lock()
def train(env: Union[str, Any], algo: Union[str, type] = "promp", n_itr: Optional[int] = None, seed: int = 1,
          dump_path: Optional[PathLike] = None, callbacks: Sequence[Callback] = (),
          log_formats: WithoutEffect[Sequence[str]] = _LOG_FORMATS, policy: Union[str, Policy, type, None] = None, *,
          env_kwargs: Optional[Mapping[str, Any]] = None, vary: Optional[Mapping[str, Any]] = None,
          snapshot_mode: WithoutEffect[str] = "last_gap", snapshot_gap: WithoutEffect[int] = 100,
          plot_gap: WithoutEffect[Optional[int]] = None, progress_bar: WithoutEffect[bool] = True,
          resume: bool = False, **settings: Any) -> "Run":
    """Trains a policy that adapts to the tasks of an environment.

    In a new graph, the function builds the parts that the class of the algorithm declares (`MetaAlgo`): wrappers of the
    environment such as `normalize`, a policy for the environment's spaces, a `MetaSampler`, a sample processor, the
    algorithm and a `Trainer`. For an algorithm that learns a single task (CEM, CMA-ES, DDPG), it builds the algorithm
    and a `LocalRunner`; the task of a meta-environment is sampled with the seed.

    Args:
        env: environment, or the name of one (`find_env`), such as a name in `available_envs`, MODULE:NAME of a class or
            function that returns an environment, or the id of a Gymnasium environment. An environment without tasks
            needs `vary` or a single-task algorithm.
        algo: `"promp"`, `"trpo_maml"`, `"e_maml"`, `"vpg_maml"`, `"dice_maml"`, `"vpg_dice_maml"`, `"rl2"`, `"cem"`,
            `"cma_es"`, `"ddpg"`, another name registered with `register_algorithm`, MODULE:NAME of a class, or a
            subclass of `MetaAlgo` or `RLAlgorithm`. Case, hyphens and underscores are ignored. Default `"promp"`.
        n_itr: number of iterations, each with one meta-update (single task: epochs). Default None: 100; CEM, CMA-ES:
            30; DDPG: 15.
        seed: root seed of all random generators, at least 0; default 1.
        dump_path: run folder. Default None: `data/<algorithm>/<environment>/<time>_seed<seed>`.
        callbacks: called in every iteration, see `Trainer`; default none. `train` copies those with a state
            (`StatefulCallback`); the copies are in `run.trainer.callbacks`.
        log_formats: outputs, see `utils.logger`; must include csv. Default: one line per iteration on the terminal,
            `log.txt` and `progress.csv`.
        policy: the policy, its class, or MODULE:NAME of its class. A class is built with `for_env` and the settings.
            `train` copies a policy; the trained copy is `run.policy`. Default None: the default class of the algorithm
            for the environment's spaces, such as `MetaGaussianMLPPolicy`.
        env_kwargs: arguments of the environment class, if `env` is a name. Default: none.
        vary: parameters of a Gymnasium environment that the tasks set, with their distributions, if `env` is a name;
            see `meta_policy_search.vary`. As in JSON, two numbers are a range, other lists contain the values to draw
            from, and `{"values": [1, 2]}` draws from a list of two numbers. Default: none.
        snapshot_mode: which snapshots to keep: `all`, `last`, `gap`, `last_gap` or `none`; see `utils.snapshotter`.
            Default `last_gap`.
        snapshot_gap: number of iterations between snapshots in the modes `gap` and `last_gap`; default 100.
        plot_gap: number of iterations between updates of the picture `learning_curve.png`; 0: only at the end. Default
            None: no picture.
        progress_bar: whether to show a progress bar on a terminal or in a notebook; default True.
        resume: whether to continue the run in `dump_path`. Its settings must equal those of this call, except that
            `n_itr` may be larger. Options without effect on the result are replaced, except `eval_every` and
            `eval_tasks`, which must be equal. A complete run is returned. If the folder contains no run, or one that
            ended before its first snapshot, a new run starts. Default False: a folder with a run is an error.
        **settings: arguments of `make_trainer` (single task: `make_runner`) and of the parts by name, such as
            `inner_lr`, `hidden_sizes` or `discount`. Each setting is passed to every part that has an argument of this
            name. The defaults are those of the classes, except for those in `default_settings` of the algorithm. A
            `baseline` is an object, which is copied, or the name of a class. The documentation page "Default settings"
            compares the defaults with the published settings.

    Returns:
        The run. After Ctrl-C (in a notebook: the stop button), it has the completed iterations, and a message says how
        to resume it. A loop over several calls continues after Ctrl-C; press it again to end the loop.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed before the first iteration was complete.
        TypeError: a setting is not an argument of any of the parts (the message suggests the closest name), or the
            policy does not fit the algorithm.
        ValueError: the name of the environment or algorithm is unknown, the folder holds a run and `resume` is False or
            its settings differ, a setting is out of range, or the policy does not fit the environment.
        RuntimeError: another thread of this process is training or evaluating.
    """
    check_bool("resume", resume)
    formats = check_formats(log_formats, "log_formats")
    if "csv" not in formats:
        raise ValueError(f"log_formats: expected formats including 'csv', got {log_formats!r}")
    check_mode(snapshot_mode, snapshot_gap)
    if plot_gap is not None:
        check_int_at_least("plot_gap", plot_gap, 0)
    if resume and dump_path is None:
        raise ValueError("dump_path: expected the folder of the run, because resume=True was given, got None")
    dump_path = None if dump_path is None else user_path("dump_path", dump_path)
    options = {"log_formats": formats, "snapshot_mode": snapshot_mode, "snapshot_gap": snapshot_gap,
               "plot_gap": plot_gap}
    given = {"n_itr": n_itr, "policy": policy, "env_kwargs": env_kwargs, "vary": vary}
    settings = {"env": env, "seed": seed, **settings,
                **{name: value for name, value in given.items() if value is not None}}
    if resume and snapshot_paths(str(dump_path)):
        return _continue(dump_path, algo, settings, callbacks, {**options, "progress_bar": progress_bar})
    if dump_path is not None:
        run_folder.check_is_unused(dump_path)
    with seeding.generators_kept(), tf.Graph().as_default():
        trainer = build_trainer(algo=algo, callbacks=callbacks, progress_bar=progress_bar, **settings)
        spec = trainer.spec = trainer.spec._replace(options={**trainer.spec.options, **as_json(options)})
        n_itr, env_name = spec.settings["n_itr"], spec.settings["env"]
        folder = dump_path or run_folder.make_run_folder(spec.algorithm, env_name, seed)
        with logger.scoped_configure(folder, formats, snapshot_mode, snapshot_gap,
                                     overwrite=run_folder.ended_before_first_snapshot(folder)):
            count = f"{n_itr} iteration{'s' * (n_itr != 1)}"
            logger.log(f"{env_name}, seed {seed}: {count} of {title_of(spec.algorithm)}, written to {folder}")
            for callback in trainer.callbacks:
                if isinstance(callback, EvalCallback) and callback.every > n_itr:
                    logger.warn(f"the run has no evaluation, because n_itr={n_itr} is less than eval_every="
                                f"{callback.every}")
            return Run(trainer, folder)._train(n_itr)


def _continue(folder: Any, algo: Any, settings: Mapping[str, Any], callbacks: Sequence[Callback],
              options: Mapping[str, Any]) -> "Run":
    """Resumes the run in a folder, unless it is complete, for `train(resume=True)`."""
    declared = check_same_run(folder, algo, **settings)
    n_itr, run = settings.get("n_itr", declared["n_itr"].default), load_run(folder)
    if run_folder.RunInfo.read(folder).is_done(n_itr):
        return run
    options = {**options, **{name: value for name, value in settings.items() if not declared[name].affects_result}}
    return run.resume(n_itr, callbacks=[copy.deepcopy(callback) if isinstance(callback, StatefulCallback) else callback
                                        for callback in callbacks], **options)


def check_same_run(folder: Any, algo: Any, **settings: Any) -> Dict[str, Setting]:
    """Raises `ValueError` if a folder contains a run with another algorithm or other settings; `n_itr` may be larger.

    Of objects, what `params.json` records is compared, such as the arguments of an environment. A setting that only
    the run was given is compared with the default.

    Args:
        folder: run folder.
        algo: name or class of the algorithm.
        **settings: arguments of `train` that affect the result; others are ignored.

    Returns:
        The settings of a training with the algorithm.
    """
    declared = check_settings(algo, settings)
    params = run_folder.read_params(folder)
    recorded = {**params.get("settings", {}), "algorithm": str(params.get("algorithm")).rpartition(":")[2]}
    env, policy = settings["env"], settings.get("policy")
    name = algo if isinstance(algo, str) and ":" in algo else name_of(find_algo_class(algo))
    chosen = {"algorithm", "n_itr", "env_kwargs", *params.get("given", ()), *settings}
    now = {"algorithm": name.rpartition(":")[2], **{name: settings.get(name, setting.default)
                                                    for name, setting in declared.items() if setting.affects_result}}
    now.update(env=find_env_name(env), policy=name_of_policy(policy), env_kwargs=now["env_kwargs"] or {},
               n_itr=check_positive_int("n_itr", now["n_itr"] or declared["n_itr"].default))
    if not isinstance(env, str):
        now.update(env_kwargs=spec_of("", env).describe()["settings"]["env_kwargs"], vary=varied_parameters(env))
        chosen.add("vary")
    if recorded.get("n_itr", 0) < now["n_itr"]:  # the run is extended
        chosen.remove("n_itr")
    differing = differences(recorded if "settings" in params else {}, {
        name: as_json(value) for name, value in now.items() if name in chosen}, ("run", "now"))
    if differing:
        raise ValueError(f"{os.fspath(folder)} contains a run with different settings: {differing}. Choose another "
                         "folder")
    return declared


def check_settings(algo: Any, settings: Mapping[str, Any]) -> Dict[str, Setting]:
    """Returns the settings of a training with an algorithm; raises `TypeError` if `settings` has another name."""
    algo_class = find_algo_class(algo)
    declared = settings_of_algorithm(algo_class, settings.get("policy"))
    check_names(settings, declared, f"for {algo_class.__name__}", functools.partial(others_with, algo_class))
    return declared


def others_with(algo_class: Any, setting: str) -> List[str]:
    """Returns the names of the algorithms with a setting; [] if `algo_class` also has it, for other environments."""
    names = [] if algo_class and setting in settings_of_algorithm(algo_class) else available_algorithms()
    return [name for name in names if setting in settings_of_algorithm(get_algorithm(name))]


def build_trainer(env: Any, algo: Union[str, type] = "promp", *, seed: int = 1, callbacks: Sequence[Callback] = (),
                  progress_bar: WithoutEffect[bool] = False, **settings: Any) -> Any:
    """Sets the seed, then builds the trainer that `train` would run, in the default graph; for arguments, see `train`.

    Returns:
        A `Trainer`; for an algorithm that learns a single task, a `LocalRunner`.
    """
    algo_class = find_algo_class(algo)
    check_callbacks(callbacks)
    given = {"env", "seed", *settings}
    policy, env_kwargs, vary = (settings.pop(name, None) for name in ("policy", "env_kwargs", "vary"))
    n_itr = check_positive_int("n_itr", settings.pop("n_itr", algo_class.default_settings["n_itr"]))
    env_name, is_name = find_env_name(env), isinstance(env, str)
    set_seed(seed := check_int_at_least("seed", seed, 0))
    build: Any = make_trainer if issubclass(algo_class, MetaAlgo) else make_runner
    values = {**algo_class.default_settings, **settings, "progress_bar": progress_bar}
    arguments = {name: value for name, value in values.items() if name in settings or name in settings_of([build])}
    env_kwargs = {} if env_kwargs is None else env_kwargs
    env = make_env_of(env, env_kwargs, vary)
    trainer = build(env, algo_class, n_itr, callbacks, find_policy(policy), **arguments)
    trainer.callbacks = [copy.deepcopy(callback) if isinstance(callback, StatefulCallback) else callback
                         for callback in trainer.callbacks]
    declared = settings_of_algorithm(algo_class, type(trainer.algo.policy))
    of_builders = settings_of([build] if build is make_trainer else [build, algo_class.for_env])
    values = {name: values.get(name, setting.default) for name, setting in of_builders.items()} | settings
    if is_name:
        values["env_kwargs"] = env_kwargs
    values.update(env=env_name, seed=seed, vary=varied_parameters(env) if vary is None else vary, n_itr=n_itr,
                  policy=name_of_policy(policy))
    trainer.spec = trainer.spec._replace(
        algorithm=algo if isinstance(algo, str) and ":" in algo else name_of(algo_class), given=tuple(sorted(given)),
        settings=as_json({name: value for name, value in values.items() if declared[name].affects_result}),
        options=as_json({name: value for name, value in values.items() if not declared[name].affects_result}))
    return trainer


def find_algo_class(algo: Union[str, type]) -> Any:
    """Returns the class of an algorithm, given by name or class; raises `TypeError` or `ValueError` for others."""
    algo_class = get_algorithm(algo) if isinstance(algo, str) else algo
    if not (isinstance(algo_class, type) and issubclass(algo_class, (MetaAlgo, RLAlgorithm))):
        raise TypeError(f"algo: expected a subclass of MetaAlgo or RLAlgorithm, or its name, got {algo!r}")
    return algo_class


def find_policy(policy: Any) -> Any:
    """Returns a policy or a class of policies, given as in `train`."""
    return import_name("policy", policy, {}) if isinstance(policy, str) else policy


def name_of_policy(policy: Any) -> Any:
    """Returns MODULE:NAME of a class of policies; of a policy, its arguments and a hash of its parameters."""
    if isinstance(policy, type):
        return f"{policy.__module__}:{policy.__qualname__}"
    if isinstance(policy, Policy):
        digest = hashlib.sha256(policy.get_flat_params().tobytes()).hexdigest()
        return f"{as_json(policy)}, parameters {digest[:8]}"
    return as_json(policy)


def find_env_name(env: Any) -> str:
    """Returns the name of an environment in folders, tables and plots; raises `ValueError` for an unknown name."""
    return find_env(env) if isinstance(env, str) else name_of_env(check_steppable(env))


def make_env_of(env: Any, env_kwargs: Mapping[str, Any], vary: Optional[Mapping[str, Any]] = None) -> Any:
    """Returns the environment of a training: a copy of `env`, which training can change, or a new one of this name.

    Raises:
        TypeError: a function did not return an environment, or `env_kwargs` or `vary` are no dict, or given for an
            environment.
        ValueError: there is no environment of this name, or see `vary`.
    """
    if not isinstance(env_kwargs, Mapping):
        raise TypeError('env_kwargs: expected a dict, in JSON on the command line, such as {"max_velocity": 2.0}, got '
                        f"{reprlib.repr(env_kwargs)}")
    if isinstance(env, str):
        try:
            if vary is not None:
                return VariedEnv(functools.partial(get_env_class(env), **env_kwargs), parameters_from_json(vary))
            return check_steppable(make_env(env, **env_kwargs))
        except (ImportError, TypeError, ValueError):
            raise
        except Exception as error:  # raised by the environment
            raise ValueError(f"env: expected an environment that can be built, got {env} with "
                             f"env_kwargs={dict(env_kwargs)}: {type(error).__name__}: {error}") from error
    for name, value in (("env_kwargs", env_kwargs), ("vary", vary)):
        if value:
            raise TypeError(f"{name}: expected none for an environment that exists, got {dict(value)}")
    return copy_env(env)


def make_trainer(env: Any, algo_class: Any, n_itr: int = 1, callbacks: Sequence[Callback] = (),
                 policy: Any = None, *, eval_every: WithoutEffect[int] = 0,
                 eval_tasks: WithoutEffect[int] = 20, diagnostics: WithoutEffect[bool] = False,
                 progress_bar: WithoutEffect[bool] = False, **settings: Any) -> Trainer:
    """Builds the parts of a training with a `MetaAlgo`; see `train`.

    Args:
        env: the environment.
        algo_class: class of the algorithm.
        n_itr: number of iterations.
        callbacks: see `Trainer`.
        policy: see `train`.
        eval_every: number of iterations between evaluations in sampled tasks, which select `best.pkl` (`EvalCallback`);
            default 0: none.
        eval_tasks: number of tasks per evaluation, with as many paths per task as in training; default 20.
        diagnostics: whether to log gradient diagnostics, see `Trainer`; default False.
        progress_bar: see `train`.
        **settings: arguments of the parts.
    """
    eval_tasks = check_positive_int("eval_tasks", eval_tasks)
    if check_int_at_least("eval_every", eval_every, 0):
        callbacks = [*callbacks, EvalCallback(eval_every, eval_tasks)]
    elif eval_tasks != 20:
        raise ValueError(f"eval_tasks: expected no value without eval_every, got {eval_tasks}")
    check_has_spaces(env)
    wrappers = _remaining_wrappers(env, algo_class)
    policy = policy or algo_class.policy_cls(is_discrete(env.action_space))
    if isinstance(policy, MetaPolicy):
        settings.setdefault("meta_batch_size", policy.meta_batch_size)
    elif callable(policy) and not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise TypeError(f"policy: expected a policy or a class of policies, got {policy!r}")
    if not isinstance(env, TrialEnv) and any(isinstance(layer, TrialEnv) for layer in layers(env)):
        raise TypeError(f"env: expected TrialEnv as the outermost wrapper, got {env}")
    for wrapper in {*algo_class.env_wrappers} - {*wrappers}:
        for name in settings.keys() & settings_of([wrapper]).keys():
            raise TypeError(f"{name}: expected no value for an environment in a {wrapper.__name__}, got "
                            f"{settings[name]!r}; pass it to {wrapper.__name__}")
    arguments = _distribute([*wrappers, *_parts_of(algo_class, [policy])], algo_class, settings)
    processor = algo_class.sample_processor_cls(**arguments[algo_class.sample_processor_cls])
    for wrapper in wrappers:
        env = wrapper(env, **arguments[wrapper])
    if isinstance(env, TrialEnv):
        arguments[MetaSampler]["max_path_length"] = env.trial_length
    is_built = policy not in arguments
    policy = (copy.deepcopy(check_not_replaced("policy", policy, Policy)) if is_built else
              policy.for_env(env, **arguments[policy]))
    if given := {*settings} & {*arguments.get(algo_class.optimizer_cls, ())}:
        if settings.get("optimizer") is not None:
            raise TypeError(f"{min(given)}: expected no value, because optimizer={settings['optimizer']!r} was given")
        arguments[algo_class]["optimizer"] = algo_class.optimizer_cls(**arguments[algo_class.optimizer_cls])
    algo = algo_class(policy=policy, **arguments[algo_class])
    return Trainer(algo, env, MetaSampler(env, policy, **arguments[MetaSampler]), processor, policy, n_itr,
                   num_inner_grad_steps=algo.num_inner_grad_steps, callbacks=callbacks, progress_bar=progress_bar,
                   diagnostics=diagnostics)


def make_runner(env: Any, algo_class: Any, n_itr: int = 1, callbacks: Sequence[Callback] = (), policy: Any = None, *,
                batch_size: int, parallel: WithoutEffect[Parallel] = False,
                progress_bar: WithoutEffect[bool] = False, **settings: Any) -> LocalRunner:
    """Builds a single-task algorithm and its runner; see `train`.

    Args:
        env: the environment; the task of a meta-environment is sampled with the seed.
        algo_class: class of the algorithm.
        n_itr: number of epochs.
        callbacks: see `LocalRunner`.
        policy: must be None; the algorithm builds its policy.
        batch_size: number of environment steps of each candidate (CEM, CMA-ES) or cycle (DDPG), rounded up to complete
            paths.
        parallel: whether to step environments in worker processes, see `MetaSampler`; default False.
        progress_bar: see `train`.
        **settings: arguments of the algorithm and of its class method `for_env`.
    """
    if policy is not None:
        raise TypeError(f"policy: expected None for {algo_class.__name__}, which builds its policy, got {policy!r}")
    if has_tasks(env):
        adapted = adapt_env(env)
        adapted.set_task(adapted.sample_tasks(1, seeding.rng_for(seeding.Stream.TASKS, 0))[0])
    else:
        env = SingleTaskEnv(env)
    wrappers = _remaining_wrappers(env, algo_class)
    arguments = _distribute([*wrappers, *_parts_of(algo_class)], algo_class, settings)
    for wrapper in wrappers:
        env = wrapper(env, **arguments[wrapper])
    runner = LocalRunner(callbacks=callbacks, progress_bar=progress_bar)
    algo = algo_class.for_env(env, **{**arguments[algo_class.for_env], **arguments[algo_class]})
    runner.setup(algo, env, sampler_args=None if algo.sampler_cls is None else {"parallel": parallel})
    check_positive_int("batch_size", batch_size)
    return runner


def _remaining_wrappers(env: Any, algo_class: Any) -> List[type]:
    """Returns the wrappers of the algorithm that an environment does not have yet."""
    applied = [i + 1 for i, wrapper in enumerate(algo_class.env_wrappers)
               if any(isinstance(layer, wrapper) for layer in layers(env))]
    return list(algo_class.env_wrappers[max(applied, default=0):])


def _distribute(parts: Sequence[Any], algo_class: Any, settings: Mapping[str, Any]) -> Dict[Any, Dict[str, Any]]:
    """Returns the settings, defaults included, that each part takes; raises `TypeError` if none takes a setting.

    Objects among the parts, which exist already, take no settings. Baselines and task samplers are copied, because
    training changes them.
    """
    taken = {part: settings_of([part]).keys() for part in parts if callable(part)}
    accepted = set().union(*taken.values())
    policies = ["the given policy, whose constructor takes its settings" if isinstance(part, Policy) else part.__name__
                for part in parts if isinstance(part, Policy) or isinstance(part, type) and issubclass(part, Policy)]
    what = f"for {' with '.join([algo_class.__name__, *policies])}"
    check_names(settings, accepted | settings_of([train], ()).keys(), what, functools.partial(others_with, algo_class))
    own = algo_class.default_settings.keys() - super(algo_class, algo_class).default_settings.keys()
    check_names(own, accepted | settings_of_algorithm(algo_class).keys(), f"in {algo_class.__name__}.default_settings")
    values = {**algo_class.default_settings, **settings}
    values.update({name: copy.deepcopy(values[name]) for name in ("baseline", "return_baseline", "task_sampler")
                   if name in values})
    return {part: {name: value for name, value in values.items() if name in names} for part, names in taken.items()}


def _parts_of(algo_class: Any, policies: Sequence[Any] = ()) -> List[Any]:
    """Returns the classes and functions that a training with an algorithm builds, without wrappers, in their order."""
    if issubclass(algo_class, RLAlgorithm):
        return [algo_class.for_env, algo_class]
    optimizers = filter(None, [algo_class.optimizer_cls] if "optimizer" in settings_of([algo_class]) else [])
    return [*policies, MetaSampler, algo_class.sample_processor_cls, *optimizers, algo_class]


def settings_of_algorithm(algo_class: Any, policy: Any = None) -> Dict[str, Setting]:
    """Returns all settings of a training with an algorithm, by name, with their defaults.

    Args:
        algo_class: class of the algorithm.
        policy: the policy, which has no settings, its class, or MODULE:NAME of its class. Default None: the default
            classes for continuous and discrete actions.
    """
    is_meta, policy = issubclass(algo_class, MetaAlgo), find_policy(policy)
    defaults = [algo_class.policy_cls(False), algo_class.policy_cls(True)] if is_meta else []
    policies = defaults if policy is None else [policy] if isinstance(policy, type) else []
    parts = [make_trainer if is_meta else make_runner, *algo_class.env_wrappers, *_parts_of(algo_class, policies)]
    found = settings_of([train], {"algo", "dump_path", "callbacks", "resume"})
    found.update({name: setting for name, setting in settings_of(parts).items() if name not in found})
    return {name: setting._replace(default=algo_class.default_settings.get(name, setting.default))
            for name, setting in found.items()}


def load_run(folder: PathLike, itr: Union[int, str, None] = None) -> "Run":
    """Loads a run from a snapshot. Loading executes code from the folder.

    A run on a Ray cluster uses the cluster again when it is resumed; until then, evaluations sample in this process.

    Args:
        folder: run folder, or a folder with one run below it.
        itr: iteration of the snapshot, or `"best"` for the best policy of an `EvalCallback`. Default None, or `"last"`:
            the last snapshot.

    Returns:
        The run in its state after that iteration.

    Raises:
        SnapshotError: the snapshot is missing or damaged.
        ValueError: `folder` is a file or contains no run or several runs; see also `Trainer.from_snapshot`.
    """
    if os.path.isfile(folder := user_path("folder", folder)):
        raise ValueError(f"folder: expected a run folder, got the file {folder}. The argument itr of load_run "
                         "selects a snapshot")
    if os.path.isdir(folder):
        folder = run_folder.find_run(folder, "folder")
    itr = None if itr == LAST else itr
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # keeps the caller's random generators unchanged
        snapshot = load_snapshot(folder, itr)
        spec: RunSpec = state_of(snapshot)["spec"]
        parallel = spec.describe()["options"].get("parallel", False)
        if parallel not in (False, True):  # the cluster may be gone
            snapshot["state"]["spec"] = spec.replaced({"parallel": False})
        return Run(_restore(snapshot), folder, itr)


def _restore(snapshot: Dict[str, Any], **arguments: Any) -> Any:
    """Builds the trainer or runner that saved a snapshot, in its state after the snapshot."""
    if "plan" not in state_of(snapshot):
        return state_of(snapshot)["spec"].classes["trainer"].from_snapshot(snapshot, **arguments)
    runner = LocalRunner(**{name: value for name, value in arguments.items() if name != "n_itr"})
    runner.restore_snapshot(snapshot)
    return runner


class Run:
    """A training run: a trainer and its run folder. Returned by `train` and `load_run`.

    Attributes:
        trainer (Trainer or LocalRunner): the trainer with all its parts.
        folder (str): absolute path of the run folder.
    """

    def __init__(self, trainer: Any, folder: PathLike, itr: Union[int, str, None] = None) -> None:
        self.trainer, self.folder = trainer, os.path.abspath(user_path("folder", folder))
        self._itr = itr  # of the snapshot that `resume` loads; None: the last one

    @property
    def policy(self) -> Policy:
        """The policy, with its pre-update parameters."""
        return self.trainer.algo.policy

    @property
    def best(self) -> "Run":
        """The run in the state with the best policy that an `EvalCallback` saved.

        Raises:
            SnapshotError: the folder has no `best.pkl`.
        """
        return load_run(self.folder, BEST)

    @property
    def env(self) -> MetaEnv:
        """The environment."""
        return self.trainer.env

    @property
    def progress(self) -> Dict[str, np.ndarray]:
        """The columns of `progress.csv` by name; see `plotting.read_progress`."""
        return read_progress(self.folder)

    def to_dataframe(self) -> Any:
        """Returns `progress` as a `pandas.DataFrame` with one row per iteration.

        Raises:
            ImportError: pandas is not installed; the message contains the command that installs it.
            ValueError: see `plotting.read_progress`.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_dataframe requires the package pandas: run `pip install pandas`") from error
        return pandas.DataFrame(self.progress)

    def act(self, observation: Any, deterministic: bool = False) -> Any:
        """Returns the action of the pre-update policy for an observation of the environment, in its units.

        Pass the action to `step` of the environment that was given to `train`. `policy.act` returns actions in the
        units of training, where the wrapper `normalize` scales the action bounds to `-normalization_scale` and
        `normalization_scale` (default 10). A policy of RL^2 needs the observations of `run.env` and returns actions for
        `run.env.step`.

        Args:
            observation: the observation.
            deterministic: whether to return the mean, or the most probable action; see `policy.act`. Default False.
        """
        return act_unscaled(self.env, observation, lambda observed: self.policy.act(observed, deterministic))

    def evaluate(self, tasks: Union[int, str, Sequence[Task]] = 40, num_steps: Optional[int] = None,
                 step_sizes: Optional[Sequence[float]] = None, seeds: Sequence[int] = (1,),
                 deterministic: bool = False, rollouts: Optional[int] = None) -> Evaluation:
        """Measures the returns after 0, 1, ..., `num_steps` adaptation steps; for RL^2, of each episode of a trial.

        `MetaEvaluator.evaluate` explains the arguments in detail, `TrialEvaluator` their meaning for RL^2.

        Args:
            tasks: list of tasks, number of sampled tasks, or the fixed tasks `"test"` or `"train"`; default 40.
            num_steps: number of adaptation steps. Default None: as in training, at least 1.
            step_sizes: sizes of the first steps. Default None: those of the algorithm.
            seeds: seeds of tasks and paths; default `(1,)`.
            deterministic: whether to measure returns without the noise of the policy; default False.
            rollouts: number of paths per task and step; for RL^2, number of trials per task. Default None, as in
                training.

        Returns:
            An `Evaluation`.

        Raises:
            TypeError: the algorithm learns a single task.
        """
        sizes = {} if rollouts is None else {"rollouts_per_meta_task": check_positive_int("rollouts", rollouts)}
        evaluator = make_evaluator(self.trainer, name=os.path.basename(self.folder), **sizes)
        return evaluator.evaluate(tasks, num_steps, step_sizes, seeds, deterministic)

    def adapt(self, task: Task = None, num_steps: Optional[int] = None, rollouts: int = 20,
              seed: int = 1) -> AdaptedPolicy:
        """Adapts the policy to one task, with the settings of the run. The run does not change.

        Args:
            task: the task. Default None: a task sampled with the seed.
            num_steps: number of adaptation steps, at least 1; for RL^2, number of episodes before the policy acts.
                Default None: as in training.
            rollouts: number of paths per adaptation step; for RL^2, number of trials that `returns` is the mean of.
                Default 20.
            seed: seed of all random generators; default 1.

        Returns:
            The adapted policy. It acts, measures its return (`evaluate`) and records a video (`record`).

        Raises:
            TypeError: the algorithm learns a single task.
            ValueError: a number is out of range, or the environment rejects the task.
            FloatingPointError: an adaptation step would produce parameters that are not finite.
        """
        check_positive_int("rollouts", rollouts)
        evaluator = make_evaluator(self.trainer, rollouts_per_meta_task=rollouts, parallel=False)  # a single task
        return adapt_with(evaluator, task, num_steps, seed)

    def plot(self, path: Optional[PathLike] = None, ax: Any = None) -> Figure:
        """Draws the learning curve; see `plotting.plot_learning_curve`."""
        return plot_learning_curve(self.folder, path, ax=ax)

    def resume(self, n_itr: Optional[int] = None, log_formats: Optional[Sequence[str]] = None,
               callbacks: Sequence[Callback] = (), **options: Any) -> "Run":
        """Resumes training from the last snapshot. The resumed run equals an uninterrupted run.

        If `load_run` loaded the snapshot of an earlier iteration, training resumes from this snapshot, and the rows and
        snapshots of later iterations are removed. This includes a `best.pkl` from a later iteration. There is then no
        best policy until an evaluation exceeds the earlier best return.

        Existing log files are always continued, even if `log_formats` does not contain their format. Callbacks of this
        package resume with their state. Other callbacks are not in the snapshot; pass them again.

        Args:
            n_itr: total number of iterations, including the completed ones. Default None: as in the run.
            log_formats: outputs, see `utils.logger`. Default None: as in the run.
            callbacks: further callbacks, see `Trainer`. A callback replaces that of the snapshot with the same class or
                name, and takes over its state, such as the best value; if there are several, pass all or none of them.
                Default: none.
            **options: new values of settings without effect on the result, such as `parallel` or `progress_bar`. Other
                settings must equal those of the run.

        Returns:
            This run; after Ctrl-C, with the completed iterations.

        Raises:
            SnapshotError: the snapshot is missing or damaged.
            TypeError: the run has no such setting.
            ValueError: a setting with an effect on the result differs from the run, the run has at least `n_itr`
                iterations, or another process uses the folder.
        """
        with seeding.generators_kept(), lock_folder(self.folder), tf.Graph().as_default():
            snapshot = load_snapshot(self.folder, self._itr)
            spec: RunSpec = state_of(snapshot)["spec"]
            if options.get("plot_gap") is not None:
                check_int_at_least("plot_gap", options["plot_gap"], 0)
            spec = spec.replaced(options)
            if n_itr is None:  # that of the last call, which may have been killed before it saved a snapshot
                n_itr = {**spec.settings, **run_folder.read_params(self.folder).get("settings", {})}["n_itr"]
            else:
                spec = spec._replace(given=tuple(sorted({*spec.given, "n_itr"})))
            n_itr = check_positive_int("n_itr", n_itr)
            if snapshot["state"]["stopped"] and "ended" not in run_folder.read_params(self.folder):
                run_folder.record_end(self.folder, n_itr, stopped=True)  # the process was killed before it did
                return self
            if n_itr <= snapshot["itr"] + 1:
                raise ValueError(f"n_itr: expected more than the {snapshot['itr'] + 1} completed iterations of "
                                 f"{self.folder}, got {n_itr}. To train longer, pass a larger n_itr")
            check_replaced(snapshot["state"]["callbacks"], callbacks)
            recorded = spec.options
            formats = check_formats(log_formats or recorded.get("log_formats", _LOG_FORMATS), "log_formats")
            progress = run_folder.RunInfo.read(self.folder).progress
            numbers = progress.get("Epoch", progress.get("Itr", [0]))  # of a single task, `Itr` counts candidates
            if not progress or numbers[0] > spec.settings.get("start_itr", 0):
                raise ValueError(f"{self.folder}: the first rows in {run_folder.PROGRESS_FILE} are missing. To resume "
                                 "the run, restore the file")
            snapshot["state"]["spec"] = spec
            self.trainer = _restore(snapshot, n_itr=n_itr, progress_bar=recorded["progress_bar"], callbacks=callbacks)
            self.trainer.spec = spec
            with logger.scoped_configure(self.folder, formats, recorded["snapshot_mode"],
                                         recorded.get("snapshot_gap", 1), resume_at=self.trainer.itr):
                self._itr = None
                logger.log(f"Resuming at iteration {self.trainer.itr} in {self.folder}")
                return self._train(n_itr)

    def _train(self, n_itr: int) -> "Run":
        trainer, gap = self.trainer, self.trainer.spec.options.get("plot_gap")

        def draw_learning_curve(trainer: Any, row: Row) -> None:
            if trainer.itr and trainer.itr % gap == 0:
                draw_pictures(self.folder)

        draw_learning_curve.is_saved = False  # type: ignore[attr-defined]
        trainer.callbacks += [draw_learning_curve] if gap else []
        try:
            if isinstance(trainer, Trainer):
                with contextlib.closing(trainer.sampler):
                    trainer.train()
            else:
                trainer.resume(n_itr) if trainer.itr else trainer.train(
                    n_itr, trainer.spec.settings["batch_size"])
        except KeyboardInterrupt:
            if trainer.itr == 0:
                raise
            logger.log(run_folder.resume_hint(self.folder))
        except Exception:
            print_line(run_folder.resume_hint(self.folder))
            raise
        if gap is not None:
            draw_pictures(self.folder)
        return self

    @property
    def is_complete(self) -> bool:
        """Whether all iterations are complete, or a callback stopped training."""
        return run_folder.RunInfo.read(self.folder).is_done()

    def summarize(self) -> str:
        """Returns a sentence about the returns at the end of training.

        For a single-task algorithm, these are the undiscounted returns of 20 paths of the final policy; otherwise,
        means over the last quarter of the iterations, at most ten.
        """
        trainer = self.trainer
        if isinstance(trainer, LocalRunner):
            paths = trainer.obtain_evaluation_samples(trainer.step_itr, _FINAL_PATHS)
            trainer.sampler.shutdown_worker()
            mean, half_width = mean_interval(np.array([path["rewards"].sum() for path in paths]))
            return (f"Mean return of the final policy: {mean:.2f}, 95% interval {mean - half_width:.2f} to "
                    f"{mean + half_width:.2f} ({_FINAL_PATHS} paths)")
        progress = self.progress
        count = number_of_last(progress)
        rows = f"mean of the last {count} iterations" if count > 1 else "last iteration"
        if isinstance(trainer.env, TrialEnv):
            whole, first, last = (exact_mean(progress[f"Step_0-{name}"][-count:]) for name in (
                "AverageReturn", "FirstEpisodeReturn", "LastEpisodeReturn"))
            return (f"The return of a trial is {whole:.2f}, that of its first episode {first:.2f}, of its last "
                    f"{last:.2f}: {rows}")
        gain = mean_gain(progress, num_tasks=trainer.policy.meta_batch_size)
        before, *_, after = [*final_returns(progress).values()] * 2
        return (f"Adaptation changes the return by {gain.mean:+.2f} (95% interval over tasks {gain.low:+.2f} to "
                f"{gain.high:+.2f}), from {before:.2f} to {after:.2f}: {rows}{', each' * (count > 1)} with "
                f"{trainer.policy.meta_batch_size} sampled tasks and {trainer.sampler.batch_size} paths per task")

    def summarize_best(self) -> str:
        """Returns a sentence about the adaptation gain of the best policy in 20 tasks sampled with another seed."""
        best = self.best
        evaluation = best.evaluate(tasks=20)
        gain, half_width = (values[-1] for values in evaluation.gain)
        before, after = evaluation.mean_return.mean[[0, -1]]
        return (f"Adaptation changes the return of the best policy by {gain:+.2f} (95% interval over tasks "
                f"{gain - half_width:+.2f} to {gain + half_width:+.2f}), from {before:.2f} to {after:.2f}: "
                f"iteration {best.trainer.itr - 1}, {len(evaluation.task_returns)} sampled tasks")

    def __repr__(self) -> str:
        return f"<Run of {self.trainer.itr} iteration{'s' * (self.trainer.itr != 1)} in {self.folder}>"
