"""Task distributions of Gymnasium environments: each task sets some parameters of the environment."""
import ast
import copy
import functools
import inspect
import numbers
import reprlib
import textwrap
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import cloudpickle
import numpy as np

from meta_policy_search.envs.compat import (
    GymnasiumMetaEnv,
    attribute,
    close_env,
    innermost,
    layers,
    make_quietly,
    mujoco_simulator,
    spaces_of,
)
from meta_policy_search.envs.spaces import as_numbers
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import accepts, check_type, did_you_mean

_EXAMPLES = 4  # maximum number of values of a parameter that are compared
_STEPS, _LENGTH, _HOLD = 1000, 100, 10  # of the comparison, of a path, and of a random action
_POSITIVE = ("body_mass", "body_inertia")  # quantities of a MuJoCo model that cannot be zero or negative
_NOT_VARIED = {"id", "max_episode_steps", "vector_entry_point", "vector_kwargs", "disable_env_checker", "render_mode",
               "kwargs"}
"""Arguments of `gymnasium.make` and constructors that the tasks of an environment do not set."""

Assignments = List[Tuple[type, str]]
"""Assignments of constructors: the class and the source."""


def derived_assignments(env: Any, names: Sequence[str]) -> Assignments:
    """Returns the assignments by which the constructor of an environment computes attributes from varied attributes.

    `CartPole-v1`, for example, computes `total_mass` from `masspole`. The assignments are found in the source of the
    constructors of the environment's class and base classes. If the source cannot be read, none are found.

    Args:
        env: the environment without wrappers.
        names: the varied attributes.

    Raises:
        ValueError: the constructor computes an attribute in a way that cannot be repeated.
    """
    found: Assignments = []
    varied = {f"self.{name}" for name in names}
    changed = set(varied)
    try:
        for cls in reversed(type(env).__mro__) if names else ():
            for statement in _constructor_statements(cls):
                used, assigned = _names_in(statement, ast.Load), _names_in(statement, ast.Store)
                if used & changed and assigned and not assigned & {*varied, "self.observation_space",
                                                                   "self.action_space"}:
                    changed |= assigned
                    if isinstance(statement, ast.AugAssign):
                        raise ValueError(f"by {ast.unparse(statement)}")
                    found.append((cls, ast.unparse(statement)))
        recompute(env, found)
    except Exception as error:
        derived = ", ".join(sorted(name.removeprefix("self.") for name in changed - varied))
        raise ValueError(f"{', '.join(names)}: the constructor of {type(env).__name__} computes {derived} from it in a "
                         f"way that cannot be repeated ({error}). Use an argument of the constructor, or "
                         "GymnasiumMetaEnv with a function set_task") from error
    return found


def recompute(env: Any, assignments: Assignments) -> None:
    """Computes the attributes of an environment again, see `derived_assignments`."""
    local: Dict[str, Any] = {"self": env}
    for cls, source in assignments:
        exec(source, dict(vars(cls)["__init__"].__globals__), local)


def _constructor_statements(cls: type) -> List[ast.stmt]:
    try:
        source = textwrap.dedent(inspect.getsource(vars(cls)["__init__"]))
        return ast.parse(source).body[0].body  # type: ignore[attr-defined]
    except (KeyError, OSError, SyntaxError, TypeError):  # no constructor, or no source
        return []


def _names_in(statement: ast.stmt, context: type) -> Set[str]:
    """Returns the variables and attributes that a statement reads or assigns, such as `self.length`."""
    return {ast.unparse(node) for node in ast.walk(statement)
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, context)}


