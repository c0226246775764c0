"""Packaging: `pip install .`, or `pip install -e ".[dev]"` to work on the package."""
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent

DEPENDENCIES = [
    "cloudpickle>=2.2",
    "cma>=3.3",  # CMA-ES
    "gym==0.26.2",  # the interface that environments follow; its own environments are not used
    "gymnasium>=1.0",  # carries the models of the MuJoCo robots
    "joblib>=1.2",  # what scripts load snapshots with
    "matplotlib>=3.8",
    "mujoco>=3.3",
    "numpy>=1.26",
    "scipy>=1.11",
    "tensorflow>=2.16",
    "tqdm>=4.64",
]

EXTRAS = {
    "dev": ["psutil>=5.9", "pytest>=9.0", "pytest-cov>=4.1", "pytest-xdist>=3.5", "ruff>=0.5", "setuptools>=64"],
    "docs": ["furo>=2024.8.6", "myst-parser>=3.0", "sphinx>=7.3"],
}


def read_version() -> str:
    """Returns `__version__` of the package without importing it, which would need its dependencies."""
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
    package_data={
        "meta_policy_search": ["py.typed"],
        "meta_policy_search.envs.mujoco_envs": ["data/*.npz"],
    },
    zip_safe=False,
    install_requires=DEPENDENCIES,
    extras_require=EXTRAS,
)
