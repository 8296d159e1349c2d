"""The families of metrics that `broker.metrics_page` puts together, and the text format they are written in.

Everything is read when somebody asks; nothing here is called by the paths that serve clients.
"""
