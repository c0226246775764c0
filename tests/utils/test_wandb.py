"""Weights & Biases, offline: what a run sends there, how it goes on, and runs that the user has begun."""
import struct
import sys
from types import SimpleNamespace

import pytest

from experiments import cem
from meta_policy_search.plotting import read_progress
from meta_policy_search.utils import logger
from tests.test_documented_code import blocks_of

wandb = pytest.importorskip("wandb", reason='wandb is not installed: pip install -e ".[wandb]"')


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)


def dump(**row):
    logger.logkvs(row)
    logger.dumpkvs()


def sent(folder):
    """Returns what would be sent for each process of a run, in order: run, config, and the rows, each with its step."""
    from wandb.proto.wandb_internal_pb2 import Record

    wandb.teardown()  # its service has then written all
    runs = []
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        data, at, said = path.read_bytes(), 7, {"config": {}, "rows": []}
        assert len(data) < 2**15  # a single block of records
        while at < len(data):
            _, size, _ = struct.unpack("<IHB", data[at: at + 7])
            record = Record.FromString(data[at + 7: at + 7 + size])
            at += 7 + size
            if record.HasField("run"):
                said.update(id=record.run.run_id, name=record.run.display_name, project=record.run.project)
            changes = (*record.run.config.update, *record.config.update)
            said["config"].update({item.key: item.value_json for item in changes if item.key != "_wandb"})
            if record.HasField("history"):
                row = {key: float(item.value_json) for item in record.history.item
                       if not (key := item.key or item.nested_key[0]).startswith("_")}
                said["rows"].append((record.history.step.num, row))
        runs.append(said)
    return runs


def test_numbers_of_the_rows_and_settings_are_sent(tmp_path):
    logger.configure(tmp_path / "my_run", ["csv", "wandb"])
    logger.log_settings({"env": "MetaPointEnv", "hidden_sizes": (64, 64), "inner_lr": 0.1})
    dump(Itr=3, x=-1.25, text="no number", truth=True)
    dump(Itr=4, x=2)
    assert logger.output_positions()["wandb"]["step"] == 5
    logger.reset()
    (run,) = sent(tmp_path / "my_run")
    assert run["rows"] == [(3, {"Itr": 3.0, "x": -1.25}), (4, {"Itr": 4.0, "x": 2.0})]
    assert (run["name"], run["project"]) == ("my_run", "meta_policy_search")
    assert run["config"] == {"env": '"MetaPointEnv"', "hidden_sizes": "[64,64]", "inner_lr": "0.1"}
    assert wandb.run is None


def test_a_script_that_is_resumed_goes_on_with_its_run(tmp_path, monkeypatch):
    """Given a search of two epochs that goes on to four, then both processes sent their rows to the same run."""
    monkeypatch.setenv("WANDB_PROJECT", "searches")
    folder = tmp_path / "run"
    assert cem.main(["--smoke", "--env", "MetaPointEnv", "--log_formats", "csv", "wandb", "--plot_gap", "0",
                     "--dump_path", str(folder)]) == 0
    assert cem.main(["--resume", str(folder), "--n_itr", "4"]) == 0
    first, second = sent(folder)
    steps = read_progress(folder)["Itr"].tolist()
    assert [step for step, _ in first["rows"]] == steps[:2] and [step for step, _ in second["rows"]] == steps[2:]
    assert first["id"] == second["id"] and first["project"] == second["project"] == "searches"
    assert first["config"]["script"] == '"cem"' and first["config"]["n_itr"] == "2" and second["config"]["n_itr"] == "4"


def test_a_run_that_the_user_has_begun_is_logged_to_and_stays_open(tmp_path):
    with wandb.init(dir=tmp_path, project="mine", id="abc"):
        logger.configure(tmp_path / "run", ["wandb"])
        dump(Itr=0, x=1.5)
        logger.reset()
        wandb.log({"after": 2.0})
    (run,) = sent(tmp_path)
    assert (run["id"], run["project"]) == ("abc", "mine") and not (tmp_path / "run" / "wandb").exists()
    assert run["rows"] == [(0, {"Itr": 0.0, "x": 1.5, "after": 2.0})]


def test_another_folder_is_another_run_and_what_was_before_goes_on(tmp_path):
    logger.configure(tmp_path / "outside", ["wandb"])
    dump(Itr=0, x=1.0)
    with logger.scoped_configure(tmp_path / "inside", ["wandb"]):
        dump(Itr=0, x=7.0)
    dump(Itr=1, x=2.0)
    logger.configure(tmp_path / "next", ["csv"])
    (outside,), (inside,) = sent(tmp_path / "outside"), sent(tmp_path / "inside")
    assert [row["x"] for _, row in outside["rows"]] == [1.0, 2.0] and [row["x"] for _, row in inside["rows"]] == [7.0]


def test_the_callback_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"wandb": wandb, "trainer": SimpleNamespace(callbacks=[])}
    exec(blocks_of("resume.rst")[0], names)
    (callback,) = names["trainer"].callbacks
    for itr in range(2):
        assert callback(names["trainer"], {"Itr": itr, "x": 0.5 + itr}) is None  # training goes on
    names["run"].finish()
    (run,) = sent(tmp_path)
    assert run["rows"] == [(0, {"Itr": 0.0, "x": 0.5}), (1, {"Itr": 1.0, "x": 1.5})]
    assert (run["project"], run["config"]) == ("my_project", {"inner_lr": "0.1"})


def test_a_run_that_cannot_begin_is_a_mistake_in_words(tmp_path, monkeypatch):
    def init(**how):
        raise wandb.errors.CommError("no network")

    monkeypatch.setattr(wandb, "init", init)
    with pytest.raises(ValueError, match=r"^format_strs: wandb could not begin .*\(no network\).*WANDB_MODE=offline"):
        logger.configure(tmp_path, ["wandb"])
    logger.configure(tmp_path, ["csv"])


def test_where_wandb_is_missing_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r'needs the package wandb: run `pip install "meta_policy_search\[wandb\]"`$'):
        logger.configure(tmp_path, ["csv", "wandb"])