class VariedEnv(GymnasiumMetaEnv):
    """A Gymnasium environment whose tasks set some of its parameters. Returned by `vary`.

    A task is a dict with a value for each parameter. Before the first call of `set_task`, the task is None, and the
    environment has its original parameters.

    The constructor checks that each parameter has an effect. It compares the paths for several values of the parameter,
    up to 1,000 steps with the same seeds and actions.

    Args:
        env: id of a registered environment, such as `"Pendulum-v1"` or `"package:Name-v0"`, or a class or function that
            creates an environment.
        parameters: the distribution of each parameter by name, see `vary`.

    Raises:
        TypeError, ValueError, gymnasium.error.Error: see `vary`.
    """

    def __init__(self, env: Union[str, Callable[..., Any]], parameters: Mapping[str, Any]) -> None:
        self.parameters = {name: _check_distribution(name, value) for name, value in parameters.items()}
        if not self.parameters:
            raise ValueError("parameters: expected at least one parameter to vary, got none")
        super().__init__(env, functools.partial(_draw_task, self.parameters), _ignore)
        known = self._constructor_arguments()
        self._arguments = [name for name in self.parameters if name in known]
        self._built = b""  # the values of `_arguments` that the environment was built with
        self._originals = self._find_originals()
        known += [name for name in dir(innermost(self.wrapped_env)) if not name.startswith("_")]
        for name in self.parameters:
            if name not in known and name not in self._originals:
                listed = self._list_parameters()
                quantities = [each for owner in self._owners() for each in dir(owner) if _is_quantity(owner, each)]
                raise ValueError(f"{name}: expected an argument of the constructor, an attribute or a MuJoCo quantity "
                                 f"of {self._class_name()}{did_you_mean(name, [*listed, *quantities])}; parameters: "
                                 + (", ".join(listed) or "none"))
        self._attributes = [name for name in self.parameters if name not in {*self._arguments, *self._originals}]
        self._derived = derived_assignments(innermost(self.wrapped_env), self._attributes)
        self._check_effects()

    def set_task(self, task: Task) -> None:
        """Sets the task, a dict with a value for each parameter; values may lie outside the distribution.

        Raises:
            ValueError: the task has other keys, contains NaN, infinite factors or factors of the wrong shape, would
                change the size of observations or the action space, or contains a factor of `body_mass` or
                `body_inertia` that is not positive.
        """
        if not isinstance(task, Mapping) or task.keys() != self.parameters.keys():
            raise ValueError(f"task: expected a dict with the keys {', '.join(self.parameters)}, got {task!r}")
        for name, value in task.items():
            if _has_nan(value):
                raise ValueError(f"{name}: expected a value without NaN, got {value!r}")
            if name in self._originals:
                _check_factor(name, value, np.shape(self._originals[name]))
        values = copy.deepcopy(dict(task))
        before = self.wrapped_env, self.spec, self._make_env, self._built, self._originals
        attributes = {name: getattr(innermost(self.wrapped_env), name) for name in self._attributes}
        try:
            self._rebuild({name: values[name] for name in self._arguments})
            inner = innermost(self.wrapped_env)
            for name in self._attributes:
                setattr(inner, name, values[name])
            recompute(inner, self._derived)
        except BaseException:
            made = self.wrapped_env
            self.wrapped_env, self.spec, self._make_env, self._built, self._originals = before
            for name, value in attributes.items():
                setattr(innermost(self.wrapped_env), name, value)
            recompute(innermost(self.wrapped_env), self._derived)
            if made is not self.wrapped_env:
                close_env(made)
            raise
        if self.wrapped_env is not before[0]:
            close_env(before[0])
        for name, original in self._originals.items():
            setattr(self._owner_of_quantity(name), name, np.multiply(original, values[name]))
        if self._originals:
            from meta_policy_search.envs.mujoco_envs.engines.mujoco import recompute_constants

            recompute_constants(mujoco_simulator(self.wrapped_env).model)
        super().set_task(task)

    def _rebuild(self, arguments: Mapping[str, Any]) -> None:
        """Creates a new environment with the arguments of the constructor, if they differ from the current ones."""
        built = cloudpickle.dumps(arguments)
        if not arguments or self._built == built:
            return
        make_env = functools.partial(self._make_env, **arguments)
        made = make_quietly(make_env)
        spaces = observation_space, action_space = spaces_of(made)
        if observation_space.shape != self.observation_space.shape or action_space != self.action_space:
            close_env(made)
            raise ValueError(f"task: expected the spaces {self.observation_space} and {self.action_space}, got {spaces}"
                             f" with {dict(arguments)}")
        self.wrapped_env, self.spec, self._make_env, self._built = made, attribute(made, "spec"), make_env, built
        self._originals = self._find_originals()

    def _constructor_arguments(self) -> List[str]:
        """Returns the names of the arguments that the environment can be built with."""
        parameters = inspect.signature(self._make_env).parameters.values()
        found = [each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]
        if any(each.kind is each.VAR_KEYWORD for each in parameters):  # such as `gymnasium.make`
            found += list(inspect.signature(type(innermost(self.wrapped_env))).parameters)
        return found

    def _list_parameters(self) -> List[str]:
        """Returns the arguments and numeric attributes of the environment, and some quantities of a MuJoCo model."""
        numeric = [name for name, value in vars(innermost(self.wrapped_env)).items()
                   if not name.startswith("_") and type(value) in (int, float)]
        quantities = ["body_mass", "dof_damping", "geom_friction", "gravity and other quantities of the MuJoCo model"]
        return list(dict.fromkeys([*(name for name in self._constructor_arguments() if name not in _NOT_VARIED),
                                   *numeric, *(quantities if self._owners() else [])]))

    def _owner_of_quantity(self, name: str) -> Any:
        """Returns the MuJoCo model, or its options, that contain the quantity `name`; None if there is none."""
        return next((each for each in self._owners() if _is_quantity(each, name)), None)

    def _owners(self) -> Tuple[Any, ...]:
        """Returns the MuJoCo model and its options; nothing for another environment."""
        simulator = mujoco_simulator(self.wrapped_env)
        return (simulator.model, simulator.model.opt) if simulator else ()

    def _find_originals(self) -> Dict[str, Any]:
        """Returns copies of the varied quantities of the MuJoCo model, by name."""
        owners = {name: self._owner_of_quantity(name) for name in self.parameters if name not in self._arguments}
        return {name: copy.copy(getattr(owner, name)) for name, owner in owners.items() if owner is not None}

    def _class_name(self) -> str:
        return type(innermost(self.wrapped_env)).__name__

    def _check_effects(self) -> None:
        """Raises `ValueError` if a parameter has no effect, or the environment does not accept a value."""
        examples = {name: _examples(distribution) for name, distribution in self.parameters.items()}
        first = {name: values[0] for name, values in examples.items()}
        for name, values in examples.items():
            try:
                if any(not np.array_equal(*pair) for value in values[1:] for pair in zip(
                        walk(copy.deepcopy(self), first), walk(copy.deepcopy(self), {**first, name: value}))):
                    continue
            except Exception as error:
                raise ValueError(f"{name}: {self._class_name()} fails with values among {reprlib.repr(values)}: "
                                 f"{type(error).__name__}: {error}") from error
            raise ValueError(f"{name}: expected values that change the paths, got the same paths for "
                             f"{reprlib.repr(values)}. If "
                             f"{self._class_name()} reads {name} only when it is built, or if random actions show no "
                             "effect, use GymnasiumMetaEnv with a function set_task")

    @property
    def task_dimensions(self) -> int:
        """Number of coordinates of `tasks_at`; 0 if functions draw parameters."""
        return 0 if any(map(callable, self.parameters.values())) else len(self.parameters)

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        """Returns the tasks at points of the unit cube, `[n, d]`; the values of a list have equal shares."""
        return [{name: _value_at(distribution, coordinate) for (name, distribution), coordinate in
                 zip(self.parameters.items(), point, strict=True)} for point in points]


