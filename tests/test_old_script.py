"""A script for the public code of this method runs after changing only its TensorFlow import."""
import json
import os
import subprocess
import sys

import joblib
import numpy as np
import pytest

from tests.helpers.processes import ROOT
from tests.helpers.runs import read_csv

SCRIPT = '''
import argparse
import json
import os

import numpy as np
import tensorflow as tf

from meta_policy_search.baselines.linear_baseline import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_direc import HalfCheetahRandDirecEnv
from meta_policy_search.envs.normalized_env import normalize
from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.meta_algos.pro_mp import ProMP
from meta_policy_search.meta_algos.trpo_maml import TRPOMAML
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies.meta_gaussian_mlp_policy import MetaGaussianMLPPolicy
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor
from meta_policy_search.samplers.meta_sampler import MetaSampler
from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import ClassEncoder, set_seed


def main(config):
    set_seed(config['seed'])
    env = normalize(globals()[config['env']]())
    policy = MetaGaussianMLPPolicy(
        name='meta-policy', obs_dim=np.prod(env.observation_space.shape), action_dim=np.prod(env.action_space.shape),
        meta_batch_size=config['meta_batch_size'], hidden_sizes=config['hidden_sizes'], hidden_nonlinearity=tf.tanh,
        learn_std=config['learn_std'])
    sampler = MetaSampler(
        env=env, policy=policy, rollouts_per_meta_task=config['rollouts_per_meta_task'],
        meta_batch_size=config['meta_batch_size'], max_path_length=config['max_path_length'],
        envs_per_task=config['envs_per_task'], parallel=config['parallel'])
    sample_processor = MetaSampleProcessor(
        baseline=globals()[config['baseline']](), discount=config['discount'], gae_lambda=config['gae_lambda'],
        normalize_adv=config['normalize_adv'], positive_adv=config['positive_adv'])
    shared = dict(policy=policy, inner_lr=config['inner_lr'], meta_batch_size=config['meta_batch_size'],
                  num_inner_grad_steps=config['num_inner_grad_steps'])
    if config['algo'] == 'ProMP':
        algo = ProMP(
            learning_rate=config['learning_rate'], num_ppo_steps=config['num_promp_steps'],
            clip_eps=config['clip_eps'], target_inner_step=config['target_inner_step'],
            init_inner_kl_penalty=config['init_inner_kl_penalty'],
            adaptive_inner_kl_penalty=config['adaptive_inner_kl_penalty'], **shared)
    else:
        algo = TRPOMAML(step_size=config['step_size'], inner_type=config['inner_type'], exploration=True, **shared)
    Trainer(algo=algo, policy=policy, env=env, sampler=sampler, sample_processor=sample_processor,
            n_itr=config['n_itr'], num_inner_grad_steps=config['num_inner_grad_steps']).train()


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--config_file', type=str)
    parser.add_argument('--dump_path', type=str)
    args = parser.parse_args()
    with open(args.config_file) as f:
        config = json.load(f)
    logger.configure(dir=args.dump_path, format_strs=['stdout', 'log', 'csv'], snapshot_mode='last_gap')
    json.dump(dict(config, nonlinearity=tf.tanh, env_class=HalfCheetahRandDirecEnv),
              open(args.dump_path + '/params.json', 'w'), cls=ClassEncoder)
    main(config)
'''

