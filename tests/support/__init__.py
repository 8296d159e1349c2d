"""What tests share to run software we did not write: finding it, starting it, stopping it. Knows nothing of one test."""
