"""Cases, one file per family of APIs. Every public function that takes a `Script` is a case; its name tells its story."""
