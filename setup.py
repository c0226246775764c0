"""Packaging. `pip install -e .` installs the package in place, `pip install -e ".[dev]"` adds the development tools.

Lower bounds of `DEPENDENCIES` are the lowest versions that `.ci/run` tests.
`docs/installation.rst` lists all tested versions.
"""
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
# Placeholders until the first release: maintainers replace OWNER, and SITE if its name is taken.
REPOSITORY = "https://github.com/OWNER/meta_policy_search"
SITE = "https://meta-policy-search.readthedocs.io"

DEPENDENCIES = [
    "cloudpickle>=3.1",
    "cma>=4.3",  # CMA-ES
    "filelock>=4.0",  # locks run folders
    "gym==0.26.2",  # interface of environments; its environments are not used
    "gymnasium>=1.1.1",  # contains the models of the MuJoCo robots; metaworld does not work with 1.1.0
    "imageio>=2.31",  # Gymnasium's MuJoCo environments import it
    "joblib>=1.2",  # existing scripts load snapshots with it
    "matplotlib>=3.8",
    "mujoco>=3.3",
    "numpy>=1.26",
    "python-dateutil>=2.8.2",  # times in messages and flags
    "scipy>=1.11",
    "tensorflow>=2.16",
    "threadpoolctl>=3.1",  # matrix operations of NumPy and SciPy in one thread
    "tqdm>=4.64",
]

EXTRAS = {
    "dev": ["codespell[toml]>=2.4", "import-linter>=2.7", "ipykernel>=6.29", "mypy>=2.0", "nbclient>=0.10",
            "nbformat>=5.10", "psutil>=5.9", "pytest>=9.0", "pytest-cov>=4.1", "pytest-xdist>=3.5", "pyyaml>=6.0",
            "ruff>=0.5", "setuptools>=66.1", "sphinx>=7.3", "sphinx-lint>=1.0"],
    # `make mujoco-py` builds the engine. mujoco-py needs Cython below 3, which does not work with NumPy 2.5.
    "mujoco-py": ["cython>=0.29.36,<3", "mujoco-py==2.1.2.14", "numpy>=1.26,<2.5", "setuptools>=64,<81"],
    "video": ["imageio-ffmpeg>=0.6", "pillow>=10.0"],  # imageio-ffmpeg contains the encoder
    "metaworld": ["metaworld>=3.0,<3.1"],  # tested with 3.0.0
    "ray": ["ray>=2.40"],
    "stable-baselines3": ["sb3-contrib>=2.4", "stable-baselines3>=2.4"],  # for scripts in experiments
    "tensorboard": ["tensorboard>=2.16"],  # writes and shows learning curves
    "docs": ["furo>=2024.8.6", "myst-nb>=1.1", "sphinx>=7.3", "sphinx-copybutton>=0.5.2", "sphinx-design>=0.6",
             "sphinx-mathjax-offline==0.0.2"],
}


def read_version() -> str:
    """Returns `__version__` of the package without importing it, because its dependencies may be missing."""
    text = (ROOT / "meta_policy_search" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, flags=re.MULTILINE)[1]


def read_description() -> str:
    """Returns the README without pictures, their captions and relative links, which a package index cannot show."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^!\[.*\]\((?!https:).*\)\n\n(.+\n)+\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^]]+)\]\((?!https:)[^)]+\)", r"\1", text)


setup(
    name="meta_policy_search",
    version=read_version(),
    description="Meta-reinforcement learning: ProMP, MAML, E-MAML and RL2 on static TensorFlow graphs",
    long_description=read_description(),
    long_description_content_type="text/markdown",
    author="meta_policy_search developers",
    license_expression="MIT",
    license_files=["LICENSE"],
    url=REPOSITORY,
    project_urls={
        "Documentation": SITE,
        "Changelog": f"{SITE}/en/stable/changelog.html",
        "Issues": f"{REPOSITORY}/issues",
        "Source": REPOSITORY,
    },
    keywords=["meta-learning", "meta-reinforcement-learning", "reinforcement-learning", "few-shot-learning",
              "adaptation", "MAML", "ProMP", "E-MAML", "RL2", "TRPO", "Gymnasium", "MuJoCo", "TensorFlow"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    python_requires=">=3.10,<3.14",  # without an upper bound, pip installs a pre-release of TensorFlow on 3.14
    packages=find_packages(include=["meta_policy_search", "meta_policy_search.*"]),
    package_dir={"": "."},  # type checkers find an installation in place
    package_data={
        "meta_policy_search": ["py.typed", "__init__.pyi"],
        "meta_policy_search.envs": ["data/*.json"],
        "meta_policy_search.envs.mujoco_envs.engines": ["data/*.npz"],
        "meta_policy_search.pretrained_policies": ["data/*.json", "data/*/*.npz"],
    },
    entry_points={"console_scripts": ["meta-policy-search=meta_policy_search.__main__:main"]},
    install_requires=DEPENDENCIES,
    extras_require=EXTRAS,
)
