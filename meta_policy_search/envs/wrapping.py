"""What environments share that stand around another one."""
from typing import Any

from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.utils.duck_typing import call_optional


class WrappingEnv(MetaEnv):
    """An environment around another one, `wrapped_env`, whose attributes it takes where it has none of its own."""

    wrapped_env: Any

    def _wrap(self, env: Any) -> None:
        """Makes `env` the wrapped environment."""
        self.wrapped_env = env
        for name in ("metadata", "render_mode", "reward_range", "spec"):  # gym.Env has defaults that would hide these
            if hasattr(env, name):
                setattr(self, name, getattr(env, name))

    def __getattr__(self, name: str) -> Any:
        """Returns the wrapped environment's attribute.

        Raises:
            AttributeError: there is none; or a special method is asked for; or `make_batched`, as the vectorized form
                of the wrapped environment would leave out what this one does.
        """
        if name.startswith("__") or name == "make_batched" or "wrapped_env" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.wrapped_env, name)

    @property
    def innermost(self) -> Any:
        """The environment inside all wrappers."""
        return getattr(self.wrapped_env, "unwrapped", self.wrapped_env)

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Renders the wrapped environment."""
        return self.wrapped_env.render(*args, **kwargs)

    def close(self) -> None:
        """Closes the wrapped environment, where it can be closed."""
        call_optional(self.wrapped_env, "close")
