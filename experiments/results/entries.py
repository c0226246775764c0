"""What `experiments/reproduce.py` repeats: claims of papers, with the settings that they are tested with here."""
import dataclasses
import json
import os
from typing import Any, Literal, Mapping, Optional, Sequence

CONFIGS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "configs")


@dataclasses.dataclass(frozen=True)
class Method:
    """One line of a comparison, trained once per seed."""

    name: str  # of folders and files
    label: str
    script: str  # in `experiments`, without `.py`
    settings: Mapping[str, Any]
    seeds: Sequence[int] = (1, 2, 3)
    published: Optional[Sequence[float]] = None  # mean return in new tasks after 0, 1, ... steps, NaN where not said
    snapshot: Optional[str] = "last"  # that is tested; None for the random initialisation


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim, and the runs that it is tested by."""

    claim: str
    source: str
    settings: Mapping[str, Any]  # of all methods
    methods: Sequence[Method]
    num_steps: int  # gradient steps in new tasks
    step_sizes: Optional[Sequence[float]] = None  # of these; None as in training
    rollouts: int = 20  # paths in each new task after each step
    score: Literal["mean return", "success rate"] = "mean return"  # the latter by Meta-World's own evaluation
    differs: str = ""  # from the published setting
    outcome: str = ""  # what came of it, in words


def _exploration(env: str, outcome: str) -> Entry:
    """Returns the comparison of inner objectives in a world."""
    methods = [Method(f"{inner_type}{name}", f"{label}{term}", "maml_trpo",
                      {"inner_type": inner_type, "exploration": exploration})
               for name, term, exploration in (("", "", False), ("_exploring", ", exploration term", True))
               for inner_type, label in _INNER_OBJECTIVES.items()]
    return dataclasses.replace(_EXPLORATION, settings={**_EXPLORATION.settings, "env": env}, methods=methods,
                               differs="20 tasks for 40; 6.4 million environment steps", outcome=outcome)


_INNER_OBJECTIVES = {"log_likelihood": "log-likelihood", "likelihood_ratio": "likelihood ratio"}
_EXPLORATION = Entry(
    "The inner objective decides whether exploration is learnt",
    "arXiv:1810.06784, section 7.3",
    {"env": "MetaPointEnvCorner", "n_itr": 40, "meta_batch_size": 20, "rollouts_per_meta_task": 20,
     "max_path_length": 100, "inner_lr": 0.1, "num_inner_grad_steps": 3, "step_size": 0.01},
    methods=(),
    num_steps=3,
)


def _other_settings(outcome: str) -> Entry:
    """Returns the comparison of inner objectives with other settings than published."""
    others = {
        "small_step": ("inner step 0.03", {"inner_lr": 0.03}),
        "large_step": ("inner step 0.3", {"inner_lr": 0.3}),
        "no_baseline": ("no baseline", {"baseline": "ZeroBaseline"}),
        "far": ("no reward within 0.8", {"env_kwargs": {"sparse_reward_radius": 0.8}}),
    }
    return dataclasses.replace(
        _EXPLORATION,
        settings={**_EXPLORATION.settings, "n_itr": 15},
        methods=[Method(f"{inner_type}_{name}", f"{label}, {other}", "maml_trpo",
                        {"inner_type": inner_type, **settings}, (1,))
                 for name, (other, settings) in others.items() for inner_type, label in _INNER_OBJECTIVES.items()],
        differs="each setting in turn; 20 tasks for 40, 2.4 million environment steps, one seed",
        outcome=outcome)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A claim about estimates, and what they are measured by."""

    claim: str
    source: str
    module: str  # in `experiments.results`; its `measure(seed)` returns numbers by method, and of each by `key`
    key: str  # what stands over the columns
    value: str  # what the numbers are
    methods: Mapping[str, str]  # labels
    seeds: Sequence[int]
    published: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    differs: str = ""
    outcome: str = ""


