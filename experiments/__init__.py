"""Scripts that train the algorithms of the package on its environments; see the docstring of each."""
