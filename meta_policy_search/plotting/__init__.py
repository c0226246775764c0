"""Plots of training runs (from `progress.csv`), adaptation curves and trajectories."""
from meta_policy_search.plotting.curves import (
    Curve,
    collect_curves,
    draw_pictures,
    mean_curve,
    plot_adaptation_curve,
    plot_comparison,
    plot_diagnostics,
    plot_learning_curve,
)
from meta_policy_search.plotting.progress import (
    Progress,
    describe_run,
    describe_settings,
    final_returns,
    final_success,
    mean_gain,
    read_progress,
    return_columns,
)
from meta_policy_search.plotting.style import step_label
from meta_policy_search.plotting.trajectories import describe_task, plot_trajectories

__all__ = ["Curve", "Progress", "collect_curves", "describe_run", "describe_settings", "describe_task", "draw_pictures",
           "final_returns", "final_success", "mean_curve", "mean_gain", "plot_adaptation_curve", "plot_comparison",
           "plot_diagnostics", "plot_learning_curve", "plot_trajectories", "read_progress", "return_columns",
           "step_label"]
