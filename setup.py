"""Packaging: `pip install -e .` installs in place; `pip install -e ".[dev]"` adds the development tools."""
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent

DEPENDENCIES = [
    "cloudpickle>=2.2",
    "cma>=4.3",  # CMA-ES
    "filelock>=4.0",  # locks of run folders
    "gym==0.26.2",  # interface of the environments; gym's environments are not used
    "gymnasium>=1.0",  # contains the models of the MuJoCo robots
    "joblib>=1.2",  # scripts load snapshots with `joblib.load`
    "matplotlib>=3.8",
    "mujoco>=3.3",
    "numpy>=1.26",
    "scipy>=1.11",
    "tensorflow>=2.16",
    "tqdm>=4.64",
]

EXTRAS = {
    "dev": ["import-linter>=2.7", "ipykernel>=6.29", "mypy>=2.0", "nbclient>=0.10", "nbformat>=5.10", "psutil>=5.9",
            "pytest>=9.0", "pytest-cov>=4.1", "pytest-xdist>=3.5", "ruff>=0.5", "setuptools>=64", "sphinx>=7.3"],
    # `make mujoco-py` builds its engine. mujoco-py requires an old Cython, which does not support newer NumPy.
    "mujoco-py": ["cython>=0.29.36,<3", "mujoco-py==2.1.2.14", "numpy>=1.26,<2.5", "setuptools>=64,<81"],
    "video": ["imageio-ffmpeg>=0.6", "pillow>=10.0"],  # imageio-ffmpeg contains the encoder
    "metaworld": ["metaworld>=3.0,<3.1"],  # later versions require mujoco 3.3.0, but also work with other versions
    "ray": ["ray>=2.40"],
    "tensorboard": ["tensorboard>=2.16"],  # writes and displays curves of runs
    "docs": ["furo>=2024.8.6", "myst-nb>=1.1", "sphinx>=7.3", "sphinx-copybutton>=0.5.2",
             "sphinx-mathjax-offline==0.0.2"],
}


def read_version() -> str:
    """Reads `__version__` of the package without importing it: importing would require its dependencies."""
    text = (ROOT / "meta_policy_search" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, flags=re.MULTILINE)[1]


setup(
    name="meta_policy_search",
    version=read_version(),
    description="Gradient-based meta-reinforcement learning: ProMP, MAML and E-MAML on static TensorFlow graphs",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="meta_policy_search developers",
    license="MIT",
    license_files=["LICENSE"],
    keywords="meta-learning reinforcement-learning MAML ProMP E-MAML TRPO MuJoCo TensorFlow",
    classifiers=[
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=["meta_policy_search", "meta_policy_search.*"]),
    package_dir={"": "."},  # lets type checkers find the package in an editable installation
    package_data={
        "meta_policy_search": ["py.typed", "__init__.pyi"],
        "meta_policy_search.envs.mujoco_envs.engines": ["data/*.npz"],
    },
    zip_safe=False,
    install_requires=DEPENDENCIES,
    extras_require=EXTRAS,
)
