"""Tests `train`: its run acts, evaluates, plots and resumes."""
import copy
import json
import sys
from pathlib import Path
from signal import SIGINT, raise_signal
from types import SimpleNamespace

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.cli.main import main
from meta_policy_search.evaluation import evaluator
from meta_policy_search.optimizers.base import LinearSchedule
from meta_policy_search.run import build_trainer, name_of_policy
from meta_policy_search.run_folder import read_params
from meta_policy_search.run_spec import as_json
from meta_policy_search.samplers.vectorized_env_executor import MetaParallelEnvExecutor
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import SnapshotError, list_snapshots

TINY = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": (4,)}
TRIALS = mps.TrialEnv(mps.MetaBernoulliBanditEnv(2), episodes_per_trial=2, max_path_length=1)


class Cautious(mps.MetaGaussianMLPPolicy):
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two iterations; tests must not resume it."""
    return mps.train("MetaPointEnvCorner", "vpg_maml", np.int64(2), seed=np.array(5), snapshot_gap=np.int64(9),
                     dump_path=tmp_path_factory.mktemp("run") / "a", inner_lr=0.2, discount=0.9,
                     normalization_scale=2.0, num_inner_grad_steps=2, learning_rate=LinearSchedule(1e-3, 0.0, 2),
                     policy=Cautious, init_std=0.5, **TINY)


@pytest.mark.thorough
def test_settings_are_passed_to_the_matching_classes(run):
    trainer = run.trainer
    assert type(trainer.algo) is mps.VPGMAML and trainer.algo.inner_lr == 0.2
    assert trainer.num_inner_grad_steps == trainer.algo.num_inner_grad_steps == 2
    assert trainer.sample_processor.discount == 0.9 and trainer.sample_processor.normalize_adv
    assert run.env.action_space.high[0] == 2.0 and run.policy.hidden_sizes == (4,)
    assert type(run.policy) is Cautious and run.policy.init_std == 0.5
    assert repr(run) == f"<Run of 2 iterations in {run.folder}>"


def test_progress_has_the_columns_of_the_csv_file(run, monkeypatch):
    assert list(run.progress["Itr"]) == [0, 1] and run.progress["AdaptationGain"].dtype == np.float64
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda columns: ("frame", columns)))
    kind, columns = run.to_dataframe()
    assert kind == "frame" and list(columns) == list(run.progress)
    monkeypatch.setitem(sys.modules, "pandas", None)  # not installed
    with pytest.raises(ImportError, match="to_dataframe requires the package pandas: run `pip install pandas`"):
        run.to_dataframe()


def test_settings_are_recorded_as_json_types(run):
    """NumPy numbers become numbers, a schedule and `RayOptions` keep their arguments, other objects their class."""
    shown = "LinearSchedule(start=0.001, end=0.0, num_updates=2)"
    params = json.loads((Path(run.folder) / "params.json").read_text())
    assert (params["settings"]["n_itr"], params["settings"]["seed"], params["options"]["snapshot_gap"]) == (2, 5, 9)
    assert params["settings"]["learning_rate"] == shown and f"learning_rate={shown}" in repr(run.trainer.algo)
    assert as_json({"parallel": mps.RayOptions(num_workers=2)})["parallel"]["num_workers"] == 2
    assert as_json([Cautious, np.tanh, SimpleNamespace, object()]) == ["Cautious", "tanh", "SimpleNamespace", "object"]
    assert as_json({np.tanh, np.abs, 3}) == [3, "absolute", "tanh"]


def test_run_acts_evaluates_and_plots(run, tmp_path):
    assert mps.load_run(run.folder, "last").trainer.itr == run.trainer.itr
    assert run.act(np.zeros(2)).shape == run.act(np.zeros(2), deterministic=True).shape == (2,)
    assert run.evaluate(tasks=2).returns.shape == (1, 2, 3)
    figure = run.plot(tmp_path / "curve.png")
    assert figure.get_suptitle() == "VPG-MAML on MetaPointEnvCorner, seed 5, inner step 0.2" and len(figure.axes) == 2
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_loaded_run_resumes_like_an_uninterrupted_run(tmp_path, capsys):
    """A row is printed as a line, or as a table with `log_formats`; the files are written in both cases."""
    settings = {"env": mps.MetaBernoulliBanditEnv(num_arms=3), "algo": mps.VPGMAML, "seed": 5, **TINY}
    whole = mps.train(n_itr=3, dump_path=tmp_path / "whole", **settings)
    shown = capsys.readouterr().out
    assert "| AdaptationGain" not in shown and shown.count("\nitr ") == 3
    assert shown.startswith(f"MetaBernoulliBanditEnv, seed 5: 3 iterations of VPG-MAML, written to {tmp_path}")
    mps.train(n_itr=2, dump_path=tmp_path / "parts", log_formats=["stdout", "csv"], **settings)
    assert capsys.readouterr().out.count("| AdaptationGain ") == 2
    state = np.random.get_state()[1].tolist()
    run = mps.load_run(tmp_path / "parts")
    assert run.trainer.itr == 2 and np.random.get_state()[1].tolist() == state
    assert type(run.policy) is mps.MetaCategoricalMLPPolicy and int(run.act(np.zeros(1))) in range(3)
    assert run.resume(3, env="MetaBernoulliBanditEnv", policy=None, log_formats=["line"], plot_gap=0) is run
    assert run.trainer.itr == 3
    assert (tmp_path / "parts" / "learning_curve.png").exists() and not (tmp_path / "whole/learning_curve.png").exists()
    for name, value in whole.policy.get_param_values().items():
        np.testing.assert_array_equal(run.policy.get_param_values()[name], value)
    before, after = (mps.plotting.read_progress(tmp_path / name) for name in ("whole", "parts"))
    np.testing.assert_array_equal(after["AdaptationGain"], before["AdaptationGain"])
    with pytest.raises(ValueError, match="n_itr: expected more than the 3 completed iterations of .*, got 3"):
        run.resume(3)
    with pytest.raises(TypeError, match="log_formats: expected a list of formats, got the string 'csv'"):
        run.resume(4, log_formats="csv")
    with pytest.raises(ValueError, match="itr: expected the number of an iteration, 'best' or None .*, got 'bset'"):
        mps.load_run(run.folder, "bset")
    with pytest.raises(ValueError, match="folder: expected a run folder, got the file .*params.pkl"):
        mps.load_run(f"{run.folder}/params.pkl")
    with pytest.raises(ValueError, match="folder: expected one run, got 2: .*parts, .*whole"):
        mps.load_run(tmp_path)


@pytest.fixture(scope="module")
def continued(tmp_path_factory):
    """Arguments of `train` that start a run, continue it and return the complete run."""
    return {"env": "MetaPointEnvCorner", "algo": "vpg_maml", "resume": True, "inner_lr": 0.2,
            "dump_path": tmp_path_factory.mktemp("continued") / "a", "log_formats": ("csv",), **TINY}


@pytest.mark.thorough
def test_train_with_resume_starts_extends_and_returns_a_run(continued, run):
    """The extended run equals a run that was trained at once; options are replaced."""
    assert mps.train(n_itr=1, **continued).trainer.itr == 1
    extended = mps.train(n_itr=2, snapshot_mode="all", **continued)
    before = Path(extended.folder, "params.json").read_bytes()
    again = mps.train(n_itr=2, **continued)
    assert (extended.trainer.itr, again.trainer.itr, read_params(again.folder)["options"]["snapshot_mode"]) == (
        2, 2, "all")
    assert Path(extended.folder, "params.json").read_bytes() == before
    at_once = mps.train(n_itr=2, **{**continued, "dump_path": Path(extended.folder).with_name("at_once")})
    np.testing.assert_array_equal(extended.progress["Step_1-AverageReturn"], at_once.progress["Step_1-AverageReturn"])


@pytest.mark.thorough(but="changes1-ValueError-n_itr 2 .run., 1 .now.")
@pytest.mark.parametrize("changes, error, message", [
    ({"inner_lr": 0.3}, ValueError, "inner_lr 0.2 .run., 0.3 .now."),
    ({"n_itr": 1}, ValueError, "n_itr 2 .run., 1 .now."),
    ({"algo": "promp"}, ValueError, "algorithm 'vpg_maml' .run., 'promp' .now."),
    ({"policy": Cautious}, ValueError, "policy None .run., 'tests.test_run:Cautious' .now."),
    ({"env": mps.MetaPointEnvCorner(reward_type="dense")}, ValueError, "env_kwargs {} .run., {'reward_type': 'dense'}"),
    ({"inner_l": 0.3}, TypeError, "unknown setting 'inner_l' for VPGMAML"),
    ({"resume": False}, ValueError, "already contains a run: resume it .meta-policy-search resume .*, or resume=True"),
    ({"dump_path": None}, ValueError, "dump_path: expected the folder of the run, because resume=True was given, got"),
    ({"resume": "no"}, TypeError, "resume: expected True or False, got 'no'"),
])
def test_train_with_resume_refuses_other_settings(continued, changes, error, message):
    mps.train(n_itr=2, **continued)
    with pytest.raises(error, match=message):
        mps.train(**{"n_itr": 2, **continued, **changes})


def test_evaluations_use_as_many_environments_as_the_training(tmp_path, monkeypatch):
    used = []
    monkeypatch.setattr(evaluator, "MetaSampler", lambda *arguments: used.append(arguments[-2:]) or mps.MetaSampler(
        *arguments[:-1]))
    run = mps.train("MetaPointEnvCorner", "vpg_maml", 1, dump_path=tmp_path / "run", envs_per_task=1, parallel=True,
                    eval_every=1, eval_tasks=2, **TINY)
    run.evaluate(2)
    run.adapt()
    mps.load_evaluator(run.folder).evaluate(2)
    assert used == [(1, True), (1, True), (1, False), (1, True)]


@pytest.mark.thorough
def test_run_is_resumed_with_options_that_it_did_not_have(tmp_path):
    """Options without effect on the result apply to parts that were built without them."""
    mps.train("MetaPointEnvCorner", "vpg_maml", 1, dump_path=tmp_path / "run", **TINY)
    run = mps.load_run(tmp_path / "run").resume(2, envs_per_task=1, parallel=True)
    with run.trainer.sampler as sampler:
        assert sampler.envs_per_task == 1 and type(sampler.vec_env) is MetaParallelEnvExecutor


@pytest.mark.thorough
def test_run_resumes_after_the_iteration_that_was_loaded(tmp_path):
    """Later rows and snapshots are removed. A callback changes the user's environment, but not the copies in use."""
    def change_env(trainer, row):
        trainer.env.unwrapped.max_push = 1.0

    def train(name, n_itr):
        return mps.train("MetaPointEnvCorner", "vpg_maml", n_itr, dump_path=tmp_path / name, callbacks=[change_env],
                         snapshot_mode="all", **TINY)

    whole = train("whole", 3)
    run = mps.load_run(train("run", 3).folder, 0)
    assert run.resume(2, callbacks=[change_env]).trainer.itr == 2 and list(run.progress["Itr"]) == [0, 1]
    assert list(list_snapshots(run.folder).values()) == [0, 1]
    run.resume(3, callbacks=[change_env])
    np.testing.assert_array_equal(run.policy.get_flat_params(), whole.policy.get_flat_params())


