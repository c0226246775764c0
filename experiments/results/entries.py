"""The claims of papers that `experiments/reproduce.py` tests, and the settings of each test.

The outcome of each test is described in `papers/NAME.md`, beside its data.
"""
import dataclasses
import os
from typing import Any, Literal, Mapping, Optional, Sequence

from experiments.settings import read_json

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
    snapshot: Optional[str] = "last"  # the one that is tested; None for the random initialisation


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim, and the runs that test it."""

    claim: str
    source: str
    settings: Mapping[str, Any]  # of all methods
    methods: Sequence[Method]
    num_steps: int  # gradient steps in new tasks
    step_sizes: Optional[Sequence[float]] = None  # of these; None as in training
    rollouts: int = 20  # paths in each new task after each step
    score: Literal["mean return", "success rate"] = "mean return"  # the latter by Meta-World's own evaluation
    differs: str = ""  # how the settings differ from the published ones


def _exploration(env: str) -> Entry:
    """Returns the comparison of inner objectives in an environment."""
    methods = [Method(f"{inner_type}{name}", f"{label}{term}", "maml_trpo",
                      {"inner_type": inner_type, "exploration": exploration})
               for name, term, exploration in (("", "", False), ("_exploring", ", exploration term", True))
               for inner_type, label in _INNER_OBJECTIVES.items()]
    return dataclasses.replace(_EXPLORATION, settings={**_EXPLORATION.settings, "env": env}, methods=methods,
                               differs="20 tasks for 40; 6.4 million environment steps")


_INNER_OBJECTIVES = {"log_likelihood": "log-likelihood", "likelihood_ratio": "likelihood ratio"}
_EXPLORATION = Entry(
    "The inner objective decides whether exploration is learnt",
    "arXiv:1810.06784, section 7.3",
    {"env": "MetaPointEnvCorner", "n_itr": 40, "meta_batch_size": 20, "rollouts_per_meta_task": 20,
     "max_path_length": 100, "inner_lr": 0.1, "num_inner_grad_steps": 3, "step_size": 0.01},
    methods=(),
    num_steps=3,
)


def _other_settings() -> Entry:
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
        differs="each setting in turn; 20 tasks for 40, 2.4 million environment steps, one seed")


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A claim about estimates, and the module that measures them."""

    claim: str
    source: str
    module: str  # in `experiments.results`; its `measure(seed)` returns numbers by method, and of each by `key`
    key: str  # heading of the columns
    value: str  # meaning of the numbers
    methods: Mapping[str, str]  # labels
    seeds: Sequence[int]
    published: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    differs: str = ""


def _half_cheetah(env: str, published: Sequence[float], **env_kwargs: Any) -> Entry:
    """Returns the comparison of TRPO-MAML, ProMP and methods without meta-learning on the half cheetah."""
    alone = {"num_inner_grad_steps": 0, "n_itr": 80}  # the same number of environment steps, none for adaptation
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
    )


def preset(name: str) -> dict[str, Any]:
    """Returns the settings in a file of `experiments/configs`."""
    return read_json(os.path.join(CONFIGS, name + ".json"))


def _rllib(
    name: str, n_itr: int, published: Optional[Sequence[float]], differs: str, *others: Method,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
) -> Entry:
    """Returns one of the examples that RLlib tuned."""
    settings = {**preset("rllib_" + name), "n_itr": n_itr}
    return Entry(
        "The tuned examples of RLlib's MAML, by ProMP",
        "RLlib's tuned examples",
        settings,
        [Method("pro_mp", "ProMP", "pro_mp", {}, seeds, published=published),
         *others,
         Method("random", "random initialisation", "pro_mp", {"n_itr": 1}, snapshot=None)],
        num_steps=settings["num_inner_grad_steps"],
        differs=differs,
    )


_DIRECTION = _half_cheetah("HalfCheetahRandDirecEnv", (-50.69, 293.19, 313.48, 315.65))

ENTRIES = {
    "exploration_corner": _exploration("MetaPointEnvCorner"),
    "exploration_corner_settings": _other_settings(),
    "exploration_momentum": _exploration("MetaPointEnvMomentum"),
    "half_cheetah_velocity": _half_cheetah("HalfCheetahRandVelEnv", (-129.5, -78.6, -66.6, -60.8), max_velocity=2.0),
    "half_cheetah_direction": _DIRECTION,
    "half_cheetah_direction_settings": dataclasses.replace(
        _DIRECTION,
        methods=[Method("pro_mp_quick", "ProMP, learning rate 0.003", "pro_mp", {"learning_rate": 3e-3}, (1,)),
                 Method("pro_mp_far", "ProMP, inner step 0.2", "pro_mp", {"inner_lr": 0.2}, (1,)),
                 Method("trpo_maml_far", "TRPO-MAML, inner step 0.2", "maml_trpo", {"inner_lr": 0.2}, (1,))],
        differs="each setting in turn; 20 tasks for 40, 6.4 million environment steps, one seed"),
    "rllib_cart_pole_mass": _rllib("cart_pole_mass", 100, None, ""),
    "rllib_pendulum_mass": _rllib("pendulum_mass", 200, (float("nan"), -190.0), "16 million environment steps"),
    "rllib_half_cheetah_direction": _rllib(
        "half_cheetah_direction", 363, (float("nan"), 230.0), "one seed",
        Method("pro_mp_small", "ProMP, first actions a tenth as large", "pro_mp",
               {"normalization_scale": 10.0, "n_itr": 90}, (1,)),
        seeds=(1,)),
    "navigation": Entry(
        "MAML adapts to a goal in the plane",
        "arXiv:1703.03400, section 5.3",
        {"env": "MetaPointEnvNavigation", "normalization_scale": 1.0, "n_itr": 100, "inner_lr": 0.5,
         "hidden_sizes": [100, 100], "hidden_nonlinearity": "relu", "inner_type": "log_likelihood", "step_size": 0.01},
        [Method("trpo_maml", "TRPO-MAML", "maml_trpo", {}, (1, 2, 3, 4, 5), published=(-40.41, -11.68, -3.33, -3.23))],
        num_steps=3,
        step_sizes=(0.5, 0.25),
        rollouts=40),
    "meta_world_reach": Entry(
        "ProMP reaches new goals with Meta-World's arm",
        "ML1 of Meta-World, arXiv:1910.10897",
        preset("meta_world_reach"),
        [Method("pro_mp", "ProMP", "pro_mp", {}, (1,)),
         Method("random", "random initialisation", "pro_mp", {"n_itr": 1}, (1,), snapshot=None)],
        num_steps=1,
        score="success rate",
        differs="one seed"),
}

MEASUREMENTS = {
    "gradient_variance": Measurement(
        "DiCE's meta-gradients are noisier than low-variance ones",
        "arXiv:1810.06784, section 7.2: the standard deviation of DiCE is 60% to 100% higher",
        module="gradient_variance",
        key="meta-updates before",
        value="standard deviation of the meta-gradient, in lengths of the mean one",
        methods={"low_variance": "low-variance objective", "dice": "DiCE", "dice_short": "DiCE, inner steps as long"},
        seeds=(1, 2, 3)),
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
        differs="the mean over as many random processes as there are seeds, where the paper has one process"),
}
