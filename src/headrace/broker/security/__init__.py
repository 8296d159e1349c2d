"""What a client may do. Every listener is PLAINTEXT and nothing is restricted yet, so clients are told that all is allowed."""