@pytest.mark.thorough
def test_interrupted_training_returns_the_completed_iterations(tmp_path, monkeypatch, capsys):
    """Given Ctrl-C in a callback of the second iteration, then in a meta-update, then in the first iteration."""
    def press(*_):
        raise_signal(SIGINT)

    def press_later(trainer, row):
        if trainer.itr == 1:
            press()

    monkeypatch.chdir(tmp_path)
    run = mps.train("MetaPointEnvCorner", "vpg_maml", 3, dump_path=tmp_path / "a", callbacks=[press_later], **TINY)
    resume = f"meta-policy-search resume a, or in Python mps.load_run('{tmp_path}/a').resume()\n"
    assert capsys.readouterr().out.endswith(f"To resume after iteration 0: {resume}")
    assert run.trainer.itr == 1 and len(run.progress["Itr"]) == 1 and run.trainer.sampler._executor is None
    with monkeypatch.context() as patch:
        patch.setattr(mps.VPGMAML, "optimize_policy", press)
        assert main(["resume", run.folder]) == 130
        assert capsys.readouterr().out.endswith(resume)
        with pytest.raises(KeyboardInterrupt):
            mps.train("MetaPointEnvCorner", "vpg_maml", 3, dump_path=tmp_path / "b", num_inner_grad_steps=0, **TINY)
    assert run.resume(3).trainer.itr == 3 and list(run.progress["Itr"]) == [0, 1, 2]


