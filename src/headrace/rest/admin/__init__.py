"""Administration for requests: a pool of admin clients, and views of topics and groups made with them."""
