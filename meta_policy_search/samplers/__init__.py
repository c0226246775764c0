"""Samplers that collect paths, and processors that convert paths to samples; nothing here imports TensorFlow."""
from meta_policy_search.samplers.base import SampleProcessor, Sampler
from meta_policy_search.samplers.dice_sample_processor import DiceSampleProcessor
from meta_policy_search.samplers.meta_sample_processor import (
    DiceMetaSampleProcessor,
    MetaSampleProcessor,
    TrialSampleProcessor,
)
from meta_policy_search.samplers.meta_sampler import MetaSampler
from meta_policy_search.samplers.ray_executor import RayOptions
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.samplers.task_samplers import RoML, TaskSampler, WorstTaskSampler
from meta_policy_search.samplers.utils import check_env

__all__ = ["DiceMetaSampleProcessor", "DiceSampleProcessor", "MetaSampleProcessor", "MetaSampler", "RayOptions", "RoML",
           "SampleProcessor", "Sampler", "SingleTaskSampler", "TaskSampler", "TrialSampleProcessor", "WorstTaskSampler",
           "check_env"]