def test_given_policy_is_copied_with_its_weights(run, tmp_path):
    """The policy of another run, in its own graph, is trained for one step of gradient descent."""
    before = run.policy.get_flat_params()
    settings = {name: TINY[name] for name in ("rollouts_per_meta_task", "max_path_length")}
    other = mps.train(mps.MetaPointEnvCorner(reward_type="dense"), "vpg_maml", 1, dump_path=tmp_path / "a",
                      policy=run.policy, learning_rate=1e-3, **settings)
    assert type(other.policy) is Cautious and other.policy.meta_batch_size == 2
    np.testing.assert_array_equal(run.policy.get_flat_params(), before)
    change = np.abs(other.policy.get_flat_params() - before)
    assert 0.0 < change.max() < 2e-3  # Adam
    recorded = json.loads((tmp_path / "a" / "params.json").read_text())["settings"]["policy"]
    assert recorded == name_of_policy(copy.deepcopy(run.policy)) != name_of_policy(other.policy)
    with pytest.raises(TypeError, match="unknown setting 'hidden_sizes' for ProMP with the given policy"):
        mps.train("MetaPointEnvCorner", policy=run.policy, **TINY)
    with pytest.raises(ValueError, match=r"policy.obs_dim: expected \(3,\), the size of the environment's space"):
        mps.train("PendulumMassEnv", policy=run.policy, **settings)


