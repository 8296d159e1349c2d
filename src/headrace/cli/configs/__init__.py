"""Configs, quotas and credentials as `headrace configs` reads, prints and changes them."""
