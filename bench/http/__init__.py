"""Parts of the benchmark of the HTTP programs: a load generator, and the floor."""