@pytest.mark.thorough
def test_given_baseline_is_copied(tmp_path):
    baseline = mps.GaussianMLPBaseline(hidden_sizes=(4,))
    runs = [mps.train("MetaPointEnvCorner", "vpg_maml", 2, dump_path=tmp_path / str(i), baseline=baseline, **TINY)
            for i in range(2)]
    np.testing.assert_array_equal(runs[0].policy.get_flat_params(), runs[1].policy.get_flat_params())
    assert baseline.get_param_values() == {}
    named = mps.train("MetaPointEnvCorner", "vpg_maml", 1, dump_path=tmp_path / "c", baseline="ZeroBaseline", **TINY)
    assert isinstance(named.trainer.sample_processor.baseline, mps.ZeroBaseline)


@pytest.mark.thorough
def test_given_callbacks_and_environment_do_not_change(tmp_path):
    """Two runs with the same seed are equal, although callbacks have a state and change the environment."""
    def curriculum(trainer, row):
        trainer.env.unwrapped.reward_type = "sparse"
        trainer.env = trainer.env

    env = mps.MetaPointEnvMomentum(reward_type="dense")
    evaluate = mps.EvalCallback(every=1, tasks=2)
    runs = [mps.train(env, "vpg_maml", n_itr=2, dump_path=tmp_path / str(i), callbacks=[curriculum, evaluate], **TINY)
            for i in range(2)]
    for column in ("Step_0-AverageReturn", "Eval-ReturnAfter"):
        np.testing.assert_array_equal(runs[0].progress[column], runs[1].progress[column])
    assert runs[1].progress["Step_0-AverageReturn"][0] != 0.0 and runs[0].best is not None and runs[1].best is not None
    assert env.reward_type == "dense"


class Recording(mps.Trainer):
    def perform_itr(self):
        super().perform_itr()
        logger.logkv("Mine", self.itr)