CONFIG = {
    "seed": 1, "baseline": "LinearFeatureBaseline", "env": "HalfCheetahRandDirecEnv", "rollouts_per_meta_task": 3,
    "max_path_length": 8, "envs_per_task": 2, "parallel": True, "discount": 0.99, "gae_lambda": 1,
    "normalize_adv": True, "positive_adv": False, "hidden_sizes": [8], "learn_std": True, "inner_lr": 0.1,
    "learning_rate": 1e-3, "num_promp_steps": 5, "clip_eps": 0.3, "target_inner_step": 0.01,
    "init_inner_kl_penalty": 5e-4, "adaptive_inner_kl_penalty": False, "n_itr": 2, "meta_batch_size": 2,
    "num_inner_grad_steps": 1, "algo": "ProMP", "step_size": 0.01, "inner_type": "log_likelihood",
}
COLUMNS = {
    "Itr", "n_timesteps", "Time", "ItrTime", "Time-OuterStep", "Time-TotalInner", "Time-InnerStep", "Time-SampleProc",
    "Time-Sampling", "Time-MAMLSteps", "LossBefore", "LossAfter",
    *(f"Step_{step}-{name}" for step in (0, 1) for name in (
        "AverageReturn", "AverageDiscountedReturn", "NumTrajs", "StdReturn", "MaxReturn", "MinReturn",
        "PolicyExecTime", "EnvExecTime", "AveragePolicyStd")),
}


@pytest.mark.parametrize("changes, columns", [
    ({}, {"KLInner", "KLCoeffInner"}),
    ({"algo": "TRPOMAML", "env": "MetaPointEnvCorner", "baseline": "LinearTimeBaseline"},
     {"MeanKLBefore", "MeanKL", "dLoss"}),
], ids=["ProMP on a robot", "E-MAML on points"])
@pytest.mark.thorough(ci="ProMP on a robot")
def test_old_script_runs_with_its_tensorflow_import_changed(changes, columns, tmp_path):
    """The script trains in worker processes with its old settings and writes the same files as before."""
    script, config_file, folder = tmp_path / "script.py", tmp_path / "config.json", tmp_path / "run"
    script.write_text(SCRIPT.replace("import tensorflow as tf", "from meta_policy_search.tf_compat import tf"))
    config_file.write_text(json.dumps({**CONFIG, **changes}))
    result = subprocess.run(
        [sys.executable, str(script), "--config_file", str(config_file), "--dump_path", str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120,
    )
    assert (result.returncode, result.stderr) == (0, "")
    rows = read_csv(folder / "progress.csv")
    assert [row["Itr"] for row in rows] == ["0", "1"]
    assert rows[0].keys() >= COLUMNS | columns
    assert rows[1]["n_timesteps"] == str(2 * 2 * 2 * 3 * 8)  # iterations, steps, tasks, paths, path length
    left = {path.name for path in folder.iterdir()}
    assert left >= {"params.json", "log.txt", "params.pkl", "itr_0.pkl", "itr_1.pkl"}
    params = json.loads((folder / "params.json").read_text())
    assert params["env_class"]["$class"].endswith("HalfCheetahRandDirecEnv")
    assert params["nonlinearity"]["function"].endswith("tanh")


def test_snapshot_of_an_old_script_is_read_with_joblib(tmp_path):
    """joblib returns policy, environment and baseline of a snapshot, and `rollout` accepts them."""
    from meta_policy_search.baselines import LinearFeatureBaseline
    from meta_policy_search.samplers.utils import rollout
    from meta_policy_search.tf_compat import tf
    from meta_policy_search.utils import logger
    from tests.helpers.trainers import build_trainer

    trainer, observation = build_trainer(), np.array([0.1, -0.2])
    logger.configure(tmp_path, format_strs=["csv"], snapshot_mode="all")
    trainer.train()
    _, expected = trainer.policy.get_action(observation)
    with tf.Graph().as_default(), tf.Session().as_default():
        snapshot = joblib.load(tmp_path / "itr_0.pkl")
        _, info = snapshot["policy"].get_action(observation)
        path = rollout(snapshot["env"], snapshot["policy"], max_path_length=7)
    np.testing.assert_allclose(info["mean"], expected["mean"], rtol=1e-6)
    assert snapshot["itr"] == 0 and path["actions"].shape == (7, 2)
    assert snapshot["env"].action_space == trainer.env.action_space
    assert isinstance(snapshot["baseline"], LinearFeatureBaseline)