def _half_cheetah(env: str, published: Sequence[float], outcome: str, **env_kwargs: Any) -> Entry:
    """Returns the comparison of TRPO-MAML, ProMP and what needs no meta-learning on the half cheetah."""
    alone = {"num_inner_grad_steps": 0, "n_itr": 80}  # as many environment steps, of which none are for adaptation
    return Entry(
        "MAML adapts a half cheetah, ProMP with fewer samples",
        "arXiv:1703.03400, section 5.3; arXiv:1810.06784, section 7.1",
        {"env": env, "env_kwargs": env_kwargs, "meta_batch_size": 20, "max_path_length": 200, "n_itr": 40},
        [Method("trpo_maml", "TRPO-MAML", "maml_trpo", {}, published=published),
         Method("pro_mp", "ProMP", "pro_mp", {}),
         Method("all_tasks", "TRPO in all tasks, then gradient steps", "maml_trpo", alone),
         Method("oracle", "TRPO that observes the task", "maml_trpo", {**alone, "observe_task": True}),
         Method("random", "random initialisation", "maml_trpo", {"n_itr": 1}, snapshot=None)],
        num_steps=3,
        step_sizes=(0.1, 0.05),
        differs="20 tasks for 40, 64 tanh units in each layer for 100 ReLU, 6.4 million environment steps. "
                "The robot of the released code is rllab's: its velocity is that of its centre of mass at the end of a "
                "step, it also observes where its torso is, and its first positions vary less",
        outcome=outcome,
    )


