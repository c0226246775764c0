"""What the tests of the robots share."""


def engine_of(env):
    """The physics engine of an environment that steps alone."""
    return env._batched.engine
