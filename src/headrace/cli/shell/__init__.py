"""What every tool needs: options and usage errors, the connection to a cluster, output, progress, signals."""
