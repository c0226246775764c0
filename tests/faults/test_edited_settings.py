"""A run is resumed with the settings that it began with, whoever edits `params.json`, and with no other trainer."""
import json

import numpy as np
import pytest

from experiments import cem, vpg_maml
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.envs import MetaPointEnvCorner, MetaPointEnvNavigation, normalize
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.optimizers import ConjugateGradientOptimizer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger, set_seed
from meta_policy_search.utils.snapshotter import load_snapshot

SMALL = ["--smoke", "--log_formats", "csv", "--plot_gap", "0"]


# params.json


def edit(path, **settings):
    params = json.loads(path.read_text())
    params["settings"].update(settings)
    path.write_text(json.dumps(params))


def refusal(capsys, script, *arguments):
    """Returns the one line in which a script refuses its arguments."""
    with pytest.raises(SystemExit) as stop:
        script.main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.count("\n") == 1
    return said


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run of each script."""
    folder = tmp_path_factory.mktemp("runs")
    for script, env in ((vpg_maml, "MetaPointEnvCorner"), (cem, "MetaPointEnv")):
        with tf.Graph().as_default():
            name = script.__name__.rpartition(".")[2]
            assert script.main([*SMALL, "--env", env, "--dump_path", str(folder / name)]) == 0
    return folder


@pytest.mark.parametrize("script, setting, value", [
    (vpg_maml, "inner_lr", 0.2), (vpg_maml, "discount", 0.5), (vpg_maml, "learning_rate", 0.5),
    (vpg_maml, "max_path_length", 5), (vpg_maml, "normalize_adv", False), (vpg_maml, "seed", 7),
    (vpg_maml, "env_kwargs", {"reward_type": "dense"}), (vpg_maml, "n_itr", 1), (cem, "n_samples", 9), (cem, "seed", 7),
])
def test_an_edited_setting_is_refused_like_the_flag(script, setting, value, runs, capsys):
    """Given a run, then another value in `params.json` and as a flag gives the same line, and no file changes."""
    folder = runs / script.__name__.rpartition(".")[2]
    path, more = folder / "params.json", [] if setting == "n_itr" else ["--n_itr", "3"]
    before, flag = path.read_text(), [f"--{setting}", json.dumps(value)]
    if isinstance(value, bool):
        flag = [f"--no-{setting}"]
    by_flag = refusal(capsys, script, "--resume", folder, *more, *flag)
    assert f"expected the settings of the run (n_itr may be increased), but {setting} was " in by_flag
    try:
        edit(path, **{setting: value})
        edited, rows = path.read_text(), (folder / "progress.csv").read_text()
        assert refusal(capsys, script, "--resume", folder, *more) == by_flag
        assert (path.read_text(), (folder / "progress.csv").read_text()) == (edited, rows)
    finally:
        path.write_text(before)


def test_what_may_differ_may_be_edited(tmp_path):
    """Given a run, then more iterations and settings of output may be edited, and a resumed run can be resumed."""
    folder = tmp_path / "run"
    assert vpg_maml.main([*SMALL, "--env", "MetaPointEnvCorner", "--dump_path", str(folder)]) == 0
    for n_itr in (3, 4):
        edit(folder / "params.json", n_itr=n_itr, plot_gap=n_itr, progress_bar=False)
        with tf.Graph().as_default():
            assert vpg_maml.main(["--resume", str(folder)]) == 0
        assert (folder / "progress.csv").read_text().count("\n") == n_itr + 1


# Trainer.restore


def build(algo_cls=ProMP, env=None, hidden_sizes=(4,), nonlinearity=tf.tanh, paths=3, horizon=4, discount=0.9,
          parallel=False, baseline=None, meta_batch_size=2, **arguments):
    set_seed(1)
    env = normalize(MetaPointEnvCorner()) if env is None else env
    policy = MetaGaussianMLPPolicy(meta_batch_size, 2, 2, hidden_sizes=hidden_sizes, hidden_nonlinearity=nonlinearity)
    algo = algo_cls(policy, meta_batch_size=meta_batch_size, **arguments)
    return Trainer(algo, env, MetaSampler(env, policy, paths, meta_batch_size, horizon, parallel=parallel),
                   MetaSampleProcessor(baseline or LinearFeatureBaseline(), discount), policy, 5,
                   num_inner_grad_steps=algo.num_inner_grad_steps)


def saved(folder, **arguments):
    """A snapshot of a trainer, from its file."""
    logger.configure(folder, ["csv"], overwrite=True)
    with tf.Graph().as_default():
        build(**arguments).train_itr()
        return load_snapshot(folder)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("arguments, difference", [
    ({"paths": 5}, "sampler.rollouts_per_meta_task was 3, is 5"),
    ({"horizon": 6}, "sampler.max_path_length was 4, is 6"),
    ({"num_inner_grad_steps": 2}, "algo.num_inner_grad_steps was 1, is 2"),
    ({"discount": 0.99}, "sample_processor.discount was 0.9, is 0.99"),
    ({"inner_lr": 0.2}, "algo.inner_lr was 0.1, is 0.2"),
    ({"learning_rate": 0.1}, "algo.learning_rate was 0.001, is 0.1"),
    ({"clip_eps": 0.5}, "algo.clip_eps was 0.2, is 0.5"),
    ({"num_minibatches": 2}, "algo.num_minibatches was 1, is 2"),
    ({"first_order": True}, "algo.first_order was False, is True"),
    ({"tf_optimizer_args": {"beta1": 0.8}}, "algo.tf_optimizer_args was None, is {'beta1': [0.8]}"),
    ({"tf_optimizer_cls": tf.train.RMSPropOptimizer},
     "algo.tf_optimizer_cls was 'AdamOptimizer', is 'RMSPropOptimizer'"),
    ({"nonlinearity": tf.nn.relu}, "policy.hidden_nonlinearity was 'tanh', is 'relu'"),
    ({"hidden_sizes": (8, 8)}, "policy.hidden_sizes was [4], is [8, 8]"),
    ({"baseline": LinearTimeBaseline()},
     "sample_processor.baseline was 'LinearFeatureBaseline', is 'LinearTimeBaseline'"),
    ({"baseline": LinearFeatureBaseline(reg_coeff=1.0)},
     "sample_processor.baseline.reg_coeff was 1e-05, is 1.0"),
    ({"env": normalize(MetaPointEnvNavigation())},
     "sampler.env.env was 'MetaPointEnvCorner', is 'MetaPointEnvNavigation'"),
    ({"env": normalize(MetaPointEnvCorner(reward_type="dense"))},
     "sampler.env.env.reward_type was 'sparse', is 'dense'"),
    ({"env": MetaPointEnvCorner()}, "sampler.env was 'NormalizedEnv', is 'MetaPointEnvCorner'"),
    ({"meta_batch_size": 3}, "algo.meta_batch_size was 2, is 3"),
    ({"name": "other"}, "algo.name was 'ppo_maml', is 'other'"),  # it decides the order of Adam's variables
    ({"algo_cls": VPGMAML}, "algo was 'ProMP', is 'VPGMAML'"),
])
@pytest.mark.thorough(but=("arguments4-algo.inner_lr was 0.1, is 0.2", "arguments20-algo was 'ProMP', is 'VPGMAML'"))
def test_a_snapshot_of_another_configuration_is_refused(arguments, difference, snapshot):
    """Given a snapshot, then a trainer that was built with another argument names it, and does not change."""
    trainer = build(**arguments)
    before = trainer.policy.get_flat_params()
    with pytest.raises(ValueError) as error:
        trainer.restore(snapshot)
    assert difference in str(error.value)
    assert trainer.itr == 0
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), before)


def test_a_snapshot_of_another_algorithm_with_the_same_state_is_refused(tmp_path):
    with pytest.raises(ValueError, match="algo was 'VPGMAML', is 'TRPOMAML'"):
        build(TRPOMAML).restore(saved(tmp_path, algo_cls=VPGMAML))


def test_arguments_of_an_optimizer_are_compared(tmp_path):
    def optimizer(cg_iters):
        return ConjugateGradientOptimizer(cg_iters=cg_iters)

    snapshot = saved(tmp_path, algo_cls=TRPOMAML, optimizer=optimizer(3))
    with tf.Graph().as_default():
        build(TRPOMAML, optimizer=optimizer(3)).restore(snapshot)
    with pytest.raises(ValueError, match="algo.optimizer.cg_iters was 3, is 4"):
        build(TRPOMAML, optimizer=optimizer(4)).restore(snapshot)


@pytest.mark.parametrize("arguments", [
    {"parallel": True}, {"nonlinearity": "tanh"}, {"nonlinearity": tf.nn.tanh},
    {"hidden_sizes": [4]}, {"discount": np.float64(0.9)}, {"inner_lr": 0.1, "tf_optimizer_args": None},
    {"env": normalize(MetaPointEnvCorner(render_mode="rgb_array"))},
], ids=["parallel", "name of a function", "alias of a function", "list", "NumPy number", "default", "render"])
@pytest.mark.thorough(but="parallel")
def test_what_does_not_change_the_data_may_differ(arguments, snapshot):
    """Given the same arguments in another form, or others that results do not depend on, then the run is resumed."""
    trainer = build(**arguments)
    trainer.restore(snapshot)
    trainer.sampler.close()
    assert trainer.itr == 1


def test_snapshots_without_arguments_are_restored_as_before(snapshot):
    """Given a snapshot that does not say how its parts were built, then these arguments are not compared."""
    state = {key: value for key, value in snapshot["state"].items() if key not in ("parts", "settings")}
    trainer = build(inner_lr=0.3)
    trainer.restore({**snapshot, "state": state})
    assert trainer.itr == 1
