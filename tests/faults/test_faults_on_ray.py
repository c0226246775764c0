"""Tests a Ray cluster that a sampler starts: network access, and recovery after Ctrl-C."""
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.ray
SCRIPT = """
    import ipaddress, os, signal, threading, time
    import numpy as np
    import psutil
    from meta_policy_search.samplers import RayOptions
    from tests.helpers.sampling import FixedPolicy, MetaEnv, assert_same, gym, sampler_of

    class Env(MetaEnv):
        observation_space = action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)

        def sample_tasks(self, n_tasks):
            return [None] * n_tasks

        def set_task(self, task):
            pass

        def reset(self, *, seed=None, options=None):
            return self.np_random.normal(size=1), {}

        def step(self, action):
            if not os.path.exists(FOLDER + "/quick"):
                open(FOLDER + f"/busy {os.getpid()}", "w").close()
                time.sleep(300.0)
            return action, 1.0, False, False, {}

    def interrupt():  # once all workers are in a step
        while sum(name.startswith("busy") for name in os.listdir(FOLDER)) < sampler.vec_env.num_workers:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    sampler = sampler_of(Env(), FixedPolicy(), meta_batch_size=2, parallel=RayOptions())
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    ports = [port for process in family for port in process.net_connections("inet") if port.status == "LISTEN"]
    addresses = [ipaddress.ip_address(port.laddr.ip) for port in ports]
    assert addresses and all((getattr(ip, "ipv4_mapped", None) or ip).is_loopback for ip in addresses), addresses

    threading.Thread(target=interrupt).start()
    try:
        sampler.obtain_samples()
        raise AssertionError("not interrupted")
    except KeyboardInterrupt:
        open(FOLDER + "/quick", "w").close()
    started = time.monotonic()
    paths = sampler.obtain_samples()
    assert time.monotonic() - started < 50.0  # below the time that it waits for workers that are lost
    expected = sampler_of(Env(), FixedPolicy(), meta_batch_size=2).obtain_samples()
    assert_same(list(paths.values()), list(expected.values()))
    sampler.close()
    print("done")
"""


@pytest.mark.thorough
def test_ray_listens_only_locally_and_workers_restart_after_ctrl_c(tmp_path):
    """Ctrl-C during a step of all workers leaves a sampler that continues on its Ray cluster."""
    pytest.importorskip("ray")
    script = tmp_path / "script.py"
    script.write_text(f"FOLDER = {str(tmp_path)!r}\n" + textwrap.dedent(SCRIPT))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environ.pop("RAY_ADDRESS", None)
    answer = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=280, env=environ)
    assert (answer.stdout, answer.returncode) == ("done\n", 0), answer.stderr
