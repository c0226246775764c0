"""Command lines: one flag per setting, one-line errors and text tables."""
import argparse
import contextlib
import dataclasses
import os
import sys
import typing
from typing import Any, Container, Mapping, NoReturn, Optional, Sequence, Union

from meta_policy_search.cli.settings import PARALLEL_SETTINGS, RunConfig, declared, load_json, read_json
from meta_policy_search.utils.checks import did_you_mean


class Parser(argparse.ArgumentParser):
    """Argument parser that reports errors in one line.

    Args:
        prog: name of the command.
        description: first part of the help text.
        **how: further arguments of `ArgumentParser`.
    """

    def __init__(self, prog: str, description: Optional[str], **how: Any) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter, **how)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses flags; raises `SystemExit` also if a flag that takes one value is repeated."""
        args = sys.argv[1:] if args is None else args
        actions = [self._option_string_actions.get(argument.partition("=")[0]) for argument in args]
        names = [action.dest for action in actions if action and not isinstance(action, argparse._AppendAction)]
        for name in names:
            if names.count(name) > 1:
                self.error(f"--{name}: expected once, got it {names.count(name)} times")
        namespace, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._similar_flags(unknown[0])}")
        return namespace

    def _similar_flags(self, text: str) -> str:
        """Returns `; did you mean ...?` with the flags that `text` abbreviates, or with the most similar flag."""
        name = text.lstrip("-").partition("=")[0]
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        similar = [flag for flag in flags if name in ("".join(part[:1] for part in flag.strip("-").split("_")),
                                                      *flag.strip("-").split("_"))]
        return f"; did you mean {' or '.join(similar)}?" if similar else did_you_mean(text, flags) or "; see --help"

    def error(self, message: str) -> NoReturn:
        """Prints an error message and exits with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def make_training_parser(prog: str, description: Optional[str], config_class: type[RunConfig]) -> Parser:
    """Builds the parser of a training command, with one flag per setting.

    The result of the parser contains only the flags that were given.

    Args:
        prog: name of the command.
        description: first part of the help text.
        config_class: settings class.
    """
    usage = ("%(prog)s [--config_file FILE] [--dump_path DIR] [--smoke] [--SETTING VALUE ...]\n"
             "       %(prog)s --resume DIR [--n_itr N]")
    parser = Parser(prog, description, usage=usage, argument_default=argparse.SUPPRESS)
    parser.add_argument("--config_file", metavar="FILE", help="JSON file of settings, or the params.json of a run")
    folder = parser.add_mutually_exclusive_group()
    folder.add_argument("--dump_path", metavar="DIR",
                        help=f"run folder (default: data/{config_class.algorithm}/<environment>/<time>_seed<seed>)")
    folder.add_argument("--resume", metavar="DIR",
                        help="resume the run in this folder with its settings; n_itr may be increased")
    parser.add_argument("--smoke", action="store_true", help="smoke test with tiny sizes and two iterations; same as "
                        "the environment variable SMOKE=1")
    shared = parser.add_argument_group("settings of all algorithms")
    own = parser.add_argument_group("settings of this algorithm")
    types = typing.get_type_hints(config_class)
    common = {field.name for field in dataclasses.fields(RunConfig)}
    for field in dataclasses.fields(config_class):
        group = shared if field.name in common else own
        default = field.default_factory() if callable(field.default_factory) else field.default
        _add_flag(group, field.name, types[field.name], declared(config_class, field.name)["help"],
                  _as_text(default))
    return parser


def given_settings(arguments: Mapping[str, Any], smoke: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings from `--config_file`, `--smoke` and flags; later sources override earlier sources.

    Args:
        arguments: the result of the parser of a training command.
        smoke: the settings of `--smoke`.
    """
    flags = {name: value for name, value in arguments.items()
             if name not in ("config_file", "dump_path", "resume", "smoke")}
    settings = read_json(arguments["config_file"]) if "config_file" in arguments else {}
    if isinstance(settings.get("settings"), dict):  # the params.json of a run
        settings = settings["settings"]
    return {**settings, **(smoke if arguments.get("smoke") else {}), **flags}


def add_parallel_flags(parser: Any) -> None:
    """Adds the flags for `PARALLEL_SETTINGS`. The result of the parser contains only the flags that were given.

    Args:
        parser: an `argparse.ArgumentParser` or an argument group.
    """
    types = typing.get_type_hints(RunConfig)
    for field in dataclasses.fields(RunConfig):
        if field.name in PARALLEL_SETTINGS:
            _add_flag(parser, field.name, types[field.name], declared(RunConfig, field.name)["help"], "as in the run")


def add_output_flags(parser: Any, metavar: str, help: str, old: str) -> None:
    """Adds the flags `--output` and `--overwrite`.

    Args:
        parser: an `argparse.ArgumentParser` or an argument group.
        metavar: placeholder for the value of `--output` in the help text.
        help: help text of `--output`.
        old: name of the output in the help text of `--overwrite`.
    """
    parser.add_argument("--output", metavar=metavar, help=help)
    parser.add_argument("--overwrite", action="store_true", help=f"replace an existing {old}")


def _add_flag(parser: Any, name: str, of_type: Any, help: str, default: str) -> None:
    flag, container, inner = f"--{name}", typing.get_origin(of_type), typing.get_args(of_type)
    how = {"help": f"{help} (default: {default})".replace("%", "%%"), "default": argparse.SUPPRESS}
    if of_type is bool:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, **how)
    elif inner == (bool, str):
        parser.add_argument(flag, nargs="?", const=True, choices=["ray"], **how)
        how["help"] = f"the opposite of --{name}"
        parser.add_argument(f"--no-{name}", dest=name, action="store_false", **how)
    else:
        kind = inner[0] if container in (tuple, Union) else container or of_type
        metavar = {str: "NAME", int: "INT", float: "FLOAT", dict: "JSON"}[kind]
        parser.add_argument(flag, type=_value, nargs="*" if container is tuple else None, metavar=metavar, **how)


def _value(text: str) -> Any:
    """Parses JSON, a number, none or text; the settings class checks the type."""
    for read in (load_json, float):
        with contextlib.suppress(ValueError, RecursionError):
            return read(text)
    return None if text == "none" else text


def _as_text(value: Any) -> str:
    """Formats a value as on a command line."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def check_is_new(output: str, overwrite: bool) -> None:
    """Raises `ValueError` if the output file exists and `--overwrite` was not given."""
    if os.path.exists(output) and not overwrite:
        raise ValueError(f"output: expected a file that does not exist, got {output}. Replace it with "
                         "--overwrite, or choose another --output")


def text_table(rows: Sequence[Sequence[str]], right: Container[int]) -> str:
    """Formats rows of cells as a text table.

    Args:
        rows: the cells of each row; the first row is the header.
        right: indices of the columns to align right; other columns are aligned left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
                     for row in rows)
