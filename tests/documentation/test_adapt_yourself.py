"""The page "Adapt a policy yourself" computes what the library computes. Runs its script in a headless browser."""
import json
import shutil
import subprocess
from collections import OrderedDict

import numpy as np
import pytest
from scipy import stats

from meta_policy_search import (
    LinearFeatureBaseline,
    MetaEvaluator,
    MetaGaussianMLPPolicy,
    MetaPointEnvNavigation,
    MetaSampleProcessor,
    ProMP,
    normalize,
)
from tests.documentation.test_execution import DOCS

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.documentation, pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")]
STATIC = DOCS / "_static"
GOALS = [[0.4, 0.3], [-0.4, 0.35], [-0.3, -0.45], [0.45, -0.2], [0.1, 0.05], [0.0, -0.5]]


def browse(tmp_path, body, script):
    """Returns the value of a JavaScript expression on a page."""
    page = tmp_path / "page.html"
    page.write_text(f'<base href="{DOCS.as_uri()}/"><body>{body}<script>'
                    f'document.title = "result:" + JSON.stringify({script}) + ":end"</script></body>')
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
               "--allow-file-access-from-files", "--dump-dom", page.as_uri()]
    output = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True).stdout
    return json.loads(output.partition("result:")[2].partition(":end")[0])


SCRIPTS = '<script src="_static/adapt_policies.js"></script><script src="_static/adapt_yourself.js"></script>'


@pytest.mark.parametrize("name", ["promp", "random"])
def test_gradient_steps_and_returns_equal_the_library(name, tmp_path):
    # given the paths of the page and its parameters before and after a gradient step
    theta = "adaptYourself.randomPolicy(1)" if name == "random" else f"POLICIES.{name}"
    adapt = f"{json.dumps(GOALS)}.map((goal, m) => adaptYourself.adapt({theta}, goal, 1, 20, 100, 0.5, m))"
    before, results = browse(tmp_path, SCRIPTS, f"[{theta}, {adapt}]")
    policy = MetaGaussianMLPPolicy(len(GOALS), 2, 2, hidden_sizes=(32, 32))
    shapes = {key: value.shape for key, value in policy.get_param_values().items()}
    params = OrderedDict((key, np.reshape(value, shape)) for (key, shape), value in zip(shapes.items(), before))
    policy.set_params(params)
    algo, processor = ProMP(policy, 0.5, len(GOALS)), MetaSampleProcessor(
        LinearFeatureBaseline(), gae_lambda=0.95, normalize_adv=True)
    paths = {m: [{key: np.array(path[key]) for key in ("observations", "actions", "rewards")}
                 for path in result["steps"][0]] for m, result in enumerate(results)}
    for of_task in paths.values():
        for path in of_task:
            path["env_infos"] = {}
            _, infos = policy.get_actions([path["observations"]] * len(GOALS))
            path["agent_infos"] = {key: np.array([info[key] for info in infos[0]]) for key in infos[0][0]}
    # then the library adapts to the same parameters
    algo.adapt(processor.process_samples(paths))
    for adapted, result in zip(policy.policies_params_vals, results, strict=True):
        for (key, shape), value in zip(shapes.items(), result["theta"], strict=True):
            np.testing.assert_allclose(adapted[key], np.reshape(value, shape), rtol=0.0, atol=1e-5)
            assert key != "mean_network/output/kernel" or np.abs(adapted[key] - params[key]).max() > 1e-3
    # and the returns of the page before and after adaptation are those of the library, up to noise
    policy.switch_to_pre_update()
    evaluator = MetaEvaluator(algo, normalize(MetaPointEnvNavigation(), normalization_scale=1.0), processor)
    expected = evaluator.evaluate(tasks=[tuple(goal) for goal in GOALS], num_steps=1, seeds=range(4)).returns
    returns = [[np.mean([sum(path["rewards"]) for path in step]) for step in result["steps"]] for result in results]
    differences = np.array(returns) - np.mean(np.reshape(expected, (4, len(GOALS), 2)), axis=0)
    for k in range(2):
        low, high = stats.t.interval(0.999, len(GOALS) - 1, differences[:, k].mean(), stats.sem(differences[:, k]))
        assert low < 0.0 < high
    if name == "promp":  # meta-learning pays
        assert np.abs(differences).max() < 6.0 and np.diff(np.mean(returns, axis=0)) > 15.0


def test_goal_and_gradient_steps_by_keyboard(tmp_path):
    press = """(() => {
        const root = document.getElementById("adapt-yourself");
        const get = name => root.querySelector(`[data-id="${name}"]`), texts = [];
        const note = () => texts.push([get("goal").getAttribute("aria-label"), get("status").textContent,
                                       root.querySelectorAll("polyline.after").length]);
        note();
        get("goal").focus();
        get("goal").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"}));
        note();
        get("step").click();
        note();
        get("paths").value = 7;
        get("paths").dispatchEvent(new Event("input"));
        note();
        get("reset").click();
        note();
        return [document.activeElement === get("goal"), root.hidden, texts];
    })()"""
    focused, hidden, texts = browse(tmp_path, (STATIC / "adapt_yourself.html").read_text(), press)
    assert focused and not hidden
    labels, states, numbers = zip(*texts)
    assert labels[0].startswith("Goal at 0.40, 0.30.") and labels[1].startswith("Goal at 0.35, 0.30.")
    assert [state.split(" after ")[1] for state in states] == [
        "0 gradient steps.", "0 gradient steps.", "1 gradient step.", "1 gradient step.", "0 gradient steps."]
    assert numbers == (0, 0, 20, 7, 0) and len(set(states)) == 5
