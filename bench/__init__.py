"""Benchmarks: each compares Headrace with a floor or with Apache Kafka in one run and prints ratios."""
