"""Returns of a policy in held-out tasks after each adaptation step, and recordings of its paths."""
from meta_policy_search.evaluation.adapted_policy import AdaptedPolicy, AdaptedRecurrentPolicy, adapt, adapt_with
from meta_policy_search.evaluation.eval_callback import EvalCallback
from meta_policy_search.evaluation.evaluation import Evaluation
from meta_policy_search.evaluation.evaluator import MetaEvaluator
from meta_policy_search.evaluation.loading import load_evaluator
from meta_policy_search.evaluation.recording import Recording
from meta_policy_search.evaluation.trial_evaluator import TrialEvaluation, TrialEvaluator

__all__ = ["AdaptedPolicy", "AdaptedRecurrentPolicy", "EvalCallback", "Evaluation", "MetaEvaluator", "Recording",
           "TrialEvaluation", "TrialEvaluator", "adapt", "adapt_with", "load_evaluator"]
