"""Runs commands in this process."""
import pytest

from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger


def mistake(main, capsys, *arguments):
    """Returns the error message of a command: one line, with exit status 2."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    assert (stop.value.code, output.out, output.err.count("\n")) == (2, "", 1)
    return output.err


def help_of(main, capsys, *arguments):
    """Returns the help text of a command."""
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


def train(script, folder, *arguments):
    """Trains a short run with a script, for fixtures of a module; returns the folder."""
    logger.reset()
    with tf.Graph().as_default() as graph:
        assert script.main(["--smoke", "--dump_path", str(folder), *map(str, arguments)]) == 0
    for session in graph.get_collection("meta_policy_search/session"):
        session.close()
    return folder
