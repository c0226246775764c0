"""Builds the physics engine mujoco-py: MuJoCo 2.1.0 and the extension module through which `mujoco_py` calls it.

    make mujoco-py

runs all steps; without make:

    pip install "meta_policy_search[mujoco-py]"
    python -m meta_policy_search.envs.mujoco_envs.engines.build

The build needs 64-bit Linux on x86, Python 3.10 to 3.12, a C compiler and about a minute, but no OpenGL. It changes
only the folder of the installed package `mujoco_py`. MuJoCo 2.1.0 comes from a wheel on PyPI that contains its library
and headers; its SHA-256 is checked. The rendering functions of `mujoco_py` do nothing.
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
    """Returns the folder of the MuJoCo 2.1.0 that was built for this Python, or None."""
    package = _package_folder()
    if package is None:
        return None
    folder = package / "mujoco210"
    return folder if (folder / _LIBRARY).is_file() and extension_file(package).is_file() else None


def build() -> None:
    """Builds the engine and checks that it loads.

    Raises:
        RuntimeError: a requirement is missing, or a step fails.
        OSError: a file cannot be read or written.
    """
    _check_machine()
    package = _package_folder()
    if package is None:
        raise RuntimeError(f"the package mujoco-py is not installed: {_INSTALL}")
    with tempfile.TemporaryDirectory() as scratch:
        mujoco = _unpack(_download(Path(scratch) / "wheel"), Path(scratch) / "mujoco210")
        extension = _compile(package, mujoco, Path(scratch) / "build")
        extension_file(package).unlink(missing_ok=True)  # an interrupted build counts as none
        shutil.rmtree(package / "mujoco210", ignore_errors=True)
        shutil.copytree(mujoco, package / "mujoco210")
        shutil.copy(extension, extension_file(package))
    if subprocess.run([sys.executable, "-c", _CHECK]).returncode:
        raise RuntimeError("the engine was built, but does not load; the error is above")


def _package_folder() -> Optional[Path]:
    """Returns the folder of the installed package `mujoco_py`, without importing it; None: there is none."""
    spec = importlib.util.find_spec("mujoco_py")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def extension_file(package: Path) -> Path:
    """Returns where mujoco-py looks for its extension."""
    version = runpy.run_path(str(package / "version.py"))["get_version"]()
    python = _PYTHON.replace(".", "")
    return package / "generated" / f"cymj_{version}_{python}_linuxcpuextensionbuilder_{python}.so"


def _check_machine() -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise RuntimeError(f"MuJoCo 2.1.0 is built for Linux on x86_64 alone, and this is {platform.system()} on "
                           f"{platform.machine()}: use the engine mujoco, which needs no building")
    if sys.version_info[:2] > _NEWEST_PYTHON:
        raise RuntimeError(
            f"mujoco-py does not support Python {_PYTHON} (it needs a Cython older than 3, which does not): use Python "
            "3.10 to 3.12, as in `make clean`, then `make mujoco-py PYTHON=python3.12`")


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--python-version", "3.10", "--dest", str(folder), _WHEEL]
    if subprocess.run(command).returncode:
        raise RuntimeError(f"pip could not download {_WHEEL}, which contains MuJoCo 2.1.0; the error is above")
    (wheel,) = folder.glob("*.whl")
    return wheel


def _unpack(wheel: Path, folder: Path) -> Path:
    """Extracts the library and the headers from the wheel; returns their folder."""
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
    """Compiles mujoco-py's extension from a copy of its sources; returns the compiled file."""
    import numpy as np
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    sources = folder / "mujoco_py"
    shutil.copytree(package, sources, ignore=shutil.ignore_patterns("*.so", "*.c.tmp", "mujoco210", "__pycache__"))
    (sources / "cymj.c").unlink(missing_ok=True)  # made for another Python
    stubs = folder / "stubs.c"
    stubs.write_text(make_stubs((mujoco / "include" / "mujoco.h").read_text(encoding="utf-8")), encoding="utf-8")
    extension = Extension(
        "mujoco_py.cymj",
        sources=[str(sources / "cymj.pyx"), str(sources / "gl" / "dummyshim.c"), str(stubs)],
        include_dirs=[str(sources), str(mujoco / "include"), np.get_include()],
        library_dirs=[str(mujoco / "bin")],
        libraries=[Path(_LIBRARY).stem.removeprefix("lib")],
        runtime_library_dirs=["$ORIGIN/../mujoco210/bin"],  # wherever the package lies
        extra_compile_args=["-w", "-O1", "-g0"],  # glue: the time goes into the library
    )
    try:
        (extension,) = cythonize([extension], quiet=True)
        distribution = Distribution({"ext_modules": [extension]})
        command = distribution.get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
        command.ensure_finalized()
        command.run()
    except Exception as error:  # of many kinds; the compiler has said more
        raise RuntimeError(
            f"the extension could not be compiled ({type(error).__name__}: {error}). It needs a C compiler and the "
            f"header files of Python (`apt-get install gcc python{_PYTHON}-dev`) and the package versions that `pip "
            'install "meta_policy_search[mujoco-py]"` installs') from error
    (compiled,) = command.get_outputs()
    return Path(compiled)


def make_stubs(header: str) -> str:
    """Returns C code of empty rendering functions, which the library without OpenGL lacks."""
    names = sorted(set(re.findall(r"\b(mj(?:r|ui)_\w+)\(", header)))
    return "".join(f"int {name}(void) {{ return 0; }}\n" for name in names)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Builds the engine unless it is built already; returns 0, or 1 if it cannot be built."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__spec__.name}", description="Builds the physics engine mujoco-py (MuJoCo 2.1.0).")
    parser.add_argument("--force", action="store_true", help="build anew what has been built")
    options = parser.parse_args(arguments)
    if engine_folder() is not None and not options.force:
        print("mujoco-py: already built (--force builds it anew)")
        return 0
    print("mujoco-py: building the engine; this takes about a minute", flush=True)
    try:
        build()
    except (OSError, RuntimeError) as error:
        print(f"mujoco-py: not built: {error}", file=sys.stderr)
        return 1
    print(f"mujoco-py: built, in {engine_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
