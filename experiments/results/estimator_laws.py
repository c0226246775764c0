"""Measures how bias and variance of meta-gradients depend on the number of inner samples, on Bernoulli bandits.

    python -m experiments.results.estimator_laws   # half a minute on one core

arXiv:2112.07328 derives scaling laws for N inner samples. The variance of an unbiased meta-gradient is Theta(N).
Estimators that omit the score of the whole data set have a variance of O(1 / N) and a bias of O(1 / sqrt(N)).

Each seed draws a bandit with two arms (success probabilities uniform in [0, 1]) and a softmax policy (normal logits). A
path has `PULLS` pulls, each with a reward of 1 or 0. One inner step of size `STEP_SIZE` minimizes the library's inner
loss on N paths. The expected reward of the sampling policy is subtracted from the rewards. The outer objective is the
exact expected reward of the adapted policy, so the inner samples are the only source of noise. The meta-gradient is the
derivative with respect to the first logit; the derivative with respect to the second logit is its negative.

`estimator_laws.csv` contains, for each estimator, seed and N, the variance over `REPLICATES` data sets, and the bias
with its standard error. The bias is the mean difference to an unbiased reference on the same data sets. The reference
is the `e_maml` estimator with a baseline, the mean return of the other data sets. `estimator_laws.svg` plots variance
and bias.
"""
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.results.draw import Rows, columns_of, read_groups
from meta_policy_search.ops import losses
from meta_policy_search.plotting import style
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.files import write_csv
from meta_policy_search.utils.statistics import mean_interval

HERE = os.path.dirname(os.path.abspath(__file__))
PULLS, STEP_SIZE = 4, 4.0
PATHS = (8, 16, 32, 64, 128, 256)
SEEDS = tuple(range(1, 11))
REPLICATES, BLOCK = 1000, 250  # number of data sets, and how many are computed at a time
COLUMNS = ("estimator", "seed", "paths", "variance", "bias", "bias_error")
ESTIMATORS = {
    "e_maml": "log-likelihood with score term, c = 1",
    "e_maml_mean": "log-likelihood with score term, c = 1 / N",
    "log_likelihood": "log-likelihood",
    "likelihood_ratio": "likelihood ratio",
    "taypo": "TayPO-2",
    "loaded_dice": "Loaded DiCE",
    "dice": "DiCE",
}
LINES = {"loaded_dice": "--", "dice": ":"}  # these coincide with the curve of TayPO-2


def build(theta: tf.Tensor, actions: tf.Tensor, rewards: tf.Tensor, mean_rewards: np.ndarray) -> dict[str, tf.Tensor]:
    """Builds all meta-gradients of each data set, `[M]`, and the terms of the unbiased reference (see `unbiased`).

    Args:
        theta: logits of the policy, `[M, 2]`, equal in all rows.
        actions: int `[M, N * PULLS]`, concatenated paths.
        rewards: `[M, N * PULLS]`, centered.
        mean_rewards: expected reward of each arm, `[2]`.
    """
    log_prob = tf.gather(tf.nn.log_softmax(theta), actions, batch_dims=1)
    shape = tf.shape(actions)
    index = tf.broadcast_to(tf.range(shape[1])[None], shape)
    starts = index - index % PULLS
    weights = tf.ones_like(rewards) / tf.cast(shape[1], rewards.dtype)
    by_path = tf.reshape(rewards, [shape[0], -1, PULLS])
    advantages = tf.reshape(tf.cumsum(by_path, axis=2, reverse=True), shape)
    inner = {
        "log_likelihood": losses.log_likelihood_loss(log_prob, advantages, weights),
        "likelihood_ratio": losses.likelihood_ratio_loss(log_prob, log_prob, advantages, weights),
        "taypo": losses.taypo_loss(log_prob, log_prob, advantages, weights, starts),
        "loaded_dice": losses.loaded_dice_loss(log_prob, advantages, weights, starts),
        "dice": losses.dice_loss(log_prob, rewards, weights, starts),
    }
    built = {}
    for name, loss in inner.items():
        (gradient,) = tf.gradients(loss, theta)
        value = tf.reduce_sum(tf.nn.softmax(theta - STEP_SIZE * gradient) * mean_rewards, axis=1)
        built[name] = tf.gradients(value, theta)[0][:, 0]
        if name == "log_likelihood":
            built["value"] = value
    built["score"] = tf.gradients(losses.exploration_score(log_prob, log_prob, tf.ones_like(weights)), theta)[0][:, 0]
    built["e_maml"] = built["log_likelihood"] + built["value"] * built["score"]
    built["e_maml_mean"] = built["log_likelihood"] + built["value"] * built["score"] * weights[:, 0]
    return built


