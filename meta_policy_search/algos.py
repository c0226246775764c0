"""Algorithms that learn with TensorFlow and are run by a `LocalRunner`: Deep Deterministic Policy Gradient (DDPG)."""
from collections import OrderedDict
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Type, TypeVar

import numpy as np

from meta_policy_search.actors.parameters import flatten_params
from meta_policy_search.envs.normalized_env import NormalizedEnv
from meta_policy_search.envs.spaces import EnvSpec
from meta_policy_search.np.algos.off_policy_rl_algorithm import OffPolicyRLAlgorithm, Transitions
from meta_policy_search.np.exploration_policies import GaussianNoisePolicy, OrnsteinUhlenbeckPolicy
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.np.replay_buffer import ReplayBuffer
from meta_policy_search.ops.tensorflow_ops import TENSORFLOW, make_variables
from meta_policy_search.optimizers.base import check_finite_params
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_choice, check_fraction, check_positive, check_type

Variables = Mapping[str, tf.Variable]
D = TypeVar("D", bound="DDPG")


class DDPG(OffPolicyRLAlgorithm):
    """Deep Deterministic Policy Gradient (DDPG).

    DDPG learns an action-value function `Q` and a policy `mu`, with target networks `Q'` and `mu'`. An update on
    transitions `(o, a, r, o', done)` consists of three steps:

    1. A step of Adam on `mean (Q(o, a) - y)^2` with respect to the parameters of `Q`, with the target
       `y = reward_scale r + discount (1 - done) Q'(o', mu'(o'))`. `done` is false if a time limit ended the path.
    2. A step of Adam on `-mean Q(o, mu(o))` with respect to the parameters of `mu`.
    3. For the target networks, `theta' <- tau theta + (1 - tau) theta'`. Without `use_target`, the target networks are
       `Q` and `mu`.

    Policy and action-value function are NumPy objects. They provide the initial parameters and receive the learned
    parameters after each cycle. Learning runs in a separate TensorFlow graph.

    Use a policy with `output_nonlinearity="tanh"` and an environment with actions in [-1, 1]
    (`envs.normalize(env, normalization_scale=1.0)`). Other outputs can leave the action space; they are clipped, and
    the gradient of a clipped output is zero.

    Args:
        env_spec (EnvSpec): observation space and action space of the environment; the action space is a box.
        policy (DeterministicMLPPolicy): the policy.
        qf (MLPQFunction): the action-value function.
        replay_buffer (ReplayBuffer): stores the transitions; see `OffPolicyRLAlgorithm`.
        exploration_policy (ExplorationPolicy): collects the paths; required, because the policy is deterministic.
        use_target (bool): whether to use target networks. Default: True.
        target_update_tau (float): step `tau` of the target networks, in (0, 1]. Default: 0.01.
        policy_lr (float): step size of Adam for the policy, above 0. Default: 1e-4.
        qf_lr (float): step size of Adam for the action-value function, above 0. Default: 1e-3.
        discount (float): discount factor per step, in [0, 1]. Default: 0.99.
        steps_per_epoch (int): number of cycles (`train_once` calls) per epoch. Default: 20.
        max_path_length (int or None): maximum number of steps of a path. Default: None, the time limit of the
            environment.
        max_eval_path_length (int or None): maximum number of steps of an evaluation path. Default: None,
            `max_path_length`.
        n_train_steps (int): number of updates per cycle. Default: 50.
        buffer_batch_size (int): number of transitions per update. Default: 64.
        min_buffer_size (int): number of transitions in the buffer before updates start. Default: 10000.
        rollout_batch_size (int): number of environments that step together; does not affect the data. Default: 1.
        reward_scale (float): factor of the rewards in updates; logged returns are not scaled. Default: 1.
        smooth_return (bool): whether the logged return is the mean over the last 100 exploration paths; otherwise, it
            is the mean over the exploration paths of the epoch. Default: True.
        num_eval_paths (int): number of evaluation paths per epoch, at least 0. Default: 10.

    Raises:
        TypeError: `policy` is not a `DeterministicMLPPolicy` for continuous actions, or `qf` is not an `MLPQFunction`.
        ValueError: `policy` does not fit `env_spec` or `qf`; `exploration_policy` is None or explores with another
            policy; or the capacity of the buffer is less than `min_buffer_size`.

    References:
        Lillicrap et al. 2016, "Continuous control with deep reinforcement learning", arXiv:1509.02971.
    """

    env_wrappers = (NormalizedEnv,)
    default_settings = {
        "env": "Pendulum-v1", "n_itr": 15, "batch_size": 200, "max_path_length": 200, "discount": 0.98,
        "normalization_scale": 1.0, "steps_per_epoch": 5, "n_train_steps": 200, "min_buffer_size": 1000,
        "policy_lr": 1e-3}

    @classmethod
    def for_env(cls: Type[D], env: Any, *, hidden_sizes: Sequence[int] = (64, 64),
                hidden_nonlinearity: Optional[str] = "relu", output_nonlinearity: Optional[str] = "tanh",
                buffer_size: int = 100_000, noise: str = "OrnsteinUhlenbeckPolicy", sigma: float = 0.2,
                **settings: Any) -> D:
        """Builds DDPG with policy, action-value function, replay buffer and exploration policy for an environment.

        Args:
            env: the environment, with actions in [-1, 1].
            hidden_sizes: number of units in each hidden layer of policy and action-value function; default `(64, 64)`.
            hidden_nonlinearity: activation of the hidden layers, or None; default `"relu"`.
            output_nonlinearity: activation of the policy's output, or None; default `"tanh"`.
            buffer_size: capacity of the replay buffer in transitions; default 100,000.
            noise: class of the exploration policy, `"GaussianNoisePolicy"` or `"OrnsteinUhlenbeckPolicy"` (default).
            sigma: scale of the exploration noise, at least 0; default 0.2.
            **settings: arguments of the constructor.
        """
        spec = EnvSpec.of(env)
        policy = DeterministicMLPPolicy(spec.obs_dim, spec.action_dim, hidden_sizes, hidden_nonlinearity,
                                        output_nonlinearity, spec.is_discrete)
        qf = MLPQFunction(spec.obs_dim, spec.action_dim, hidden_sizes, hidden_nonlinearity)
        explore = {each.__name__: each for each in (GaussianNoisePolicy, OrnsteinUhlenbeckPolicy)}
        return cls(spec, policy, qf, ReplayBuffer(spec, buffer_size), **settings,
                   exploration_policy=explore[check_choice("noise", noise, explore)](spec, policy, sigma=sigma))

    def __init__(self, env_spec: Any, policy: DeterministicMLPPolicy, qf: MLPQFunction, replay_buffer: Any, *,
                 exploration_policy: Any = None, use_target: bool = True, target_update_tau: float = 0.01,
                 policy_lr: float = 1e-4, qf_lr: float = 1e-3, discount: float = 0.99, steps_per_epoch: int = 20,
                 max_path_length: Optional[int] = None, max_eval_path_length: Optional[int] = None,
                 n_train_steps: int = 50, buffer_batch_size: int = 64, min_buffer_size: int = 10000,
                 rollout_batch_size: int = 1, reward_scale: float = 1.0, smooth_return: bool = True,
                 num_eval_paths: int = 10) -> None:
        super().__init__(
            env_spec, policy, qf, replay_buffer, use_target=use_target, discount=discount,
            steps_per_epoch=steps_per_epoch, max_path_length=max_path_length, max_eval_path_length=max_eval_path_length,
            n_train_steps=n_train_steps, buffer_batch_size=buffer_batch_size, min_buffer_size=min_buffer_size,
            rollout_batch_size=rollout_batch_size, reward_scale=reward_scale, smooth_return=smooth_return,
            exploration_policy=exploration_policy, num_eval_paths=num_eval_paths)
        if exploration_policy is None:
            raise ValueError("exploration_policy: expected an ExplorationPolicy, because policy is deterministic, got "
                             "None")
        if not isinstance(policy, DeterministicMLPPolicy) or policy.is_discrete:
            raise TypeError(f"policy: expected a DeterministicMLPPolicy for continuous actions, got {policy!r}")
        check_type("qf", qf, MLPQFunction, "an MLPQFunction")
        if (qf.obs_dim, qf.action_dim) != (policy.obs_dim, policy.action_dim):
            raise ValueError(f"qf: expected observations of size {policy.obs_dim} and actions of size "
                             f"{policy.action_dim}, as in policy, got {qf.obs_dim} and {qf.action_dim}")
        self.target_update_tau = check_fraction("target_update_tau", target_update_tau)
        self.policy_lr = check_positive("policy_lr", policy_lr)
        self.qf_lr = check_positive("qf_lr", qf_lr)
        self.init_opt()

    def init_opt(self) -> None:
        """Builds the graph; learning starts from the current parameters of policy and action-value function."""
        self._networks: Dict[str, Any] = {"policy": self.policy, "qf": self.qf}
        observations, actions = (None, self.policy.obs_dim), (None, self.policy.action_dim)
        shapes = {"observations": observations, "actions": actions, "rewards": (None,),
                  "next_observations": observations, "terminals": (None,)}
        with tf.Graph().as_default():
            x = {name: tf.placeholder(tf.float32, shape, name=name) for name, shape in shapes.items()}
            learned = self._make_variables("")
            targets = self._make_variables("target_") if self.use_target else learned
            next_actions = self.policy.network(TENSORFLOW, targets["policy"], x["next_observations"])
            next_values = self._build_values(targets, x["next_observations"], next_actions)
            target_values = tf.stop_gradient(x["rewards"] + self.discount * (1.0 - x["terminals"]) * next_values)
            values = self._build_values(learned, x["observations"], x["actions"])
            qf_loss = tf.reduce_mean(tf.square(values - target_values))
            update = tf.train.AdamOptimizer(self.qf_lr).minimize(qf_loss, var_list=list(learned["qf"].values()))
            with tf.control_dependencies([update]):
                actions = self.policy.network(TENSORFLOW, learned["policy"], x["observations"])
                policy_loss = -tf.reduce_mean(self._build_values(learned, x["observations"], actions))
                update = tf.train.AdamOptimizer(self.policy_lr).minimize(
                    policy_loss, var_list=list(learned["policy"].values()))
            if self.use_target:
                with tf.control_dependencies([update]):
                    update = tf.group([
                        target.assign(self.target_update_tau * learned[name][key].read_value()
                                      + (1.0 - self.target_update_tau) * target.read_value())
                        for name, network in targets.items() for key, target in network.items()])
            figures = OrderedDict(QFunctionLoss=qf_loss, PolicyLoss=policy_loss, AverageQ=tf.reduce_mean(values),
                                  AverageTargetQ=tf.reduce_mean(target_values))
            sets = {name: VariableSet(variables) for name, variables in learned.items()}
            self._graph: Any = {"inputs": x, "learned": sets, "targets": targets, "update": update, "figures": figures}
            self._variables = VariableSet({variable.op.name: variable for variable in tf.global_variables()})

    def _make_variables(self, prefix: str) -> Dict[str, Variables]:
        """Creates variables with the parameters of policy and action-value function as initial values."""
        variables: Dict[str, Variables] = {}
        for name, network in self._networks.items():
            with tf.name_scope(prefix + name):
                variables[name] = make_variables(network.get_param_values())
        return variables

    def _build_values(self, networks: Mapping[str, Variables], observations: tf.Tensor, actions: tf.Tensor
                      ) -> tf.Tensor:
        inputs = tf.concat([observations, actions], axis=1)
        return tf.squeeze(self.qf.network(TENSORFLOW, networks["qf"], inputs), axis=1)

    def optimize_policy(self, batches: Iterable[Transitions]) -> Mapping[str, float]:
        """Performs one update per batch, then sets the new parameters of policy and action-value function.

        Returns:
            Means over the updates. `QFunctionLoss` (in the squared unit of the scaled rewards), `AverageQ` and
            `AverageTargetQ` are computed before the update's step on the action-value function. `PolicyLoss` is
            computed after this step and before the step on the policy. `PolicyLoss`, `AverageQ` and `AverageTargetQ`
            are in the unit of the scaled rewards.

        Raises:
            FloatingPointError: one of these values, or a new parameter, is not finite. The parameters are unchanged.
        """
        session, graph, rows, before = self._variables.session(), self._graph, [], self._variables.read()
        try:
            for name, network in self._networks.items():  # the caller may have set them
                graph["learned"][name].write(network.get_param_values())
            for batch in batches:
                feed = {placeholder: batch[name] for name, placeholder in graph["inputs"].items()}
                _, figures = session.run((graph["update"], list(graph["figures"].values())), feed)
                rows.append(figures)
            averages: Any = np.mean(rows, axis=0, dtype=np.float64)
            means = dict(zip(graph["figures"], map(float, averages), strict=True))
            for name, value in means.items():
                if not np.isfinite(value):
                    raise FloatingPointError(f"{name} is {value}: learning has diverged. Reduce the step sizes "
                                             "(policy_lr, qf_lr) or reward_scale.")
            new = {name: variables.read() for name, variables in graph["learned"].items()}
            for values in new.values():
                check_finite_params(values)
            for name, values in new.items():
                self._networks[name].set_flat_params(flatten_params(values))
            return means
        except BaseException:
            self._variables.write(before)
            raise

    def __getstate__(self) -> Dict[str, Any]:
        """Replaces the graph by the values of all variables, including the variables of Adam."""
        return {**vars(self), "_graph": None, "_variables": self._variables.read()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Rebuilds the graph and restores the values."""
        vars(self).update(state)
        self.init_opt()
        self._variables.write(state["_variables"])