def walk(env: Any, task: Task) -> Iterator[np.ndarray]:
    """Yields observations, rewards and ends of the paths of random actions in a task; closes the environment."""
    actions, length = copy.deepcopy(env.action_space), 0
    actions.seed(0)
    try:
        env.set_task(task)
        for t in range(_STEPS):
            if length == 0:
                env.np_random = np.random.default_rng(t)
                yield _without_nan("observation", env.reset()[0])
            if length % _HOLD == 0:
                action = actions.sample()
            observation, reward, terminated, truncated, _ = env.step(action)
            yield np.append(_without_nan("observation", observation),
                            (_without_nan("reward", reward), terminated, truncated))
            length = 0 if terminated or truncated or length == _LENGTH else length + 1
    finally:
        env.close()


def vary(env: Union[str, Callable[..., Any]], /, **parameters: Any) -> VariedEnv:
    """Turns a Gymnasium environment into a meta-environment whose tasks set some of its parameters.

    A parameter is, in this order:

    1. an argument of the environment's constructor, or of the function that creates it. The environment is created
       again if the value changes;
    2. for Gymnasium's MuJoCo environments, a real-valued quantity of the model, such as `body_mass`, `dof_damping`,
       `geom_friction` or `gravity`. Values are factors of the original quantity: a number, or an array with a factor
       for each entry;
    3. an attribute of the environment without its wrappers.

    Args:
        env: id of a registered environment, such as `"Pendulum-v1"` or `"package:Name-v0"`, or a class or function that
            creates an environment.
        **parameters: the distribution of each parameter: a tuple `(low, high)` is a range of uniform floats, also if
            the bounds are integers. A list or `range` contains the values to draw from, such as integers or flags. A
            function `(rng) -> value` draws from a `numpy.random.Generator`.

    Returns:
        The meta-environment. A task is a dict such as `{"g": 9.0, "l": 0.5}`.

    Raises:
        TypeError: see `GymnasiumMetaEnv`, or a distribution has the wrong type.
        ValueError: the environment has no such parameter, all values of a parameter give the same paths, or the
            environment does not accept a value.
        gymnasium.error.Error: the environment id is not registered.

    Example:
        >>> env = vary("Pendulum-v1", g=(5.0, 15.0), l=[0.5, 1.0, 2.0])
        >>> env.set_task({"g": 9.0, "l": 0.5})
        >>> env.wrapped_env.unwrapped.g, env.wrapped_env.unwrapped.l
        (9.0, 0.5)
    """
    return VariedEnv(env, parameters)


