"""Lets Spark find `format("headrace")` by its name: it looks into every installed package that is called `pyspark_…`.

Spark imports this in a process of its own, once, and one failing package would hide all others: so it must not fail.
"""

try:
    from headrace.pipelines.source import HeadraceDataSource as DefaultSource
except ImportError:  # an older Spark, or half an installation: others' sources must stay visible
    pass
else:
    __all__ = ["DefaultSource"]
