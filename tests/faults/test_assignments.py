"""Assigning a constructor argument takes effect and is in the snapshot, or it raises an error."""
import sys

import cloudpickle
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import M, make_policy

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SMALL = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 6, "hidden_sizes": (4,),
         "log_formats": ["csv"]}


@pytest.mark.thorough(but="cem")
@pytest.mark.parametrize("algo", ["promp", "trpo_maml", "vpg_maml", "dice_maml", "rl2", "ddpg", "cem"])
def test_arguments_of_all_parts_are_assignable_or_fixed(algo, tmp_path):
    one_task = {"ddpg": {"steps_per_epoch": 1, "batch_size": 8, "num_eval_paths": 0},
                "cem": {"n_samples": 5, "batch_size": 8}}
    settings = {**one_task.get(algo, SMALL), **({"num_minibatches": 1} if algo == "rl2" else {})}
    if algo == "rl2":
        del settings["hidden_sizes"]
    env = {"ddpg": "Pendulum-v1", "cem": "CartPole-v1"}.get(algo, "MetaPointEnvCornerGoals")
    run = mps.train(env, algo, n_itr=1, dump_path=str(tmp_path), **settings)
    loop = run.trainer
    parts = [loop.algo, loop.sampler, loop.algo.policy]
    parts += [part for part in (getattr(loop.algo, name, None) for name in ("optimizer", "exploration_policy")) if part]
    for part in parts:
        for name in part._fixed - set(part.assignable_arguments) - {"env", "learning_rate"}:
            with pytest.raises(AttributeError):
                setattr(part, name, object())
        for name in part.assignable_arguments:
            setattr(part, name, getattr(part, name))
    with pytest.raises(AttributeError, match=r"^policy cannot be changed after construction: build a new \w+\(policy"):
        loop.algo.policy = None


def test_trust_region_of_the_optimizer_is_read_only():
    with tf.Graph().as_default():
        algo = mps.TRPOMAML(make_policy(), meta_batch_size=M, step_size=0.02)
        assert algo.optimizer.step_size == 0.02
        with pytest.raises(AttributeError):
            algo.optimizer.step_size = 0.1


@pytest.mark.parametrize("build, name, value, error", [
    (lambda: mps.MetaSampleProcessor("ZeroBaseline"), "discount", 1.5, ValueError),
    (lambda: mps.MetaSampleProcessor("ZeroBaseline"), "normalize_adv", 1, TypeError),
    (lambda: mps.ProMP(make_policy(), meta_batch_size=M), "clip_eps", -0.1, ValueError),
    (lambda: mps.MetaEvaluator(mps.VPGMAML(make_policy(), meta_batch_size=M), mps.MetaPointEnvCorner(),
                               mps.MetaSampleProcessor("ZeroBaseline")), "max_path_length", 0, ValueError),
])
def test_wrong_value_is_refused_when_it_is_assigned(build, name, value, error):
    """Otherwise a snapshot contains it, and the run cannot be resumed."""
    with tf.Graph().as_default():
        part = build()
    before = getattr(part, name)
    with pytest.raises(error, match=f"^{name}: expected .*, got {value}"):
        setattr(part, name, value)
    assert getattr(part, name) == before


def test_argument_without_attribute_is_an_ordinary_error():
    with tf.Graph().as_default(), pytest.raises(AttributeError, match="no attribute 'num_ppo_steps'$"):
        mps.ProMP(make_policy(), meta_batch_size=M).num_ppo_steps  # noqa: B018


@pytest.mark.thorough
def test_assigned_arguments_take_effect_and_are_in_the_snapshot(tmp_path):
    def changes(trainer, row):
        if trainer.itr == 0:
            trainer.sample_processor.discount, trainer.algo.clip_eps = 0.5, 0.1

    whole, part = (mps.train("MetaPointEnvCornerGoals", "promp", n_itr=n_itr, callbacks=[changes], seed=1,
                             dump_path=str(tmp_path / str(n_itr)), **SMALL) for n_itr in (3, 2))
    resumed = mps.load_run(part.folder).resume(n_itr=3, callbacks=[changes])
    for name in ("Step_0-AverageDiscountedReturn", "ClipEps", "LossBefore"):
        np.testing.assert_allclose(resumed.progress[name], whole.progress[name])
    plain = mps.train("MetaPointEnvCornerGoals", "promp", n_itr=2, seed=1, dump_path=str(tmp_path / "plain"), **SMALL)
    for name in ("Step_0-AverageDiscountedReturn", "ClipEps"):
        assert plain.progress[name][0] == pytest.approx(whole.progress[name][0])
        assert plain.progress[name][1] != pytest.approx(whole.progress[name][1])


class Scaled(mps.MetaPointEnvNavigation):
    """Multiplies rewards by an attribute."""

    scale = 1.0

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, self.scale * reward, *rest


def changes_env(loop, row):
    if loop.itr == 1:
        loop.env.unwrapped.scale = 100.0
        loop.env = loop.env


def changes_env_silently(loop, row):
    loop.env.unwrapped.scale = 100.0


@pytest.mark.parametrize("algo, settings", [("promp", {"parallel": False}), ("promp", {"parallel": True}), ("cem", {})])
@pytest.mark.thorough(but="cem-settings2", ci="promp-settings0")
def test_assigned_environment_takes_effect_in_the_next_iteration_and_is_in_the_snapshot(algo, settings, tmp_path):
    settings = {**settings, **(SMALL if algo == "promp" else {"n_samples": 5, "batch_size": 8, "max_path_length": 6})}
    column = "Step_0-AverageReturn" if algo == "promp" else "AverageReturn"

    def returns(name, *callbacks, parts=(3,)):
        run = mps.train(Scaled(), algo, n_itr=parts[0], callbacks=callbacks, dump_path=tmp_path / name,
                        progress_bar=False, **settings)
        for n_itr in parts[1:]:
            run = mps.load_run(run.folder).resume(n_itr=n_itr, callbacks=callbacks)
        if run.trainer.itr < 3:
            assert run.trainer.sampled_env.unwrapped.scale == 1.0  # the iteration was rolled back
            run = run.resume(n_itr=3, callbacks=callbacks)
        return run.progress[column]

    def is_interrupted(loop, row):
        if loop.itr == 1 and not interruptions:
            interruptions.append(True)
            raise KeyboardInterrupt

    unchanged, changed, interruptions = returns("unchanged"), returns("changed", changes_env), []
    np.testing.assert_allclose(changed[:2], unchanged[:2])
    assert (changed[2:] < 20 * unchanged[2:]).all()
    np.testing.assert_allclose(returns("resumed", changes_env, parts=(2, 3)), changed)
    np.testing.assert_allclose(returns("silent", changes_env_silently, parts=(2, 3)), unchanged)
    np.testing.assert_allclose(returns("interrupted", changes_env, is_interrupted), changed)


@pytest.mark.thorough(but="sample_processor-gae_lambda--0.1")
@pytest.mark.parametrize("part, name, value", [
    ("sample_processor", "discount", 1.3), ("sample_processor", "gae_lambda", -0.1), ("algo", "clip_eps", -0.1)])
def test_invalid_assigned_values_end_the_training(part, name, value, tmp_path):
    def assign(trainer, row):
        setattr(getattr(trainer, part), name, value)

    with pytest.raises(ValueError, match=f"{name}: expected a .*number.*, got {value}"):
        mps.train("MetaPointEnvNavigation", n_itr=2, callbacks=[assign], meta_batch_size=2, rollouts_per_meta_task=2,
                  max_path_length=5, progress_bar=False, dump_path=tmp_path / "run")
