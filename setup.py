"""Builds the one compiled module; everything else about the package is in pyproject.toml.

The flags are part of the result: they forbid the compiler to fuse or reorder floating-point operations, so
every machine ranks alike. Where no compiler is found the build goes on without it, and
learning/kernel_numpy.py is used.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "learning._kernel",
            ["learning/_kernel.c"],
            extra_compile_args=[
                "-O2",
                "-ftree-vectorize",
                "-ffp-contract=off",
                "-std=c11",
                "-Wall",
                "-Wextra",
            ],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
