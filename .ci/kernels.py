"""Prints the versions of Python, NumPy and TensorFlow, and the kernels that they choose on this processor.

    python .ci/kernels.py NAME                 # one line that begins with NAME
    python .ci/kernels.py --features PATTERN   # value of NPY_DISABLE_CPU_FEATURES that disables the matching features
"""
import os
import platform
import re
import sys
from importlib.metadata import version

import numpy as np

from meta_policy_search.utils.threads import blas_kernels

# NumPy's features on this processor that can be disabled. Their names depend on the version of NumPy.
features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
if sys.argv[1] == "--features":
    print(*(name for name in features if re.search(sys.argv[2], name)))
else:
    print(f"{sys.argv[1]}: Python {platform.python_version()}, NumPy {np.__version__}, "
          f"TensorFlow {version('tensorflow')}; OpenBLAS {blas_kernels()}, "
          f"oneDNN {os.environ.get('ONEDNN_MAX_CPU_ISA', 'default')}, "
          f"NumPy features {' '.join(features) or 'only the baseline'}")
