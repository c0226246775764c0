"""The scripts with stable-baselines3 train and evaluate, and the evaluator acts as the model does alone.

Each test creates a model before it uses TensorFlow: some builds of PyTorch end the process otherwise.
"""
import gymnasium
import numpy as np
import pytest

import meta_policy_search as mps

pytest.importorskip("sb3_contrib", reason="needs the extra stable-baselines3")
from sb3_contrib import RecurrentPPO  # noqa: E402 - what may not be there

from experiments.stable_baselines3 import evaluate, ppo, rl2  # noqa: E402
from meta_policy_search.envs.gymnasium import TrialWrapper  # noqa: E402

POINT = "MetaPointNavigation-v0"


def test_scripts_train_and_evaluate_in_the_same_tasks(tmp_path, capsys):
    ppo.main(["--env", POINT, "--steps", "1", "--model", str(tmp_path / "ppo")])
    rl2.main(["--env", POINT, "--steps", "1", "--model", str(tmp_path / "rl2")])
    run = mps.train("MetaPointEnvNavigation", "promp", n_itr=1, meta_batch_size=2, rollouts_per_meta_task=2,
                    max_path_length=5, dump_path=tmp_path / "run")
    capsys.readouterr()
    evaluate.main([str(tmp_path / "run"), "--env", POINT, "--ppo", str(tmp_path / "ppo"),
                   "--rl2", str(tmp_path / "rl2"), "--num_tasks", "5"])
    names = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert names[1] == "adaptation steps" and names[2].endswith("run, iteration 0") and names[3:5] == ["PPO", "RL2"]
    model, env = evaluate.Model(ppo.PPO.load(tmp_path / "ppo")), mps.MetaPointEnvNavigation()
    evaluation = mps.MetaEvaluator(model, env, rollouts_per_meta_task=1, max_path_length=3).evaluate(5)
    np.testing.assert_array_equal(evaluation.tasks[0], run.evaluate(5).tasks[0])


def test_returns_of_trials_equal_those_of_the_model_alone(monkeypatch):
    """The recurrent state starts at the first step of a trial and is kept until its end."""
    env = TrialWrapper(gymnasium.make(f"meta_policy_search/{POINT}", max_episode_steps=4))
    model = RecurrentPPO("MlpLstmPolicy", env, policy_kwargs={"lstm_hidden_size": 8}, device="cpu")
    predict = model.predict
    monkeypatch.setattr(model, "predict", lambda *arguments: predict(*arguments, deterministic=True))
    own = mps.TrialEnv(env.unwrapped.meta_env, max_path_length=4)
    tasks = env.unwrapped.meta_env.sample_tasks(2, np.random.default_rng(0))
    measured = mps.TrialEvaluator(evaluate.Model(model), own, rollouts_per_meta_task=3).evaluate(tasks)

    def returns_alone(task):
        (observation, _), state, rewards = env.reset(options={"task": task}), None, []
        for step in range(8):
            action, state = model.predict(observation, state, np.array([step == 0]))
            observation, reward, *_ = env.step(action)
            rewards.append(reward)
        return np.reshape(rewards, (2, 4)).sum(axis=1)

    assert measured.returns[0] == pytest.approx(np.array([returns_alone(task) for task in tasks]), rel=1e-4)
