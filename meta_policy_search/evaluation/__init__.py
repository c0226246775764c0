"""Returns of a policy in held-out tasks after each adaptation step, and recordings of its paths."""
from meta_policy_search.evaluation.evaluation import Evaluation
from meta_policy_search.evaluation.evaluator import MetaEvaluator
from meta_policy_search.evaluation.loading import load_evaluator
from meta_policy_search.evaluation.recording import Recording

__all__ = ["Evaluation", "MetaEvaluator", "Recording", "load_evaluator"]