def _preset(name: str) -> dict[str, Any]:
    with open(os.path.join(CONFIGS, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def _rllib(
    name: str, n_itr: int, published: Optional[Sequence[float]], differs: str, outcome: str, *others: Method,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
) -> Entry:
    """Returns one of the examples that RLlib tuned."""
    settings = {**_preset("rllib_" + name), "n_itr": n_itr}
    return Entry(
        "The tuned examples of RLlib's MAML, by ProMP",
        "RLlib's tuned examples",
        settings,
        [Method("pro_mp", "ProMP", "pro_mp", {}, seeds, published=published),
         *others,
         Method("random", "random initialisation", "pro_mp", {"n_itr": 1}, snapshot=None)],
        num_steps=settings["num_inner_grad_steps"],
        differs=differs,
        outcome=outcome,
    )


_NAVIGATION = Entry(
    "MAML adapts to a goal in the plane",
    "arXiv:1703.03400, section 5.3",
    {"env": "MetaPointEnvNavigation", "normalization_scale": 1.0, "n_itr": 100, "inner_lr": 0.5,
     "hidden_sizes": [100, 100], "hidden_nonlinearity": "relu", "inner_type": "log_likelihood", "step_size": 0.01},
    [Method("trpo_maml", "TRPO-MAML", "maml_trpo", {}, (1, 2, 3, 4, 5), published=(-40.41, -11.68, -3.33, -3.23))],
    num_steps=3,
    step_sizes=(0.5, 0.25),
    rollouts=40,
    outcome="The third step gains nothing on average over three seeds. It harms in 67 of 120 tasks (median return "
            "from -3.34 to -4.15), as it is as long as the second and overshoots, and helps where two steps have left"
            " the point far from its goal. It is no matter of noise: with 160 paths it changes the return by -1.3 ± "
            "0.8 (seed 1; for the worse in 68% of the tasks). Halved once more, to 0.125, it gains +2.5 ± 0.6 with 40"
            " paths, to -2.3 (120 tasks), and +1.3 ± 0.4 with 160, to -2.1.",
)

_DIRECTION = _half_cheetah(
    "HalfCheetahRandDirecEnv", (-50.69, 293.19, 313.48, 315.65),
    "Both return what was published within 6.4 million environment steps. ProMP is not the quicker one here: in the "
    "first half of training it returns 15 after adaptation (seeds: 10 to 20), TRPO-MAML 31 (27 to 38); in the last "
    "quarter both return 280 to 290 (seeds: 258 to 317 and 281 to 292). A policy that was trained in all tasks stays "
    "where it is, and gradient steps do not change that.")

ENTRIES = {
    "exploration_corner": _exploration(
        "MetaPointEnvCorner",
        "All four learn to reach the corner within three steps, the log-likelihood, too: the noise of the first "
        "policy finds the corner often enough for three steps to gain (from 0.02 to 0.10, mean of three seeds), and "
        "after five meta-updates both return 1.7 to 1.9. The likelihood ratio makes the policy return more after one "
        "step, 1.00 against 0.92, with each seed, and before adaptation, where all that it can do is explore, with "
        "two of three (0.28, 0.24 and 0.15 against 0.09, 0.10 and 0.15). The exploration term changes little."),
    "exploration_corner_settings": _other_settings(
        "Why does the log-likelihood learn, too? It does with each of these settings, also where reward begins "
        "farther away, at 0.8 for 0.5, which the first policy's noise reaches less often. With shorter inner steps "
        "the two are equal. With longer ones, and without a baseline, the likelihood ratio ends ahead, 2.07 against "
        "1.75 and 1.99 against 1.63; without a baseline it is so after one step, too, 0.69 against 0.28."),
    "exploration_momentum": _exploration(
        "MetaPointEnvMomentum",
        "Here the likelihood ratio has the policy explore, as published: with each of three seeds it returns 2 to 18 "
        "before adaptation and 22 to 46 after one step, where the log-likelihood leaves 0.1 to 0.5 and 3 to 12. The "
        "first policy returns 7 before adaptation; the one keeps that, the other unlearns it. Three steps make up for"
        " most of it: the log-likelihood ends at 60 (65 with the exploration term), the likelihood ratio at 66 (74), "
        "which is ahead with one seed of three (two)."),
    "half_cheetah_velocity": _half_cheetah(
        "HalfCheetahRandVelEnv", (-129.5, -78.6, -66.6, -60.8),
        "Both return what was published within 6.4 million environment steps, and ProMP is the quicker one: after "
        "adaptation it returns -104 in training, on average over all iterations (seeds: -100 to -108), TRPO-MAML -129"
        " (-121 to -141). A policy that was trained in all tasks does as well with one seed, gradient steps begin "
        "from it as well; in MAML's paper it was behind. The oracle needs no step, and the first one harms. "
        "Velocities go up to 2 m/s, as published with MAML; that was set after a run of ProMP with up to 3 m/s, which"
        " returned -164, -108, -93 and -90.",
        max_velocity=2.0),
    "half_cheetah_direction": _DIRECTION,
    "half_cheetah_direction_settings": dataclasses.replace(
        _DIRECTION,
        methods=[Method("pro_mp_quick", "ProMP, learning rate 0.003", "pro_mp", {"learning_rate": 3e-3}, (1,)),
                 Method("pro_mp_far", "ProMP, inner step 0.2", "pro_mp", {"inner_lr": 0.2}, (1,)),
                 Method("trpo_maml_far", "TRPO-MAML, inner step 0.2", "maml_trpo", {"inner_lr": 0.2}, (1,))],
        differs="each setting in turn; 20 tasks for 40, 6.4 million environment steps, one seed",
        outcome="Is ProMP the quicker one with other settings? A learning rate three times as large changes little: "
                "18 in the first half of training, 260 in the last quarter (seed 1; without, 10 and 258). An inner "
                "step twice as long makes both learn faster, and again neither is ahead all the way: ProMP returns "
                "69, then 343, TRPO-MAML 75, then 318."),
    "rllib_cart_pole_mass": _rllib(
        "cart_pole_mass", 100, None, "",
        "Nearly all paths reach the horizon of 200 steps, before adaptation, too: one policy balances all of these "
        "poles."),
    "rllib_pendulum_mass": _rllib("pendulum_mass", 200, (float("nan"), -190.0), "16 million environment steps",
                                  "It swings up every mass, as published; most of that is there before adaptation. "
                                  "This is the third attempt, chosen after seeing the others: torques five times "
                                  "smaller returned -1016 after 8 million steps (one seed), these about -300 in "
                                  "training after as many, whereupon training was made twice as long."),
    "rllib_half_cheetah_direction": _rllib(
        "half_cheetah_direction", 363, (float("nan"), 230.0), "one seed",
        "With as many steps as published, 45 million, it returns what was published: 230 in training (mean of the "
        "last ten iterations), 216 in new tasks. The run was first to end after a quarter of them, where it returned "
        "15 in training; having seen that, it was made four times as long, and actions a tenth as large, as this "
        "library has them by default, were tried: then a quarter of the steps is enough.",
        Method("pro_mp_small", "ProMP, first actions a tenth as large", "pro_mp",
               {"normalization_scale": 10.0, "n_itr": 90}, (1,)),
        seeds=(1,)),
    "navigation": _NAVIGATION,
    "meta_world_reach": Entry(
        "ProMP reaches new goals with Meta-World's arm",
        "ML1 of Meta-World, arXiv:1910.10897",
        _preset("meta_world_reach"),
        [Method("pro_mp", "ProMP", "pro_mp", {}, (1,)),
         Method("random", "random initialisation", "pro_mp", {"n_itr": 1}, (1,), snapshot=None)],
        num_steps=1,
        score="success rate",
        differs="one seed",
        outcome="The package's own evaluation (metaworld 3.0.0, MuJoCo 4.0.0; 40 goals that training has not seen, "
                "ten episodes to adapt to, then three): one step raises the success rate from 0.05 to 0.625. In "
                "training, where adapted policies draw their actions, it was 0.13 before adaptation and 0.55 after it"
                " (mean of the last ten iterations). The run was planned with 60 iterations and shortened to 40 on "
                "the way, for time. Minutes are those of one core, with a pause of 20.",
    ),
}

MEASUREMENTS = {
    "gradient_variance": Measurement(
        "DiCE's meta-gradients are noisier than low-variance ones",
        "arXiv:1810.06784, section 7.2: the standard deviation of DiCE is 60% to 100% higher",
        module="gradient_variance",
        key="meta-updates before",
        value="standard deviation of the meta-gradient, in lengths of the mean one",
        methods={"low_variance": "low-variance objective", "dice": "DiCE", "dice_short": "DiCE, inner steps as long"},
        seeds=(1, 2, 3),
        outcome="Before the policy has learnt much, after 0 and 10 meta-updates, both are noise. After 20 DiCE is "
                "five times as noisy (seeds: 3.5 to 6.4), after 40 twice (1.7 to 3.1), where 1.6 to 2 times was "
                "published. The length of inner steps is a part of it: with the same step size, those of DiCE are 24 "
                "times as long, as it sums up rewards of standard deviation one. With steps as long as the others' "
                "(seeds 2 and 3) it is 3.3 and 1.3 times as noisy.",
    ),
    "derivatives": Measurement(
        "Loaded DiCE estimates higher derivatives",
        "arXiv:1909.10549, section 5.1",
        module="derivatives",
        key="order",
        value="correlation of the estimated with the true derivative",
        methods={"dice": "DiCE", "low_variance": "low-variance objective", "loaded": "Loaded DiCE, lambda 1",
                 "loaded_lambda_0": "Loaded DiCE, lambda 0"},
        seeds=range(1, 21),
        published={"dice": (float("nan"), -0.05, -0.1), "low_variance": (float("nan"), 0.88, 0.17),
                   "loaded_lambda_0": (float("nan"), 0.99, 0.87)},
        differs="the mean over as many random processes as there are seeds, where the paper has one process",
        outcome="DiCE says nothing of the second and third order, Loaded DiCE of lambda 0 estimates both, as "
                "published. The low-variance objective does better in the third order than published (0.35 in the "
                "worst process, above 0.78 in most).",
    ),
}
