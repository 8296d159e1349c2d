"""What a pipeline's file defines: loading and checking it, the decorators of Spark Declarative Pipelines, the first file of a new pipeline."""
