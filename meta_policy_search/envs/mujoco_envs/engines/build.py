"""Builds the physics engine mujoco-py: MuJoCo 2.1.0 and the extension module of the package `mujoco_py`.

    make mujoco-py

runs all steps. Without make:

    pip install "meta_policy_search[mujoco-py]"
    python -m meta_policy_search.envs.mujoco_envs.engines.build

The build requires 64-bit Linux on x86, Python 3.10 to 3.12 and a C compiler. It takes about a minute and does not
require OpenGL. It changes only the folder of the installed package `mujoco_py`. The library and headers of MuJoCo 2.1.0
come from a wheel on PyPI, whose SHA-256 is checked. The rendering functions of the built `mujoco_py` do nothing.
"""
import argparse
import hashlib
import importlib.util
import platform
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Optional, Sequence

__all__ = ["build", "engine_folder", "main"]

_WHEEL = "free-mujoco-py==2.1.6"
_WHEEL_SHA256 = "f541d84b6bd87919ccf28f5a708681ca90560a945d104aca393d89275790efb8"
_IN_WHEEL = "mujoco_py/binaries/linux/mujoco210/"
_LIBRARY = "bin/libmujoco210nogl.so"
_NEWEST_PYTHON = (3, 12)
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_INSTALL = 'run `make mujoco-py`, or `pip install "meta_policy_search[mujoco-py]"` first'
_CHECK = ("from meta_policy_search.envs.mujoco_envs.engines.mujoco_py import import_mujoco_py; "
          "version = import_mujoco_py().functions.mj_version(); assert version == 210, version")


def engine_folder() -> Optional[Path]:
    """Returns the folder of the built MuJoCo 2.1.0 for the running Python version, or None if it is not built."""
    package = _package_folder()
    if package is None:
        return None
    folder = package / "mujoco210"
    return folder if (folder / _LIBRARY).is_file() and extension_file(package).is_file() else None


def build() -> None:
    """Builds the engine and checks that it can be imported.

    Raises:
        RuntimeError: a requirement is missing, or a build step failed.
        OSError: a file cannot be read or written.
    """
    _check_machine()
    package = _package_folder()
    if package is None:
        raise RuntimeError(f"the package mujoco-py is not installed: {_INSTALL}")
    with tempfile.TemporaryDirectory() as scratch:
        mujoco = _unpack(_download(Path(scratch) / "wheel"), Path(scratch) / "mujoco210")
        extension = _compile(package, mujoco, Path(scratch) / "build")
        extension_file(package).unlink(missing_ok=True)  # after an interruption, `engine_folder` returns None
        shutil.rmtree(package / "mujoco210", ignore_errors=True)
        shutil.copytree(mujoco, package / "mujoco210")
        shutil.copy(extension, extension_file(package))
    if subprocess.run([sys.executable, "-c", _CHECK]).returncode:
        raise RuntimeError("the engine was built but cannot be imported; see the error above")


def _package_folder() -> Optional[Path]:
    """Returns the folder of the installed package `mujoco_py` without importing it, or None if it is not installed."""
    spec = importlib.util.find_spec("mujoco_py")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def extension_file(package: Path) -> Path:
    """Returns the path from which `mujoco_py` imports its extension module."""
    version = runpy.run_path(str(package / "version.py"))["get_version"]()
    python = _PYTHON.replace(".", "")
    return package / "generated" / f"cymj_{version}_{python}_linuxcpuextensionbuilder_{python}.so"


def _check_machine() -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise RuntimeError(f"machine: expected Linux on x86_64, got {platform.system()} on {platform.machine()}: use "
                           "the engine mujoco, which does not have to be built")
    if sys.version_info[:2] > _NEWEST_PYTHON:
        raise RuntimeError(
            f"Python: expected version 3.10 to 3.12, got {_PYTHON} (mujoco-py requires a Cython version below 3): run "
            "`make clean`, then `make mujoco-py PYTHON=python3.12`")


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--python-version", "3.10", "--dest", str(folder), _WHEEL]
    if subprocess.run(command).returncode:
        raise RuntimeError(f"pip could not download {_WHEEL}, which contains MuJoCo 2.1.0; see the error above")
    (wheel,) = folder.glob("*.whl")
    return wheel


def _unpack(wheel: Path, folder: Path) -> Path:
    """Checks the wheel and extracts the library and headers of MuJoCo to `folder`; returns `folder`."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != _WHEEL_SHA256:
        raise RuntimeError(f"{wheel.name}: expected the SHA-256 {_WHEEL_SHA256}, got {digest}")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            inside = name.removeprefix(_IN_WHEEL)
            if inside in (_LIBRARY, "THIRD_PARTY_NOTICES") or re.fullmatch(r"include/\w+\.h", inside):
                target = folder / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
    return folder


def _compile(package: Path, mujoco: Path, folder: Path) -> Path:
    """Compiles the extension module from a copy of the sources in `package`; returns the compiled file."""
    import numpy as np
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    sources = folder / "mujoco_py"
    shutil.copytree(package, sources, ignore=shutil.ignore_patterns("*.so", "*.c.tmp", "mujoco210", "__pycache__"))
    (sources / "cymj.c").unlink(missing_ok=True)  # may have been generated for another Python version
    stubs = folder / "stubs.c"
    stubs.write_text(make_stubs((mujoco / "include" / "mujoco.h").read_text(encoding="utf-8")), encoding="utf-8")
    extension = Extension(
        "mujoco_py.cymj",
        sources=[str(sources / "cymj.pyx"), str(sources / "gl" / "dummyshim.c"), str(stubs)],
        include_dirs=[str(sources), str(mujoco / "include"), np.get_include()],
        library_dirs=[str(mujoco / "bin")],
        libraries=[Path(_LIBRARY).stem.removeprefix("lib")],
        runtime_library_dirs=["$ORIGIN/../mujoco210/bin"],  # relative, so that the package can be moved
        extra_compile_args=["-w", "-O1", "-g0"],  # more optimization has no effect: the library does the work
    )
    try:
        (extension,) = cythonize([extension], quiet=True)
        distribution = Distribution({"ext_modules": [extension]})
        command = distribution.get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
        command.ensure_finalized()
        command.run()
    except Exception as error:  # compilers raise many types; they have already printed details
        raise RuntimeError(
            f"the extension module could not be compiled ({type(error).__name__}: {error}): install a C compiler and "
            f"the header files of Python (`apt-get install gcc python{_PYTHON}-dev`), and the package versions of `pip "
            'install "meta_policy_search[mujoco-py]"`') from error
    (compiled,) = command.get_outputs()
    return Path(compiled)


def make_stubs(header: str) -> str:
    """Returns C code that defines empty rendering functions, which MuJoCo's library without OpenGL does not contain."""
    names = sorted(set(re.findall(r"\b(mj(?:r|ui)_\w+)\(", header)))
    return "".join(f"int {name}(void) {{ return 0; }}\n" for name in names)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Builds the engine if it is not built yet; returns the exit status, 0 for success and 1 for a failed build."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__spec__.name}", description="Builds the physics engine mujoco-py (MuJoCo 2.1.0).")
    parser.add_argument("--force", action="store_true", help="rebuild an existing engine")
    options = parser.parse_args(arguments)
    if engine_folder() is not None and not options.force:
        print("mujoco-py: already built (use --force to rebuild)")
        return 0
    print("mujoco-py: building the engine, about a minute", flush=True)
    try:
        build()
    except (OSError, RuntimeError) as error:
        print(f"mujoco-py: build failed: {error}", file=sys.stderr)
        return 1
    print(f"mujoco-py: built in {engine_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