def parameters_from_json(parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Converts distributions in JSON types to arguments of `vary`.

    Two numbers are a range. Other lists contain the values to draw from, and `{"values": [1, 2]}` draws from a list of
    two numbers.

    Raises:
        TypeError: `parameters` is no dict, or a distribution has the wrong type.
        ValueError: there are no parameters, or a distribution is invalid.
    """
    if not check_type("vary", parameters, Mapping, 'a dict such as {"g": [5.0, 15.0]}'):
        raise ValueError('vary: expected at least one parameter, such as {"g": [5.0, 15.0]}, got {}')
    converted = {name: value["values"] if isinstance(value, Mapping) and value.keys() == {"values"} else
                 tuple(value) if _is_pair(value) else value for name, value in parameters.items()}
    for name, value in converted.items():
        try:
            _check_distribution(name, value)
        except (TypeError, ValueError) as error:
            raise type(error)(f'{error}. In JSON, two numbers [low, high] are a range, and {{"values": [...]}} '
                              "contains the values to draw from") from None
    return converted


def varied_parameters(env: Any) -> Optional[Dict[str, Any]]:
    """Returns the distributions of an environment, as `parameters_from_json` reads them; None if nothing is varied.

    Functions are kept. Environments may be wrapped.
    """
    found = next((layer.parameters for layer in layers(env) if isinstance(layer, VariedEnv)), None)
    return found and {name: {"values": list(value)} if not isinstance(value, tuple) and _is_pair(value) else
                      value if callable(value) else list(value) for name, value in found.items()}


def _is_pair(value: Any) -> bool:
    numbers = [type(each) in (int, float) for each in value] if isinstance(value, (list, tuple, range)) else []
    return numbers == [True, True]


def _check_distribution(name: str, value: Any) -> Any:
    if isinstance(value, tuple):
        if any(isinstance(each, (bool, np.bool_)) for each in value):
            raise ValueError(f"{name}: expected a list of values, such as {list(value)}, because a tuple is a range of "
                             f"numbers, got {value!r}")
        low, high = value if len(value) == 2 else (np.nan, np.nan)
        if not all(isinstance(each, numbers.Real) for each in (low, high)) or not (low < high and high - low < np.inf):
            raise ValueError(f"{name}: expected a tuple (low, high) of finite numbers with low < high and a finite "
                             f"difference, or a list of values, got {value!r}")
    elif callable(value):
        if not accepts(value, None):
            raise TypeError(f"{name}: expected a function (rng) -> value, got one with the arguments "
                            f"{inspect.signature(value)}")
    elif not isinstance(value, (list, range)) or len(value) == 0:
        raise TypeError(f"{name}: expected a tuple (low, high), a list of values or a function (rng) -> value, got "
                        f"{value!r}")
    return copy.deepcopy(value) if isinstance(value, list) else value


def _is_quantity(owner: Any, name: str) -> bool:
    value = getattr(owner, name, None)
    return isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind == "f"  # not kinds and indices


def _check_factor(name: str, value: Any, shape: Tuple[int, ...]) -> None:
    """Raises `ValueError` unless the factor of a quantity is finite, and can be broadcast to the quantity's shape."""
    try:
        factor = np.broadcast_to(as_numbers(name, value), shape)
    except ValueError:
        factor = np.array(np.nan)
    if not np.isfinite(factor).all():
        raise ValueError(f"{name}: expected a finite factor or an array of factors of shape {shape}, got {value!r}")
    if name in _POSITIVE and not (factor > 0.0).all():
        raise ValueError(f"{name}: expected factors above 0, got {value!r}")


def _has_nan(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_nan, value))
    value = np.asarray(value)
    return value.dtype.kind == "f" and bool(np.isnan(value).any())


def _without_nan(name: str, value: Any) -> Any:
    if _has_nan(value):
        raise ValueError(f"the {name} is NaN")
    return value


def _value_at(distribution: Any, coordinate: float) -> Any:
    if isinstance(distribution, tuple):
        low, high = distribution
        return float(low + (high - low) * coordinate)
    return copy.deepcopy(distribution[min(int(len(distribution) * coordinate), len(distribution) - 1)])


def _draw(distribution: Any, rng: np.random.Generator) -> Any:
    if isinstance(distribution, tuple):
        return _value_at(distribution, rng.random())
    return distribution(rng) if callable(distribution) else distribution[rng.integers(len(distribution))]


def _draw_task(parameters: Mapping[str, Any], rng: np.random.Generator) -> Task:
    return {name: copy.deepcopy(_draw(distribution, rng)) for name, distribution in parameters.items()}


def _examples(distribution: Any) -> List[Any]:
    """Returns values of a distribution to compare: the ends of a range, the first values of a list, or some draws."""
    if callable(distribution):
        rng = np.random.default_rng(0)
        return [distribution(rng) for _ in range(_EXAMPLES)]
    return list(map(float, distribution) if isinstance(distribution, tuple) else distribution[:_EXAMPLES])


def _ignore(env: Any, task: Task) -> None:
    """Does nothing: `VariedEnv.set_task` sets the task."""
