"""Helper of the tests of robots."""


def engine_of(env):
    """Returns the physics engine of an environment that is stepped as a single copy."""
    return env._batched.engine