def measure(seed: int, paths: Sequence[int] = PATHS, replicates: int = REPLICATES) -> list[tuple[Any, ...]]:
    """Measures all estimators for one seed; returns rows with the columns `COLUMNS`."""
    rng = np.random.default_rng(seed)
    mean_rewards, logits = rng.uniform(size=2), rng.normal(size=2)
    policy = np.exp(logits) / np.exp(logits).sum()
    rows = []
    with tf.Graph().as_default(), tf.Session() as sess:
        theta = tf.placeholder(tf.float64, [None, 2])
        actions, rewards = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.float64, [None, None])
        built = build(theta, actions, rewards, mean_rewards)
        for number in paths:
            blocks = []
            for start in range(0, replicates, BLOCK):
                shape = min(BLOCK, replicates - start), number * PULLS
                arms = (rng.uniform(size=shape) < policy[1]).astype(int)
                drawn = (rng.uniform(size=shape) < mean_rewards[arms]) - policy @ mean_rewards
                blocks.append(sess.run(built, {theta: np.tile(logits, (shape[0], 1)), actions: arms, rewards: drawn}))
            found = {name: np.concatenate([block[name] for block in blocks]) for name in built}
            for name in ESTIMATORS:
                bias = found[name] - unbiased(**{key: found[key] for key in ("log_likelihood", "value", "score")})
                rows.append((name, seed, number, found[name].var(ddof=1), bias.mean(),
                             bias.std(ddof=1) / np.sqrt(replicates)))
    return rows


def unbiased(log_likelihood: np.ndarray, value: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Returns unbiased meta-gradients `[M]` with a variance that is bounded in the number of samples.

    The baseline is the mean return of the other data sets. Subtracting it causes no bias, because the score has mean
    zero and does not depend on the other data sets.
    """
    others = (value.sum() - value) / (len(value) - 1)
    return log_likelihood + (value - others) * score


def slopes(rows: Rows) -> np.ndarray:
    """Fits `log(variance)` as a linear function of `log(paths)`; returns the slope for each seed."""
    found = []
    for own in _by_seed(rows).values():
        found.append(np.polyfit(np.log(own["paths"]), np.log(own["variance"]), 1)[0])
    return np.array(found)


def _by_seed(rows: Rows) -> dict[str, Mapping[str, np.ndarray]]:
    seeds = dict.fromkeys(row["seed"] for row in rows)
    return {seed: columns_of([row for row in rows if row["seed"] == seed]) for seed in seeds}


def draw(csv_path: str, path: str) -> None:
    """Plots variance (geometric mean over seeds) and bias (root mean square over seeds) over the number of paths."""
    groups = read_groups(csv_path, "estimator")
    title = f"Meta-gradients on Bernoulli bandits: one inner step on N paths of {PULLS} pulls, {len(SEEDS)} bandits"
    with style.figure_axes(path, title, height=5.2, width=9.0, columns=2) as all_axes:
        (variance, bias), = all_axes
        for color, (name, label) in zip(style.COLORS, ESTIMATORS.items(), strict=True):
            runs = list(_by_seed(groups[name,]).values())
            slope, width = mean_interval(slopes(groups[name,]))
            look = {"color": color, "marker": "o", "markersize": 3, "linestyle": LINES.get(name, "-")}
            variance.plot(runs[0]["paths"], np.exp(np.mean([np.log(run["variance"]) for run in runs], axis=0)), **look,
                          label=f"{label}: slope {slope:+.2f} ± {width:.2f}")
            if name != "e_maml":
                bias.plot(runs[0]["paths"], np.sqrt(np.mean([run["bias"] ** 2 for run in runs], axis=0)), **look)
        error = np.sqrt(np.mean([run["bias_error"] ** 2 for run in _by_seed(groups["likelihood_ratio",]).values()], 0))
        bias.plot(runs[0]["paths"], error, color="#777777", linestyle="-.", label="standard error of the measured bias")
        for ax, what in ((variance, "variance"), (bias, "bias, root mean square over bandits")):
            ax.set(xscale="log", yscale="log", xlabel="inner paths N", title=what, xticks=PATHS)
            ax.set_xticks([], minor=True)
            ax.set_xticklabels(map(str, PATHS))
            ax.grid(color=style.GRID_COLOR)
        (lines, labels), (more_lines, more_labels) = (ax.get_legend_handles_labels() for ax in (variance, bias))
        style.label_curves(all_axes, None, lines + more_lines, labels + more_labels)


def main(folder: str = HERE) -> None:
    """Measures all seeds, writes the CSV file and the figure, and prints the slopes."""
    path = os.path.join(folder, "estimator_laws.csv")
    rows = [(*row[:3], *(f"{value:.5g}" for value in row[3:])) for seed in SEEDS for row in measure(seed)]
    write_csv(path, [COLUMNS, *rows])
    draw(path, os.path.join(folder, "estimator_laws.svg"))
    for (name,), group in read_groups(path, "estimator").items():
        slope, width = mean_interval(slopes(group))
        print(f"{ESTIMATORS[name]}: slope of the variance {slope:+.2f} +- {width:.2f}")


if __name__ == "__main__":
    main()
