"""Command lines: one flag per setting, one-line errors and text tables."""
import argparse
import contextlib
import functools
import inspect
import json
import os
import re
import sys
import types
import typing
from collections import abc
from typing import Any, Callable, Container, Mapping, NoReturn, Optional, Sequence, Union

from meta_policy_search.settings import Owners, Setting, advise
from meta_policy_search.utils.checks import did_you_mean
from meta_policy_search.utils.progress import printable


class Parser(argparse.ArgumentParser):
    """Argument parser that reports errors in one line.

    Args:
        prog: name of the command.
        description: first part of the help text.
        **how: further arguments of `ArgumentParser`.

    Attributes:
        owners: of a training command, see `settings.check_names`; default None.
    """

    owners: Optional[Owners] = None

    def __init__(self, prog: str, description: Optional[str], **how: Any) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter, **how)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses flags; raises `SystemExit` also if a flag that takes one value is repeated.

        A list can be given as several words, with commas or as JSON: `64 64`, `64,64`, `[64,64]`.
        """
        args = sys.argv[1:] if args is None else args
        actions = [self._option_string_actions.get(argument.partition("=")[0]) for argument in args]
        names = [action.dest for action in actions if action and not isinstance(action, argparse._AppendAction)]
        for name in names:
            if names.count(name) > 1:
                self.error(f"--{name}: expected once, got it {names.count(name)} times")
        namespace, unknown = self.parse_known_args(args, namespace)
        if unknown:
            flag, known = unknown[0].partition("=")[0], self._option_string_actions
            if self.owners is None:
                hint = did_you_mean(flag, known) or "; see --help"
            elif flag.startswith("-"):
                hint = advise(flag, known, self.owners)
            else:
                hint = ("; write each value after its flag (most flags take one value); --NAME means true, --no-NAME "
                        "false")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        for action in self._actions:
            values = vars(namespace).get(action.dest)
            if action.nargs in ("*", "+") and values and len(values) == 1 and isinstance(values[0], list):
                setattr(namespace, action.dest, values[0])
        return namespace

    def check_first(self, args: Sequence[str], expected: str) -> None:
        """Reports an error, which begins with `expected`, if the first argument is a flag other than `--help`."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            self.error(f"{expected}, got {args[0]}")

    def error(self, message: str) -> NoReturn:
        """Prints an error message and exits with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")

    def exit(self, status: int = 0, message: Optional[str] = None) -> NoReturn:
        """Exits with a status and prints a message; control characters in it are escaped."""
        super().exit(status, message and printable(message))


def make_training_parser(prog: str, description: Optional[str], algorithm: str, settings: Mapping[str, Setting],
                         shared: Container[str]) -> Parser:
    """Builds the parser of a training command, with one flag per setting.

    The result of the parser contains only the flags that were given.

    Args:
        prog: name of the command.
        description: first part of the help text.
        algorithm: name of the algorithm, part of the default run folder.
        settings: the settings of the algorithm, with their defaults; those that a flag cannot express are omitted.
        shared: names of the settings that all algorithms have.
    """
    usage = "%(prog)s [--config_file FILE] [--dump_path DIR [--resume]] [--smoke] [--SETTING VALUE ...]"
    parser = Parser(prog, description, usage=usage, argument_default=argparse.SUPPRESS)
    parser.add_argument("--config_file", metavar="FILE", type=nonempty_path,
                        help="JSON file of settings, or the params.json of a run")
    parser.add_argument("--dump_path", metavar="DIR", type=nonempty_path,
                        help=f"run folder (default: data/{algorithm.rpartition(':')[2]}/<environment>/"
                        "<time>_seed<seed>)")
    parser.add_argument("--resume", action="store_true",
                        help="continue the run in the run folder, with the same settings; n_itr may be larger")
    parser.add_argument("--smoke", action="store_true", help="smoke test with tiny sizes and two iterations; same as "
                        "the environment variable SMOKE=1")
    groups = [parser.add_argument_group(f"settings of {name}") for name in ("all algorithms", "this algorithm")]
    for setting in settings.values():
        add_flag(groups[setting.name not in shared], setting)
    return parser


def nonempty_path(text: str) -> str:
    """Type of flags that are paths: refuses an empty text, such as that of an unset shell variable."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got ''")
    return os.path.expanduser(text)


