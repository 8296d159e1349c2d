"""What a Fetch needs beside the partitions: fetch sessions, reads for consumers and for followers, the nearest replica."""
