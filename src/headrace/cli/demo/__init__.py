"""The demo: its cluster, its shop, its pipeline. Started by `cli.tools.demo`.

`story` has the steps in order; `shop` the events and the expected result; `traffic` sends and reads; `shop_pipeline` is what
Spark runs; `chart` draws.
"""