@pytest.mark.thorough
def test_subclass_of_the_trainer_is_resumed(tmp_path):
    env = mps.MetaPointEnvCorner(reward_type="dense")
    policy = mps.MetaGaussianMLPPolicy.for_env(env, 2, hidden_sizes=())
    trainer = Recording(mps.VPGMAML(policy, meta_batch_size=2), env, mps.MetaSampler(env, policy, 2, 2, 5),
                        mps.MetaSampleProcessor(mps.ZeroBaseline()), policy, n_itr=1)
    with logger.scoped_configure(tmp_path, ["csv"]):
        trainer.train()
    run = mps.load_run(tmp_path).resume(n_itr=2)
    assert type(run.trainer) is Recording and run.progress["Mine"].tolist() == [0.0, 1.0]


class WithoutSpaces(mps.MetaEnv):
    def sample_tasks(self, n_tasks):
        return [0] * n_tasks

    def set_task(self, task):
        pass

    def reset(self, *, seed=None, options=None):
        return np.zeros(2), {}

    def step(self, action):
        return np.zeros(2), 0.0, False, False, {}


@pytest.mark.parametrize("arguments, error, message", [
    ({"inner_lrr": 1.0}, TypeError, "for ProMP with MetaGaussianMLPPolicy; did you mean 'inner_lr'?"),
    ({"lr": 0.1}, TypeError, "did you mean 'learning_rate' or 'inner_lr'?"),
    ({"step_size": 0.1}, TypeError, "; it is a setting of e_maml, trpo_maml"),
    ({"hidden_sizes": (8,), "algo": "rl2"}, TypeError, "vpg_maml; did you mean 'hidden_size'?"),
    ({"gamma": 0.9}, TypeError, "unknown setting 'gamma' for ProMP with MetaGaussianMLPPolicy; use discount"),
    ({"num_grad_updates": 2}, TypeError, "; use num_inner_grad_steps"),
    ({"kl_coeff": 0.1}, TypeError, "; use init_inner_kl_penalty of promp"),
    ({"config_file": "a.json"}, TypeError, "; use the arguments of the file"),
    ({"parallel": 2}, ValueError, "False, 'ray' or options of Ray, such as {'num_workers': 2}, got 2"),
    ({"learning_rate": "linear"}, TypeError, "learning_rate: expected a number above 0, a linear schedule (a dict"),
    ({"learning_rate": lambda: 1e-3}, TypeError, "learning_rate: expected the arguments (index of the meta-update)"),
    ({"alpha": 0.1}, TypeError, "unknown setting 'alpha' for ProMP with MetaGaussianMLPPolicy; use inner_lr"),
    ({"algo": "MAML"}, ValueError, "algo: expected a known name, got 'MAML'; use 'trpo_maml' (outer step of"),
    ({"algo": "anil"}, ValueError, "use adapt_params='head' with an algorithm such as 'trpo_maml'"),
    ({"sample_processor": 1}, TypeError, "; use the argument sample_processor_cls of an own algorithm"),
    ({"n_jobs": 2}, TypeError, "; use parallel (or processes of compare)"),
    ({"tensorboard_log": "x"}, TypeError, "; use log_formats=['csv', 'tensorboard']"),
    ({"env_kwargs": {"goal": 1}}, TypeError, "MetaPointEnvCorner: got an unexpected keyword argument 'goal'; arg"),
    ({"gain": 1}, TypeError, "; `meta-policy-search train ALGORITHM --help` lists the settings"),
    ({"env": "MetaBernoulliBanditEnv", "init_std": 0.5}, TypeError, "for ProMP with MetaCategoricalMLPPolicy"),
    ({"learning_rate": 1.0, "algo": "trpo_maml"}, TypeError, "with MetaGaussianMLPPolicy; use step_size (trust region"),
    ({"lr": 1.0, "algo": "e_maml"}, TypeError, "; use step_size (trust region of the meta-update) or inner_lr"),
    ({"n_epochs": 3}, TypeError, "; use n_itr (iterations) or num_ppo_steps of promp (passes per iteration)"),
    ({"episodes_per_task": 3}, TypeError, "; use rollouts_per_meta_task"),
    ({"reward_scale": 0.1}, TypeError, "; use scale_reward"),
    ({"seeds": 3}, TypeError, "; use mps.compare with seeds, or the key 'seed' of the grid of mps.sweep"),
    ({"n_seeds": 3}, TypeError, "; use mps.compare with seeds"),
    ({"g": 1}, TypeError, "lists the settings. Pass arguments of the environment in env_kwargs or vary"),
    ({"env": WithoutSpaces()}, TypeError, "env.observation_space: expected a space with a shape"),
    ({"env": "./mine.py"}, ValueError, "MODULE:NAME, got './mine.py'; did you mean 'mine:NAME'?"),
    ({"env": "envs/mine.py:Mine"}, ValueError, "env: expected MODULE:NAME, got 'envs/mine.py:Mine'; did you mean 'envs."
     "mine:Mine'?"),
    ({"algo": mps.MetaEnv}, TypeError, "algo: expected a subclass of MetaAlgo or RLAlgorithm, or its name, got"),
    ({"policy": mps.GaussianRecurrentPolicy}, TypeError, "policy: expected a MetaPolicy (such as "),
    ({"policy": mps.MetaGaussianMLPPolicy, "algo": "rl2"}, TypeError, "policy: expected a RecurrentPolicy (such as "),
    ({"policy": mps.MetaCategoricalMLPPolicy, **TINY}, ValueError, "policy: expected a policy for the action space"),
    ({"env": mps.normalize(mps.MetaPointEnvCorner()), "normalization_scale": 3.0}, TypeError,
     "normalization_scale: expected no value for an environment in a NormalizedEnv, got 3.0; pass it to Normalized"),
    ({"env": TRIALS, "algo": "rl2", "episodes_per_trial": 9}, TypeError, "episodes_per_trial: expected no value"),
    ({"env": TRIALS, "algo": "rl2", "max_path_length": 9}, TypeError, "max_path_length: expected no value for an en"),
    ({"baseline": "GausianMLPBaseline", **TINY}, ValueError, "baseline: expected one of 'GaussianMLPBaseline', 'Lin"),
    ({"adapt_params": "context", **TINY}, ValueError, "'context' requires a policy with a context, such as context_d"),
    ({"log_formats": ["csv", "xml"], **TINY}, ValueError, "log_formats: expected one of 'stdout', 'line', 'log', "),
    ({"algo": "trpo_maml", "optimizer": mps.ConjugateGradientOptimizer(), "reg_coeff": 0.1, **TINY}, TypeError,
     "reg_coeff: expected no value, because optimizer=ConjugateGradientOptimizer() was given"),
])
def test_invalid_arguments_create_no_folder(arguments, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as raised:
        mps.train(**{"env": "MetaPointEnvCorner", **arguments})
    assert message in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_method_replaced_on_a_given_policy_is_refused():
    """Training copies the policy, and the copy would have the method of the class."""
    policy = mps.MetaGaussianMLPPolicy(2, 2, 2)
    policy.get_actions = lambda observations: None
    with pytest.raises(TypeError, match="^policy: get_actions was replaced on the object"):
        mps.train("MetaPointEnvCorner", policy=policy, n_itr=1)


class Quick(mps.VPGMAML):
    """An algorithm whose settings replace some of its base class."""

    default_settings = {"hidden_sizes": (3,), "inner_lr": 0.7}


def test_default_settings_of_base_classes_apply(tmp_path):
    assert Quick.default_settings == {**mps.VPGMAML.default_settings, "hidden_sizes": (3,), "inner_lr": 0.7}
    assert "inner_lr" not in mps.VPGMAML.default_settings
    run = mps.train("MetaPointEnvCorner", Quick, 1, dump_path=tmp_path / "run", meta_batch_size=2, max_path_length=5)
    assert run.trainer.algo.inner_lr == 0.7 and run.policy.hidden_sizes == (3,)
    mixin = type("Mixin", (mps.MetaAlgo,), {"default_settings": {"inner_lr": 0.3}})
    mixed = type("Mixed", (mixin, mps.DICEMAML), {})
    assert mixed.default_settings == {**mps.DICEMAML.default_settings, "inner_lr": 0.3}  # not the baseline of MetaAlgo
    with pytest.raises(TypeError, match=r"Wrong.default_settings: expected a dict of settings, got \[1\]"):
        type("Wrong", (mps.VPGMAML,), {"default_settings": [1]})
    wrong = type("Wrong", (mps.VPGMAML,), {"default_settings": {"inner_lrr": 0.7}})
    with pytest.raises(TypeError, match="'inner_lrr' in Wrong.default_settings; did you mean 'inner_lr'"):
        mps.train("MetaPointEnvCorner", wrong, 1, **TINY)


def test_rollouts_of_an_evaluation(tmp_path):
    run = mps.train("MetaPointEnvCorner", "vpg_maml", 1, dump_path=tmp_path / "run", **TINY)
    assert run.evaluate(tasks=2, rollouts=3).rollouts_per_meta_task == 3
    with pytest.raises(ValueError, match="rollouts: expected an integer of at least 1, got 0"):
        run.evaluate(tasks=2, rollouts=0)


class NoColumns(mps.VPGMAML):
    def after_update(self, stats):
        return 1.0


class WithoutResult(mps.MetaSampleProcessor):
    """Forgets to return the samples."""

    def process_samples(self, paths_meta_batch, log=False, log_prefix=""):
        super().process_samples(paths_meta_batch, log, log_prefix)


class OfWithoutResult(mps.VPGMAML):
    """VPG-MAML."""

    sample_processor_cls = WithoutResult


@pytest.mark.parametrize("algo, message", [
    (NoColumns, "NoColumns.after_update: expected a dict of columns, got 1.0"),
    (OfWithoutResult, "process_samples: expected a list with the samples of each task, got None"),
])
def test_own_methods_that_return_the_wrong_type_are_named(algo, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        mps.train("MetaPointEnvCorner", algo, 1, dump_path=tmp_path / "run", **TINY)


def test_folder_of_runs_is_no_run_folder(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "params.json").write_text("{}")
    with pytest.raises(ValueError, match=f"dump_path: {tmp_path} contains other runs, such as first: choose another"):
        mps.train("MetaPointEnvCorner", dump_path=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["first"]


def test_settings_of_the_sample_processor_are_checked_before_the_graph_is_built():
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match="discount: expected a number in"):
            build_trainer("MetaPointEnvCorner", "promp", discount=1.5)
        assert not graph.get_operations()


def test_class_in_place_of_a_baseline_object_is_refused():
    with pytest.raises(TypeError, match=r"expected an object, got the class .*; use LinearFeatureBaseline\(\)"):
        mps.MetaSampleProcessor(mps.LinearFeatureBaseline)


def test_baseline_without_fit_is_named():
    class Unfinished(mps.Baseline):
        pass

    with pytest.raises(NotImplementedError, match="^Unfinished does not implement fit"):
        Unfinished().fit([])


def test_snapshots_of_other_programs_are_refused(tmp_path):
    logger.configure(tmp_path, ["csv"])
    logger.save_itr_params(0, {"itr": 0, "policy": None})
    for load in (mps.load_run, mps.load_evaluator, mps.LocalRunner(tmp_path).restore):
        with pytest.raises(ValueError, match="expected a snapshot of a Trainer or LocalRunner, got {'itr': 0"):
            load(tmp_path)
    with pytest.raises(SnapshotError, match="typo"):
        mps.load_run(tmp_path / "typo", 5)


@pytest.mark.parametrize("algo", ["vpg_maml", "cem"])
def test_arguments_of_an_environment_object_are_recorded(algo, tmp_path):
    run = mps.train(mps.normalize(mps.MetaPointEnvMomentum(reward_type="dense")), algo, 1, dump_path=tmp_path / "run",
                    progress_bar=False, **({"n_samples": 20, "max_path_length": 5} if algo == "cem" else TINY))
    assert read_params(run.folder)["settings"]["env_kwargs"] == {"reward_type": "dense"}
