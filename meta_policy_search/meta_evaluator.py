"""The evaluator under its documented path; it is written in `evaluation`."""
from meta_policy_search.evaluation import Evaluation, MetaEvaluator

__all__ = ["Evaluation", "MetaEvaluator"]
