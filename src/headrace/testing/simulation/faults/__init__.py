"""What goes wrong in a simulated cluster: one module for each part of the world that breaks, and `nemesis`, which lets it."""
