"""Threads of matrix operations."""
import threadpoolctl


def blas_threads():
    """Returns the numbers of threads of the libraries for matrix operations."""
    return {library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}
