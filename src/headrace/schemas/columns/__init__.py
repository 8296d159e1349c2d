"""Values of a schema as Arrow columns, which are Spark's: types, decoders, encoders."""
