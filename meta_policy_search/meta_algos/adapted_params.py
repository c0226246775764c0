"""Selects the policy parameters that adaptation steps change.

==============  ======================================================================  ===========================
`adapt_params`  Parameters                                                              Method
==============  ======================================================================  ===========================
`'all'`         all                                                                     MAML (arXiv:1703.03400)
`'head'`        output layer and standard deviation                                     ANIL (arXiv:1909.09157)
`'body'`        all other parameters                                                    BOIL (arXiv:2008.08882)
`'context'`     context of a policy with `context_dim`, which starts at zero            CAVIA (arXiv:1810.03642)
patterns        those whose names match one of the patterns (`fnmatch`), for example
                `['mean_network/hidden_1/*', 'log_std_network/*']`
==============  ======================================================================  ===========================

All other parameters have the same value in every task. The meta-update changes all parameters except the context.
"""
import fnmatch
from typing import Iterable, Sequence, Tuple, Union

from meta_policy_search.ops.networks import CONTEXT, LOG_STD
from meta_policy_search.utils.checks import did_you_mean

HEAD = ("output/*", "*/output/*", LOG_STD)


def select_params(adapt_params: Union[str, Sequence[str]], names: Iterable[str], num_steps: int = 1) -> Tuple[str, ...]:
    """Returns the names of the parameters that adaptation steps change, in the order of `names`.

    Args:
        adapt_params: `'all'`, `'head'`, `'body'`, `'context'`, or one or several patterns of parameter names.
        names: names of all parameters of the policy.
        num_steps: number of adaptation steps. Default: 1.

    Raises:
        TypeError: `adapt_params` is neither a string nor a list of strings.
        ValueError: a pattern matches no parameter, the policy has a context that would not be adapted, or `num_steps`
            is 0 and `adapt_params` does not select all parameters.
    """
    names = list(names)
    if not names:
        raise ValueError("policy: expected a policy with a network, got one without parameters")
    patterns = [adapt_params] if isinstance(adapt_params, str) else adapt_params
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError(f"adapt_params: expected a string or a list of strings, got {adapt_params!r}")
    head = {name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in HEAD)}
    groups = {"all": set(names), "head": head, "body": set(names) - head, "context": {CONTEXT} & set(names)}
    selected = set()
    for pattern in patterns:
        matching = groups.get(pattern, set(fnmatch.filter(names, pattern)))
        if not matching:
            if pattern == "context":
                raise ValueError("adapt_params: 'context' requires a policy with a context, such as context_dim=2")
            raise ValueError(f"adapt_params: expected {', '.join(map(repr, groups))}, or patterns of parameter names, "
                             f"got {pattern!r}, which matches none of the parameters {', '.join(names)}"
                             + did_you_mean(pattern, groups))
        selected |= matching
    if CONTEXT in names and CONTEXT not in selected:
        raise ValueError(f"adapt_params: expected 'context' or another choice that includes the policy's context, got "
                         f"{adapt_params!r}")
    if not selected:
        raise ValueError("adapt_params: expected at least one pattern, got none")
    if num_steps == 0 and selected < set(names):
        raise ValueError(f"adapt_params: expected 'all' with num_inner_grad_steps=0, got {adapt_params!r}")
    return tuple(name for name in names if name in selected)
