"""Record batches as columns: found in the bytes of a fetch, and written from Arrow columns, without a Python object per record."""
