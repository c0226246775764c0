"""What the tests of the robots share."""


def engine_of(env):
    """The physics engine of an environment that steps alone."""
    return env._batched.engine


def observations_of(env, state):
    """What a robot observes in some states of the engine, one row for each."""
    return env._batched.robot.observations(state)


def ends_of(env, state):
    """In which states of the engine a path ends, one answer for each."""
    return env._batched.robot.terminated(state)
