"""Command lines: a flag for every setting, errors in one line, and text tables."""
import argparse
import dataclasses
import json
import os
import re
import typing
from typing import Any, Container, Mapping, NoReturn, Optional, Sequence, Union

from experiments.settings import PARALLEL_SETTINGS, RunConfig, read_json
from meta_policy_search.utils.checks import did_you_mean


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line.

    Args:
        path: file of the script.
        description: first part of `--help`.
        **how: further arguments of `ArgumentParser`.
    """

    def __init__(self, path: str, description: Optional[str], **how: Any) -> None:
        super().__init__(prog=os.path.basename(path), description=description, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter, **how)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reads flags; the error about an unknown flag suggests the most similar one."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            flags = re.findall(r"--[a-z]\w*", self.format_help())
            self.error(f"unrecognized arguments: {' '.join(unknown)}{did_you_mean(unknown[0].split('=')[0], flags)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Prints a message and exits with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def make_training_parser(
    path: str, description: Optional[str], config_class: type[RunConfig], shared_class: type[RunConfig]
) -> Parser:
    """Makes the parser of a script that trains, with a flag for every setting; its result has only the given flags.

    Args:
        path: file of the script.
        description: first part of `--help`.
        config_class: the settings of the script.
        shared_class: the settings that it shares with other scripts.
    """
    parser = Parser(
        path,
        description,
        usage="%(prog)s [--config_file FILE] [--dump_path DIR] [--smoke] [--SETTING VALUE ...]\n"
              "       %(prog)s --resume DIR [--n_itr N]",
        argument_default=argparse.SUPPRESS,
    )
    name = os.path.splitext(parser.prog)[0]
    parser.add_argument("--config_file", metavar="FILE", help="JSON object of settings by name, or a params.json")
    parser.add_argument("--dump_path", metavar="DIR",
                        help=f"run folder (default: data/{name}/<environment>/<time>_seed<seed>)")
    parser.add_argument("--resume", metavar="DIR",
                        help="resume the run in this folder, with its settings; n_itr may be raised")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes and two iterations, to test that everything "
                        "works; the environment variable SMOKE=1 does the same")
    shared = parser.add_argument_group("settings of every experiment")
    own = parser.add_argument_group("settings of this experiment")
    shared_names = {field.name for field in dataclasses.fields(shared_class)}
    types, defaults = typing.get_type_hints(config_class), config_class()
    for field in dataclasses.fields(config_class):
        group = shared if field.name in shared_names else own
        _add_flag(group, field, types[field.name], _as_text(getattr(defaults, field.name)))
    return parser


def given_settings(arguments: Mapping[str, Any], smoke: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings given by file, `--smoke` and flags; each overrides the ones before.

    Args:
        arguments: the result of the parser of a script that trains.
        smoke: the settings that `--smoke` sets.
    """
    flags = {name: value for name, value in arguments.items()
             if name not in ("config_file", "dump_path", "resume", "smoke")}
    settings = read_json(arguments["config_file"]) if "config_file" in arguments else {}
    if isinstance(settings.get("settings"), dict):  # the params.json of a run
        settings = settings["settings"]
    return {**settings, **(smoke if arguments.get("smoke") else {}), **flags}


def add_parallel_flags(parser: Any) -> None:
    """Adds the flags for `PARALLEL_SETTINGS`; the result of the parser has only the given ones.

    Args:
        parser: an `argparse.ArgumentParser`, or a group of one.
    """
    types = typing.get_type_hints(RunConfig)
    for field in dataclasses.fields(RunConfig):
        if field.name in PARALLEL_SETTINGS:
            _add_flag(parser, field, types[field.name], "as in the run")


def add_output_flags(parser: Any, metavar: str, help: str, old: str) -> None:
    """Adds the flags `--output` and `--overwrite`.

    Args:
        parser: an `argparse.ArgumentParser`, or a group of one.
        metavar: stands for the value of `--output` in the help.
        help: help of `--output`.
        old: name of the files that `--overwrite` replaces.
    """
    parser.add_argument("--output", metavar=metavar, help=help)
    parser.add_argument("--overwrite", action="store_true", help=f"replace an earlier {old} there")


def _add_flag(parser: Any, field: dataclasses.Field, of_type: Any, default: str) -> None:
    text = f"{field.metadata['help']} (default: {default})".replace("%", "%%")
    parser.add_argument(f"--{field.name}", help=text, default=argparse.SUPPRESS, **_argument_of(of_type))


def _argument_of(of_type: Any) -> dict[str, Any]:
    """Returns the arguments of `add_argument` for a flag of some type."""
    container, inner = typing.get_origin(of_type), typing.get_args(of_type)
    if of_type is bool:
        return {"action": argparse.BooleanOptionalAction}
    if inner == (bool, str):
        return {"action": _Switch, "choices": ["ray"]}
    if container is tuple:
        return {"nargs": "*", **_argument_of(inner[0])}
    if container is Union:
        def optional(text: str) -> Any:
            return None if text == "none" else inner[0](text)

        optional.__name__ = inner[0].__name__  # for argparse's messages
        return {"type": optional, "metavar": _argument_of(inner[0])["metavar"]}
    if container is dict:
        return {"type": _json_object, "metavar": "JSON"}
    return {"type": of_type, "metavar": {str: "NAME", int: "INT", float: "FLOAT"}[of_type]}


class _Switch(argparse.Action):
    """Reads `--NAME` as True, `--no-NAME` as False, and `--NAME VALUE` as the value."""

    def __init__(self, option_strings: Sequence[str], dest: str, **how: Any) -> None:
        super().__init__([*option_strings, f"--no-{dest}"], dest, nargs="?", **how)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Optional[str] = None) -> None:
        is_off = str(option_string).startswith("--no-")
        if is_off and values is not None:
            raise argparse.ArgumentError(self, f"expected no value after {option_string}, got {values!r}")
        setattr(namespace, self.dest, not is_off if values is None else values)


def _json_object(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise argparse.ArgumentTypeError("expected a JSON object, got one that is nested too deep") from None
    except ValueError as error:
        example = '{"reward_type": "dense"}'
        raise argparse.ArgumentTypeError(f"expected a JSON object such as {example!r}, got {text!r}: {error}") from None


def _as_text(value: Any) -> str:
    """Returns a value as on a command line."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def check_is_new(output: str, overwrite: bool) -> None:
    """Raises `ValueError` if a file exists that `--overwrite` does not replace."""
    if os.path.exists(output) and not overwrite:
        raise ValueError(f"--output: expected a file that is not there yet, got {output}; choose another one, or have "
                         "it replaced (--overwrite)")


def text_table(rows: Sequence[Sequence[str]], right: Container[int]) -> str:
    """Returns a table to print.

    Args:
        rows: its cells, the header first.
        right: numbers of the columns to align on the right; the others are aligned on the left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
                     for row in rows)