def add_output_flags(parser: Any, metavar: str, help: str, old: str) -> None:
    """Adds the flags `--output` and `--overwrite`.

    Args:
        parser: an `argparse.ArgumentParser` or an argument group.
        metavar: placeholder for the value of `--output` in the help text.
        help: help text of `--output`.
        old: name of the output in the help text of `--overwrite`.
    """
    parser.add_argument("--output", metavar=metavar, type=nonempty_path, help=help)
    parser.add_argument("--overwrite", action="store_true", help=f"replace an existing {old}")


def add_flag(parser: Any, setting: Setting) -> None:
    """Adds the flag of a setting; without effect for settings of a type that a flag cannot express.

    Args:
        parser: an `argparse.ArgumentParser` or an argument group.
        setting: the setting. Its default is only part of the help text.
    """
    kinds = _kinds(setting.hint)
    if not kinds:
        return
    flag = f"--{setting.name}"
    text = re.sub(r"[.;,] [Dd]efault\b.*$", "", setting.help).rstrip(".").replace("`", "").replace(" (default)", "")
    default = "" if setting.default is inspect.Parameter.empty else f" (default: {_as_text(setting.default)})"
    how: dict[str, Any] = {"help": f"{text}{default}".replace("%", "%%"), "default": argparse.SUPPRESS}
    if bool in kinds:
        parser.add_argument(flag, nargs="?", const=True, type=_value, metavar="VALUE", **how)
        how["help"] = f"the opposite of --{setting.name}"
        parser.add_argument(f"--no-{setting.name}", dest=setting.name, action="store_false", **how)
    else:
        metavar = next(text for kind, text in _METAVARS.items() if kind in kinds)
        is_parsed = kinds != {str} or type(None) in typing.get_args(setting.hint)
        parse = _value if is_parsed else str
        if list in kinds:
            how.update(type=functools.partial(one_or_several, parse), nargs="*")
        parser.add_argument(flag, **{"type": parse, "metavar": metavar, **how})


def one_or_several(parse: Callable[[str], Any], text: str) -> Any:
    """Parses a word of a list flag: one value, or with commas (but not in JSON), a list of values."""
    try:
        has_commas = "," in text and text[0] not in '[{"'
        return [parse(part) for part in text.split(",") if part] if has_commas else parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 1 2 or 1,2, got {text!r}") from None


_METAVARS = {float: "FLOAT", int: "INT", list: "VALUE", str: "NAME", dict: "JSON"}
_BASES = {bool: bool, int: int, float: float, str: str, dict: abc.Mapping, list: abc.Sequence}


def _kinds(hint: Any) -> set[type]:
    """Returns the JSON types of a type hint, without None."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return set().union(*map(_kinds, typing.get_args(hint)))
    base = origin or hint
    return {kind for kind, cls in _BASES.items() if isinstance(base, type) and issubclass(base, cls)
            and not (kind is int and base is bool or kind is list and issubclass(base, str))}


def _value(text: str) -> Any:
    """Parses JSON, a number, none, None, True, False or text; the constructor that receives it checks the type."""
    for read in (json.loads, float):
        with contextlib.suppress(ValueError, RecursionError):
            return read(text)
    return {"none": None, "None": None, "True": True, "False": False}.get(text, text)


def _as_text(value: Any) -> str:
    """Formats a value as on a command line."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def print_warning(text: str) -> None:
    """Prints a line to standard error."""
    print(printable(text), file=sys.stderr)


def check_is_new(output: str, overwrite: bool) -> None:
    """Raises `ValueError` if the output file exists and `--overwrite` was not given."""
    if os.path.exists(output) and not overwrite:
        raise ValueError(f"output: expected a file that does not exist, got {output}. Replace it with "
                         "--overwrite, or choose another --output")
