"""Deep deterministic policy gradients."""
from collections import OrderedDict
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

import numpy as np

from meta_policy_search.actors.parameters import flatten_params
from meta_policy_search.np.algos.off_policy_rl_algorithm import OffPolicyRLAlgorithm, Transitions
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.policies.networks import forward_mlp, make_variables, resolve_nonlinearity
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import check_fraction, check_positive

Network = Union[DeterministicMLPPolicy, MLPQFunction]
Variables = Mapping[str, tf.Variable]


class DDPG(OffPolicyRLAlgorithm):
    """Deep Deterministic Policy Gradient.

    With the action values `Q` and the policy `mu`, and their targets `Q'` and `mu'`, an update on transitions
    `(o, a, r, o', done)` is

    1. a step of Adam on `mean (Q(o, a) - y)^2` by the parameters of `Q`, where
       `y = reward_scale r + discount (1 - done) Q'(o', mu'(o'))`; a time limit does not count as done;
    2. a step of Adam on `-mean Q(o, mu(o))` by those of `mu`;
    3. for the targets `theta' <- tau theta + (1 - tau) theta'`. Without `use_target`, they are `Q` and `mu` themselves.

    Policy and values are NumPy objects: they provide the initial parameters, and get the learned ones after each cycle.
    Learning runs in a TensorFlow graph of its own.

    Use a policy with `output_nonlinearity="tanh"` and an environment with actions in [-1, 1]
    (`envs.normalize(env, normalization_scale=1.0)`): outputs beyond the action space are clipped, and clipped outputs
    have no gradient.

    Args:
        env_spec (EnvSpec): spaces of the environment; the action space is a box.
        policy (DeterministicMLPPolicy): the policy.
        qf (MLPQFunction): the action values.
        replay_buffer (ReplayBuffer): stores the transitions; see `OffPolicyRLAlgorithm`.
        exploration_policy (ExplorationPolicy): acts while paths are collected; required, since the policy is
            deterministic.
        use_target (bool): whether to learn from target networks. Default: True.
        target_update_tau (float): step `tau` of the targets, in (0, 1]. Default: 0.01.
        policy_lr (float): step size of Adam for the policy, above 0. Default: 1e-4.
        qf_lr (float): step size of Adam for the values, above 0. Default: 1e-3.
        discount (float): discount factor for the cumulative return, in [0, 1]. Default: 0.99.
        steps_per_epoch (int): number of `train_once` calls per epoch. Default: 20.
        max_path_length (int or None): most steps of a path. Default: the environment's own time limit.
        max_eval_path_length (int or None): most steps of a path in an evaluation. Default: `max_path_length`.
        n_train_steps (int): updates in each cycle. Default: 50.
        buffer_batch_size (int): transitions of an update. Default: 64.
        min_buffer_size (int): transitions in the buffer before updates begin. Default: 10000.
        rollout_batch_size (int): environments that step together; the data do not depend on it. Default: 1.
        reward_scale (float): factor of the rewards in updates; logged returns are without it. Default: 1.
        smooth_return (bool): whether the logged return is the mean over the latest 100 exploring paths, rather than
            over those of the epoch. Default: True.
        num_eval_paths (int): paths of an evaluation; none if 0. Default: 10.

    Raises:
        ValueError: `policy` does not fit `env_spec` or `qf`; `exploration_policy` is None or explores with another
            policy; or the buffer is smaller than `min_buffer_size`.

    References:
        Lillicrap et al. 2016, "Continuous control with deep reinforcement learning", arXiv:1509.02971.
    """

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
            raise ValueError("exploration_policy: expected an ExplorationPolicy, as policy is deterministic, got None")
        if not isinstance(policy, DeterministicMLPPolicy) or policy.is_discrete:
            raise TypeError(f"policy: expected a DeterministicMLPPolicy of continuous actions, got {policy!r}")
        if not isinstance(qf, MLPQFunction):
            raise TypeError(f"qf: expected an MLPQFunction, got {qf!r}")
        if (qf.obs_dim, qf.action_dim) != (policy.obs_dim, policy.action_dim):
            raise ValueError(f"qf: expected one for observations of size {policy.obs_dim} and actions of size "
                             f"{policy.action_dim}, got {qf.obs_dim} and {qf.action_dim}")
        self.target_update_tau = check_fraction("target_update_tau", target_update_tau)
        self.policy_lr = check_positive("policy_lr", policy_lr)
        self.qf_lr = check_positive("qf_lr", qf_lr)
        self.init_opt()

    def init_opt(self) -> None:
        """Builds the graph; learning starts from the current parameters of policy and values."""
        with tf.Graph().as_default():
            self._build_inputs()
            self._policy_vars = _make_variables("policy", self.policy)
            self._qf_vars = _make_variables("qf", self.qf)
            if self.use_target:
                self._target_policy_vars = _make_variables("target_policy", self.policy)
                self._target_qf_vars = _make_variables("target_qf", self.qf)
            else:
                self._target_policy_vars, self._target_qf_vars = self._policy_vars, self._qf_vars
            self._build_update()
            self._variables = VariableSet({variable.op.name: variable for variable in tf.global_variables()})

    def _build_inputs(self) -> None:
        observations, actions = (None, self.policy.obs_dim), (None, self.policy.action_dim)
        shapes = {"observations": observations, "actions": actions, "rewards": (None,),
                  "next_observations": observations, "terminals": (None,)}
        self._inputs = {name: tf.placeholder(tf.float32, shape, name=name) for name, shape in shapes.items()}

    def _build_update(self) -> None:
        x = self._inputs
        next_values = self._build_values(self._target_qf_vars, x["next_observations"],
                                         _forward(self.policy, self._target_policy_vars, x["next_observations"]))
        targets = tf.stop_gradient(x["rewards"] + self.discount * (1.0 - x["terminals"]) * next_values)
        values = self._build_values(self._qf_vars, x["observations"], x["actions"])
        qf_loss = tf.reduce_mean(tf.square(values - targets))
        qf_step = tf.train.AdamOptimizer(self.qf_lr).minimize(qf_loss, var_list=list(self._qf_vars.values()))
        with tf.control_dependencies([qf_step]):
            actions = _forward(self.policy, self._policy_vars, x["observations"])
            policy_loss = -tf.reduce_mean(self._build_values(self._qf_vars, x["observations"], actions))
            policy_step = tf.train.AdamOptimizer(self.policy_lr).minimize(
                policy_loss, var_list=list(self._policy_vars.values()))
        with tf.control_dependencies([policy_step]):
            self._update = tf.group(policy_step, *(self._build_following() if self.use_target else []))
        self._figures = OrderedDict(QFunctionLoss=qf_loss, PolicyLoss=policy_loss, AverageQ=tf.reduce_mean(values),
                                    AverageTargetQ=tf.reduce_mean(targets))

    def _build_following(self) -> List[tf.Operation]:
        tau = self.target_update_tau
        pairs = [(target[name], variable) for target, variables in (
            (self._target_policy_vars, self._policy_vars), (self._target_qf_vars, self._qf_vars),
        ) for name, variable in variables.items()]
        return [target.assign(tau * variable.read_value() + (1.0 - tau) * target.read_value())
                for target, variable in pairs]

    def _build_values(self, variables: Variables, observations: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        return tf.squeeze(_forward(self.qf, variables, tf.concat([observations, actions], axis=1)), axis=1)

    def optimize_policy(self, batches: Iterable[Transitions]) -> Mapping[str, float]:
        """Makes an update on each batch, and sets the new parameters of policy and values.

        Returns:
            Means over the updates, each before its step: `QFunctionLoss` in the squared unit of the scaled rewards;
            `PolicyLoss`, `AverageQ` and `AverageTargetQ` in their unit.

        Raises:
            FloatingPointError: one of these is not finite.
        """
        session, rows = self._variables.session(), []
        for batch in batches:
            feed = {placeholder: batch[name] for name, placeholder in self._inputs.items()}
            _, figures = session.run((self._update, list(self._figures.values())), feed)
            rows.append(figures)
        means = dict(zip(self._figures, np.mean(rows, axis=0, dtype=np.float64).tolist(),  # type: ignore[arg-type]
                         strict=True))
        for name, value in means.items():
            if not np.isfinite(value):
                raise FloatingPointError(f"{name} is {value}: learning has diverged; smaller step sizes (policy_lr, "
                                         "qf_lr) or a smaller reward_scale may help")
        for network, variables in ((self.policy, self._policy_vars), (self.qf, self._qf_vars)):
            values = session.run(list(variables.values()))
            network.set_flat_params(flatten_params(OrderedDict(zip(variables, values, strict=True))))
        return means

    def get_learnt(self) -> Dict[str, np.ndarray]:
        """Returns the values of all variables, including those of Adam."""
        return self._variables.read()

    def set_learnt(self, learnt: Mapping[str, np.ndarray]) -> None:
        self._variables.write(learnt)

    def __getstate__(self) -> Dict[str, Any]:
        """Replaces the graph by the values of all variables, including those of Adam."""
        graph = ("_inputs", "_policy_vars", "_qf_vars", "_target_policy_vars", "_target_qf_vars", "_update", "_figures",
                 "_variables")
        kept = {name: value for name, value in vars(self).items() if name not in graph}
        return {**kept, "_values": self.get_learnt()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """Builds the graph again and restores the values."""
        values = state.pop("_values")
        vars(self).update(state)
        self.init_opt()
        self.set_learnt(values)


def _make_variables(scope: str, network: Network) -> "OrderedDict[str, tf.Variable]":
    """Makes variables with the network's parameters as initial values."""
    with tf.name_scope(scope):
        return make_variables(network.get_param_values())


def _forward(network: Network, variables: Variables, inputs: tf.Tensor) -> tf.Tensor:
    num_hidden_layers, hidden, output = network.network
    return forward_mlp(variables, inputs, network.scope, num_hidden_layers, resolve_nonlinearity("hidden", hidden),
                       resolve_nonlinearity("output", output))
