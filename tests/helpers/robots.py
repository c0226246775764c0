"""Helpers shared by the tests of the robots."""


def engine_of(env):
    """Returns the physics engine of an environment that is stepped as a single copy."""
    return env._batched.engine


def observations_of(env, state):
    """Returns the observations of the robot in the given engine states, one row per state."""
    return env._batched.robot.observations(state)


def ends_of(env, state):
    """Returns for each of the given engine states whether it ends a path."""
    return env._batched.robot.terminated(state)
