"""What policies return in held-out tasks after each adaptation step, and recordings of what they do there."""
from meta_policy_search.evaluation.evaluation import Evaluation
from meta_policy_search.evaluation.evaluator import MetaEvaluator
from meta_policy_search.evaluation.recording import Recording

__all__ = ["Evaluation", "MetaEvaluator", "Recording"]
