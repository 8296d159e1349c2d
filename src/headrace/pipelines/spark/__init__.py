"""The Spark that pipelines run on: its Java, its files, its process, its error messages."""
